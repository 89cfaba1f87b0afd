//! Scripts of the model's answers, in TOML.

mod check;
mod error;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub use check::ScriptError;
use error::error_or_its_kind;
pub use error::{ErrorKind, HttpError};

/// A conversation with a model, from the model's side.
///
/// Each `[[turn]]` is one answer of the model. Between two of them are the results of its tools or the user's
/// next prompt. The turn is derived from the request itself, so several processes can play a script at once,
/// and a resumed session continues at its turn.
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
    /// The answers, in order.
    #[serde(rename = "turn")]
    pub turns: Vec<Turn>,
    /// Answers of the model in the conversations of sub-agents.
    #[serde(default, rename = "agent")]
    pub agents: Vec<SubAgent>,
    /// Ignored here: data of the program that plays the script, such as the expectations of a test.
    #[serde(default)]
    pub test: Option<toml::Table>,
}

/// The model's side of a sub-agent's conversation.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SubAgent {
    /// Text that identifies the conversation. It occurs before the model's first answer.
    pub prompt: String,
    /// The answers, in order.
    #[serde(rename = "turn")]
    pub turns: Vec<Turn>,
}

impl SubAgent {
    /// Creates the model's side of the conversation of a sub-agent with this prompt.
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
    /// Number of requests for this turn, since the start of the server, that get this answer. Later ones get
    /// the next `[[turn]]`, which is then the same turn of the conversation. This scripts a request that
    /// fails and succeeds when retried. Default: all.
    #[serde(default)]
    pub times: Option<u32>,
    /// Delay before the answer, in milliseconds. Default: 0.
    #[serde(default)]
    pub delay_ms: u64,
    /// Parts of the answer, in order.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// Usage of the answer.
    #[serde(default)]
    pub usage: Tokens,
    /// Stop reason of the model. Default: `tool_use` if a tool is called, else `end`.
    #[serde(default)]
    pub stop: Option<Stop>,
    /// HTTP error instead of an answer. `error = "overloaded"` is short for `error = { kind = "overloaded"
    /// }`.
    #[serde(default, deserialize_with = "error_or_its_kind")]
    pub error: Option<HttpError>,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Part {
    /// Text, either whole or in the pieces in which it is streamed.
    Text(Pieces),
    /// Reasoning, either whole or in pieces.
    Thinking(Pieces),
    /// Call of the CLI's tool that runs a shell command.
    Shell(String),
    /// Call of the CLI's tool that runs a shell command in the background.
    BackgroundShell(String),
    /// Call of the CLI's tool that reads a file. The path may be relative to the working directory. Codex has
    /// no such tool and runs `cat`.
    ReadFile(String),
    /// Call of the CLI's tool that writes a file.
    WriteFile {
        /// The file. The path may be relative to the working directory.
        path: String,
        /// The complete content.
        content: String,
    },
    /// Call of the CLI's tool that replaces a piece of a file. The path may be relative to the working directory.
    EditFile {
        /// The file. The path may be relative to the working directory.
        path: String,
        /// The piece to replace: whole lines, because Codex patches lines.
        old: String,
        /// The piece that replaces it.
        new: String,
    },
    /// Call of a tool of an MCP server.
    Mcp {
        /// The server's name in the CLI's configuration.
        server: String,
        /// The tool's name on the server.
        tool: String,
        /// Its input. Default: an empty object.
        #[serde(default = "empty_object")]
        arguments: Value,
    },
    /// Call of the CLI's tool that starts a sub-agent.
    Agent {
        /// Prompt of the sub-agent. An `[[agent]]` of the script has its answers.
        prompt: String,
        /// True to continue immediately, if the CLI has a choice. With `false`, Codex also gets a call of the
        /// tool that waits for the sub-agent.
        #[serde(default)]
        background: Option<bool>,
    },
    /// Call of the CLI's tool that writes a plan with these entries, all of them pending.
    Plan(Vec<String>),
    /// Call of the CLI's tool that asks the user a question, with the choices "Yes" and "No".
    Ask(String),
    /// Call of the CLI's tool that searches the web. The results are made up.
    WebSearch(String),
    /// A web search by the service itself, with its results. The answer continues after it.
    ServiceSearch(String),
    /// Call of a tool by the CLI's name of it.
    Tool {
        /// The name.
        name: String,
        /// Its input. Default: an empty object.
        #[serde(default = "empty_object")]
        input: Value,
    },
    /// Pause, in milliseconds.
    PauseMs(u64),
    /// End of the output with an open connection. A preceding text is left unfinished if the protocol
    /// distinguishes that from a finished one. The same applies to `cut` and `error`.
    Stall,
    /// Break of the connection. If the answer is not streamed, no part of it is sent.
    Cut,
    /// Error event that ends the stream. If the answer is not streamed, the HTTP error of this kind.
    Error(ErrorKind),
    /// Literal bytes in the stream, such as an invalid event. Omitted if the answer is not streamed.
    Raw(String),
}

impl Part {
    /// Returns whether it calls a tool.
    pub fn is_call(&self) -> bool {
        matches!(
            self,
            Self::Shell(_)
                | Self::BackgroundShell(_)
                | Self::ReadFile(_)
                | Self::WriteFile { .. }
                | Self::EditFile { .. }
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
    /// Returns the whole text.
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

/// Tokens of one answer. Cache reads and writes are not part of `input`; reasoning is a part of `output`. The
/// counts are converted to the convention of each protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Tokens {
    /// Input that was neither read from nor written to a cache. Default: 100.
    pub input: u64,
    /// Output, including reasoning. Default: 20.
    pub output: u64,
    /// Input read from a cache.
    pub cache_read: u64,
    /// Input written to a cache. It counts as `input` in protocols without it.
    pub cache_write: u64,
    /// Reasoning, a part of `output`. Some protocols do not have it.
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
    /// The answer was complete.
    End,
    /// The model waits for its tools.
    ToolUse,
    /// The answer was cut at the limit of output tokens. Some CLIs then ask the model to continue, as a
    /// separate turn: Claude Code does so three times.
    MaxTokens,
    /// The model or a filter refused to continue.
    Refusal,
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
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
    /// Creates a script with these turns.
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
    /// There is no turn, or one of them is invalid.
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
    /// The file cannot be read, is not a script, or has an invalid turn.
    pub fn read(path: &Path) -> Result<Self, ScriptError> {
        std::fs::read_to_string(path)
            .map_err(|error| ScriptError::Unreadable {
                path: path.display().to_string(),
                error,
            })?
            .parse()
    }

    /// Returns the answer to a request, by the number of its turn and its attempt, both from 0. Returns
    /// `None` after the end of the script.
    pub fn answer(&self, turn: usize, attempt: u32) -> Option<&Turn> {
        answer(&self.turns, turn, attempt)
    }

    /// Returns the index in [`agents`](Self::agents) of the sub-agent whose conversation begins with these
    /// texts, or `None` for the main conversation.
    pub(crate) fn agent(&self, opening: &[&str]) -> Option<usize> {
        let begins = |agent: &SubAgent| opening.iter().any(|text| text.contains(&agent.prompt));
        self.agents.iter().position(begins)
    }

    /// Returns the same as [`answer`](Self::answer), but in a sub-agent's conversation if one is given.
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
    /// Creates an answer with these parts and defaults for all other fields.
    pub fn new(parts: Vec<Part>) -> Self {
        Self {
            parts,
            ..Self::default()
        }
    }

    /// Creates an error instead of an answer.
    pub fn failed(error: HttpError) -> Self {
        Self {
            error: Some(error),
            ..Self::default()
        }
    }

    /// Returns whether it breaks off before its end.
    pub fn breaks_off(&self) -> bool {
        let ends = |part: &Part| {
            matches!(
                part,
                Part::Cut | Part::Stall | Part::Error(_) | Part::Raw(_)
            )
        };
        self.parts.iter().any(ends)
    }

    /// Returns the delay before the answer.
    pub fn delay(&self) -> Duration {
        Duration::from_millis(self.delay_ms)
    }

    /// Returns the stop reason, with its default applied.
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
