//! Gemini: `POST /v1beta/models/MODEL:streamGenerateContent?alt=sse`.

use serde_json::{Value, json};
use teamster_core::Usage;

use super::anthropic::push;
use super::{
    AnswerDecoder, Completed, Delta, Failure, ModelRequest, OWN_ID, StopReason, Wire, WireKind,
    arguments, arguments_piece, as_object, count, text,
};
use crate::conversation::{Answer, Block, Call, Input, Message};

#[derive(Debug)]
pub(super) struct Gemini;

impl Wire for Gemini {
    fn path(&self, model: &str) -> String {
        format!("/v1beta/models/{model}:streamGenerateContent?alt=sse")
    }

    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)> {
        let key = key.map(|key| ("x-goog-api-key", key.to_owned()));
        key.into_iter().collect()
    }

    fn encode(&self, request: &ModelRequest<'_>) -> Value {
        let contents: Vec<_> = (request.messages.iter())
            .filter_map(|message| encode(message, request.model))
            .collect();
        let mut thinking = json!({"includeThoughts": true});
        if let Some(effort) = request.effort {
            thinking["thinkingBudget"] = effort.tokens().into();
        }
        let mut body = json!({"contents": contents});
        // Older models reject the settings for reasoning.
        if !request.model.starts_with("gemini-2.0") && !request.model.starts_with("gemini-1") {
            body["generationConfig"] = json!({"thinkingConfig": thinking});
        }
        if !request.system.is_empty() {
            body["systemInstruction"] = json!({"parts": [{"text": request.system}]});
        }
        if !request.tools.is_empty() {
            let tool = |tool: &super::ToolSpec| {
                json!({
                    "name": tool.name,
                    "description": tool.description,
                    "parametersJsonSchema": tool.schema,
                })
            };
            let tools: Vec<_> = request.tools.iter().map(tool).collect();
            body["tools"] = json!([{"functionDeclarations": tools}]);
        }
        if let Some(name) = request.forced_tool {
            body["toolConfig"] = json!({"functionCallingConfig": {
                "mode": "ANY",
                "allowedFunctionNames": [name],
            }});
        }
        body
    }

    fn decoder(&self) -> Box<dyn AnswerDecoder> {
        Box::<Decoder>::default()
    }
}

fn encode(message: &Message, model: &str) -> Option<Value> {
    let (role, parts): (_, Vec<Value>) = match message {
        Message::User { content } => ("user", content.iter().map(input).collect()),
        Message::Assistant(answer) => ("model", blocks(answer, model)),
        Message::Tool { results } => {
            let mut parts = Vec::new();
            for result in results {
                let field = if result.is_error { "error" } else { "output" };
                parts.push(json!({"functionResponse": {
                    "id": result.id,
                    "name": result.name,
                    "response": {field: result.text()},
                }}));
                parts.extend(
                    result
                        .images()
                        .map(|(media_type, data)| image(media_type, data)),
                );
            }
            ("user", parts)
        }
    };
    (!parts.is_empty()).then(|| json!({"role": role, "parts": parts}))
}

fn input(input: &Input) -> Value {
    match input {
        Input::Text { text } => json!({"text": text}),
        Input::Image { media_type, data } => image(media_type, data),
    }
}

fn image(media_type: &str, data: &str) -> Value {
    json!({"inlineData": {"mimeType": media_type, "data": data}})
}

fn blocks(answer: &Answer, model: &str) -> Vec<Value> {
    let is_own = answer.is_of(WireKind::Gemini, model);
    let signed = |mut part: Value, signature: &Option<String>| {
        if let Some(signature) = signature.as_ref().filter(|_| is_own) {
            part["thoughtSignature"] = signature.clone().into();
        }
        part
    };
    let block = |block: &Block| match block {
        Block::Text {
            text,
            signature: None,
        } if text.is_empty() => None,
        Block::Text { text, signature } => Some(signed(json!({"text": text}), signature)),
        // The service expects no reasoning back, only the signatures of other parts.
        Block::Reasoning { .. } => None,
        Block::Call(call) => {
            let mut part = json!({"functionCall": {
                "name": call.name,
                "args": as_object(&call.input),
            }});
            if !call.id.starts_with(OWN_ID) {
                part["functionCall"]["id"] = call.id.clone().into();
            }
            Some(signed(part, &call.signature))
        }
    };
    answer.blocks.iter().filter_map(block).collect()
}

