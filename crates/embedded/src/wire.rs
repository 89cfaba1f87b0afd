//! Wire protocols of model services: encoding of requests and decoding of streams. This module does no I/O.

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
use teamster_core::provider::json_line::readable;
use teamster_core::{ErrorKind, Usage};

use crate::conversation::{Answer, Block, Message};

pub(crate) use error::{Failure, http_failure};
pub(crate) use sse::{Sse, SseEvent};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WireKind {
    Anthropic,
    /// OpenAI Responses.
    Responses,
    /// OpenAI Chat Completions, which most other services support too.
    Chat,
    /// Gemini `streamGenerateContent`.
    Gemini,
}

impl WireKind {
    pub(crate) fn wire(self) -> &'static dyn Wire {
        match self {
            Self::Anthropic => &anthropic::Anthropic,
            Self::Responses => &responses::Responses,
            Self::Chat => &chat::Chat,
            Self::Gemini => &gemini::Gemini,
        }
    }
}

#[derive(Debug)]
pub(crate) struct ModelRequest<'a> {
    pub(crate) model: &'a str,
    pub(crate) system: &'a str,
    pub(crate) messages: &'a [Message],
    pub(crate) tools: &'a [ToolSpec],
    /// Tool that the model must call.
    pub(crate) forced_tool: Option<&'a str>,
    pub(crate) effort: Option<Effort>,
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

    /// Returns the token budget for reasoning, for services that need a number.
    pub(crate) fn tokens(self) -> u32 {
        match self {
            Self::Low => 2_048,
            Self::Medium => 8_192,
            Self::High => 16_384,
        }
    }
}

/// A chunk of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delta {
    Text(String),
    Reasoning(String),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum StopReason {
    #[default]
    End,
    ToolUse,
    MaxTokens,
    Refusal,
    /// The conversation fills the model's context window.
    ContextWindow,
    /// The service pauses the answer; the same conversation continues it.
    Pause,
}

impl StopReason {
    /// Returns its name in results.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::End => "end_turn",
            Self::ToolUse => "tool_use",
            Self::MaxTokens => "max_tokens",
            Self::Refusal => "refusal",
            Self::ContextWindow => "context_window",
            Self::Pause => "pause_turn",
        }
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Completed {
    pub(crate) answer: Answer,
    pub(crate) stop: StopReason,
    pub(crate) usage: Usage,
}

/// A wire protocol.
pub(crate) trait Wire: Send + Sync + fmt::Debug {
    /// Returns the path below the service's base URL.
    fn path(&self, model: &str) -> String;

    /// Returns the headers with the key, and other headers of the protocol.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// Returns the body of a request.
    fn encode(&self, request: &ModelRequest<'_>) -> Value;

    fn decoder(&self) -> Box<dyn AnswerDecoder>;
}

/// Decodes the events of one stream to an answer.
pub(crate) trait AnswerDecoder: Send {
    /// Decodes one event. Chunks of the answer go to `out`.
    ///
    /// # Errors
    ///
    /// Returns the service's error if the event is one.
    fn event(&mut self, data: &Value, out: &mut Vec<Delta>) -> Result<(), Failure>;

    /// Handles the marker `[DONE]`, which ends a stream of some protocols.
    fn done(&mut self) {}

    /// Returns whether the protocol's end marker was received.
    fn has_ended(&self) -> bool;

    /// Returns the answer, as far as it was received.
    fn finish(self: Box<Self>) -> Completed;
}

/// Reads one stream: decodes bytes to chunks and to the answer.
pub(crate) struct AnswerReader {
    sse: Sse,
    decoder: Box<dyn AnswerDecoder>,
    /// The first event that was not valid JSON.
    malformed: Option<String>,
    /// True once an event was read.
    has_events: bool,
}

impl AnswerReader {
    pub(crate) fn new(wire: &dyn Wire) -> Self {
        Self {
            sse: Sse::default(),
            decoder: wire.decoder(),
            malformed: None,
            has_events: false,
        }
    }

