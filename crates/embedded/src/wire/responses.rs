//! OpenAI Responses: `POST /v1/responses`, without state at the service.

use serde_json::{Value, json};
use teamster_core::Usage;

use super::anthropic::{push, usage_of};
use super::chat::{arguments_text, bearer};
use super::{
    AnswerDecoder, Completed, Delta, Failure, ModelRequest, StopReason, Wire, WireKind, arguments,
    error, text,
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
    blocks: Vec<Block>,
    usage: Usage,
    model: Option<String>,
    stop: StopReason,
    /// Item and part of the reasoning that is being streamed.
    part: Option<(u64, u64)>,
    ended: bool,
}

impl Decoder {
    /// Adds a complete item.
    fn item(&mut self, item: &Value) {
        match text(item, "type") {
            "message" => {
                let text: String = (item["content"].as_array().into_iter().flatten())
                    .map(|part| match text(part, "type") {
                        "refusal" => text(part, "refusal"),
                        _ => text(part, "text"),
                    })
                    .collect();
                self.blocks.push(Block::Text {
                    text,
                    signature: None,
                });
            }
            "reasoning" => {
                let parts: Vec<_> = (item["summary"].as_array().into_iter().flatten())
                    .map(|part| text(part, "text"))
                    .collect();
                let mut native = item.clone();
                let is_signed = !text(item, "encrypted_content").is_empty();
                if let Some(fields) = native.as_object_mut() {
                    // Valid in answers only.
                    fields.shift_remove("status");
                }
                self.blocks.push(Block::Reasoning {
                    text: parts.join("\n\n"),
                    native: is_signed.then_some(native),
                });
            }
            "function_call" => self.blocks.push(Block::Call(Call {
                id: text(item, "call_id").to_owned(),
                name: text(item, "name").to_owned(),
                input: arguments(text(item, "arguments")),
                signature: None,
            })),
            "custom_tool_call" => self.blocks.push(Block::Call(Call {
                id: text(item, "call_id").to_owned(),
                name: text(item, "name").to_owned(),
                input: Value::String(text(item, "input").to_owned()),
                signature: None,
            })),
            _ => {}
        }
    }

    fn end(&mut self, response: &Value) {
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
        self.model = Some(text(response, "model").to_owned()).filter(|model| !model.is_empty());
        self.stop = match text(&response["incomplete_details"], "reason") {
            "max_output_tokens" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal,
            _ if self
                .blocks
                .iter()
                .any(|block| matches!(block, Block::Call(_))) =>
            {
                StopReason::ToolUse
            }
            _ => StopReason::End,
        };
        self.ended = true;
    }
}

impl AnswerDecoder for Decoder {
    fn event(&mut self, data: &Value, out: &mut Vec<Delta>) -> Result<(), Failure> {
        match text(data, "type") {
            "response.output_text.delta" | "response.refusal.delta" => {
                push(out, Delta::Text, text(data, "delta"));
            }
            "response.reasoning_summary_text.delta" => {
                let number = |field: &str| data[field].as_u64().unwrap_or_default();
                let part = Some((number("output_index"), number("summary_index")));
                if self.part != part && self.part.is_some() {
                    out.push(Delta::Reasoning("\n\n".to_owned()));
                }
                self.part = part;
                push(out, Delta::Reasoning, text(data, "delta"));
            }
            "response.output_item.done" => self.item(&data["item"]),
            "response.completed" | "response.incomplete" => self.end(&data["response"]),
            "response.failed" => return Err(error::of_body(None, &data["response"])),
            "error" => return Err(error::of_body(None, data)),
            _ => {}
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.ended
    }

    fn finish(self: Box<Self>) -> Completed {
        Completed {
            answer: Answer {
                blocks: self.blocks,
                origin: None,
            },
            stop: self.stop,
            usage: self.usage,
            model: self.model,
        }
    }
}
