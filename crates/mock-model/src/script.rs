//! Scripts of the model's answers, in TOML.

mod check;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub use check::ScriptError;

/// A conversation with a model, from the model's side.
///
/// Each `[[turn]]` is one answer of the model; the results of its tools and the user's next prompt lie
/// between two of them. Which turn it is follows from the request itself, so a script can be played
/// by several processes at once, and a resumed session continues where it was.
///
/// ```
/// let script: teamster_mock_model::Script = r#"
///     description = "lists the files"
///
///     [[turn]]
///     parts = [
///         { text = ["I look ", "at the files."] },
///         { shell = "ls" },
///     ]
///     usage = { input = 1200, output = 40 }
///
///     [[turn]]
///     parts = [{ text = "There are none." }]
/// "#
/// .parse()?;
/// assert_eq!(script.turns.len(), 2);
/// # Ok::<(), teamster_mock_model::ScriptError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Script {
    /// Description for people.
    #[serde(default)]
    pub description: Option<String>,
    /// The answers in their order.
    #[serde(rename = "turn")]
    pub turns: Vec<Turn>,
    /// Answers of the model in the conversations of sub-agents.
    #[serde(default, rename = "agent")]
    pub agents: Vec<SubAgent>,
    /// Not looked at here: for who plays the script, such as a test that keeps there what it expects.
    #[serde(default)]
    pub test: Option<toml::Table>,
}

/// The model's side of a sub-agent's conversation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SubAgent {
    /// The conversation is known by this text: it is in what stands before the model's first answer.
    pub prompt: String,
    /// The answers in their order.
    #[serde(rename = "turn")]
    pub turns: Vec<Turn>,
}

impl SubAgent {
    /// The model's answers to a sub-agent that is asked this.
    pub fn new(prompt: impl Into<String>, turns: Vec<Turn>) -> Self {
        Self {
            prompt: prompt.into(),
            turns,
        }
    }
}

/// One answer of the model.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Turn {
    /// Answer so only the first so many requests for this turn (since the server was started), and
    /// those after them by the next `[[turn]]`, which is then the same turn of the
    /// conversation. This is how a request fails and its repetition does not.
    #[serde(default)]
    pub times: Option<u32>,
    /// Wait so long, in milliseconds, before anything is answered.
    #[serde(default)]
    pub delay_ms: u64,
    /// Parts of the answer, in order.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// Usage of the answer.
    #[serde(default)]
    pub usage: Tokens,
    /// Why the model stopped. Unset, it is `tool_use` if a tool is called and `end` if not.
    #[serde(default)]
    pub stop: Option<Stop>,
    /// An HTTP error in the place of an answer. `error = "overloaded"` is short for
    /// `error = { kind = "overloaded" }`.
    #[serde(default, deserialize_with = "error_or_its_kind")]
    pub error: Option<HttpError>,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Part {
    /// Text, whole or in the pieces in which it is streamed.
    Text(Pieces),
    /// Reasoning, whole or in pieces.
    Thinking(Pieces),
    /// Call the CLI's tool that runs a shell command.
    Shell(String),
    /// Call the CLI's tool that runs a shell command, which continues in the background.
    BackgroundShell(String),
    /// Call the CLI's tool that reads a file. The path may be relative to where the agent works.
    /// Codex has none and runs `cat`.
    ReadFile(String),
    /// Call the CLI's tool that writes a file.
    WriteFile {
        /// The file; the path may be relative to where the agent works.
        path: String,
        /// All that shall be in it.
        content: String,
    },
    /// Call a tool of an MCP server.
    Mcp {
        /// The server's name in the CLI's configuration.
        server: String,
        /// The tool's name on the server.
        tool: String,
        /// Its input.
        #[serde(default = "empty_object")]
        arguments: Value,
    },
    /// Call the CLI's tool that starts a sub-agent.
    Agent {
        /// The sub-agent's prompt; an `[[agent]]` of the script has its answers.
        prompt: String,
        /// Go on at once, where the CLI has a choice. With `false`, Codex is made to call the tool that
        /// waits for it, too.
        #[serde(default)]
        background: Option<bool>,
    },
    /// Call the CLI's tool that writes a plan with these entries, all of them still to be done.
    Plan(Vec<String>),
    /// Call the CLI's tool that asks its user a question, with the choices "Yes" and "No".
    Ask(String),
    /// Call the CLI's tool that searches the web. What it finds is made up.
    WebSearch(String),
    /// Report a web search by the service itself, and its results. The answer continues
    /// after it.
    ServiceSearch(String),
    /// Call a tool by the CLI's own name for it.
    Tool {
        /// The name.
        name: String,
        /// Its input.
        #[serde(default = "empty_object")]
        input: Value,
    },
    /// Say nothing for so many milliseconds.
    PauseMs(u64),
    /// Say nothing more and leave the connection open. A text before it is left unfinished where a
    /// protocol shows the difference to a finished one; so it is with `cut` and `error`.
    Stall,
    /// Break the connection. If the answer is not streamed, nothing of it is sent at all.
    Cut,
    /// Say that something is wrong in an event of the stream, and end it. An answer that is not
    /// streamed is the HTTP error of this kind.
    Error(ErrorKind),
    /// Put these bytes into the stream as they are, such as what is no event at all. An answer that
    /// is not streamed is without them.
    Raw(String),
}

