//! Behaviour that differs between agents.

mod plain;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};
use teamster_core::provider::RecordFiles;
use teamster_core::text::without_colors;
use teamster_core::{
    AgentError, CostSource, ErrorKind, ModelUsage, NoticeCode, PermissionMode, Usage,
};

use crate::cost::SessionOrigin;
use crate::errors::{RequestKind, RpcError};
use crate::question::{Choice, Question};
use crate::settings::{Approve, ModeSwitch};
use crate::tool::{PermissionOption, Tool, ToolCall, ToolEnd};
use crate::turn::TurnSoFar;

pub use plain::PlainDialect;

/// Zero-width space. In front of a prompt it keeps agents from parsing the prompt as a command. An ordinary space
/// would not, because agents trim it.
const UNSEEN: char = '\u{200b}';

/// Behaviour of one agent. The default methods follow the protocol.
///
/// Each process has its own value, so a dialect can remember what the process has reported.
pub trait Dialect: Send + 'static {
    /// Returns the agent's display name.
    fn name(&self) -> &str;

    /// Returns the tool of a call.
    fn tool(&mut self, call: &ToolCall) -> Tool {
        call.plain()
    }

    /// Returns whether enough is known about a pending call to emit it. A call that has started, or that needs
    /// permission, is emitted regardless.
    fn can_emit(&self, call: &ToolCall) -> bool {
        call.has_arguments()
    }

    /// Returns whether the arguments of a call that has started are still incomplete. Such a call is emitted only
    /// when it ends or needs permission.
    fn awaits_arguments(&self, call: &ToolCall) -> bool {
        let _ = call;
        false
    }

    /// Returns whether the agent reports each call that runs as begun or ended. If not, a call that it has only announced
    /// may have run by the end of its turn.
    fn reports_every_call(&self) -> bool {
        true
    }

    /// Processes an agent's extension data (`_meta`) in an update of a turn.
    fn meta(&mut self, meta: &Value) {
        let _ = meta;
    }

    /// Processes the figures of the session so far in extension data (`_meta`) beside an update, in which some agents
    /// report them. Returns the cost of the session in USD, if it is there.
    fn figures_so_far(&mut self, meta: &Value) -> Option<f64> {
        let _ = meta;
        None
    }

    /// Returns the end of a call.
    fn tool_end(&mut self, call: &ToolCall, tool: &Tool) -> ToolEnd {
        let _ = tool;
        call.plain_end()
    }

    /// Returns the output of a denied call, for agents that report nothing more about it.
    fn denied_output(&self, tool: &Tool) -> Option<String> {
        let _ = tool;
        None
    }

    /// Returns whether the agent reports a denied call again, with its output, after it has reported the call's end.
    fn repeats_denied(&self) -> bool {
        false
    }

    /// Returns the agent's id of the call of the sub-agent that an update comes from, which its extension data names.
    fn parent(&self, meta: &Value) -> Option<String> {
        meta["parentToolCallId"].as_str().map(str::to_owned)
    }

    /// Classifies a chunk of text by its text and extension data.
    fn chunk(&self, text: &str, meta: &Value, turn: &TurnSoFar) -> Chunk {
        let _ = (text, meta, turn);
        Chunk::Answer
    }

    /// Returns what a message with this method, which is not in the protocol, announces about turns of the agent's own.
    fn announces(&self, method: &str) -> Option<Announcement> {
        let _ = method;
        None
    }

    /// Returns whether the agent works in the background, and will begin a turn of its own when that ends.
    fn works_in_background(&self) -> bool {
        false
    }

    /// Returns the question that a permission request asks its user in place of permission. `call` is the call as
    /// known so far, `request` the request's own data about it.
    fn question(
        &self,
        call: &ToolCall,
        request: &Value,
        options: &[PermissionOption],
    ) -> Option<Question> {
        let _ = call;
        Question::of_options(request, options)
    }

    /// Returns the choice that an answer to a question means. `None` if it is none of the choices.
    fn choice(
        &self,
        request: &Value,
        answer: &Value,
        options: &[PermissionOption],
    ) -> Option<Choice> {
        let _ = request;
        Choice::of_answer(answer, options)
    }

    /// Returns the files in which the agent records data of this session that it does not send.
    fn record_files(&self, session: &str) -> Option<RecordFiles> {
        let _ = session;
        None
    }

    /// Processes a new line of these files.
    fn record_line(&mut self, line: &str) {
        let _ = line;
    }

    /// Returns whether the end of an answered turn is still missing in these files.
    fn awaits_record(&self) -> bool {
        false
    }

    /// Classifies a chunk of text that was [held](Chunk::Hold), once the next event is known.
    fn held_text(&mut self, text: &str, next: NextUpdate<'_>, turn: &TurnSoFar) -> HeldText {
        let _ = (text, next, turn);
        HeldText::Answer
    }

    /// Returns whether context usage updates separate messages. This is for agents whose messages have no ids: a new
    /// message begins with each update.
    fn usage_begins_messages(&self) -> bool {
        false
    }

    /// Returns the agent's id of the call of the sub-agent that requests permission for a call which was not announced.
    fn parent_of_request(&self, turn: &TurnSoFar) -> Option<String> {
        let _ = turn;
        None
    }

    /// Called when a prompt is sent. With `is_command`, it is one of the agent's commands, which may need no model.
    fn turn_begins(&mut self, is_command: bool) {
        let _ = is_command;
    }

    /// Called when a session is opened.
    fn session_opened(&mut self, origin: SessionOrigin) {
        let _ = origin;
    }

    /// Returns the usage of the turn that has just ended. `result` is the agent's response to the prompt; null if
    /// that was an error.
    fn figures(&mut self, result: &Value, turn: &TurnSoFar) -> Figures {
        let _ = (result, turn);
        Figures::default()
    }

    /// Sets the cost of a session before it was opened, in USD, if known.
    fn set_earlier_cost(&mut self, usd: f64) {
        let _ = usd;
    }

    /// Sets the current cost of the session, in USD.
    fn set_session_cost(&mut self, usd: f64) {
        let _ = usd;
    }

    /// Returns the failure of a turn that the agent ended without an error.
    fn failure(&mut self, stop_reason: Option<&str>, turn: &TurnSoFar) -> Option<AgentError> {
        let _ = (stop_reason, turn);
        None
    }

    /// Classifies an error.
    fn error(&self, error: &RpcError, during: RequestKind) -> AgentError {
        error.plain(during)
    }

    /// Returns the option that allows a tool for the rest of the session. Returns `None` if there are several:
    /// only their names show what each allows, and one may allow every tool.
    fn always<'a>(&self, options: &'a [PermissionOption]) -> Option<&'a PermissionOption> {
        only_always(options)
    }

    /// Escapes a prompt that would otherwise be parsed as a command.
    fn not_a_command<'a>(&self, prompt: &'a str) -> Cow<'a, str> {
        // The characters that JavaScript's `trim` removes.
        let is_blank = |c: char| c.is_whitespace() || c == '\u{feff}';
        if (prompt.trim_start_matches(is_blank)).starts_with(self.command_marks()) {
            Cow::Owned(format!("{UNSEEN}{prompt}"))
        } else {
            Cow::Borrowed(prompt)
        }
    }

    /// Returns the characters with which commands begin.
    fn command_marks(&self) -> &[char] {
        &['/']
    }

    /// Returns whether the agent may replay a resumed session after its response.
    fn replays_after_response(&self) -> bool {
        false
    }

    /// Returns whether a session without turns can be resumed.
    fn keeps_empty_sessions(&self) -> bool {
        false
    }

    /// Takes the agent's name for itself. Returns the extension data (`_meta`) of the requests that open its sessions.
    fn session_meta(&mut self, agent: &str) -> Option<Map<String, Value>> {
        let _ = agent;
        None
    }

    /// Returns the mode to set in a session that begins in the mode `current`, or that the agent has brought there.
    /// `None` leaves that one.
    ///
    /// # Errors
    ///
    /// Fails if the agent would allow more than is approved here, and has no mode in which it asks.
    fn initial_mode(
        &self,
        current: &str,
        offered: &[&str],
        approve: Approve,
    ) -> Result<Option<String>, AgentError> {
        let _ = (current, offered, approve);
        Ok(None)
    }

    /// Returns how to switch the session to this permission mode.
    ///
    /// # Errors
    ///
    /// Fails if the agent has no such mode.
    fn mode(&self, mode: PermissionMode) -> Result<ModeSwitch, AgentError> {
        Err(no_mode(self.name(), mode))
    }

    /// Returns the part of stderr that explains a failure of the process.
    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        without_colors(stderr)
    }

    /// Classifies a failure that was only reported on stderr.
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

