//! Many turns in one process: `claude -p --input-format stream-json`.
//!
//! The CLI reads messages and requests line by line. Depending on the timing, a message becomes a separate turn,
//! joins the active turn, or joins other messages in the next turn. The CLI's turns, from `init` to `result`,
//! therefore differ from the caller's turns. Each message has an id, by which the CLI reports that it has received
//! the message. The caller's turn ends with the `result` at which no message is waiting.

mod ask_user;
mod commands;
mod ids;
mod lines;
mod offers;
mod wire;

use std::collections::{HashMap, VecDeque};

use serde_json::Value;
use teamster_core::provider::{
    Activity, CommandId, DecodedResult, Decoder, Events, Exit, Outbox, SessionCommand,
    SessionProtocol,
};
use teamster_core::{
    AgentError, AgentEvent, ErrorCode, ErrorEvent, ErrorKind, Id, PermissionAnswer, PermissionMode,
    SessionCapabilities, SessionOptions, TurnEnd, Usage,
};

use crate::ClaudeDecoder;
pub(crate) use ask_user::ASK_USER;
use ids::Ids;
use offers::Reported;
pub(crate) use offers::query as offers_query;
use wire::HookEvent;

pub(crate) static CAPABILITIES: SessionCapabilities = {
    let mut can = SessionCapabilities::none();
    can.interrupt = true;
    can.steer = true;
    can.clear = true;
    can.set_model = true;
    can.set_permission = true;
    can.permissions = true;
    can.denial_reason = true;
    can.changed_input = true;
    can.tool_hooks = true;
    can.images = true;
    can.unasked = true;
    can
};

/// Connection to one process.
#[derive(Default)]
pub(crate) struct ClaudeSession {
    decoder: ClaudeDecoder,
    outbox: Outbox,
    ids: Ids,
    slash_commands: bool,
    /// The session is not a run: what it offers is of use.
    has_offers: bool,
    has_hooks: bool,
    offers: Reported,
    /// The tools are fixed when the process starts.
    read_only: bool,
    /// The CLI is in its plan mode, in which the process was started.
    is_planning: bool,
    /// The mode to which the CLI has left its plan mode.
    planned_for: Option<PermissionMode>,
    /// Turn of the caller. Without one, the CLI may still be in a turn of its own.
    current: Option<CurrentTurn>,
    /// Messages that the CLI has not received yet.
    waiting: Vec<Waiting>,
    /// True if a message was received between two turns of the CLI, so that one begins.
    begins: bool,
    /// Interruption of the turn, if requested.
    interrupt: Option<Interrupt>,
    /// True if the last turn was interrupted.
    interrupted: bool,
    /// Requests without a response of the CLI.
    requests: HashMap<String, Request>,
    /// Requests of the CLI without an answer.
    questions: HashMap<u64, Question>,
    last_question: u64,
    clearing: Option<Clearing>,
    /// Commands that wait until the conversation is cleared, or until the end of the turn before that.
    held: VecDeque<SessionCommand>,
    /// Session id, once the CLI has saved the session.
    resumable: Option<Id>,
}

/// Turn of the caller.
#[derive(Debug, Default)]
struct CurrentTurn {
    /// True once its message was written.
    sent: bool,
    over: bool,
    /// True if it failed without a result of the CLI.
    failed: bool,
    /// Sums of the CLI's turns in it, and the end of the last one.
    usage: Option<Usage>,
    cost_usd: Option<f64>,
    last_end: Option<Box<TurnEnd>>,
    /// True if a hook blocked a message of the turn after the prompt was answered.
    held_back: bool,
    /// Error of the last CLI turn, while another may follow.
    last_error: Option<Box<ErrorEvent>>,
}

/// Message that the CLI has not received yet.
#[derive(Debug)]
struct Waiting {
    uuid: String,
    is_prompt: bool,
    /// True if the message was waiting when the CLI's next turn began, which then includes it.
    due: bool,
    /// True if a request to withdraw it was too late.
    taken: bool,
}

#[derive(Debug)]
struct Interrupt {
    /// True once the CLI has confirmed it.
    answered: bool,
    /// True if it ends background agents that the turn was waiting for.
    ends_agents: bool,
}

/// Request of the session to the CLI.
#[derive(Debug)]
enum Request {
    Interrupt,
    /// Withdraws the message with this id.
    Cancel(String),
    /// Changes a setting, for this command.
    Change(CommandId),
    End,
    /// Asks for the commands and models.
    Initialize,
}

/// Request of the CLI: permission for a tool, or input for an MCP server.
#[derive(Debug)]
struct Question {
    request_id: String,
    tool_name: String,
    input: Value,
    suggestions: Vec<Value>,
    hook: Option<HookEvent>,
    /// True if an MCP server requests input.
    is_of_server: bool,
}