    /// Decodes the next bytes of the stream.
    pub(crate) fn bytes(&mut self, bytes: &[u8], out: &mut Vec<Delta>) -> Result<(), Failure> {
        self.sse.push(bytes);
        while let Some(event) = self.sse.next_event() {
            self.event(&event, out)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &SseEvent, out: &mut Vec<Delta>) -> Result<(), Failure> {
        let data = event.data.trim();
        if data.is_empty() {
            return Ok(());
        }
        self.has_events = true;
        if data == "[DONE]" {
            self.decoder.done();
            return Ok(());
        }
        // JavaScript writes halves of characters, which Rust strings cannot hold.
        let parsed = serde_json::from_str(data)
            .or_else(|error| readable(data).map_or(Err(error), |data| serde_json::from_str(&data)));
        match parsed {
            Ok(data) if event.is_error => Err(error::of_body(None, &data)),
            Ok(data) => self.value(&data, out),
            Err(_) if event.is_error => Err(error::of_text(data)),
            // Some gateways leave out the empty lines between events.
            Err(_) if is_one_event_a_line(data) => data.lines().try_for_each(|line| {
                let event = SseEvent {
                    data: line.to_owned(),
                    is_error: false,
                };
                self.event(&event, out)
            }),
            Err(_) => {
                self.malformed.get_or_insert_with(|| data.to_owned());
                Ok(())
            }
        }
    }

    /// Decodes one event, or a whole answer that was not streamed.
    fn value(&mut self, data: &Value, out: &mut Vec<Delta>) -> Result<(), Failure> {
        // Gemini answers with a list of chunks, if it does not stream.
        if let Value::Array(values) = data {
            return values.iter().try_for_each(|value| self.value(value, out));
        }
        let is_error = match data.get("error") {
            Some(Value::Object(_)) => true,
            Some(Value::String(text)) => !text.is_empty(),
            _ => text(data, "object") == "error",
        };
        if is_error {
            return Err(error::of_body(None, data));
        }
        self.decoder.event(data, out)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.decoder.has_ended()
    }

    /// Ends the stream. Returns the answer, or the failure if there is none.
    pub(crate) fn finish(mut self, out: &mut Vec<Delta>) -> Result<Completed, Failure> {
        let (last, rest) = std::mem::take(&mut self.sse).finish();
        if let Some(event) = last {
            self.event(&event, out)?;
        }
        self.outside(rest.trim(), out)?;
        if !self.decoder.has_ended() {
            return Err(if self.has_events {
                Failure::broken_off()
            } else {
                Failure::new(ErrorKind::Network, "the service answered with nothing")
            });
        }
        if let Some(event) = self.malformed {
            return Err(Failure::malformed(&event));
        }
        let mut completed = self.decoder.finish();
        give_ids(&mut completed.answer);
        Ok(completed)
    }

    /// Reads what is outside of events: an error between them, or a whole answer that is not a stream.
    fn outside(&mut self, text: &str, out: &mut Vec<Delta>) -> Result<(), Failure> {
        if text.is_empty() || self.decoder.has_ended() {
            return Ok(());
        }
        let values = match serde_json::from_str(text) {
            Ok(value) => vec![value],
            // One value a line.
            Err(_) => {
                let lines = text.lines().filter(|line| !line.trim().is_empty());
                let values = lines.map(serde_json::from_str);
                match values.collect::<Result<Vec<_>, _>>() {
                    Ok(values) => values,
                    Err(_) if self.has_events => return Ok(()),
                    Err(_) => return Err(Failure::not_a_stream(text)),
                }
            }
        };
        for value in &values {
            self.value(value, out)?;
        }
        if self.has_events || self.decoder.has_ended() {
            return Ok(());
        }
        Err(Failure::not_a_stream(text))
    }
}

/// Returns whether each of several lines is an event.
fn is_one_event_a_line(data: &str) -> bool {
    let is_event = |line: &str| {
        let line = line.trim();
        line.is_empty() || line == "[DONE]" || serde_json::from_str::<Value>(line).is_ok()
    };
    data.contains('\n') && data.lines().all(is_event)
}

/// Prefix of ids that are generated for calls without an id of their own.
const OWN_ID: &str = "call-of-";

/// Gives each call an id of its own, because its result refers to it.
fn give_ids(answer: &mut Answer) {
    let mut known = std::collections::HashSet::new();
    for block in &mut answer.blocks {
        if let Block::Call(call) = block
            && (call.id.is_empty() || !known.insert(call.id.clone()))
        {
            call.id = format!("{OWN_ID}{}", uuid::Uuid::new_v4().simple());
        }
    }
}

/// Returns a string field of an object. Empty if there is none.
fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

/// Returns a count at a JSON pointer.
fn count(value: &Value, pointer: &str) -> Option<u64> {
    value.pointer(pointer).and_then(Value::as_u64)
}

/// Returns a piece of text: a string, or the texts of a list of parts.
fn piece(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(piece).collect(),
        Value::Object(part) => {
            let fields = ["text", "refusal", "thinking", "content"];
            let text = fields.iter().find_map(|field| part.get(*field));
            text.map(piece).unwrap_or_default()
        }
        _ => String::new(),
    }
}

/// Returns a piece of a call's arguments: JSON text, or the arguments themselves as text.
fn arguments_piece(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Parses the arguments of a call. Returns the text itself if it is not JSON.
fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    match serde_json::from_str(text) {
        // Some services encode them twice.
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(Value::Object(inner)) => Value::Object(inner),
            _ => Value::String(inner),
        },
        Ok(Value::Null) => Value::Object(serde_json::Map::new()),
        Ok(other) => other,
        Err(_) => {
            // Gateways to Claude put the empty input of a call's first event before its arguments.
            let rest = text.trim_start().strip_prefix("{}");
            match rest.map(serde_json::from_str) {
                Some(Ok(Value::Object(input))) => Value::Object(input),
                _ => Value::String(text.to_owned()),
            }
        }
    }
}

/// Returns the arguments of a call as an object. Text that is not JSON is put in the field `invalid`.
fn as_object(input: &Value) -> Value {
    match input {
        Value::Object(_) => input.clone(),
        other => serde_json::json!({"invalid": other}),
    }
}
