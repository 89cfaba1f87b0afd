//! OpenAI Chat Completions: `POST …/chat/completions`.

use serde_json::{Value, json};

use super::{Failure, Frame, Frames, ParsedRequest, Reply, Say, Speaker, Wire, pieces, turn};
use crate::cli::{self, Call};
use crate::json::{items, text_of};
use crate::protocol::Protocol;
use crate::{ErrorKind, Stop, Tokens};

#[cfg(test)]
mod tests;

pub(crate) struct Chat;

impl Wire for Chat {
    fn asked(&self, _path: &str, body: &Value) -> ParsedRequest {
        let tools = items(body, "tools").iter().map(|tool| {
            // The field is named after the type: `function` or `custom`.
            let kind = text_of(tool, "type");
            text_of(&tool[kind], "name").to_owned()
        });
        let turn = turn(items(body, "messages").iter().map(speaker));
        ParsedRequest::new(Protocol::Chat, body, tools.collect(), turn)
    }

    fn stream(&self, reply: &Reply) -> Vec<Frame> {
        let mut out = Frames::default();
        let chunk = |delta: Value, finish: Value| {
            let mut chunk = frame_of(reply, "chat.completion.chunk");
            chunk["choices"] = json!([{
                "index": 0,
                "delta": delta,
                "logprobs": null,
                "finish_reason": finish,
            }]);
            chunk
        };
        let delta = |out: &mut Frames, delta: Value| out.event(None, &chunk(delta, Value::Null));
        delta(
            &mut out,
            json!({"role": "assistant", "content": "", "refusal": null}),
        );
        let mut calls = 0;
        for say in &reply.say {
            if out.common(say) {
                continue;
            }
            match say {
                Say::Text(texts) => {
                    for text in texts {
                        delta(&mut out, json!({"content": text}));
                        out.pace();
                    }
                }
                Say::Thinking(texts) => {
                    for text in texts {
                        delta(&mut out, json!({"reasoning_content": text}));
                        out.pace();
                    }
                }
                Say::Call(call) => {
                    let mut start = tool_call(reply, calls, call, "");
                    start["index"] = calls.into();
                    delta(&mut out, json!({"tool_calls": [start]}));
                    for piece in pieces(&arguments(call), 16) {
                        delta(
                            &mut out,
                            json!({"tool_calls": [{"index": calls, "function": {"arguments": piece}}]}),
                        );
                    }
                    calls += 1;
                }
                Say::Error(kind) => {
                    out.event(None, &self.error(*kind, None).body);
                    out.end(None);
                }
                // `common` has written all other parts.
                _ => {}
            }
        }
        out.event(None, &chunk(json!({}), finish(reply.stop).into()));
        let mut last = frame_of(reply, "chat.completion.chunk");
        last["choices"] = json!([]);
        last["usage"] = usage(&reply.usage);
        out.event(None, &last);
        out.raw("data: [DONE]\n\n".to_owned());
        out.into_vec()
    }

    fn complete(&self, reply: &Reply) -> Value {
        let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
        for say in &reply.say {
            match say {
                Say::Text(texts) => text.extend(texts.iter().map(String::as_str)),
                Say::Thinking(texts) => thinking.extend(texts.iter().map(String::as_str)),
                Say::Call(call) => {
                    calls.push(tool_call(reply, calls.len(), call, &arguments(call)));
                }
                _ => {}
            }
        }
        let mut message = json!({"role": "assistant", "content": null, "refusal": null});
        if !text.is_empty() {
            message["content"] = text.into();
        }
        if !thinking.is_empty() {
            message["reasoning_content"] = thinking.into();
        }
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        let mut complete = frame_of(reply, "chat.completion");
        complete["choices"] = json!([{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": finish(reply.stop),
        }]);
        complete["usage"] = usage(&reply.usage);
        complete
    }

    fn error(&self, kind: ErrorKind, message: Option<&str>) -> Failure {
        let request = "invalid_request_error";
        let (status, name, param, code, usual) = match kind {
            ErrorKind::Authentication => (
                401,
                request,
                None,
                Some("invalid_api_key"),
                "Incorrect API key provided: sk-mock-000. You can find your API key at https://platform.openai.com/account/api-keys.",
            ),
            ErrorKind::Permission => (
                403,
                request,
                None,
                None,
                "You have insufficient permissions for this operation. Missing scopes: model.request.",
            ),
            ErrorKind::RateLimit => (
                429,
                "tokens",
                None,
                Some("rate_limit_exceeded"),
                "Rate limit reached for mock-model on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s. Visit https://platform.openai.com/account/rate-limits to learn more.",
            ),
            ErrorKind::Quota => (
                429,
                "insufficient_quota",
                None,
                Some("insufficient_quota"),
                "You exceeded your current quota, please check your plan and billing details. For more information on this error, read the docs: https://platform.openai.com/docs/guides/error-codes/api-errors.",
            ),
            ErrorKind::Server => (
                500,
                "server_error",
                None,
                None,
                "The server had an error while processing your request. Sorry about that!",
            ),
            ErrorKind::Overloaded => (
                503,
                "server_error",
                None,
                None,
                "The engine is currently overloaded, please try again later.",
            ),
            ErrorKind::UnknownModel => (
                404,
                request,
                None,
                Some("model_not_found"),
                "The model `no-such-model` does not exist or you do not have access to it.",
            ),
            // No number here contains the digits of a status: OpenCode retries a request if its error
            // contains 500 anywhere.
            ErrorKind::ContextTooLong => (
                400,
                request,
                Some("messages"),
                Some("context_length_exceeded"),
                "This model's maximum context length is 200000 tokens. However, your messages resulted in 213872 tokens. Please reduce the length of the messages.",
            ),
            ErrorKind::InvalidRequest => (400, request, None, None, "Invalid request"),
        };
        Failure {
            status,
            body: json!({"error": {
                "message": message.unwrap_or(usual),
                "type": name,
                "param": param,
                "code": code,
            }}),
        }
    }
}

fn speaker(message: &Value) -> Speaker {
    match text_of(message, "role") {
        "assistant" if !cli::is_own_message(Protocol::Chat, message) => Speaker::Model,
        "user" if cli::is_continuation(message) => Speaker::Model,
        _ => Speaker::Other,
    }
}

fn frame_of(reply: &Reply, object: &str) -> Value {
    json!({
        "id": format!("chatcmpl-{}", reply.id),
        "object": object,
        // In seconds. The same whenever a script is played.
        "created": 1_750_000_000,
        "model": reply.model,
    })
}

fn tool_call(reply: &Reply, index: usize, call: &Call, arguments: &str) -> Value {
    json!({
        "id": format!("call_{}_{index}", reply.id),
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    })
}

/// Returns the text form of a tool's input. A text is kept literally, so it may not be JSON.
fn arguments(call: &Call) -> String {
    match &call.input {
        Value::String(text) => text.clone(),
        input => input.to_string(),
    }
}

/// Encodes the usage. `prompt_tokens` includes cached tokens.
fn usage(tokens: &Tokens) -> Value {
    let input = tokens.input + tokens.cache_read + tokens.cache_write;
    json!({
        "prompt_tokens": input,
        "completion_tokens": tokens.output,
        "total_tokens": input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cache_read},
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning},
    })
}

fn finish(stop: Stop) -> &'static str {
    match stop {
        Stop::End => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::MaxTokens => "length",
        Stop::Refusal => "content_filter",
    }
}
