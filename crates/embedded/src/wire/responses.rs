//! OpenAI Responses: `POST /v1/responses`, without state at the service.

use serde_json::{Value, json};
use teamster_core::{ErrorKind, Usage};

use super::anthropic::{push, usage_of};
use super::chat::{arguments_text, bearer};
use super::{
    AnswerDecoder, Completed, Delta, Failure, ModelRequest, StopReason, Wire, WireKind, arguments,
    arguments_piece, error, piece, text,
};
use crate::conversation::{Answer, Block, Call, CallResult, Input, Message};

#[derive(Debug)]
pub(super) struct Responses;

impl Wire for Responses {
    fn path(&self, _model: &str) -> String {
        "/responses".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn encode(&self, request: &ModelRequest<'_>) -> Value {
        let mut input = Vec::new();
        for message in request.messages {
            encode(message, request.model, &mut input);
        }
        let mut body = json!({
            "model": request.model,
            "stream": true,
            // The service stores nothing; each request has the whole conversation.
            "store": false,
            "input": input,
        });
        if reasons(request.model) {
            body["include"] = json!(["reasoning.encrypted_content"]);
            body["reasoning"] = json!({"summary": "auto"});
            if let Some(effort) = request.effort {
                body["reasoning"]["effort"] = effort.as_str().into();
            }
        }
        if !request.system.is_empty() {
            body["instructions"] = request.system.into();
        }
        if !request.tools.is_empty() {
            let tool = |tool: &super::ToolSpec| {
                json!({
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                    "strict": false,
                })
            };
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        if let Some(name) = request.forced_tool {
            body["tool_choice"] = json!({"type": "function", "name": name});
        }
        body
    }

    fn decoder(&self) -> Box<dyn AnswerDecoder> {
        Box::<Decoder>::default()
    }
}

/// Returns whether a model supports reasoning. Other models reject the settings for it.
fn reasons(model: &str) -> bool {
    !model.starts_with("gpt-4") && !model.starts_with("gpt-3")
}

fn encode(message: &Message, model: &str, out: &mut Vec<Value>) {
    match message {
        Message::User { content } => {
            let content: Vec<_> = content.iter().map(input).collect();
            out.push(json!({"role": "user", "content": content}));
        }
        Message::Assistant(answer) => {
            let is_own = answer.is_of(WireKind::Responses, model);
            for block in &answer.blocks {
                match block {
                    Block::Text { text, .. } if text.is_empty() => {}
                    Block::Text { text, .. } => out.push(json!({
                        "type": "message",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": text}],
                    })),
                    Block::Reasoning { native, .. } => {
                        out.extend(native.clone().filter(|_| is_own));
                    }
                    Block::Call(call) => out.push(json!({
                        "type": "function_call",
                        "call_id": call.id,
                        "name": call.name,
                        "arguments": arguments_text(&call.input),
                    })),
                }
            }
        }
        Message::Tool { results } => out.extend(results.iter().map(result)),
    }
}

fn input(input: &Input) -> Value {
    match input {
        Input::Text { text } => json!({"type": "input_text", "text": text}),
        Input::Image { media_type, data } => {
            let url = format!("data:{media_type};base64,{data}");
            json!({"type": "input_image", "image_url": url})
        }
    }
}

fn result(result: &CallResult) -> Value {
    let output: Value = if result.images().next().is_some() {
        result.content.iter().map(input).collect()
    } else {
        result.text().into()
    };
    json!({"type": "function_call_output", "call_id": result.id, "output": output})
}

#[derive(Debug, Default)]
struct Decoder {
    /// Complete items, each once.
    items: Vec<Value>,
    /// Items that have begun, with their index.
    open: Vec<(u64, Value)>,
    /// Text that was streamed.
    said: String,
    usage: Usage,
    stop: Option<StopReason>,
    /// Item and part of the reasoning that is being streamed.
    part: Option<(u64, u64)>,
}

fn same(one: &Value, other: &Value) -> bool {
    let field = |name: &str| !text(one, name).is_empty() && text(one, name) == text(other, name);
    text(one, "type") == text(other, "type") && (field("id") || field("call_id"))
}

/// Returns whether two items can be compared by an id.
fn share_id(one: &Value, other: &Value) -> bool {
    let has = |item, name| !text(item, name).is_empty();
    ["id", "call_id"]
        .iter()
        .any(|name| has(one, name) && has(other, name))
}

/// Converts a complete item.
fn block(item: &Value) -> Option<Block> {
    Some(match text(item, "type") {
        "message" => Block::text(piece(&item["content"])),
        "reasoning" => {
            let summary = item["summary"].as_array().into_iter().flatten();
            let parts: Vec<_> = summary.map(piece).collect();
            let mut native = item.clone();
            let is_signed = !text(item, "encrypted_content").is_empty();
            if let Some(fields) = native.as_object_mut() {
                // Valid in answers only.
                fields.shift_remove("status");
            }
            Block::Reasoning {
                text: if parts.is_empty() {
                    piece(&item["content"])
                } else {
                    parts.join("\n\n")
                },
                native: is_signed.then_some(native),
            }
        }
        kind @ ("function_call" | "custom_tool_call") => Block::Call(Call {
            id: match text(item, "call_id") {
                "" => text(item, "id").to_owned(),
                id => id.to_owned(),
            },
            name: text(item, "name").to_owned(),
            input: match kind {
                "function_call" => arguments(&arguments_piece(&item["arguments"])),
                _ => Value::String(text(item, "input").to_owned()),
            },
            signature: None,
        }),
        _ => return None,
    })
}

impl Decoder {
    /// Adds a complete item.
    fn item(&mut self, item: &Value) {
        if !self.items.iter().any(|known| same(known, item)) {
            self.items.push(item.clone());
        }
    }

    /// Returns the item that an event is about.
    fn open(&mut self, data: &Value) -> Option<&mut Value> {
        let (id, index) = (text(data, "item_id"), data["output_index"].as_u64());
        let is_it = |(at, item): &&mut (u64, Value)| match text(item, "id") {
            known if !known.is_empty() && !id.is_empty() => known == id,
            _ => Some(*at) == index,
        };
        let found = self.open.iter_mut().rfind(is_it);
        found.map(|(_, item)| item)
    }

    fn say(&mut self, piece: &str, out: &mut Vec<Delta>) {
        self.said.push_str(piece);
        push(out, Delta::Text, piece);
    }

    fn end(&mut self, response: &Value, out: &mut Vec<Delta>) -> Result<(), Failure> {
        if matches!(text(response, "status"), "failed" | "cancelled") {
            return Err(error::of_body(None, response));
        }
        self.usage = usage_of(
            &response["usage"],
            [
                "/input_tokens",
                "/output_tokens",
                "/input_tokens_details/cached_tokens",
                "/input_tokens_details/cache_write_tokens",
                "/output_tokens_details/reasoning_tokens",
            ],
        );
        let output = response["output"].as_array().map_or(&[][..], Vec::as_slice);
        // Some services send items only here, or some of them.
        if output.len() > self.items.len() {
            self.items = output.to_vec();
        }
        self.complete(out);
        self.stop = Some(match text(&response["incomplete_details"], "reason") {
            "max_output_tokens" | "max_tokens" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal,
            reason if reason.contains("context") => StopReason::ContextWindow,
            "" if text(response, "status") != "incomplete" => self.usual_stop(),
            reason => {
                return Err(Failure::new(
                    ErrorKind::Protocol,
                    format!("the service left the answer incomplete ({reason})"),
                ));
            }
        });
        Ok(())
    }

    fn usual_stop(&self) -> StopReason {
        // Not those of the service, such as `web_search_call`.
        let is_call = |item: &Value| matches!(block(item), Some(Block::Call(_)));
        if self.items.iter().any(is_call) {
            StopReason::ToolUse
        } else {
            StopReason::End
        }
    }

    /// Adds what was only streamed to the items, and streams what was only in the items.
    fn complete(&mut self, out: &mut Vec<Delta>) {
        for (_, item) in std::mem::take(&mut self.open) {
            if text(&item, "type").ends_with("_call") {
                self.item(&item);
            }
        }
        let messages = self
            .items
            .iter()
            .filter(|item| text(item, "type") == "message");
        let whole: String = messages.map(|item| piece(&item["content"])).collect();
        if whole.is_empty() && !self.said.is_empty() {
            let content = self.said.clone();
            self.items
                .push(json!({"type": "message", "content": content}));
        } else if let Some(more) = whole.strip_prefix(self.said.as_str()) {
            let more = more.to_owned();
            self.say(&more, out);
        }
    }
}

impl AnswerDecoder for Decoder {
    fn event(&mut self, data: &Value, out: &mut Vec<Delta>) -> Result<(), Failure> {
        match text(data, "type") {
            "response.output_text.delta" | "response.refusal.delta" => {
                self.say(&piece(&data["delta"]), out);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let number = |field: &str| data[field].as_u64().unwrap_or_default();
                let part = Some((number("output_index"), number("summary_index")));
                if self.part != part && self.part.is_some() {
                    out.push(Delta::Reasoning("\n\n".to_owned()));
                }
                self.part = part;
                push(out, Delta::Reasoning, text(data, "delta"));
            }
            "response.output_item.added" => {
                let index = data["output_index"].as_u64().unwrap_or_default();
                self.open.push((index, data["item"].clone()));
            }
            "response.function_call_arguments.delta" => {
                if let Some(item) = self.open(data) {
                    let so_far = arguments_piece(&item["arguments"]);
                    item["arguments"] = (so_far + text(data, "delta")).into();
                }
            }
            "response.function_call_arguments.done" => {
                if let Some(item) = self.open(data) {
                    item["arguments"] = data["arguments"].clone();
                }
            }
            "response.output_item.done" => {
                let item = &data["item"];
                let index = data["output_index"].as_u64();
                let is_it = |at: u64, open: &Value| {
                    if share_id(open, item) {
                        same(open, item)
                    } else {
                        Some(at) == index && text(open, "type") == text(item, "type")
                    }
                };
                self.open.retain(|(at, open)| !is_it(*at, open));
                self.item(item);
            }
            "response.completed" | "response.incomplete" | "response.done" => {
                self.end(&data["response"], out)?;
            }
            "response.failed" | "response.cancelled" => {
                return Err(error::of_body(None, &data["response"]));
            }
            "error" => return Err(error::of_body(None, data)),
            // An answer that is not streamed.
            "" if text(data, "object") == "response" => self.end(data, out)?,
            _ => {}
        }
        Ok(())
    }

    fn done(&mut self) {
        // Some services end a stream without the last event.
        if self.stop.is_none() && !self.items.is_empty() {
            self.stop = Some(self.usual_stop());
        }
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some()
    }

    fn finish(self: Box<Self>) -> Completed {
        Completed {
            answer: Answer::new(self.items.iter().filter_map(block).collect()),
            stop: self.stop.unwrap_or_default(),
            usage: self.usage,
        }
    }
}
