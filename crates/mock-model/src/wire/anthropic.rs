//! Anthropic Messages: `POST /v1/messages` and `…/count_tokens`.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use super::{
    Failure, Frame, Frames, ParsedRequest, Reply, RequestKind, Say, Speaker, Wire, breaks_off,
    pieces, turn,
};
use crate::cli;
use crate::json::{items, text_of};
use crate::protocol::Protocol;
use crate::{ErrorKind, Stop, Tokens};

pub(crate) struct Anthropic;

impl Wire for Anthropic {
    fn asked(&self, path: &str, body: &Value) -> ParsedRequest {
        let tools = items(body, "tools").iter();
        let tools = tools.map(|tool| text_of(tool, "name").to_owned());
        let turn = turn(items(body, "messages").iter().map(speaker));
        let mut asked = ParsedRequest::new(Protocol::Anthropic, body, tools.collect(), turn);
        if path.ends_with("/count_tokens") {
            // A token has about four bytes.
            asked.what = RequestKind::Body(json!({"input_tokens": body.to_string().len() / 4}));
        }
        asked
    }

    fn stream(&self, reply: &Reply) -> Vec<Frame> {
        let mut out = Frames::default();
        let event = |out: &mut Frames, data: Value| {
            out.event(Some(text_of(&data, "type")), &data);
        };
        let mut message = frame_of(reply);
        message["usage"] = usage(&reply.usage, 1);
        event(
            &mut out,
            json!({"type": "message_start", "message": message}),
        );
        event(&mut out, json!({"type": "ping"}));
        let mut index = 0;
        for (at, say) in reply.say.iter().enumerate() {
            if out.common(say) {
                continue;
            }
            let delta = |out: &mut Frames, delta: Value| {
                event(
                    out,
                    json!({"type": "content_block_delta", "index": index, "delta": delta}),
                );
            };
            match say {
                Say::Error(kind) => {
                    let Failure { body, .. } = self.error(*kind, None);
                    event(&mut out, body);
                    out.end(None);
                    continue;
                }
                Say::Search(query) => {
                    let input = json!({"query": query}).to_string();
                    let input = json!({"type": "input_json_delta", "partial_json": input});
                    let inputs = [Some(input), None];
                    for (block, input) in search(reply, query, false).into_iter().zip(inputs) {
                        let start = json!({"type": "content_block_start", "index": index, "content_block": block});
                        out.event(Some("content_block_start"), &start);
                        if let Some(input) = input {
                            let delta = json!({"type": "content_block_delta", "index": index, "delta": input});
                            event(&mut out, delta);
                        }
                        event(
                            &mut out,
                            json!({"type": "content_block_stop", "index": index}),
                        );
                        index += 1;
                    }
                    continue;
                }
                _ => {
                    let start = json!({"type": "content_block_start", "index": index, "content_block": block(reply, index, say, false)});
                    out.event(Some("content_block_start"), &start);
                }
            }
            // The CLI keeps complete blocks; for others it repeats the request without a stream. Literal bytes end none.
            let skips = |say: &Say| matches!(say, Say::Pause(_) | Say::Raw(_));
            let breaks_off = breaks_off(&reply.say[at..], skips);
            match say {
                Say::Text(texts) => {
                    for text in texts {
                        delta(&mut out, json!({"type": "text_delta", "text": text}));
                        out.pace();
                    }
                }
                Say::Thinking(texts) => {
                    for text in texts {
                        delta(
                            &mut out,
                            json!({"type": "thinking_delta", "thinking": text}),
                        );
                        out.pace();
                    }
                    if !breaks_off {
                        delta(
                            &mut out,
                            json!({"type": "signature_delta", "signature": SIGNATURE}),
                        );
                    }
                }
                Say::Call(call) => {
                    for piece in pieces(&call.input.to_string(), 16) {
                        delta(
                            &mut out,
                            json!({"type": "input_json_delta", "partial_json": piece}),
                        );
                    }
                }
                _ => {}
            }
            if !breaks_off {
                event(
                    &mut out,
                    json!({"type": "content_block_stop", "index": index}),
                );
            }
            index += 1;
        }
        event(
            &mut out,
            json!({
                "type": "message_delta",
                "delta": {"stop_reason": stop(reply.stop), "stop_sequence": null},
                "usage": usage(&reply.usage, reply.usage.output),
            }),
        );
        event(&mut out, json!({"type": "message_stop"}));
        out.into_vec()
    }