impl Part {
    /// Whether it calls a tool.
    pub fn is_call(&self) -> bool {
        matches!(
            self,
            Self::Shell(_)
                | Self::BackgroundShell(_)
                | Self::ReadFile(_)
                | Self::WriteFile { .. }
                | Self::Mcp { .. }
                | Self::Agent { .. }
                | Self::Plan(_)
                | Self::Ask(_)
                | Self::WebSearch(_)
                | Self::Tool { .. }
        )
    }
}

/// Text in the pieces in which it is streamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pieces(pub Vec<String>);

impl Pieces {
    /// The whole text.
    pub fn concat(&self) -> String {
        self.0.concat()
    }
}

impl From<&str> for Pieces {
    fn from(text: &str) -> Self {
        Self(vec![text.to_owned()])
    }
}

impl From<String> for Pieces {
    fn from(text: String) -> Self {
        Self(vec![text])
    }
}

impl<'de> Deserialize<'de> for Pieces {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a text, or a list of its pieces")]
        enum OneOrMany {
            One(String),
            Many(Vec<String>),
        }
        Ok(match OneOrMany::deserialize(deserializer)? {
            OneOrMany::One(text) => Self(vec![text]),
            OneOrMany::Many(pieces) => Self(pieces),
        })
    }
}

/// Tokens of one answer. What is written to and read from a cache is beside `input`; reasoning is a
/// part of `output`. Each protocol has a convention of its own, to which this is converted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Tokens {
    /// Input that was neither read from nor written to a cache. 100 if unset.
    pub input: u64,
    /// Output, reasoning included. 20 if unset.
    pub output: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache. Not every protocol has a word for it; then it counts as `input`.
    pub cache_write: u64,
    /// Reasoning, a part of `output`. Not every protocol has it.
    pub reasoning: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Self {
            input: 100,
            output: 20,
            cache_read: 0,
            cache_write: 0,
            reasoning: 0,
        }
    }
}

/// Stop reason of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Stop {
    /// It was complete.
    End,
    /// It waits for its tools.
    ToolUse,
    /// The answer was cut at the limit of output tokens. Some CLIs then ask the model to go on,
    /// which is a turn of its own: Claude Code does it three times.
    MaxTokens,
    /// The model or a filter refused to go on.
    Refusal,
}

/// An answer that is none.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct HttpError {
    /// The kind of error. Each protocol has its own status and body for it.
    pub kind: ErrorKind,
    /// The HTTP status, in place of the protocol's.
    #[serde(default)]
    pub status: Option<u16>,
    /// The message, in place of the protocol's.
    #[serde(default)]
    pub message: Option<String>,
    /// Headers, such as `retry-after`.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The whole body, in place of the protocol's.
    #[serde(default)]
    pub body: Option<String>,
}

impl HttpError {
    /// An error as the protocol has it.
    pub fn new(kind: ErrorKind) -> Self {
        Self {
            kind,
            status: None,
            message: None,
            headers: BTreeMap::new(),
            body: None,
        }
    }
}

