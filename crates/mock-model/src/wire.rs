//! Wire protocols: decoding of requests and encoding of answers.

mod anthropic;
mod chat;
mod gemini;
mod responses;
pub(crate) mod schemas;

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::cli::{self, Call, CallContext, OwnRequest, offered};
use crate::json::{items, text_of};
use crate::protocol::Protocol;
use crate::{Cli, ErrorKind, Part, Stop, Tokens, Turn};

impl Protocol {
    /// Encodes a streamed answer, without its pauses and up to the point where it breaks off. Returns `None`
    /// if a part calls a tool whose name depends on the CLI.
    ///
    /// ```
    /// use teamster_mock_model::{Part, Protocol, Turn};
    ///
    /// let turn = Turn::new(vec![Part::Text("Hello.".into())]);
    /// let bytes = Protocol::Chat.stream(&turn).unwrap_or_default();
    /// assert!(bytes.ends_with(b"data: [DONE]\n\n"));
    /// ```
    pub fn stream(self, turn: &Turn) -> Option<Vec<u8>> {
        let context = CallContext::default();
        let say = turn
            .parts
            .iter()
            .map(|part| say(part, None, false, &context));
        let reply = Reply {
            id: "mock_0_0".to_owned(),
            model: "mock-model".to_owned(),
            say: say.collect::<Option<_>>()?,
            stop: turn.stop(),
            usage: turn.usage,
        };
        let mut bytes = Vec::new();
        for frame in self.wire().stream(&reply) {
            if let Frame::Bytes(piece) = frame {
                bytes.extend_from_slice(&piece);
            }
        }
        Some(bytes)
    }

    pub(crate) fn wire(self) -> &'static dyn Wire {
        match self {
            Self::Anthropic => &anthropic::Anthropic,
            Self::Responses => &responses::Responses,
            Self::Chat => &chat::Chat,
            Self::Gemini => &gemini::Gemini,
        }
    }
}

/// Encoding and decoding of a protocol, without I/O.
pub(crate) trait Wire: Sync {
    /// Decodes a request.
    fn asked(&self, path: &str, body: &Value) -> ParsedRequest;

    /// Encodes a streamed answer, with [`Frame::Pace`] after each piece of text.
    fn stream(&self, reply: &Reply) -> Vec<Frame>;

    /// Encodes the answer as one body, for a request without streaming.
    fn complete(&self, reply: &Reply) -> Value;

    /// Encodes an HTTP error; `message` overrides the default one.
    fn error(&self, kind: ErrorKind, message: Option<&str>) -> Failure;
}

/// The protocol-specific parts of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedRequest {
    pub(crate) model: String,
    /// True if the answer is streamed.
    pub(crate) stream: bool,
    /// The names of the tools that the model may call.
    pub(crate) tools: Vec<String>,
    pub(crate) what: RequestKind,
}

impl ParsedRequest {
    /// Decodes the parts that most protocols have in the same place.
    fn new(protocol: Protocol, body: &Value, tools: Vec<String>, turn: usize) -> Self {
        let stream = body["stream"].as_bool().unwrap_or(false);
        let what = kind_of(&cli::ParsedBody {
            protocol,
            body,
            stream,
            tools: &tools,
            turn,
        });
        Self {
            model: text_of(body, "model").to_owned(),
            stream,
            tools,
            what,
        }
    }
}

/// The kind of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RequestKind {
    /// The next answer in a conversation.
    Answer {
        /// Number of the turn, from 0: how often text of the model was followed by other input (results of
        /// its tools, or the user's next prompt). Text of an answer that broke off does not count if nothing
        /// follows it.
        turn: usize,
    },
    /// A request for the CLI's own purposes, such as a title for the session. It gets this text, independent
    /// of the script.
    Helper(String),
    /// A web search by the service with this query, requested by the CLI's own tool.
    Search(String),
    /// A request outside of conversations, such as the number of tokens of a text. It gets this body.
    Body(Value),
}

impl From<OwnRequest> for RequestKind {
    fn from(request: OwnRequest) -> Self {
        match request {
            OwnRequest::Text(answer) => Self::Helper(answer),
            OwnRequest::Search(query) => Self::Search(query),
        }
    }
}

/// Classifies a request with turns: either a CLI's own one, or one for the next answer.
fn kind_of(request: &cli::ParsedBody<'_>) -> RequestKind {
    match cli::own_request(request) {
        Some(own) => own.into(),
        None => RequestKind::Answer { turn: request.turn },
    }
}

/// An answer in protocol-independent form.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// Seed of its ids. It differs for each answer and is the same whenever a script is played.
    pub(crate) id: String,
    pub(crate) model: String,
    pub(crate) say: Vec<Say>,
    pub(crate) stop: Stop,
    pub(crate) usage: Tokens,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Say {
    Text(Vec<String>),
    Thinking(Vec<String>),
    Call(Call),
    /// A web search by the service itself, with its results.
    Search(String),
    /// A pause.
    Pause(Duration),
    /// An error event that ends the stream.
    Error(ErrorKind),
    /// Literal bytes.
    Raw(String),
    /// Breaks the connection.
    Cut,
    /// Stops the output with an open connection.
    Stall,
}

