//! OpenAI Chat Completions: `POST …/chat/completions`. Ollama and most other services support it too.

use serde_json::{Value, json};
use teamster_core::ErrorKind;

use super::anthropic::{push, usage_of};
use super::{
    AnswerDecoder, Completed, Delta, Failure, ModelRequest, StopReason, Wire, arguments,
    arguments_piece, count, piece, text,
};
use crate::conversation::{Answer, Block, Call, Input, Message};

#[derive(Debug)]
pub(super) struct Chat;

impl Wire for Chat {
    fn path(&self, _model: &str) -> String {
        "/chat/completions".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        bearer(key)
    }

    fn encode(&self, request: &ModelRequest<'_>) -> Value {
        let mut messages = Vec::new();
        if !request.system.is_empty() {
            messages.push(json!({"role": "system", "content": request.system}));
        }
        for message in request.messages {
            encode(message, &mut messages);
        }
        let mut body = json!({
            "model": request.model,
            "stream": true,
            "stream_options": {"include_usage": true},
            "messages": messages,
        });
        if !request.tools.is_empty() {
            let tool = |tool: &super::ToolSpec| {
                json!({"type": "function", "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.schema,
                }})
            };
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        if let Some(name) = request.forced_tool {
            body["tool_choice"] = json!({"type": "function", "function": {"name": name}});
        }
        if let Some(effort) = request.effort {
            body["reasoning_effort"] = effort.as_str().into();
        }
        body
    }

    fn decoder(&self) -> Box<dyn AnswerDecoder> {
        Box::<Decoder>::default()
    }
}

/// Returns the key as a bearer token, as most services expect it.
pub(super) fn bearer(key: Option<&str>) -> Vec<(&'static str, String)> {
    let bearer = |key: &str| ("authorization", format!("Bearer {key}"));
    key.map(bearer).into_iter().collect()
}

