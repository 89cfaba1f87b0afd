//! Anthropic Messages: `POST /v1/messages`.

use serde_json::{Map, Value, json};
use teamster_core::{ErrorKind, Usage};

use super::{
    AnswerDecoder, Completed, Delta, Failure, ModelRequest, StopReason, Wire, WireKind, arguments,
    arguments_piece, as_object, count, error, text,
};
use crate::conversation::{Answer, Block, Call, CallResult, Input, Message};

const VERSION: &str = "2023-06-01";

#[derive(Debug)]
pub(super) struct Anthropic;

impl Wire for Anthropic {
    fn path(&self, _model: &str) -> String {
        "/v1/messages".to_owned()
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let mut headers = vec![("anthropic-version", VERSION.to_owned())];
        headers.extend(key.map(|key| ("x-api-key", key.to_owned())));
        headers
    }

    fn encode(&self, request: &ModelRequest<'_>) -> Value {
        let mut messages: Vec<Value> = (request.messages.iter())
            .filter_map(|message| encode(message, request.model))
            .collect();
        // Cache the prompt up to this block for the next request.
        if let Some(block) = messages
            .last_mut()
            .and_then(|message| message["content"].as_array_mut()?.last_mut())
        {
            block["cache_control"] = json!({"type": "ephemeral"});
        }
        let mut body = json!({
            "model": request.model,
            "max_tokens": request.max_tokens,
            "stream": true,
            "messages": messages,
        });
        if !request.system.is_empty() {
            body["system"] = json!([{
                "type": "text",
                "text": request.system,
                "cache_control": {"type": "ephemeral"},
            }]);
        }
        if !request.tools.is_empty() {
            let tool = |tool: &super::ToolSpec| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": tool.schema,
                })
            };
            body["tools"] = request.tools.iter().map(tool).collect();
        }
        match (request.forced_tool, request.effort) {
            // The service rejects reasoning with a forced tool.
            (Some(name), _) => body["tool_choice"] = json!({"type": "tool", "name": name}),
            (None, Some(effort)) => {
                let budget = effort.tokens();
                body["thinking"] = json!({"type": "enabled", "budget_tokens": budget});
                body["max_tokens"] = (request.max_tokens.saturating_add(budget)).into();
            }
            (None, None) => {}
        }
        body
    }

    fn decoder(&self) -> Box<dyn AnswerDecoder> {
        Box::<Decoder>::default()
    }
}

fn encode(message: &Message, model: &str) -> Option<Value> {
    let (role, content): (_, Vec<Value>) = match message {
        Message::User { content } => ("user", content.iter().map(input).collect()),
        Message::Assistant(answer) => ("assistant", blocks(answer, model)),
        Message::Tool { results } => ("user", results.iter().map(result).collect()),
    };
    // Skip an empty answer: the service rejects messages without content.
    (!content.is_empty()).then(|| json!({"role": role, "content": content}))
}

fn input(input: &Input) -> Value {
    match input {
        Input::Text { text } => json!({"type": "text", "text": text}),
        Input::Image { media_type, data } => json!({
            "type": "image",
            "source": {"type": "base64", "media_type": media_type, "data": data},
        }),
    }
}

fn result(result: &CallResult) -> Value {
    let mut content: Vec<_> = result.content.iter().map(input).collect();
    // The service rejects empty text.
    content.retain(|block| block["type"] != "text" || block["text"] != "");
    json!({
        "type": "tool_result",
        "tool_use_id": result.id,
        "content": content,
        "is_error": result.is_error,
    })
}

fn blocks(answer: &Answer, model: &str) -> Vec<Value> {
    let is_own = answer.is_of(WireKind::Anthropic, model);
    let block = |block: &Block| match block {
        Block::Text { text, .. } if text.trim().is_empty() => None,
        Block::Text { text, .. } => Some(json!({"type": "text", "text": text})),
        Block::Reasoning { native, .. } => native.clone().filter(|_| is_own),
        Block::Call(call) => Some(json!({
            "type": "tool_use",
            "id": call.id,
            "name": call.name,
            "input": as_object(&call.input),
        })),
    };
    answer.blocks.iter().filter_map(block).collect()
}

/// An incomplete content block of the stream.
#[derive(Debug)]
enum Open {
    Text(String),
    Thinking {
        text: String,
        signature: String,
    },
    Call {
        id: String,
        name: String,
        arguments: String,
        initial: Value,
    },
    /// A block to be sent back unchanged, such as hidden reasoning.
    Other(Value),
}

#[derive(Debug, Default)]
struct Decoder {
    blocks: Vec<(u64, Open)>,
    usage: Map<String, Value>,
    stop: Option<StopReason>,
    ended: bool,
}

impl Decoder {
    /// Returns the last block with this index: some services give the same one to several.
    fn block(&mut self, index: u64) -> Option<&mut Open> {
        let found = self.blocks.iter_mut().rfind(|(at, _)| *at == index);
        found.map(|(_, block)| block)
    }

    fn start(&mut self, index: u64, block: &Value, out: &mut Vec<Delta>) {
        let open = match text(block, "type") {
            "text" => {
                push(out, Delta::Text, text(block, "text"));
                Open::Text(text(block, "text").to_owned())
            }
            "thinking" => {
                push(out, Delta::Reasoning, text(block, "thinking"));
                Open::Thinking {
                    text: text(block, "thinking").to_owned(),
                    signature: text(block, "signature").to_owned(),
                }
            }
            "tool_use" => Open::Call {
                id: text(block, "id").to_owned(),
                name: text(block, "name").to_owned(),
                arguments: String::new(),
                initial: block["input"].clone(),
            },
            _ => Open::Other(block.clone()),
        };
        self.blocks.push((index, open));
    }