/// Kind of a chunk of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chunk {
    /// Part of the answer.
    Answer,
    /// Message of the agent about itself; discarded.
    Noise,
    /// Message of the agent about itself; reported as a notice, with its subject.
    Notice(Option<NoticeCode>),
    /// Undecided; the next update decides.
    Hold,
}

/// Announcement of an agent about a turn of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Announcement {
    /// The turn begins.
    Begin,
    /// The turn has ended.
    End,
}

/// The event after a held chunk of text.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum NextUpdate<'a> {
    /// A context usage update: a request to the model begins.
    Request,
    /// An update of the tool call with this id of the agent.
    Call(&'a str),
    /// The end of the turn, with the agent's response to the prompt.
    End(&'a Value),
    /// Anything else.
    Other,
}

/// Kind of a held chunk of text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum HeldText {
    /// Part of the answer.
    Answer,
    /// Message of the agent about itself; discarded.
    Noise,
    /// The agent retries a request. The text of the message so far is retracted.
    Retry(AgentError),
    /// The turn failed.
    Failure(AgentError),
}

/// Usage of a turn.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Figures {
    /// Tokens of the turn.
    pub usage: Option<Usage>,
    /// Tokens of the whole session, if the agent counts them.
    pub session_usage: Option<Usage>,
    /// Usage by model.
    pub by_model: BTreeMap<String, ModelUsage>,
    /// Cost in USD and its source.
    pub cost: Option<(f64, CostSource)>,
}

fn only_always(options: &[PermissionOption]) -> Option<&PermissionOption> {
    let mut always = (options.iter()).filter(|option| option.kind == "allow_always");
    let option = always.next()?;
    always.next().is_none().then_some(option)
}

fn no_mode(name: &str, mode: PermissionMode) -> AgentError {
    let mode = mode.as_str();
    AgentError::refused(
        "permission",
        format!("a session with {name} cannot change to {mode}"),
    )
}
