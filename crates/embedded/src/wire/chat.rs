//! OpenAI Chat Completions: `POST …/chat/completions`. Ollama and most other services support it too.

use serde_json::{Value, json};

use super::anthropic::{push, usage_of};
use super::{
    AnswerDecoder, Completed, Delta, Failure, ModelRequest, StopReason, Wire, arguments, error,
    text,
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

#[derive(Debug, Default)]
struct Decoder {
    text: String,
    reasoning: String,
    calls: Vec<PartialCall>,
    usage: Value,
    model: Option<String>,
    stop: Option<StopReason>,
}

impl Decoder {
    fn call(&mut self, call: &Value) {
        let last = self.calls.last().map_or(0, |call| call.index);
        let id = text(call, "id");
        // Some services omit the index.
        let index = call["index"].as_u64().unwrap_or_else(|| {
            let is_new = !id.is_empty() && self.calls.iter().all(|known| known.id != id);
            last + u64::from(is_new && !self.calls.is_empty())
        });
        let at = match self.calls.iter().position(|known| known.index == index) {
            Some(at) => at,
            None => {
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
        let function = &call["function"];
        if known.name.is_empty() {
            text(function, "name").clone_into(&mut known.name);
        }
        known.arguments.push_str(text(function, "arguments"));
    }
}

impl AnswerDecoder for Decoder {
    fn event(&mut self, data: &Value, out: &mut Vec<Delta>) -> Result<(), Failure> {
        if data.get("error").is_some_and(|error| !error.is_null()) {
            return Err(error::of_body(None, data));
        }
        if self.model.is_none() && !text(data, "model").is_empty() {
            self.model = Some(text(data, "model").to_owned());
        }
        if data["usage"].is_object() {
            self.usage = data["usage"].clone();
        }
        let choice = &data["choices"][0];
        let delta = &choice["delta"];
        // Services use different names for reasoning.
        for field in ["reasoning_content", "reasoning"] {
            let piece = text(delta, field);
            self.reasoning.push_str(piece);
            push(out, Delta::Reasoning, piece);
        }
        for field in ["content", "refusal"] {
            let piece = text(delta, field);
            self.text.push_str(piece);
            push(out, Delta::Text, piece);
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call);
        }
        match text(choice, "finish_reason") {
            "" => {}
            "tool_calls" | "function_call" => self.stop = Some(StopReason::ToolUse),
            "length" => self.stop = Some(StopReason::MaxTokens),
            "content_filter" => self.stop = Some(StopReason::Refusal),
            _ => self.stop = Some(StopReason::End),
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some()
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
            blocks.push(Block::Text {
                text: self.text,
                signature: None,
            });
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
        Completed {
            answer: Answer {
                blocks,
                origin: None,
            },
            stop: self.stop.unwrap_or_default(),
            usage: usage_of(
                &self.usage,
                [
                    "/prompt_tokens",
                    "/completion_tokens",
                    "/prompt_tokens_details/cached_tokens",
                    "/prompt_tokens_details/cache_write_tokens",
                    "/completion_tokens_details/reasoning_tokens",
                ],
            ),
            model: self.model,
        }
    }
}
