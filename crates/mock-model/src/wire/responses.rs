//! OpenAI Responses: `POST /v1/responses`.

mod items;

use serde_json::{Value, json};

use super::{
    Failure, Frame, Frames, ParsedRequest, Reply, Say, Speaker, Wire, breaks_off, pieces, turn,
};
use crate::cli;
use crate::json::{items as items_of, text_of};
use crate::protocol::Protocol;
use crate::{ErrorKind, Stop, Tokens};
use items::Item;

pub(crate) struct Responses;

impl Wire for Responses {
    fn asked(&self, _path: &str, body: &Value) -> ParsedRequest {
        ParsedRequest::new(Protocol::Responses, body, tools(body), turn_of(body))
    }

    fn stream(&self, reply: &Reply) -> Vec<Frame> {
        let mut out = Events::default();
        let begun = response(reply, "in_progress");
        out.event("response.created", json!({"response": begun}));
        out.event("response.in_progress", json!({"response": begun}));
        let mut output: Vec<Value> = Vec::new();
        for (at, say) in reply.say.iter().enumerate() {
            if out.frames.common(say) {
                continue;
            }
            if let Say::Error(kind) = say {
                let mut failed = response(reply, "failed");
                let (code, message) = event_error(*kind);
                failed["error"] = json!({"code": code, "message": message});
                failed["output"] = output.into();
                out.event("response.failed", json!({"response": failed}));
                return out.frames.into_vec();
            }
            if let Some(item) = Item::of(reply, output.len(), say) {
                let is_pause = |say: &Say| matches!(say, Say::Pause(_));
                let is_whole = !breaks_off(&reply.say[at..], is_pause);
                item_events(&mut out, output.len(), &item, say, is_whole);
                if is_whole {
                    output.push(item.complete());
                }
            }
        }
        let ended = end(reply, output);
        let name = match text_of(&ended, "status") {
            "incomplete" => "response.incomplete",
            _ => "response.completed",
        };
        out.event(name, json!({"response": ended}));
        out.frames.into_vec()
    }

    fn complete(&self, reply: &Reply) -> Value {
        let mut output = Vec::new();
        for say in &reply.say {
            if let Some(item) = Item::of(reply, output.len(), say) {
                output.push(item.complete());
            }
        }
        end(reply, output)
    }

    fn error(&self, kind: ErrorKind, message: Option<&str>) -> Failure {
        let ErrorForm {
            status,
            name,
            code,
            usual,
        } = ErrorForm::of(kind);
        Failure {
            status,
            body: json!({
                "error": {
                    "message": message.unwrap_or(usual),
                    "type": name,
                    "param": null,
                    "code": code,
                },
            }),
        }
    }
}

/// The events of a stream, which are numbered.
#[derive(Default)]
struct Events {
    frames: Frames,
    count: u64,
}

impl Events {
    fn event(&mut self, name: &str, mut data: Value) {
        data["type"] = name.into();
        data["sequence_number"] = self.count.into();
        self.count += 1;
        self.frames.event(Some(name), &data);
    }
}

/// Writes an item of the output with all its events, or without its end.
fn item_events(out: &mut Events, index: usize, item: &Item, say: &Say, is_whole: bool) {
    let id = item.id();
    // Adds the fields that every event of an item has, and its position in the item.
    let at = |place: &str, mut data: Value| {
        data["item_id"] = id.into();
        data["output_index"] = index.into();
        if !place.is_empty() {
            data[place] = 0.into();
        }
        data
    };
    out.event(
        "response.output_item.added",
        json!({"output_index": index, "item": item.begun()}),
    );
    match say {
        Say::Text(texts) => {
            let place = |data| at("content_index", data);
            out.event(
                "response.content_part.added",
                place(json!({"part": items::output_text("")})),
            );
            for text in texts {
                out.event(
                    "response.output_text.delta",
                    place(json!({"delta": text, "logprobs": []})),
                );
                out.frames.pace();
            }
            if !is_whole {
                return;
            }
            let text = texts.concat();
            out.event(
                "response.output_text.done",
                place(json!({"text": text, "logprobs": []})),
            );
            out.event(
                "response.content_part.done",
                place(json!({"part": items::output_text(&text)})),
            );
        }
        Say::Thinking(texts) => {
            let place = |data| at("summary_index", data);
            out.event(
                "response.reasoning_summary_part.added",
                place(json!({"part": items::summary_text("")})),
            );
            for text in texts {
                out.event(
                    "response.reasoning_summary_text.delta",
                    place(json!({"delta": text})),
                );
                out.frames.pace();
            }
            if !is_whole {
                return;
            }
            let text = texts.concat();
            out.event(
                "response.reasoning_summary_text.done",
                place(json!({"text": text})),
            );
            out.event(
                "response.reasoning_summary_part.done",
                place(json!({"part": items::summary_text(&text)})),
            );
        }
        Say::Call(call) => {
            let (events, field, input) = match &call.input {
                Value::String(text) => ("custom_tool_call_input", "input", text.clone()),
                input => ("function_call_arguments", "arguments", input.to_string()),
            };
            for piece in pieces(&input, 16) {
                out.event(
                    &format!("response.{events}.delta"),
                    at("", json!({"delta": piece})),
                );
            }
            out.event(
                &format!("response.{events}.done"),
                at("", json!({field: input})),
            );
        }
        _ => {}
    }
    out.event(
        "response.output_item.done",
        json!({"output_index": index, "item": item.complete()}),
    );
}

