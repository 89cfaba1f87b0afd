//! Behaviour that differs between agents.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};
use teamster_core::provider::RecordFiles;
use teamster_core::text::without_colors;
use teamster_core::{
    AgentError, CostSource, ErrorKind, ModelUsage, NoticeCode, PermissionMode, Usage,
};

use crate::cost::{SessionCost, SessionOrigin};
use crate::errors::{RequestKind, RpcError};
use crate::known::{Known, TokensOf};
use crate::peer;
use crate::question::{Choice, Question};
use crate::settings::{Approve, ModeSwitch};
use crate::tokens::SessionTokens;
use crate::tool::{PermissionOption, Tool, ToolCall, ToolEnd};
use crate::turn::TurnSoFar;

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
        let is_empty = |input: &Value| match input {
            Value::Null => true,
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        call.input.as_ref().is_some_and(|input| !is_empty(input))
    }

    /// Returns whether the arguments of a call that has started are still incomplete. Such a call is emitted only
    /// when it ends or needs permission.
    fn awaits_arguments(&self, call: &ToolCall) -> bool {
        let _ = call;
        false
    }

    /// Processes an agent's extension data (`_meta`) in an update of a turn.
    fn meta(&mut self, meta: &Value) {
        let _ = meta;
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

/// Dialect of an agent that has none of its own.
#[derive(Debug, Clone)]
pub struct PlainDialect {
    name: String,
    cost: SessionCost,
    /// Tokens of the session at the end of the last turn; `None` if they are unknown, as for a resumed session.
    tokens: Option<SessionTokens>,
    is_teamster: bool,
    known: Known,
}

impl PlainDialect {
    /// Creates the dialect of an agent with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            cost: SessionCost::default(),
            tokens: None,
            is_teamster: false,
            known: Known::default(),
        }
    }

    /// Sets whether the agent is another teamster, whose permission modes have the same names.
    pub(crate) fn teamster(mut self, is_teamster: bool) -> Self {
        self.is_teamster = is_teamster;
        self
    }

    /// Returns the tokens of the turn that has just ended, if it is known what the agent counts.
    fn tokens_of_turn(&mut self, result: &Value) -> Option<Usage> {
        self.known.tokens?;
        let now = SessionTokens::of(result)?;
        now.since(self.tokens.replace(now)?)
    }
}

/// Names that agents give to the mode in which they ask before tools with side effects.
const ASKS: &[&str] = &["default", "ask", "manual"];
/// Names that agents give to modes in which they allow all tools.
const ALLOWS_ALL: &[&str] = &["bypassPermissions", "bypass", "full-access", "yolo"];
/// Names that agents give to modes in which they allow edits.
const ALLOWS_EDITS: &[&str] = &["acceptEdits", "accept-edits", "auto-edit", "autoEdit"];

impl Dialect for PlainDialect {
    fn name(&self) -> &str {
        &self.name
    }

    /// The permission mode is kept by the answers to the agent's requests, so the agent must ask. Its user may have
    /// configured otherwise, as `claude-agent-acp` takes its first mode from the user's settings. A mode of the agent's
    /// that seems to fit would allow more than is approved here, and would remain when the session is brought to a
    /// stricter one.
    fn initial_mode(
        &self,
        current: &str,
        offered: &[&str],
        approve: Approve,
    ) -> Result<Option<String>, AgentError> {
        if self.is_teamster || ASKS.contains(&current) {
            return Ok(None);
        }
        if let Some(asking) = ASKS.iter().find(|mode| offered.contains(mode)) {
            return Ok(Some((*asking).to_owned()));
        }
        let fits = match approve {
            Approve::Everything => true,
            Approve::Edits => !ALLOWS_ALL.contains(&current),
            _ => !ALLOWS_ALL.contains(&current) && !ALLOWS_EDITS.contains(&current),
        };
        if fits {
            return Ok(None);
        }
        Err(AgentError::refused(
            "permission",
            format!(
                "{} is in its mode {current} and has no mode that asks for permission; choose another in its settings, or allow \
                 everything",
                self.name
            ),
        ))
    }

    fn session_meta(&mut self, agent: &str) -> Option<Map<String, Value>> {
        self.known = Known::of(agent);
        self.known.session_meta.clone()
    }

    fn always<'a>(&self, options: &'a [PermissionOption]) -> Option<&'a PermissionOption> {
        only_always(options).filter(|_| !self.known.always_is_more)
    }

    fn session_opened(&mut self, origin: SessionOrigin) {
        self.cost = SessionCost::new(origin);
        let is_zero = origin == SessionOrigin::New || self.known.tokens == Some(TokensOf::Process);
        self.tokens = is_zero.then(SessionTokens::default);
    }

    fn set_earlier_cost(&mut self, usd: f64) {
        self.cost.was(usd);
    }

    fn set_session_cost(&mut self, usd: f64) {
        self.cost.is_now(usd);
    }

    /// Token counts are omitted unless it is known what they are those of: some agents report those of the turn, others
    /// those of the session.
    fn figures(&mut self, result: &Value, _: &TurnSoFar) -> Figures {
        let cost = self.cost.of_turn();
        let usage = self.tokens_of_turn(result);
        peer::figures(result).unwrap_or_else(|| Figures {
            usage,
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

    fn error(&self, error: &RpcError, during: RequestKind) -> AgentError {
        peer::error(error).unwrap_or_else(|| error.plain(during))
    }

    fn mode(&self, mode: PermissionMode) -> Result<ModeSwitch, AgentError> {
        if self.is_teamster {
            let approve = Approve::of(mode);
            // This side approves these tools itself, so the other side must request them.
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

#[cfg(test)]
mod tests {
    //! Made-up figures.

    use serde_json::json;

    use super::*;

    /// Returns the input of two turns, of which the agent reports 100 and 160 tokens.
    fn inputs(agent: &str, origin: SessionOrigin) -> [Option<u64>; 2] {
        let mut dialect = PlainDialect::new("x");
        dialect.session_meta(agent);
        dialect.session_opened(origin);
        [100, 160].map(|input| {
            let result = json!({"stopReason": "end_turn", "usage": {"inputTokens": input}});
            let figures = dialect.figures(&result, &TurnSoFar::default());
            figures.usage?.input_tokens
        })
    }

    #[test]
    fn tokens_are_reported_of_agents_whose_count_is_known() {
        let (new, continued) = (SessionOrigin::New, SessionOrigin::Continued);
        for (agent, origin, expected) in [
            ("hermes-agent", new, [Some(100), Some(60)]),
            ("hermes-agent", continued, [Some(100), Some(60)]),
            ("@mistralai/mistral-vibe", new, [Some(100), Some(60)]),
            ("@mistralai/mistral-vibe", continued, [None, Some(60)]),
            ("my-agent", new, [None, None]),
        ] {
            assert_eq!(inputs(agent, origin), expected, "{agent} {origin:?}");
        }
    }
}
