//! Many turns in one process: `claude -p --input-format stream-json`.
//!
//! The CLI reads messages and requests line by line. A message is a turn of its own, or it is taken into
//! the turn that is being played, or joined with others into the next one, as it happens to come; so
//! what the CLI calls a turn, from `init` to `result`, differs from the turns of the caller. Each message has an
//! id, by which the CLI reports that it has taken the message in. A turn of the session is over with the
//! `result` at which none is waiting any more.

mod ids;
mod lines;
mod orders;
mod wire;

use std::collections::{HashMap, VecDeque};

use serde_json::Value;
use teamster_core::provider::{
    Activity, Decoder, Events, Exchange, Exit, Order, OrderId, RunSummary, SessionProtocol,
};
use teamster_core::{
    AgentError, AgentEvent, ErrorCode, ErrorEvent, ErrorKind, Id, PermissionMode,
    SessionCapabilities, SessionOptions, TurnEnd, Usage,
};

use crate::ClaudeDecoder;
use ids::Ids;

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
    can.images = true;
    can.unasked = true;
    can
};

/// Talks to one process.
pub(crate) struct ClaudeSession {
    decoder: ClaudeDecoder,
    exchange: Exchange,
    ids: Ids,
    slash_commands: bool,
    /// The tools were chosen at the start, and stay so.
    read_only: bool,
    /// The turn of the caller. Without one, the CLI may still play one of its own.
    playing: Option<Playing>,
    /// Messages that the CLI has not taken in yet.
    waiting: Vec<Waiting>,
    /// A message was taken in between two turns of the CLI: one begins.
    begins: bool,
    /// The turn is to be interrupted.
    interrupt: Option<Interrupt>,
    /// The last end of a turn reported an interruption.
    interrupted: bool,
    /// Requests that the CLI has not answered.
    requests: HashMap<String, Request>,
    /// Questions of the CLI's that were not answered.
    questions: HashMap<u64, Question>,
    last_question: u64,
    clearing: Option<Clearing>,
    /// Orders waiting for the conversation to be cleared, or for the end of the turn before that.
    held: VecDeque<Order>,
    /// The session, once the CLI has written something of it down.
    resumable: Option<Id>,
}

/// A turn of the caller.
#[derive(Debug, Default)]
struct Playing {
    /// Its message was written.
    sent: bool,
    over: bool,
    /// It ended without the CLI's word.
    failed: bool,
    /// Sums of the CLI's turns in it, and the end of the last one.
    usage: Option<Usage>,
    cost_usd: Option<f64>,
    last_end: Option<Box<TurnEnd>>,
    /// A hook blocked a message in the turn, after the prompt had been answered.
    held_back: bool,
    /// Why the last one failed, as long as it may not have been the last.
    last_error: Option<Box<ErrorEvent>>,
}

/// A message that the CLI has not taken in yet.
#[derive(Debug)]
struct Waiting {
    uuid: String,
    is_prompt: bool,
    /// The CLI's next turn began when this was waiting: it is for this, too.
    due: bool,
    /// The CLI was asked to give it back, and had it no more.
    taken: bool,
}

#[derive(Debug)]
struct Interrupt {
    /// The CLI has heard of it.
    answered: bool,
    /// It ends the agents that the turn was waiting for.
    ends_agents: bool,
}

/// A request of ours.
#[derive(Debug)]
enum Request {
    Interrupt,
    /// To give a message back.
    Cancel(String),
    /// To change something, for this order.
    Change(OrderId),
    End,
}

/// A question of the CLI's, whether a tool may be used.
#[derive(Debug)]
struct Question {
    request_id: String,
    tool_name: String,
    input: Value,
    suggestions: Vec<Value>,
    /// An MCP server asks for input.
    is_of_server: bool,
}

#[derive(Debug)]
struct Clearing {
    order: OrderId,
    /// The session that is left.
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
            exchange: Exchange::new(),
            ids: Ids::default(),
            slash_commands: params.slash_commands,
            read_only: params.permission == PermissionMode::ReadOnly,
            playing: None,
            waiting: Vec::new(),
            begins: false,
            interrupt: None,
            interrupted: false,
            requests: HashMap::new(),
            questions: HashMap::new(),
            last_question: 0,
            clearing: None,
            held: VecDeque::new(),
            resumable: resumed.map(Id::from),
        }
    }

    /// Whether a turn of the caller is active.
    fn is_playing(&self) -> bool {
        self.playing.as_ref().is_some_and(|turn| !turn.over)
    }

    /// Nothing that is still wanted will come.
    fn settle_all(&mut self, why: &AgentError) {
        let changes = self
            .requests
            .drain()
            .filter_map(|(_, request)| match request {
                Request::Change(order) => Some(order),
                _ => None,
            });
        let clearing = self.clearing.take().map(|clearing| clearing.order);
        let held = self.held.drain(..).filter_map(|order| match order {
            Order::Steer(order, _) | Order::Clear(order) => Some(order),
            _ => None,
        });
        let orders: Vec<_> = changes.chain(clearing).chain(held).collect();
        for order in orders {
            self.exchange.settle(order, Err(why.clone()));
        }
        self.questions.clear();
    }
}

impl Decoder for ClaudeSession {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        self.read(line, out);
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> RunSummary {
        let broke_off = self.is_playing();
        let turn = self.playing.take().unwrap_or_default();
        let mut summary = self.decoder.finish(exit, out);
        if broke_off {
            // Independent of the CLI's own turns in it.
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
        let goes_on = match &self.playing {
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
    fn exchange(&mut self) -> &mut Exchange {
        &mut self.exchange
    }

    fn order(&mut self, order: Order, out: &mut Events) {
        self.obey(order, out);
    }

    fn interrupted(&self) -> bool {
        self.interrupted
    }

    fn session_id(&self) -> Option<Id> {
        self.resumable.clone()
    }
}

/// The error for a request that the CLI refused.
fn refused(what: &str, error: &str) -> AgentError {
    let message = format!("Claude Code refused {what}: {error}");
    AgentError::new(ErrorCode::CliError, ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests;
