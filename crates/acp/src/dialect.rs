//! Behaviour that differs between agents.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::Value;
use teamster_core::text::without_colors;
use teamster_core::{AgentError, CostSource, ErrorKind, ModelUsage, PermissionMode, Usage};

use crate::cost::SessionCost;
use crate::errors::{During, RpcError};
use crate::peer;
use crate::settings::{Approve, ModeSwitch};
use crate::tool::{PermissionOption, Tool, ToolCall, ToolEnd};
use crate::turn::TurnSoFar;

/// A character that is not seen. Before a prompt it keeps agents from taking that for a command; a blank
/// does not, because they cut it off.
const UNSEEN: char = '\u{200b}';

/// Behaviour of one agent. The defaults follow the protocol.
///
/// One is made for every process, so it can remember what the process has reported.
pub trait Dialect: Send + 'static {
    /// The agent's name, for people.
    fn name(&self) -> &str;

    /// Which tool a call is of.
    fn tool(&mut self, call: &ToolCall) -> Tool {
        call.plain()
    }

    /// Whether a call that waits to begin is known well enough to be passed on. Once it has begun, or
    /// permission is requested for it, it is passed on anyway.
    fn knows(&self, call: &ToolCall) -> bool {
        let is_empty = |input: &Value| match input {
            Value::Null => true,
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        call.input.as_ref().is_some_and(|input| !is_empty(input))
    }

    /// Whether the arguments of a call that has begun are still being written, so that it is not passed on
    /// before it ends or permission for it is asked.
    fn awaits_arguments(&self, call: &ToolCall) -> bool {
        let _ = call;
        false
    }

    /// Processes an agent's extension data (`_meta`) in something that it prints in a
    /// turn.
    fn meta(&mut self, meta: &Value) {
        let _ = meta;
    }

    /// How a call ended.
    fn tool_end(&mut self, call: &ToolCall, tool: &Tool) -> ToolEnd {
        let _ = tool;
        call.plain_end()
    }

    /// Output of a call that was not permitted, if the agent reports nothing more about it.
    fn rejected(&self, tool: &Tool) -> Option<String> {
        let _ = tool;
        None
    }

    /// Classifies a piece of text.
    fn chunk(&self, text: &str, turn: &TurnSoFar) -> Chunk {
        let _ = (text, turn);
        Chunk::Answer
    }

    /// Classifies a piece of text that was [held](Chunk::Hold), once the next event is known.
    fn words(&mut self, text: &str, next: Next<'_>, turn: &TurnSoFar) -> Words {
        let _ = (text, next, turn);
        Words::Answer
    }

    /// Messages have no ids, but can be distinguished: a new one begins with each word on how full the
    /// context is.
    fn tells_requests(&self) -> bool {
        false
    }

    /// A session was opened: a new one, or one with earlier turns.
    fn session_opened(&mut self, is_new: bool) {
        let _ = is_new;
    }

    /// Usage of the turn that has just ended. `result` is the agent's answer to the prompt; null if that
    /// was an error.
    fn figures(&mut self, result: &Value, turn: &TurnSoFar) -> Figures {
        let _ = (result, turn);
        Figures::default()
    }

    /// Cost of the session before it was just opened, in USD, if known.
    fn session_had_cost(&mut self, usd: f64) {
        let _ = usd;
    }

    /// Cost of the session so far, in USD.
    fn session_cost(&mut self, usd: f64) {
        let _ = usd;
    }

    /// Why a turn failed that the agent ended as if nothing was wrong.
    fn failure(&mut self, stop_reason: Option<&str>, turn: &TurnSoFar) -> Option<AgentError> {
        let _ = (stop_reason, turn);
        None
    }

    /// Classifies an error.
    fn error(&self, error: &RpcError, during: During) -> AgentError {
        error.plain(during)
    }

    /// Which of the answers allows a tool for the rest of the session.
    fn always<'a>(&self, options: &'a [PermissionOption]) -> Option<&'a PermissionOption> {
        options.iter().find(|option| option.kind == "allow_always")
    }

    /// Escapes a prompt so that it is not a command, even if it looks like one.
    fn not_a_command<'a>(&self, prompt: &'a str) -> Cow<'a, str> {
        // As JavaScript trims a text.
        let is_blank = |c: char| c.is_whitespace() || c == '\u{feff}';
        if (prompt.trim_start_matches(is_blank)).starts_with(self.command_marks()) {
            Cow::Owned(format!("{UNSEEN}{prompt}"))
        } else {
            Cow::Borrowed(prompt)
        }
    }

    /// Characters with which commands begin.
    fn command_marks(&self) -> &[char] {
        &['/']
    }

    /// Whether the agent may replay a resumed session after its answer.
    fn replays_late(&self) -> bool {
        false
    }

    /// Whether a session can be resumed before its first turn.
    fn keeps_empty_sessions(&self) -> bool {
        false
    }

    /// How the session is brought into this mode; `None` if it cannot be, and why.
    fn mode(&self, mode: PermissionMode) -> Result<ModeSwitch, AgentError> {
        Err(no_mode(self.name(), mode))
    }

    /// The part of stderr that explains a failure of a process.
    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        without_colors(stderr)
    }

    /// Classifies a failure that was only explained on stderr.
    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        let _ = stderr;
        None
    }

    /// Classifies an exit code.
    fn classify_exit_code(&self, code: i32) -> Option<ErrorKind> {
        let _ = code;
        None
    }
}