/// Encodes a response without output.
fn response(reply: &Reply, status: &str) -> Value {
    json!({
        "id": format!("resp_{}", reply.id),
        "object": "response",
        // The same whenever a script is played.
        "created_at": 0,
        "status": status,
        "error": null,
        "incomplete_details": null,
        "instructions": null,
        "model": reply.model,
        "output": [],
        "parallel_tool_calls": true,
        "tool_choice": "auto",
        "tools": [],
        "usage": null,
    })
}

/// Encodes the response at its end.
///
/// A refusal is the service's: `content_filter`. A model that refuses reports it in a content part of another
/// type, and the response is complete. Codex drops such a part, so the refusal would be lost.
fn end(reply: &Reply, output: Vec<Value>) -> Value {
    let reason = match reply.stop {
        Stop::End | Stop::ToolUse => None,
        Stop::MaxTokens => Some("max_output_tokens"),
        Stop::Refusal => Some("content_filter"),
    };
    let mut response = response(reply, reason.map_or("completed", |_| "incomplete"));
    if let Some(reason) = reason {
        response["incomplete_details"] = json!({"reason": reason});
    }
    response["output"] = output.into();
    response["usage"] = usage(&reply.usage);
    response
}

/// Encodes the usage. The input includes cache reads and writes.
fn usage(tokens: &Tokens) -> Value {
    let input = tokens.input + tokens.cache_read + tokens.cache_write;
    json!({
        "input_tokens": input,
        "input_tokens_details": {
            "cached_tokens": tokens.cache_read,
            "cache_write_tokens": tokens.cache_write,
        },
        "output_tokens": tokens.output,
        "output_tokens_details": {"reasoning_tokens": tokens.reasoning},
        "total_tokens": input + tokens.output,
    })
}

/// Returns the names of the tools. Most models get them in a field of the request; some models of Codex get
/// them in an item of the input.
fn tools(body: &Value) -> Vec<String> {
    let in_items = items_of(body, "input")
        .iter()
        .filter(|item| text_of(item, "type") == "additional_tools")
        .flat_map(|item| items_of(item, "tools"));
    items_of(body, "tools")
        .iter()
        .chain(in_items)
        .flat_map(
            |tool| match (text_of(tool, "type"), text_of(tool, "name")) {
                // A namespace that only groups tools without changing their names.
                ("namespace", "functions") => names(tool, ""),
                ("namespace", namespace) => names(tool, &format!("{namespace}__")),
                // A tool of the service itself has only a type.
                (hosted, "") => vec![hosted.to_owned()],
                (_, name) => vec![name.to_owned()],
            },
        )
        .collect()
}

fn names(namespace: &Value, prefix: &str) -> Vec<String> {
    items_of(namespace, "tools")
        .iter()
        .map(|tool| format!("{prefix}{}", text_of(tool, "name")))
        .collect()
}

/// Returns the turn of a request.
fn turn_of(body: &Value) -> usize {
    let input = items_of(body, "input").iter();
    cli::summarized_turns(body) + turn(input.filter_map(speaker))
}

/// Returns the author of an item of the input, or `None` if a client added it by itself: for example the
/// agent's environment, or Codex's note that a filter stopped the answer, after which it requests another.
fn speaker(item: &Value) -> Option<Speaker> {
    let kind = text_of(item, "type");
    match text_of(item, "role") {
        "assistant" => Some(Speaker::Model),
        "developer" | "system" => None,
        _ if cli::is_own_message(Protocol::Responses, item) => Some(Speaker::Other),
        _ if kind == "reasoning" || kind.ends_with("_call") => Some(Speaker::Model),
        _ => Some(Speaker::Other),
    }
}

/// Wire format of an error.
struct ErrorForm {
    status: u16,
    /// Its `type`.
    name: &'static str,
    code: Option<&'static str>,
    usual: &'static str,
}

impl ErrorForm {
    fn of(kind: ErrorKind) -> Self {
        let (status, name, code, usual) = match kind {
            ErrorKind::Authentication => (
                401,
                "invalid_request_error",
                Some("invalid_api_key"),
                "Incorrect API key provided.",
            ),
            ErrorKind::Permission => (
                403,
                "invalid_request_error",
                Some("insufficient_permissions"),
                "You have insufficient permissions for this operation.",
            ),
            ErrorKind::RateLimit => (
                429,
                "rate_limit_error",
                Some("rate_limit_exceeded"),
                "Rate limit reached. Please try again in 1s.",
            ),
            ErrorKind::Quota => (
                429,
                "insufficient_quota",
                Some("insufficient_quota"),
                "You exceeded your current quota, please check your plan and billing details.",
            ),
            ErrorKind::Server => (
                500,
                "server_error",
                None,
                "The server had an error while processing your request.",
            ),
            ErrorKind::Overloaded => (
                503,
                "service_unavailable_error",
                Some("server_is_overloaded"),
                "The server is overloaded. Please try again later.",
            ),
            ErrorKind::UnknownModel => (
                404,
                "invalid_request_error",
                Some("model_not_found"),
                "The model `no-such-model` does not exist or you do not have access to it.",
            ),
            ErrorKind::ContextTooLong => (
                400,
                "invalid_request_error",
                Some("context_length_exceeded"),
                "Your input exceeds the context window of this model.",
            ),
            ErrorKind::InvalidRequest => (400, "invalid_request_error", None, "Invalid request."),
        };
        Self {
            status,
            name,
            code,
            usual,
        }
    }
}

/// Returns the code and the message of an error in the stream, where the code is mandatory.
fn event_error(kind: ErrorKind) -> (&'static str, &'static str) {
    let ErrorForm { code, usual, .. } = ErrorForm::of(kind);
    let code = code.unwrap_or(match kind {
        ErrorKind::InvalidRequest => "invalid_prompt",
        _ => "server_error",
    });
    (code, usual)
}

#[cfg(test)]
mod tests;