/// Kind of a model service's error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The key is wrong: 401, or 400, by the protocol.
    Authentication,
    /// The key may not do this: 403.
    Permission,
    /// Too many requests: 429.
    RateLimit,
    /// Nothing is left of what was paid for: 429 or 402, by the protocol.
    Quota,
    /// The service failed: 500.
    Server,
    /// The service has too much to do: 529 or 503, by the protocol.
    Overloaded,
    /// There is no such model: 404.
    UnknownModel,
    /// The conversation is longer than the model's context: 400, by most protocols.
    ContextTooLong,
    /// The request is wrong: 400.
    InvalidRequest,
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}

fn error_or_its_kind<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<HttpError>, D::Error> {
    #[derive(Deserialize)]
    #[serde(
        untagged,
        expecting = "the kind of an error, or a table with its `kind`"
    )]
    enum KindOrWhole {
        Kind(ErrorKind),
        Whole(HttpError),
    }
    Ok(Some(match KindOrWhole::deserialize(deserializer)? {
        KindOrWhole::Kind(kind) => HttpError::new(kind),
        KindOrWhole::Whole(error) => error,
    }))
}

impl std::str::FromStr for Script {
    type Err = ScriptError;

    fn from_str(text: &str) -> Result<Self, ScriptError> {
        let script: Self = toml::from_str(text).map_err(|error| ScriptError::form(&error))?;
        script.check()?;
        Ok(script)
    }
}

impl Script {
    /// A script of these turns.
    ///
    /// ```
    /// use teamster_mock_model::{ErrorKind, HttpError, Part, Script, Turn};
    ///
    /// let mut busy = Turn::failed(HttpError::new(ErrorKind::Overloaded));
    /// busy.times = Some(1);
    /// let script = Script::new(vec![busy, Turn::new(vec![Part::Text("Hello.".into())])])?;
    /// # assert!(script.answer(0, 1).is_some_and(|turn| turn.error.is_none()));
    /// # Ok::<(), teamster_mock_model::ScriptError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// There is no turn, or one of them cannot be played.
    pub fn new(turns: Vec<Turn>) -> Result<Self, ScriptError> {
        let script = Self {
            description: None,
            turns,
            agents: Vec::new(),
            test: None,
        };
        script.check()?;
        Ok(script)
    }

    /// Reads a script from a file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no script, or has a turn that cannot be played.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        std::fs::read_to_string(path)
            .map_err(|error| ScriptError::Unreadable {
                path: path.display().to_string(),
                error,
            })?
            .parse()
    }

    /// The answer in the turn `turn` of the conversation (from 0) to the request that
    /// is the `attempt`th for it (from 0). `None` after the end of the script.
    pub fn answer(&self, turn: usize, attempt: u32) -> Option<&Turn> {
        answer(&self.turns, turn, attempt)
    }

    /// Which sub-agent's conversation begins with these texts, as a position in
    /// [`agents`](Self::agents); `None` for the main one.
    pub(crate) fn agent(&self, opening: &[&str]) -> Option<usize> {
        let begins = |agent: &SubAgent| opening.iter().any(|text| text.contains(&agent.prompt));
        self.agents.iter().position(begins)
    }

    /// The same as [`answer`](Self::answer), in the conversation of a sub-agent if one is given.
    pub(crate) fn answer_in(
        &self,
        agent: Option<usize>,
        turn: usize,
        attempt: u32,
    ) -> Option<&Turn> {
        match agent {
            None => self.answer(turn, attempt),
            Some(agent) => answer(&self.agents.get(agent)?.turns, turn, attempt),
        }
    }
}

fn answer(turns: &[Turn], turn: usize, attempt: u32) -> Option<&Turn> {
    let mut left = turn;
    let mut attempt = attempt;
    for answer in turns {
        match answer.times {
            _ if left > 0 => left -= usize::from(answer.times.is_none()),
            Some(times) if attempt >= times => attempt -= times,
            _ => return Some(answer),
        }
    }
    None
}

impl Turn {
    /// An answer with these parts; everything else is as in a script that is silent about it.
    pub fn new(parts: Vec<Part>) -> Self {
        Self {
            parts,
            ..Self::default()
        }
    }

    /// An error in the place of an answer.
    pub fn failed(error: HttpError) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }

    /// How long nothing is answered.
    pub fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }

    /// Why the model stopped, also where the script is silent about it.
    pub fn stop(&self) -> Stop {
        self.stop.unwrap_or_else(|| {
            if self.parts.iter().any(Part::is_call) {
                Stop::ToolUse
            } else {
                Stop::End
            }
        })
    }
}