#[derive(Debug)]
struct Clearing {
    command: CommandId,
    /// The session before clearing.
    from: Option<Id>,
}

impl ClaudeSession {
    pub(crate) fn new(options: &SessionOptions) -> Self {
        let params = &options.params;
        let mut decoder = ClaudeDecoder::for_run(params);
        let resumed = params.session_id.as_deref().filter(|_| !params.fork);
        if params.session_id.is_none() {
            decoder.session_begins();
        }
        Self {
            decoder,
            slash_commands: params.slash_commands,
            has_offers: !options.one_turn,
            has_hooks: options.tool_hooks,
            read_only: params.permission == PermissionMode::ReadOnly,
            is_planning: params.permission == PermissionMode::Plan,
            resumable: resumed.map(Id::from),
            ..Self::default()
        }
    }

    /// Returns whether a turn of the caller is active.
    fn is_in_turn(&self) -> bool {
        self.current.as_ref().is_some_and(|turn| !turn.over)
    }

    /// Fails all pending commands and discards pending requests, because the process has ended.
    fn settle_all(&mut self, why: &AgentError) {
        let changes = self
            .requests
            .drain()
            .filter_map(|(_, request)| match request {
                Request::Change(command) => Some(command),
                _ => None,
            });
        let clearing = self.clearing.take().map(|clearing| clearing.command);
        let held = self.held.drain(..).filter_map(|command| match command {
            SessionCommand::Steer(command, _) | SessionCommand::Clear(command) => Some(command),
            _ => None,
        });
        let commands: Vec<_> = changes.chain(clearing).chain(held).collect();
        for command in commands {
            self.outbox.answer(command, Err(why.clone()));
        }
        self.questions.clear();
    }
}

impl Decoder for ClaudeSession {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        self.read(line, out);
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        let broke_off = self.is_in_turn();
        let turn = self.current.take().unwrap_or_default();
        let mut summary = self.decoder.finish(exit, out);
        if broke_off {
            // The CLI's own turns in it do not count.
            summary.ended_with_error = None;
            summary.final_message = None;
            if let Some(error) = turn.last_error {
                out.push(AgentEvent::Error(error));
            }
        } else if turn.failed {
            summary.ended_with_error = Some(true);
        } else if turn.held_back {
            summary.ended_with_error = Some(false);
        }
        if let Some(session) = self.decoder.session() {
            summary.session_id = Some(session.session_id.clone());
            summary.model.clone_from(&session.model);
        }
        if exit.code.is_some() || exit.signal.is_some() {
            let why = AgentError::new(
                ErrorCode::CliExitError,
                ErrorKind::Internal,
                "Claude Code ended before it had done that",
            );
            self.settle_all(&why);
        }
        self.waiting.clear();
        self.interrupt = None;
        self.begins = false;
        self.decoder.forget_turn();
        self.decoder.next_turn();
        self.go_on(out);
        summary
    }

    fn activity(&self) -> Activity {
        let goes_on = match &self.current {
            Some(turn) => !turn.over,
            None => self.decoder.in_turn() || self.decoder.agents_at_work(),
        };
        if goes_on {
            Activity::Turn
        } else {
            Activity::None
        }
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        self.decoder.classify_stderr(stderr)
    }
}

impl SessionProtocol for ClaudeSession {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    fn open(&mut self) {
        if self.has_offers || self.has_hooks {
            self.outbox.write(&offers::request(self.has_hooks));
            self.requests
                .insert(offers::REQUEST.to_owned(), Request::Initialize);
        }
    }

    fn command(&mut self, command: SessionCommand, out: &mut Events) {
        self.run_command(command, out);
    }

    fn unsupported_answer(&self, id: u64, answer: &PermissionAnswer) -> Option<String> {
        let question = self.questions.get(&id)?;
        let is_missing = question.tool_name == ASK_USER
            && !question.is_of_server
            && question.hook.is_none()
            && !matches!(answer, PermissionAnswer::Deny(_))
            && !ask_user::is_answered(&question.input, answer);
        is_missing
            .then(|| "no question was answered: answer with the fields of its form".to_owned())
    }

    fn interrupted(&self) -> bool {
        self.interrupted
    }

    fn session_id(&self) -> Option<Id> {
        self.resumable.clone()
    }

    fn permission_mode(&self) -> Option<PermissionMode> {
        self.planned_for
    }
}

/// Creates the error for a request that the CLI rejected.
fn refused(what: &str, error: &str) -> AgentError {
    let message = format!("Claude Code refused {what}: {error}");
    AgentError::new(ErrorCode::CliError, ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests;