#[derive(Debug, Default)]
struct Decoder {
    blocks: Vec<Block>,
    usage: Value,
    stop: Option<StopReason>,
    response: String,
}

impl Decoder {
    fn part(&mut self, part: &Value, out: &mut Vec<Delta>) {
        let signature = (part["thoughtSignature"].as_str()).map(str::to_owned);
        if let Some(call) = part.get("functionCall") {
            let id = match text(call, "id") {
                "" => format!("{OWN_ID}{}-{}", self.response, self.blocks.len()),
                id => id.to_owned(),
            };
            self.blocks.push(Block::Call(Call {
                id,
                name: text(call, "name").to_owned(),
                input: arguments(&arguments_piece(&call["args"])),
                signature,
            }));
            return;
        }
        let piece = text(part, "text");
        if part["thought"] == true {
            push(out, Delta::Reasoning, piece);
            match self.blocks.last_mut() {
                Some(Block::Reasoning { text, .. }) => text.push_str(piece),
                _ => self.blocks.push(Block::Reasoning {
                    text: piece.to_owned(),
                    native: None,
                }),
            }
            return;
        }
        push(out, Delta::Text, piece);
        match self.blocks.last_mut() {
            // A signed part stays separate.
            Some(Block::Text {
                text,
                signature: known @ None,
            }) => {
                text.push_str(piece);
                *known = signature;
            }
            _ if piece.is_empty() && signature.is_none() => {}
            _ => self.blocks.push(Block::Text {
                text: piece.to_owned(),
                signature,
            }),
        }
    }
}

impl AnswerDecoder for Decoder {
    fn event(&mut self, data: &Value, out: &mut Vec<Delta>) -> Result<(), Failure> {
        if self.response.is_empty() {
            text(data, "responseId").clone_into(&mut self.response);
        }
        if data["usageMetadata"].is_object() {
            self.usage = data["usageMetadata"].clone();
        }
        if !text(&data["promptFeedback"], "blockReason").is_empty() {
            self.stop = Some(StopReason::Refusal);
        }
        let candidate = &data["candidates"][0];
        for part in (candidate["content"]["parts"].as_array())
            .into_iter()
            .flatten()
        {
            self.part(part, out);
        }
        let calls = || {
            self.blocks
                .iter()
                .any(|block| matches!(block, Block::Call(_)))
        };
        match text(candidate, "finishReason") {
            "" => {}
            "STOP" if calls() => self.stop = Some(StopReason::ToolUse),
            "STOP" | "FINISH_REASON_UNSPECIFIED" | "OTHER" => self.stop = Some(StopReason::End),
            "MAX_TOKENS" => self.stop = Some(StopReason::MaxTokens),
            reason @ ("MALFORMED_FUNCTION_CALL"
            | "UNEXPECTED_TOOL_CALL"
            | "TOO_MANY_TOOL_CALLS"
            | "MALFORMED_RESPONSE"
            | "MISSING_THOUGHT_SIGNATURE") => {
                return Err(Failure::new(
                    teamster_core::ErrorKind::Protocol,
                    format!("the model wrote a call that the service could not read ({reason})"),
                ));
            }
            _ => self.stop = Some(StopReason::Refusal),
        }
        Ok(())
    }

    fn has_ended(&self) -> bool {
        self.stop.is_some()
    }

    fn finish(self: Box<Self>) -> Completed {
        let body = &self.usage;
        let thoughts = count(body, "/thoughtsTokenCount");
        let answer = count(body, "/candidatesTokenCount");
        let usage = Usage::default()
            .input_tokens(count(body, "/promptTokenCount"))
            // Output tokens exclude reasoning here, so add it.
            .output_tokens(answer.map(|answer| answer + thoughts.unwrap_or(0)))
            .cache_read_tokens(count(body, "/cachedContentTokenCount"))
            .reasoning_tokens(thoughts)
            .without_cache_in_input();
        Completed {
            answer: Answer::new(self.blocks),
            stop: self.stop.unwrap_or_default(),
            usage,
        }
    }
}
