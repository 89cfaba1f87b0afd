//! Gemini: `POST /v1beta/models/MODEL:streamGenerateContent`, `:generateContent` and `:countTokens`.
//!
//! A refusal before any text blocks the prompt (`promptFeedback.blockReason`). After some text it ends the
//! answer (`finishReason` `SAFETY`).

mod failure;

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Failure, Frame, Frames, ParsedRequest, Reply, RequestKind, Say, Speaker, Wire, kind_of, turn,
};
use crate::cli::{self, ParsedBody};
use crate::json::{items, text_of};
use crate::protocol::Protocol;
use crate::{ErrorKind, Stop, Tokens};

pub(crate) struct Gemini;

impl Wire for Gemini {
    fn asked(&self, path: &str, body: &Value) -> ParsedRequest {
        let last = path.rsplit('/').next().unwrap_or_default();
        let (model, method) = last.split_once(':').unwrap_or((last, ""));
        let stream = method == "streamGenerateContent";
        let functions = items(body, "tools")
            .iter()
            .flat_map(|tool| items(tool, "functionDeclarations"));
        let tools: Vec<_> = functions
            .map(|function| text_of(function, "name").to_owned())
            .collect();
        let what = if method == "countTokens" {
            // A token has about four bytes.
            RequestKind::Body(json!({"totalTokens": body.to_string().len() / 4}))
        } else {
            kind_of(&ParsedBody {
                protocol: Protocol::Gemini,
                body,
                stream,
                tools: &tools,
                turn: turn(items(body, "contents").iter().map(speaker)),
            })
        };
        ParsedRequest {
            model: model.to_owned(),
            stream,
            tools,
            what,
        }
    }

    fn stream(&self, reply: &Reply) -> Vec<Frame> {
        let mut out = Frames::default();
        let part = |out: &mut Frames, part: &Value| {
            let candidate = candidate(&json!([part]), None);
            out.event(None, &response(reply, &candidate, &until_now(&reply.usage)));
        };
        let mut calls = 0;
        for say in &reply.say {
            if out.common(say) {
                continue;
            }
            match say {
                Say::Text(texts) => {
                    for text in texts {
                        part(&mut out, &json!({"text": text}));
                        out.pace();
                    }
                }
                Say::Thinking(texts) => {
                    for text in texts {
                        part(&mut out, &json!({"text": text, "thought": true}));
                        out.pace();
                    }
                }
                Say::Call(_) => {
                    part(&mut out, &complete_part(reply, calls, say));
                    calls += 1;
                }
                Say::Error(kind) => {
                    // The error is not an event but bare JSON between the events. Clients recognize it only
                    // if they read it separately.
                    out.common(&Say::Pause(BY_ITSELF));
                    let Failure { body, .. } = self.error(*kind, None);
                    out.raw(format!("{body:#}\n"));
                    out.end(None);
                }
                // `common` has written all other parts.
                _ => {}
            }
        }
        out.event(None, &last(reply, &json!([{"text": ""}])));
        out.into_vec()
    }

    fn complete(&self, reply: &Reply) -> Value {
        let mut calls = 0;
        let mut parts = Vec::new();
        for say in &reply.say {
            let part = complete_part(reply, calls, say);
            calls += usize::from(matches!(say, Say::Call(_)));
            if !part.is_null() {
                parts.push(part);
            }
        }
        last(reply, &parts.into())
    }

    fn error(&self, kind: ErrorKind, message: Option<&str>) -> Failure {
        failure::failure(kind, message)
    }
}

/// Made up: only the service verifies it.
const SIGNATURE: &str = "c2lnbmF0dXJl";

/// Delay between two writes that must become two reads, even on a busy machine.
const BY_ITSELF: Duration = Duration::from_secs(1);

fn speaker(content: &Value) -> Speaker {
    if text_of(content, "role") == "model" && !cli::is_own_message(Protocol::Gemini, content) {
        Speaker::Model
    } else {
        Speaker::Other
    }
}

/// Encodes a complete part of an answer. `calls` is the number of calls before it.
fn complete_part(reply: &Reply, calls: usize, say: &Say) -> Value {
    match say {
        Say::Text(texts) => json!({"text": texts.concat()}),
        Say::Thinking(texts) => json!({"text": texts.concat(), "thought": true}),
        Say::Call(call) => {
            let mut part = json!({"functionCall": {
                "id": format!("call_{}_{calls}", reply.id),
                "name": call.name,
                "args": call.input,
            }});
            if calls == 0 {
                // Only the first call of an answer has one.
                part["thoughtSignature"] = SIGNATURE.into();
            }
            part
        }
        _ => Value::Null,
    }
}

fn candidate(parts: &Value, finish: Option<&str>) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = finish.into();
    }
    candidate
}

fn response(reply: &Reply, candidate: &Value, usage: &Value) -> Value {
    json!({
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": reply.model,
        "responseId": reply.id,
    })
}

/// Encodes the last event of an answer, or the whole answer.
fn last(reply: &Reply, parts: &Value) -> Value {
    let is_output = |say: &Say| matches!(say, Say::Text(_) | Say::Thinking(_) | Say::Call(_));
    if reply.stop == Stop::Refusal && !reply.say.iter().any(is_output) {
        return json!({
            "promptFeedback": {"blockReason": "SAFETY"},
            "usageMetadata": until_now(&reply.usage),
            "modelVersion": reply.model,
            "responseId": reply.id,
        });
    }
    response(
        reply,
        &candidate(parts, Some(finish(reply.stop))),
        &usage(&reply.usage),
    )
}

/// Returns the tokens of the prompt, including cached ones.
fn prompt(tokens: &Tokens) -> u64 {
    tokens.input + tokens.cache_read + tokens.cache_write
}

/// Encodes the usage before the end, which only counts the prompt.
fn until_now(tokens: &Tokens) -> Value {
    json!({"promptTokenCount": prompt(tokens), "totalTokenCount": prompt(tokens)})
}

/// Encodes the usage. Zero counts are omitted, except for the two that are always present.
fn usage(tokens: &Tokens) -> Value {
    let mut usage = json!({
        "promptTokenCount": prompt(tokens),
        "candidatesTokenCount": tokens.output.saturating_sub(tokens.reasoning),
        "totalTokenCount": prompt(tokens) + tokens.output.max(tokens.reasoning),
    });
    for (name, count) in [
        ("cachedContentTokenCount", tokens.cache_read),
        ("thoughtsTokenCount", tokens.reasoning),
    ] {
        if count > 0 {
            usage[name] = count.into();
        }
    }
    usage
}

fn finish(stop: Stop) -> &'static str {
    match stop {
        Stop::End | Stop::ToolUse => "STOP",
        Stop::MaxTokens => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
    }
}

#[cfg(test)]
mod tests;