/// Translates a part of the script for this CLI. Returns `None` for a call of an unknown tool.
pub(crate) fn say(
    part: &Part,
    cli: Option<Cli>,
    is_sure: bool,
    context: &CallContext<'_>,
) -> Option<Say> {
    Some(match part {
        Part::Text(pieces) => Say::Text(pieces.0.clone()),
        Part::Thinking(pieces) => Say::Thinking(pieces.0.clone()),
        Part::PauseMs(ms) => Say::Pause(Duration::from_millis(*ms)),
        Part::Stall => Say::Stall,
        Part::Cut => Say::Cut,
        Part::Error(kind) => Say::Error(*kind),
        Part::Raw(bytes) => Say::Raw(bytes.clone()),
        Part::ServiceSearch(query) => Say::Search(query.clone()),
        Part::Tool { name, input } => Say::Call(match cli {
            Some(cli) => cli.call(part, context)?,
            None => Call::new(name, input.clone()),
        }),
        Part::Shell(_)
        | Part::BackgroundShell(_)
        | Part::ReadFile(_)
        | Part::WriteFile { .. }
        | Part::EditFile { .. }
        | Part::Mcp { .. }
        | Part::Agent { .. }
        | Part::Plan(_)
        | Part::Ask(_)
        | Part::WebSearch(_) => Say::Call(call(part, cli, is_sure, context)?),
    })
}

/// Returns the call of a tool. If the CLI was only guessed from some tools, their schemas take precedence.
fn call(part: &Part, cli: Option<Cli>, is_sure: bool, context: &CallContext<'_>) -> Option<Call> {
    let own = || cli.and_then(|cli| cli.call(part, context));
    if is_sure {
        own().or_else(|| offered::call(part, context))
    } else {
        offered::call(part, context).or_else(own)
    }
}

/// A step of writing a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    Bytes(Bytes),
    /// The time between two pieces of text.
    Pace,
    Pause(Duration),
    /// Breaks the connection.
    Cut,
    /// Stops the output with an open connection.
    Stall,
}

/// An HTTP error.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Builder of frames. It ignores frames after the end of the stream.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    frames: Vec<Frame>,
    over: bool,
}

impl Frames {
    /// Adds an event, with its name if the protocol has one.
    pub(crate) fn event(&mut self, name: Option<&str>, data: &Value) {
        let name = name.map_or(String::new(), |name| format!("event: {name}\n"));
        self.raw(format!("{name}data: {data}\n\n"));
    }

    /// Adds literal bytes.
    pub(crate) fn raw(&mut self, bytes: String) {
        self.push(Frame::Bytes(Bytes::from(bytes)));
    }

    /// Adds the pause after a piece of text.
    pub(crate) fn pace(&mut self) {
        self.push(Frame::Pace);
    }

    /// Writes a part that all protocols share. Returns `false` if the part is specific to the protocol.
    pub(crate) fn common(&mut self, say: &Say) -> bool {
        match say {
            Say::Pause(time) => self.push(Frame::Pause(*time)),
            Say::Raw(bytes) => self.raw(bytes.clone()),
            Say::Cut => self.end(Some(Frame::Cut)),
            Say::Stall => self.end(Some(Frame::Stall)),
            Say::Text(_) | Say::Thinking(_) | Say::Call(_) | Say::Search(_) | Say::Error(_) => {
                return false;
            }
        }
        true
    }

    /// Ends the stream. Later frames are ignored.
    pub(crate) fn end(&mut self, last: Option<Frame>) {
        if let Some(last) = last {
            self.push(last);
        }
        self.over = true;
    }

    pub(crate) fn into_vec(self) -> Vec<Frame> {
        self.frames
    }

    fn push(&mut self, frame: Frame) {
        if !self.over {
            self.frames.push(frame);
        }
    }
}

/// The author of an item of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    Model,
    /// The user or a tool.
    Other,
}

/// Returns the requested turn of a conversation ([`RequestKind::Answer`]).
pub(crate) fn turn(speakers: impl IntoIterator<Item = Speaker>) -> usize {
    let mut turn = 0;
    let mut before = Speaker::Other;
    for speaker in speakers {
        turn += usize::from(before == Speaker::Model && speaker == Speaker::Other);
        before = speaker;
    }
    turn
}