/// Kind of a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chunk {
    /// A part of the answer.
    Answer,
    /// A message of the agent about itself, to be dropped.
    Noise,
    /// It may be no part of the answer; the next update decides.
    Hold,
}

/// The event after a piece of text that was held.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Next<'a> {
    /// How full the context is: a request to the model begins.
    Request,
    /// Something about a tool call with the agent's id.
    Call(&'a str),
    /// The end of the turn, with the agent's answer to the prompt.
    End(&'a Value),
    /// Anything else.
    Other,
}

/// Kind of a piece of text that was held.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Words {
    /// A part of the answer.
    Answer,
    /// A message of the agent about itself, to be dropped.
    Noise,
    /// The agent repeats a request. The text of the message so far is withdrawn.
    Retry(AgentError),
    /// The turn has failed.
    Failure(AgentError),
}

/// Usage of a turn.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Figures {
    /// Tokens.
    pub usage: Option<Usage>,
    /// Tokens of the whole session, where the agent counts them.
    pub session_usage: Option<Usage>,
    /// Usage by model.
    pub by_model: BTreeMap<String, ModelUsage>,
    /// Cost in USD and where it comes from.
    pub cost: Option<(f64, CostSource)>,
}

/// An agent of which nothing is known but that it speaks the protocol.
#[derive(Debug, Clone)]
pub struct Plain {
    name: String,
    cost: SessionCost,
    is_teamster: bool,
}

impl Plain {
    /// An agent of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            cost: SessionCost::default(),
            is_teamster: false,
        }
    }

    /// Whether it is another teamster, whose modes have the names of ours.
    pub(crate) fn teamster(mut self, is_teamster: bool) -> Self {
        self.is_teamster = is_teamster;
        self
    }
}

impl Dialect for Plain {
    fn name(&self) -> &str {
        &self.name
    }

    fn session_opened(&mut self, is_new: bool) {
        self.cost = SessionCost::new(is_new);
    }

    fn session_had_cost(&mut self, usd: f64) {
        self.cost.was(usd);
    }

    fn session_cost(&mut self, usd: f64) {
        self.cost.is_now(usd);
    }

    /// Its token counts are left out: some agents report those of a turn, others those of a session. Those
    /// of another teamster are known.
    fn figures(&mut self, result: &Value, _: &TurnSoFar) -> Figures {
        let cost = self.cost.of_turn();
        peer::figures(result).unwrap_or_else(|| Figures {
            cost,
            ..Figures::default()
        })
    }

    fn tool(&mut self, call: &ToolCall) -> Tool {
        peer::tool(call, call.plain())
    }

    fn tool_end(&mut self, call: &ToolCall, _: &Tool) -> ToolEnd {
        let mut end = call.plain_end();
        if let Some(output) = peer::output(call) {
            output.clone_into(&mut end.output);
        }
        if let Some(changes) = peer::changes(call) {
            end.effects = changes;
        }
        end
    }

    fn error(&self, error: &RpcError, during: During) -> AgentError {
        peer::error(error).unwrap_or_else(|| error.plain(during))
    }

    fn mode(&self, mode: PermissionMode) -> Result<ModeSwitch, AgentError> {
        if self.is_teamster {
            let approve = Approve::of(mode);
            // What this side allows is requested in the default mode.
            let on_its_side = approve.map_or(mode, |_| PermissionMode::Default);
            let on_its_side = on_its_side.as_str().to_owned();
            return Ok(ModeSwitch::ModeAndAnswers(
                on_its_side,
                approve.unwrap_or_default(),
            ));
        }
        let approve = Approve::of(mode).ok_or_else(|| no_mode(&self.name, mode))?;
        Ok(ModeSwitch::Answers(approve))
    }
}

fn no_mode(name: &str, mode: PermissionMode) -> AgentError {
    let mode = mode.as_str();
    AgentError::refused(
        "permission",
        format!("a session with {name} cannot be brought to {mode}"),
    )
}