    fn delta(&mut self, index: u64, delta: &Value, out: &mut Vec<Delta>) -> Result<(), Failure> {
        // Some services leave out the beginning of a block.
        match (text(delta, "type"), self.block(index)) {
            ("text_delta", None | Some(Open::Thinking { .. } | Open::Call { .. })) => {
                self.start(index, &json!({"type": "text"}), out);
            }
            ("thinking_delta", None) => self.start(index, &json!({"type": "thinking"}), out),
            ("input_json_delta", None) => {
                return Err(Failure::new(
                    ErrorKind::Protocol,
                    "the arguments of a call came without its name",
                ));
            }
            _ => {}
        }
        match (text(delta, "type"), self.block(index)) {
            ("text_delta", Some(Open::Text(all))) => {
                all.push_str(text(delta, "text"));
                push(out, Delta::Text, text(delta, "text"));
            }
            ("thinking_delta", Some(Open::Thinking { text: all, .. })) => {
                all.push_str(text(delta, "thinking"));
                push(out, Delta::Reasoning, text(delta, "thinking"));
            }
            ("signature_delta", Some(Open::Thinking { signature, .. })) => {
                signature.push_str(text(delta, "signature"));
            }
            ("input_json_delta", Some(Open::Call { arguments, .. })) => {
                arguments.push_str(&arguments_piece(&delta["partial_json"]));
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads why the model stopped. A later event may leave it out.
    fn stop(&mut self, reason: &str) {
        self.stop = match reason {
            "" => self.stop,
            "tool_use" => Some(StopReason::ToolUse),
            "max_tokens" => Some(StopReason::MaxTokens),
            "model_context_window_exceeded" => Some(StopReason::ContextWindow),
            "refusal" => Some(StopReason::Refusal),
            "pause_turn" => Some(StopReason::Pause),
            _ => Some(StopReason::End),
        };
    }

    /// Reads an answer that is not streamed.
    fn message(&mut self, message: &Value, out: &mut Vec<Delta>) {
        self.usage(&message["usage"]);
        let blocks = message["content"].as_array().into_iter().flatten();
        for (index, block) in (0..).zip(blocks) {
            self.start(index, block, out);
        }
        self.stop(text(message, "stop_reason"));
    }

    fn usage(&mut self, usage: &Value) {
        // The counts are cumulative. Those stay that an event omits, or that a gateway has as 0.
        for (name, figure) in usage.as_object().into_iter().flatten() {
            let is_known = self.usage.contains_key(name);
            if figure.as_u64().is_some_and(|it| it > 0 || !is_known) {
                self.usage.insert(name.clone(), figure.clone());
            }
        }
    }
}

impl AnswerDecoder for Decoder {
    fn event(&mut self, data: &Value, out: &mut Vec<Delta>) -> Result<(), Failure> {
        let index = data["index"].as_u64().unwrap_or_default();
        match text(data, "type") {
            "message_start" => self.usage(&data["message"]["usage"]),
            "content_block_start" => self.start(index, &data["content_block"], out),
            "content_block_delta" => self.delta(index, &data["delta"], out)?,
            "message_delta" => {
                self.usage(&data["usage"]);
                self.stop(text(&data["delta"], "stop_reason"));
            }
            "message_stop" => self.ended = true,
            "message" => self.message(data, out),
            "error" => return Err(error::of_body(None, data)),
            _ => {}
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        // Some services leave out the last event.
        self.ended || self.stop.is_some()
    }

    fn finish(self: Box<Self>) -> Completed {
        let block = |(_, open)| match open {
            Open::Text(text) => Block::text(text),
            Open::Thinking { text, signature } => Block::Reasoning {
                native: (!signature.is_empty())
                    .then(|| json!({"type": "thinking", "thinking": text, "signature": signature})),
                text,
            },
            Open::Call {
                id,
                name,
                arguments: streamed,
                initial,
            } => Block::Call(Call {
                id,
                name,
                input: match (streamed.is_empty(), initial) {
                    (true, Value::Null) => Value::Object(Map::new()),
                    (true, initial) => arguments(&arguments_piece(&initial)),
                    (false, _) => arguments(&streamed),
                },
                signature: None,
            }),
            Open::Other(native) => Block::Reasoning {
                text: String::new(),
                native: Some(native),
            },
        };
        let figure = |name: &str| self.usage.get(name).and_then(Value::as_u64);
        let mut usage = Usage::default();
        usage.input_tokens = figure("input_tokens");
        usage.output_tokens = figure("output_tokens");
        usage.cache_read_tokens = figure("cache_read_input_tokens");
        usage.cache_write_tokens = figure("cache_creation_input_tokens");
        Completed {
            answer: Answer::new(self.blocks.into_iter().map(block).collect()),
            stop: self.stop.unwrap_or_default(),
            usage,
        }
    }
}

/// Appends a chunk, unless it is empty.
pub(super) fn push(out: &mut Vec<Delta>, delta: fn(String) -> Delta, piece: &str) {
    if !piece.is_empty() {
        out.push(delta(piece.to_owned()));
    }
}

/// Converts the usage of a protocol whose input tokens include cached ones.
pub(super) fn usage_of(
    body: &Value,
    [input, output, cache_read, cache_write, reasoning]: [&str; 5],
) -> Usage {
    Usage::default()
        .input_tokens(count(body, input))
        .output_tokens(count(body, output))
        .cache_read_tokens(count(body, cache_read))
        .cache_write_tokens(count(body, cache_write))
        .reasoning_tokens(count(body, reasoning))
        .without_cache_in_input()
}