/// Returns the arguments of a stored call as text.
pub(super) fn arguments_text(input: &Value) -> String {
    match input {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn encode(message: &Message, out: &mut Vec<Value>) {
    match message {
        Message::User { content } => out.push(json!({"role": "user", "content": inputs(content)})),
        Message::Assistant(answer) => {
            let calls: Vec<_> = (answer.calls())
                .map(|call| {
                    json!({"id": call.id, "type": "function", "function": {
                        "name": call.name,
                        "arguments": arguments_text(&call.input),
                    }})
                })
                .collect();
            let text = answer.text();
            if text.is_empty() && calls.is_empty() {
                return;
            }
            let content = Some(text).filter(|text| !text.is_empty());
            let mut message = json!({"role": "assistant", "content": content});
            if !calls.is_empty() {
                message["tool_calls"] = calls.into();
            }
            out.push(message);
        }
        Message::Tool { results } => {
            let mut images = Vec::new();
            for result in results {
                out.push(json!({
                    "role": "tool",
                    "tool_call_id": result.id,
                    "content": result.text(),
                }));
                images.extend(
                    result
                        .images()
                        .map(|(media_type, data)| image(media_type, data)),
                );
            }
            // Images follow in a user message, because a tool result can only be text.
            if !images.is_empty() {
                out.push(json!({"role": "user", "content": images}));
            }
        }
    }
}

fn inputs(content: &[Input]) -> Value {
    // Send text alone as a string, because not every service accepts a list.
    if let [Input::Text { text }] = content {
        return text.clone().into();
    }
    let part = |input: &Input| match input {
        Input::Text { text } => json!({"type": "text", "text": text}),
        Input::Image { media_type, data } => image(media_type, data),
    };
    content.iter().map(part).collect()
}

fn image(media_type: &str, data: &str) -> Value {
    let url = format!("data:{media_type};base64,{data}");
    json!({"type": "image_url", "image_url": {"url": url}})
}

#[derive(Debug, Default)]
struct PartialCall {
    index: u64,
    id: String,
    name: String,
    arguments: String,
}

impl PartialCall {
    /// Returns whether its arguments are complete.
    fn is_whole(&self) -> bool {
        serde_json::from_str::<Value>(&self.arguments).is_ok_and(|value| value.is_object())
    }
}

#[derive(Debug, Default)]
struct Decoder {
    text: String,
    reasoning: String,
    calls: Vec<PartialCall>,
    usage: Value,
    stop: Option<StopReason>,
    is_done: bool,
}

impl Decoder {
    fn call(&mut self, call: &Value) {
        let (id, function) = (text(call, "id"), &call["function"]);
        let name = text(function, "name");
        let arguments = arguments_piece(&function["arguments"]);
        let last = self.calls.last().map_or(0, |call| call.index);
        // Some services omit the index.
        let index = call["index"].as_u64().unwrap_or_else(|| {
            let is_new = !id.is_empty() && self.calls.iter().all(|known| known.id != id);
            last + u64::from(is_new && !self.calls.is_empty())
        });
        // Others use the same one for all calls. A name begins another call then, unless it is repeated with each
        // piece of one call, or at its end with the id.
        let is_next = |known: &PartialCall| {
            let is_other = !id.is_empty() && !known.id.is_empty() && known.id != id;
            let is_end = !id.is_empty() && known.id == id && arguments.is_empty();
            let is_begun = !name.is_empty() && !known.name.is_empty();
            is_begun && (is_other || (known.is_whole() && !is_end))
        };
        let at = match self.calls.iter().rposition(|known| known.index == index) {
            Some(at) if !is_next(&self.calls[at]) => at,
            _ => {
                self.calls.push(PartialCall {
                    index,
                    ..PartialCall::default()
                });
                self.calls.len() - 1
            }
        };
        let known = &mut self.calls[at];
        if known.id.is_empty() {
            id.clone_into(&mut known.id);
        }
        if known.name.is_empty() {
            name.clone_into(&mut known.name);
        }
        known.arguments.push_str(&arguments);
    }
}

impl Decoder {
    fn reason(&mut self, piece: &str, out: &mut Vec<Delta>) {
        self.reasoning.push_str(piece);
        push(out, Delta::Reasoning, piece);
    }

    fn say(&mut self, piece: &str, out: &mut Vec<Delta>) {
        self.text.push_str(piece);
        push(out, Delta::Text, piece);
    }
}

/// Returns the items of a list, or the one value that is none.
fn one_or_many(value: &Value) -> &[Value] {
    match value {
        Value::Null => &[],
        Value::Array(values) => values,
        one => std::slice::from_ref(one),
    }
}

impl AnswerDecoder for Decoder {
    fn event(&mut self, data: &Value, out: &mut Vec<Delta>) -> Result<(), Failure> {
        let choice = &data["choices"][0];
        // Kimi and Groq have places of their own for it.
        let usages = [&data["usage"], &choice["usage"], &data["x_groq"]["usage"]];
        if let Some(usage) = usages.into_iter().find(|usage| usage.is_object()) {
            self.usage = usage.clone();
        }
        // An answer that is not streamed has a message.
        let delta = match &choice["delta"] {
            Value::Null => &choice["message"],
            delta => delta,
        };
        // Services use different names for reasoning, and some use several at once.
        let reasoning = [
            "reasoning_content",
            "reasoning",
            "thinking",
            "reasoning_text",
            "reasoning_details",
        ];
        let reasoning = reasoning.iter().map(|field| piece(&delta[*field]));
        let reasoning = reasoning.into_iter().find(|piece| !piece.is_empty());
        self.reason(&reasoning.unwrap_or_default(), out);
        for part in one_or_many(&delta["content"]) {
            if text(part, "type") == "thinking" {
                self.reason(&piece(part), out);
            } else {
                self.say(&piece(part), out);
            }
        }
        self.say(text(delta, "refusal"), out);
        for call in one_or_many(&delta["tool_calls"]) {
            self.call(call);
        }
        // The older form of a call.
        if delta["function_call"].is_object() {
            self.call(&json!({"index": 0, "function": delta["function_call"]}));
        }
        match text(choice, "finish_reason") {
            "" => {}
            "tool_calls" | "function_call" => self.stop = Some(StopReason::ToolUse),
            "length" | "max_tokens" => self.stop = Some(StopReason::MaxTokens),
            "content_filter" | "sensitive" | "refusal" => self.stop = Some(StopReason::Refusal),
            "model_length" | "model_context_window_exceeded" | "context_length_exceeded" => {
                self.stop = Some(StopReason::ContextWindow);
            }
            reason @ ("error"
            | "network_error"
            | "abort"
            | "cancelled"
            | "insufficient_system_resource") => {
                return Err(Failure::new(
                    ErrorKind::Overloaded,
                    format!("the service gave up in the middle of the answer ({reason})"),
                ));
            }
            _ => self.stop = Some(StopReason::End),
        }
        Ok(())
    }

    fn done(&mut self) {
        self.is_done = true;
    }

    fn has_ended(&self) -> bool {
        // Some services end a stream without a reason.
        let has_content = !self.text.is_empty() || !self.calls.is_empty();
        self.stop.is_some() || (self.is_done && has_content)
    }

    fn finish(self: Box<Self>) -> Completed {
        let mut blocks = Vec::new();
        if !self.reasoning.is_empty() {
            blocks.push(Block::Reasoning {
                text: self.reasoning,
                native: None,
            });
        }
        if !self.text.is_empty() {
            blocks.push(Block::text(self.text));
        }
        let call = |call: PartialCall| {
            Block::Call(Call {
                id: call.id,
                name: call.name,
                input: arguments(&call.arguments),
                signature: None,
            })
        };
        blocks.extend(self.calls.into_iter().map(call));
        // OpenAI's place, DeepSeek's, Kimi's.
        let cached = [
            "/prompt_tokens_details/cached_tokens",
            "/prompt_cache_hit_tokens",
            "/cached_tokens",
        ];
        let usage = &self.usage;
        let is_there = |pointer: &&str| count(usage, pointer).is_some();
        let cached = cached.into_iter().find(is_there).unwrap_or(cached[0]);
        Completed {
            answer: Answer::new(blocks),
            stop: self.stop.unwrap_or_default(),
            usage: usage_of(
                usage,
                [
                    "/prompt_tokens",
                    "/completion_tokens",
                    cached,
                    "/prompt_tokens_details/cache_write_tokens",
                    "/completion_tokens_details/reasoning_tokens",
                ],
            ),
        }
    }
}