/// Returns the texts of a conversation before the model's first answer, in every protocol.
pub(crate) fn opening(body: &Value) -> Vec<&str> {
    let lists = ["messages", "input", "contents"];
    let is_model = |item: &Value| {
        let kind = text_of(item, "type");
        matches!(text_of(item, "role"), "assistant" | "model")
            || kind == "reasoning"
            || kind.ends_with("_call")
    };
    let first = lists.iter().flat_map(|list| {
        items(body, list)
            .iter()
            .take_while(|item| !is_model(item))
            .filter(|item| !matches!(text_of(item, "role"), "system" | "developer"))
    });
    let mut texts = Vec::new();
    for item in first {
        texts_in(item, &mut texts);
    }
    texts
}

fn texts_in<'v>(value: &'v Value, texts: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => texts.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts_in(item, texts)),
        Value::Object(fields) => fields.values().for_each(|field| texts_in(field, texts)),
        _ => {}
    }
}

/// Returns whether the first part is a text that is unfinished when the stream breaks. What follows it is searched without
/// what `skips` selects.
pub(crate) fn breaks_off(say: &[Say], skips: fn(&Say) -> bool) -> bool {
    let [Say::Text(_) | Say::Thinking(_), then @ ..] = say else {
        return false;
    };
    let next = then.iter().find(|say| !skips(say));
    matches!(next, Some(Say::Cut | Say::Stall | Say::Error(_)))
}

/// Splits a JSON text into pieces of about this many characters, as models stream the input of tools.
pub(crate) fn pieces(text: &str, length: usize) -> Vec<String> {
    let characters: Vec<_> = text.chars().collect();
    characters
        .chunks(length.max(1))
        .map(|piece| piece.iter().collect())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn reply(say: Vec<Say>, stop: Stop) -> Reply {
        Reply {
            id: "mock_0_0".into(),
            model: "m".into(),
            say,
            stop,
            usage: Tokens {
                input: 100,
                output: 20,
                cache_read: 30,
                cache_write: 4,
                reasoning: 5,
            },
        }
    }

    /// Returns a stream as one text, with frames that are not sent in brackets.
    pub(super) fn written(frames: &[Frame]) -> String {
        let texts = frames.iter().map(|frame| match frame {
            Frame::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
            other => format!("[{other:?}]\n"),
        });
        texts.collect()
    }

    #[test]
    fn a_turn_is_text_of_the_model_and_its_successor() {
        use Speaker::{Model, Other};
        assert_eq!(turn([]), 0);
        assert_eq!(turn([Other, Other]), 0);
        assert_eq!(turn([Other, Model]), 0, "text of an answer that broke off");
        assert_eq!(turn([Other, Model, Model, Other, Other]), 1);
        assert_eq!(turn([Other, Model, Other, Model, Other]), 2);
    }

    #[test]
    fn the_opening_is_the_part_before_the_models_first_answer() {
        use serde_json::json;
        let asked = json!({"role": "user", "content": [{"type": "text", "text": "main"}]});
        let messages = json!({"messages": [
            {"role": "system", "content": "rules"},
            asked,
            {"role": "assistant", "content": [{"type": "tool_use", "input": {"prompt": "sub"}}]},
            {"role": "user", "content": "later"},
        ]});
        let of = |body: &Value| {
            let texts = opening(body).into_iter().map(str::to_owned);
            texts.collect::<Vec<_>>().join(" ")
        };
        assert!(of(&messages).contains("main"));
        for absent in ["rules", "sub", "later"] {
            assert!(!of(&messages).contains(absent), "{absent}");
        }
        let input = json!({"input": [{"role": "user", "content": "main"}, {"type": "function_call", "arguments": "sub"}]});
        assert!(of(&input).contains("main") && !of(&input).contains("sub"));
        let contents = json!({"contents": [{"role": "user", "parts": [{"text": "main"}]}, {"role": "model", "parts": [{"text": "sub"}]}]});
        assert!(of(&contents).contains("main") && !of(&contents).contains("sub"));
        assert_eq!(of(&json!({})), "");
    }

    #[test]
    fn paths_tell_the_protocol() {
        for (path, protocol) in [
            ("/v1/messages", Some(Protocol::Anthropic)),
            ("/v1/messages/count_tokens", Some(Protocol::Anthropic)),
            ("/v1/responses", Some(Protocol::Responses)),
            ("/openai/v1/chat/completions", Some(Protocol::Chat)),
            (
                "/v1beta/models/gemini-2.5-flash:streamGenerateContent",
                Some(Protocol::Gemini),
            ),
            ("/v1/models", None),
            ("/", None),
        ] {
            assert_eq!(Protocol::of(path), protocol, "{path}");
        }
    }

    #[test]
    fn stream_is_empty_after_its_end() {
        let mut frames = Frames::default();
        frames.raw("a".into());
        assert!(frames.common(&Say::Cut));
        frames.raw("b".into());
        assert_eq!(frames.into_vec(), [Frame::Bytes("a".into()), Frame::Cut]);
    }

    #[test]
    fn pieces_are_cut_between_characters() {
        assert_eq!(pieces("日本語!", 3), ["日本語", "!"]);
        assert!(pieces("", 3).is_empty());
    }
}
