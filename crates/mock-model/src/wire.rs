//! The wire protocols: what a request asks, and how an answer is written.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use crate::cli::{self, Call, CallContext, OwnRequest, offered};
use crate::json::{items, text_of};
use crate::protocol::Protocol;
use crate::{Cli, ErrorKind, Part, Stop, Tokens, Turn};

impl Protocol {
    /// The bytes of a streamed answer, without its pauses and up to where it breaks off. `None` if a part calls
    /// a tool that only a CLI has a name for.
    ///
    /// ```
    /// use teamster_mock_model::{Part, Protocol, Turn};
    ///
    /// let turn = Turn::new(vec![Part::Text("Hello.".into())]);
    /// let bytes = Protocol::Chat.stream(&turn).unwrap_or_default();
    /// assert!(bytes.ends_with(b"data: [DONE]\n\n"));
    /// ```
    pub fn stream(self, turn: &Turn) -> Option<Vec<u8>> {
        let place = CallContext {
            directory: None,
            tools: &[],
            offers: &[],
        };
        let say = turn.parts.iter().map(|part| say(part, None, false, &place));
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
    /// A request, as far as its protocol matters.
    fn asked(&self, path: &str, body: &Value) -> ParsedRequest;

    /// A streamed answer. [`Frame::Pace`] stands after each piece of text.
    fn stream(&self, reply: &Reply) -> Vec<Frame>;

    /// The same answer in one body, for a request that wants no stream.
    fn complete(&self, reply: &Reply) -> Value;

    /// An HTTP error; `message` is in place of the usual one.
    fn error(&self, kind: ErrorKind, message: Option<&str>) -> Failure;
}

/// A request, as far as its protocol matters.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ParsedRequest {
    /// The model.
    pub(crate) model: String,
    /// Whether the answer shall be streamed.
    pub(crate) stream: bool,
    /// The names of the tools that the model may call.
    pub(crate) tools: Vec<String>,
    pub(crate) what: RequestKind,
}

/// The kind of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RequestKind {
    /// The next answer in a conversation.
    Answer {
        /// The number of the turn, from 0: how often text of the model was followed by something that it did
        /// not write (results of its tools, or the user's next prompt). Text that is still there from
        /// an answer which broke off has nothing after it and does not count.
        turn: usize,
    },
    /// Something that the CLI wants to know for itself, such as a title for the session: it gets
    /// this text, independent of the script.
    Helper(String),
    /// A search of the web for this by the service, which the CLI's own tool asks for.
    Search(String),
    /// A question that has nothing to do with a conversation, such as the number of tokens of a
    /// text: it gets this body.
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

/// The kind of a request of these turns: one of a CLI's own, or for the next answer.
fn kind_of(request: &cli::ParsedBody<'_>) -> RequestKind {
    match cli::own_request(request) {
        Some(own) => own.into(),
        None => RequestKind::Answer { turn: request.turn },
    }
}

/// An answer, with everything in it that does not depend on the protocol.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    /// Something to make ids of: another one for each answer, and the same each time a script is
    /// played.
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
    /// A search of the web by the service itself, and what it found.
    Search(String),
    /// Nothing for so long.
    Pause(Duration),
    /// An error event in the stream, and then its end.
    Error(ErrorKind),
    /// Bytes as they are.
    Raw(String),
    /// The connection breaks.
    Cut,
    /// Nothing more, and the connection stays open.
    Stall,
}

/// A part of the script in the form for this CLI. `None` for a call of an unknown tool.
pub(crate) fn say(
    part: &Part,
    cli: Option<Cli>,
    is_sure: bool,
    place: &CallContext<'_>,
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
            Some(cli) => cli.call(part, place)?,
            None => Call::new(name, input.clone()),
        }),
        Part::Shell(_)
        | Part::BackgroundShell(_)
        | Part::ReadFile(_)
        | Part::WriteFile { .. }
        | Part::Mcp { .. }
        | Part::Agent { .. }
        | Part::Plan(_)
        | Part::Ask(_)
        | Part::WebSearch(_) => Say::Call(call(part, cli, is_sure, place)?),
    })
}

/// The call of a tool. Where the CLI was only guessed by some of its tools, what they take decides.
fn call(part: &Part, cli: Option<Cli>, is_sure: bool, place: &CallContext<'_>) -> Option<Call> {
    let own = || cli.and_then(|cli| cli.call(part, place));
    if is_sure {
        own().or_else(|| offered::call(part, place))
    } else {
        offered::call(part, place).or_else(own)
    }
}

/// A step in the writing of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    Bytes(Bytes),
    /// The time between two pieces of text.
    Pace,
    Pause(Duration),
    /// The connection breaks here.
    Cut,
    /// Nothing more comes here, and the connection stays open.
    Stall,
}

/// An HTTP error.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    pub(crate) body: Value,
}

/// Puts frames together, and keeps nothing after what ends a stream.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    frames: Vec<Frame>,
    over: bool,
}

impl Frames {
    /// An event of the stream, with its name where the protocol has one.
    pub(crate) fn event(&mut self, name: Option<&str>, data: &Value) {
        let name = name.map_or(String::new(), |name| format!("event: {name}\n"));
        self.raw(format!("{name}data: {data}\n\n"));
    }

    /// Bytes as they are.
    pub(crate) fn raw(&mut self, bytes: String) {
        self.push(Frame::Bytes(Bytes::from(bytes)));
    }

    /// After a piece of text.
    pub(crate) fn pace(&mut self) {
        self.push(Frame::Pace);
    }

    /// Writes a part that is the same in every protocol. `false` if the protocol has to write this part itself.
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

    /// Everything after this is left out.
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
    /// The user, or a tool.
    Other,
}

/// The requested turn of a conversation ([`RequestKind::Answer`]).
pub(crate) fn turn(speakers: impl IntoIterator<Item = Speaker>) -> usize {
    let mut turn = 0;
    let mut before = Speaker::Other;
    for speaker in speakers {
        turn += usize::from(before == Speaker::Model && speaker == Speaker::Other);
        before = speaker;
    }
    turn
}

/// The texts of a conversation before the model's first answer, in every protocol.
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

/// Whether the first of these is left unfinished: a text that is still being written when the stream
/// breaks.
pub(crate) fn breaks_off(say: &[Say]) -> bool {
    let [Say::Text(_) | Say::Thinking(_), then @ ..] = say else {
        return false;
    };
    let next = then.iter().find(|say| !matches!(say, Say::Pause(_)));
    matches!(next, Some(Say::Cut | Say::Stall | Say::Error(_)))
}

/// A JSON text in pieces of about so many characters, as models stream the input of tools.
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
    fn nothing_comes_after_the_end() {
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
