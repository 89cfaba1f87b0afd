//! Items of a response's output.

use serde_json::{Value, json};

use super::super::{Reply, Say};

/// Made up: only the service reads it. Codex requests it and sends it back.
const ENCRYPTED: &str = "bW9jaw==";

/// An item of the output.
pub(super) struct Item {
    complete: Value,
    /// The field that is empty at the beginning of the item, with its initial value.
    grows: (&'static str, Value),
}

impl Item {
    /// Returns the item at `index` of the output, or `None` if the part is not an item.
    pub(super) fn of(reply: &Reply, index: usize, say: &Say) -> Option<Self> {
        let id = |kind: &str| format!("{kind}_{}_{index}", reply.id);
        let (complete, grows) = match say {
            Say::Text(texts) => (
                json!({
                    "type": "message",
                    "id": id("msg"),
                    "status": "completed",
                    "role": "assistant",
                    "content": [output_text(&texts.concat())],
                }),
                ("content", json!([])),
            ),
            Say::Thinking(texts) => (
                json!({
                    "type": "reasoning",
                    "id": id("rs"),
                    "summary": [summary_text(&texts.concat())],
                    "encrypted_content": ENCRYPTED,
                }),
                ("summary", json!([])),
            ),
            Say::Call(call) => {
                let (kind, short, field, input) = match &call.input {
                    Value::String(text) => ("custom_tool_call", "ctc", "input", text.clone()),
                    input => ("function_call", "fc", "arguments", input.to_string()),
                };
                let mut complete = json!({
                    "type": kind,
                    "id": id(short),
                    "status": "completed",
                    "call_id": id("call"),
                    "name": call.name,
                    field: input,
                });
                if let Some(namespace) = &call.namespace {
                    complete["namespace"] = namespace.as_str().into();
                }
                (complete, (field, json!("")))
            }
            Say::Search(query) => (
                json!({
                    "type": "web_search_call",
                    "id": id("ws"),
                    "status": "completed",
                    "action": {"type": "search", "query": query},
                }),
                ("action", Value::Null),
            ),
            _ => return None,
        };
        Some(Self { complete, grows })
    }

    pub(super) fn id(&self) -> &str {
        super::text_of(&self.complete, "id")
    }

    /// Returns the item at its end.
    pub(super) fn complete(&self) -> Value {
        self.complete.clone()
    }

    /// Returns the item at its beginning.
    pub(super) fn begun(&self) -> Value {
        let mut item = self.complete();
        let (field, empty) = &self.grows;
        item[*field] = empty.clone();
        // Reasoning has no status.
        if let Some(status) = item.get_mut("status") {
            *status = "in_progress".into();
        }
        item
    }
}

/// Encodes a text part of a message.
pub(super) fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

/// Encodes a part of a summary of reasoning.
pub(super) fn summary_text(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}