    fn complete(&self, reply: &Reply) -> Value {
        let mut message = frame_of(reply);
        let mut content = Vec::new();
        for say in &reply.say {
            match say {
                Say::Search(query) => content.extend(search(reply, query, true)),
                Say::Text(_) | Say::Thinking(_) | Say::Call(_) => {
                    content.push(block(reply, content.len(), say, true));
                }
                _ => {}
            }
        }
        message["content"] = content.into();
        message["stop_reason"] = stop(reply.stop).into();
        message["usage"] = usage(&reply.usage, reply.usage.output);
        message
    }

    fn error(&self, kind: ErrorKind, message: Option<&str>) -> Failure {
        let (status, name, usual) = match kind {
            ErrorKind::Authentication => (401, "authentication_error", "invalid x-api-key"),
            ErrorKind::Permission => (
                403,
                "permission_error",
                "Your API key does not have permission to use the specified resource.",
            ),
            ErrorKind::RateLimit => (
                429,
                "rate_limit_error",
                "This request would exceed your account's rate limit. Please try again later.",
            ),
            ErrorKind::Quota => (
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
            ),
            ErrorKind::Server => (500, "api_error", "Internal server error"),
            ErrorKind::Overloaded => (529, "overloaded_error", "Overloaded"),
            ErrorKind::UnknownModel => (404, "not_found_error", "model: no-such-model"),
            ErrorKind::ContextTooLong => (
                400,
                "invalid_request_error",
                "prompt is too long: 218849 tokens > 200000 maximum",
            ),
            ErrorKind::InvalidRequest => (400, "invalid_request_error", "Invalid request"),
        };
        Failure {
            status,
            body: json!({
                "type": "error",
                "error": {"type": name, "message": message.unwrap_or(usual)},
            }),
        }
    }
}

fn speaker(message: &Value) -> Speaker {
    let is_model = text_of(message, "role") == "assistant";
    if is_model && !cli::is_own_message(Protocol::Anthropic, message) {
        Speaker::Model
    } else {
        Speaker::Other
    }
}

/// Made up: only the service verifies it.
const SIGNATURE: &str = "c2lnbmF0dXJl";

fn frame_of(reply: &Reply) -> Value {
    json!({
        "id": format!("msg_{}", reply.id),
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": null,
    })
}

/// Returns the blocks of a search by the service itself: the query and its results, either as they begin in a
/// stream or complete.
fn search(reply: &Reply, query: &str, complete: bool) -> [Value; 2] {
    let input = if complete {
        json!({"query": query})
    } else {
        json!({})
    };
    let id = format!("srvtoolu_{}", reply.id);
    let page = json!({
        "type": "web_search_result",
        "title": "Mock page",
        "url": "https://example.org/mock",
        "encrypted_content": SIGNATURE,
        "page_age": null,
    });
    [
        json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": input}),
        json!({"type": "web_search_tool_result", "tool_use_id": id, "content": [page]}),
    ]
}

/// Returns a content block, either as it begins in a stream or complete.
fn block(reply: &Reply, index: usize, say: &Say, complete: bool) -> Value {
    let text = |texts: &[String]| {
        if complete {
            texts.concat()
        } else {
            String::new()
        }
    };
    match say {
        Say::Text(texts) => json!({"type": "text", "text": text(texts)}),
        Say::Thinking(texts) => json!({
            "type": "thinking",
            "thinking": text(texts),
            "signature": if complete { SIGNATURE } else { "" },
        }),
        Say::Call(call) => json!({
            "type": "tool_use",
            "id": format!("toolu_{}_{index}", reply.id),
            "name": call.name,
            "input": if complete { call.input.clone() } else { json!({}) },
        }),
        _ => Value::Null,
    }
}

fn usage(tokens: &Tokens, output: u64) -> Value {
    json!({
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": tokens.cache_write,
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": tokens.cache_write,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": output,
        "service_tier": "standard",
    })
}

fn stop(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal => "refusal",
    }
}
