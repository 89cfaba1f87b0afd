//! The wire protocols of model services: requests to JSON, streams to answers. No I/O.

mod anthropic;
mod chat;
mod error;
mod gemini;
mod responses;
mod sse;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use teamster_core::Usage;

use crate::conversation::{Answer, Message};

pub(crate) use error::{Failure, http_failure};
pub(crate) use sse::{Sse, SseEvent};

/// A wire protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireKind {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions, which most other services speak too.
    Chat,
    /// Gemini `streamGenerateContent`.
    Gemini,
}

impl WireKind {
    /// Its code.
    pub(crate) fn wire(self) -> &'static dyn Wire {
        match self {
            Self::Anthropic => &anthropic::Anthropic,
            Self::Responses => &responses::Responses,
            Self::Chat => &chat::Chat,
            Self::Gemini => &gemini::Gemini,
        }
    }
}

/// A request to a service.
#[derive(Debug)]
pub(crate) struct ModelRequest<'a> {
    pub(crate) model: &'a str,
    pub(crate) system: &'a str,
    pub(crate) messages: &'a [Message],
    pub(crate) tools: &'a [ToolSpec],
    /// The tool that the model has to call.
    pub(crate) forced_tool: Option<&'a str>,
    pub(crate) effort: Option<Effort>,
    /// The most tokens of an answer.
    pub(crate) max_tokens: u32,
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolSpec {
    pub(crate) name: String,
    pub(crate) description: String,
    /// JSON Schema of the arguments.
    pub(crate) schema: Value,
}

/// Reasoning effort of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    Low,
    Medium,
    High,
}

impl Effort {
    pub(crate) const NAMES: &'static str = "low, medium, high";

    pub(crate) fn parse(name: &str) -> Option<Self> {
        match name {
            "low" => Some(Self::Low),
            "medium" => Some(Self::Medium),
            "high" => Some(Self::High),
            _ => None,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// The tokens that reasoning may take, for services that want a number.
    pub(crate) fn tokens(self) -> u32 {
        match self {
            Self::Low => 2_048,
            Self::Medium => 8_192,
            Self::High => 16_384,
        }
    }
}

/// A piece of an answer as it arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delta {
    Text(String),
    Reasoning(String),
}

/// Stop reason of the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum StopReason {
    #[default]
    End,
    ToolUse,
    MaxTokens,
    Refusal,
}

impl StopReason {
    /// Its name in results.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::End => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::Refusal => "refusal",
        }
    }
}

/// A whole answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Completed {
    pub(crate) answer: Answer,
    pub(crate) stop: StopReason,
    pub(crate) usage: Usage,
    /// The model that answered, in the service's words.
    pub(crate) model: Option<String>,
}

/// A protocol.
pub(crate) trait Wire: Send + Sync + fmt::Debug {
    /// The path below the service's address.
    fn path(&self, model: &str) -> String;

    /// Headers that carry the key, and others of the protocol's.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// The body of a request.
    fn encode(&self, request: &ModelRequest<'_>) -> Value;

    /// A decoder for one stream.
    fn decoder(&self) -> Box<dyn AnswerDecoder>;
}

/// Turns the events of one stream into an answer.
pub(crate) trait AnswerDecoder: Send {
    /// Takes one event, whose data is JSON. Pieces of the answer go to `out`. An error is the service's own.
    fn event(&mut self, data: &Value, out: &mut Vec<Delta>) -> Result<(), Failure>;

    /// Whether the protocol's own end has come.
    fn has_ended(&self) -> bool;

    /// The answer, as far as it was received.
    fn finish(self: Box<Self>) -> Completed;
}

/// Reads one stream: bytes in, pieces and the answer out.
pub(crate) struct AnswerReader {
    sse: Sse,
    decoder: Box<dyn AnswerDecoder>,
    /// An event that is no JSON was seen.
    malformed: bool,
}

impl AnswerReader {
    pub(crate) fn new(wire: &dyn Wire) -> Self {
        Self {
            sse: Sse::default(),
            decoder: wire.decoder(),
            malformed: false,
        }
    }

    /// Takes bytes as they come.
    pub(crate) fn bytes(&mut self, bytes: &[u8], out: &mut Vec<Delta>) -> Result<(), Failure> {
        self.sse.push(bytes);
        while let Some(event) = self.sse.next_event() {
            self.event(&event, out)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), Failure> {
        let data = event.data.trim();
        if data.is_empty() || data == "[DONE]" {
            return Ok(());
        }
        match serde_json::from_str(data) {
            Ok(data) => self.decoder.event(&data, out),
            Err(_) => {
                self.malformed = true;
                Ok(())
            }
        }
    }

    /// Whether the answer has come to its own end.
    pub(crate) fn has_ended(&self) -> bool {
        self.decoder.has_ended()
    }

    /// The stream is over: the answer, or why there is none.
    pub(crate) fn finish(mut self, out: &mut Vec<Delta>) -> Result<Completed, Failure> {
        let (last, rest) = std::mem::take(&mut self.sse).finish();
        if let Some(event) = last {
            self.event(&event, out)?;
        }
        // Gemini puts an error as bare JSON between the events.
        if let Ok(Value::Object(body)) = serde_json::from_str(rest.trim())
            && body.contains_key("error")
        {
            return Err(error::of_body(None, &Value::Object(body)));
        }
        if !self.decoder.has_ended() {
            return Err(Failure::broken_off());
        }
        if self.malformed {
            return Err(Failure::malformed());
        }
        Ok(self.decoder.finish())
    }
}

/// A text field of an object, or nothing.
fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// A count in an object, however deep.
fn count(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

/// The arguments of a call from their text: JSON, or the text itself where it is none.
fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// The arguments of a call as an object: a text that is no JSON is kept in a field.
fn as_object(input: &Value) -> Value {
    match input {
        Value::Object(_) => input.clone(),
        other => serde_json::json!({"invalid": other}),
    }
}
