//! Client side of the protocol.

mod calls;
mod orders;
mod permissions;
mod start;
mod updates;

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};

use serde_json::Value;
use serde_json::value::RawValue;
use teamster_core::provider::json_line::{self, parse};
use teamster_core::provider::surrogates::Joiner;
use teamster_core::provider::{
    Decoder, Events, Exchange, Exit, Order, OrderId, RunSummary, SessionProtocol,
};
use teamster_core::{
    AgentError, AgentEvent, ErrorCode, ErrorKind, Id, PermissionAnswer, Turn, TurnEnd,
};

use crate::dialect::{Dialect, Figures, Next};
use crate::errors::{During, RpcError};
use crate::peer;
use crate::settings::{ModeSwitch, Settings};
use crate::turn::TurnSoFar;
use crate::wire::{AgentCapabilities, Message};
use crate::write;
use permissions::Pending;
use start::{Opening, Stage, Step};
use updates::Held;

/// Connection to one process of an agent.
pub struct AcpProtocol {
    dialect: Box<dyn Dialect>,
    settings: Settings,
    exchange: Exchange,
    last_id: u64,
    /// Requests without a response.
    asked: Vec<(u64, Ask)>,
    stage: Stage,
    /// True while the next stage waits for a response.
    starting: bool,
    /// Requests still to be sent before the session is ready.
    steps: VecDeque<Step>,
    can: AgentCapabilities,
    session: Option<Id>,
    /// True if the session can be resumed by its id.
    resumable: bool,
    model: Option<String>,
    /// The agent's id of the current mode.
    mode: Option<String>,
    /// Current cost of the session in USD, as reported by the agent.
    cost_usd: Option<f64>,
    offers: start::Offers,
    /// Turn that waits until the session is ready.
    waiting: Option<Turn>,
    /// Id of the prompt request of the active turn.
    playing: Option<u64>,
    turn: TurnSoFar,
    /// The agent's ids of calls of earlier turns.
    earlier: HashSet<String>,
    held: Option<Held>,
    text: Joiner,
    thoughts: Joiner,
    permissions: Vec<Pending>,
    next_permission: u64,
    /// Orders that wait until the session is ready.
    late: Vec<Order>,
    cancelling: bool,
    interrupted: bool,
    end: Option<End>,
}

/// Kind of a request.
#[derive(Debug)]
enum Ask {
    Initialize,
    Open(Opening),
    Step,
    Prompt,
    Clear(OrderId),
    Model(OrderId, String),
    Mode(OrderId, ModeSwitch),
}

/// End of a turn.
#[derive(Debug, Default)]
struct End {
    failed: bool,
    stop_reason: Option<String>,
    figures: Figures,
}

impl AcpProtocol {
    /// Creates the connection to one process of an agent with this dialect.
    pub fn new(dialect: Box<dyn Dialect>, settings: Settings) -> Self {
        let resumable = settings.session_id.is_some() && !settings.fork;
        Self {
            dialect,
            exchange: Exchange::new(),
            last_id: 0,
            asked: Vec::new(),
            stage: Stage::Unconnected,
            starting: false,
            steps: VecDeque::new(),
            can: AgentCapabilities::default(),
            session: None,
            resumable,
            model: None,
            mode: None,
            cost_usd: None,
            offers: start::Offers::default(),
            waiting: None,
            playing: None,
            turn: TurnSoFar::default(),
            earlier: HashSet::new(),
            held: None,
            text: Joiner::default(),
            thoughts: Joiner::default(),
            permissions: Vec::new(),
            next_permission: 0,
            late: Vec::new(),
            cancelling: false,
            interrupted: false,
            end: None,
            settings,
        }
    }

    /// Returns whether the current turn has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.end.is_some()
    }

    /// Handles a line that is a message. Returns `None`, with no effect, for an unknown message.
    fn message(&mut self, text: &str, out: &mut Events) -> Option<()> {
        let message: Message<'_> = parse(text)?;
        match (message.method.as_deref(), message.id) {
            (Some("session/update"), _) => self.update(message.params?, out),
            (Some("session/request_permission"), Some(id)) => {
                self.permission(id, message.params?, out);
                Some(())
            }
            (Some(_), Some(id)) => {
                // Requests for files and terminals, which `initialize` does not offer, and unknown ones.
                write::no_such_method(&mut self.exchange, id);
                Some(())
            }
            (Some(_), None) => None,
            (None, _) => {
                let number = message.number()?;
                let at = self.asked.iter().position(|(id, _)| *id == number)?;
                let (_, ask) = self.asked.remove(at);
                let answer = match message.error {
                    Some(error) => Err(rpc_error(error)),
                    None => Ok(message.result),
                };
                self.answered(number, ask, answer, out);
                Some(())
            }
        }
    }

    fn answered(
        &mut self,
        number: u64,
        ask: Ask,
        answer: Result<Option<&RawValue>, RpcError>,
        out: &mut Events,
    ) {
        match ask {
            Ask::Initialize => self.initialized(answer, out),
            Ask::Open(how) => self.opened(how, answer, out),
            Ask::Step => self.stepped(answer.err(), out),
            Ask::Prompt if self.playing == Some(number) => match answer {
                Ok(result) => self.prompt_ended(result, out),
                Err(error) => self.prompt_failed(&error, out),
            },
            Ask::Prompt => {}
            Ask::Clear(order) => self.cleared(order, answer, out),
            Ask::Model(order, model) => {
                if answer.is_ok() {
                    self.model = Some(model.clone());
                    self.settings.model = Some(model);
                    self.settings.restarted = true;
                    self.offers.takes_models = true;
                }
                self.settle(order, answer.err());
            }
            Ask::Mode(order, switch) => {
                if answer.is_ok() {
                    self.offers.chosen_mode = Some(switch);
                }
                self.settle(order, answer.err());
            }
        }
    }

    fn settle(&mut self, order: OrderId, error: Option<RpcError>) {
        let result = match error {
            Some(error) => Err(self.dialect.error(&error, During::Setting)),
            None => Ok(()),
        };
        self.exchange.settle(order, result);
    }

    fn ask(&mut self, ask: Ask) -> u64 {
        self.last_id += 1;
        self.asked.push((self.last_id, ask));
        self.last_id
    }

    /// Sends the prompt of a waiting turn.
    fn play(&mut self, turn: &Turn, out: &mut Events) {
        let Some(session) = self.session.clone() else {
            return;
        };
        let prompt = if self.settings.slash_commands {
            Cow::Borrowed(turn.prompt.as_str())
        } else {
            self.dialect.not_a_command(&turn.prompt)
        };
        let content = if turn.images.is_empty() || self.can.prompt_capabilities.image {
            write::content(&prompt, &turn.images)
        } else {
            Err(AgentError::refused(
                "images",
                format!("{} takes none", self.dialect.name()),
            ))
        };
        match content {
            Ok(content) => {
                let id = self.ask(Ask::Prompt);
                write::prompt(&mut self.exchange, id, &session, content);
                self.playing = Some(id);
            }
            Err(error) => self.fail_turn(error, out),
        }
    }

    fn prompt_ended(&mut self, result: Option<&RawValue>, out: &mut Events) {
        let result = result.map_or(Value::Null, json_line::value);
        let stop_reason = result["stopReason"].as_str().map(str::to_owned);
        let reported = self.resolve(Next::End(&result), out);
        self.interrupted = stop_reason.as_deref() == Some("cancelled");
        self.resumable = true;
        let figures = self.dialect.figures(&result, &self.turn);
        let failure = if self.interrupted {
            None
        } else {
            reported
                .or_else(|| self.dialect.failure(stop_reason.as_deref(), &self.turn))
                .or_else(|| cut_short(stop_reason.as_deref()))
        };
        let failed = failure.is_some();
        if let Some(error) = failure {
            out.error(error);
        }
        self.end_turn(
            End {
                failed,
                stop_reason,
                figures,
            },
            out,
        );
    }

    fn prompt_failed(&mut self, error: &RpcError, out: &mut Events) {
        self.resolve(Next::Other, out);
        let figures = self.dialect.figures(&peer::result_of(error), &self.turn);
        let error = self.dialect.error(error, During::Prompt);
        self.interrupted = self.cancelling && error.kind == ErrorKind::Aborted;
        if !self.interrupted {
            out.error(error);
        }
        let end = End {
            failed: !self.interrupted,
            figures,
            ..End::default()
        };
        self.end_turn(end, out);
    }

    fn fail_turn(&mut self, error: AgentError, out: &mut Events) {
        out.error(error);
        let end = End {
            failed: true,
            ..End::default()
        };
        self.end_turn(end, out);
    }

    /// Ends the turn, whether its prompt was sent or not.
    fn end_turn(&mut self, end: End, out: &mut Events) {
        for pending in std::mem::take(&mut self.permissions) {
            self.exchange.withdraw(pending.number);
        }
        self.playing = None;
        self.waiting = None;
        self.cancelling = false;
        out.push(AgentEvent::TurnEnd(Box::new(
            TurnEnd::new(end.failed)
                .stop_reason(end.stop_reason.clone())
                .usage(end.figures.usage)
                .cost_usd(end.figures.cost.map(|(usd, _)| usd)),
        )));
        self.end = Some(end);
    }
}

impl Decoder for AcpProtocol {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        if json_line::read(line, |text| self.message(text, out)).is_none() {
            out.unknown(line);
        }
    }

    fn finish(&mut self, _: &Exit, out: &mut Events) -> RunSummary {
        self.resolve(Next::Other, out);
        let end = self.end.take();
        if end.as_ref().is_none_or(|end| end.failed) {
            // The rest of a call that had begun never came, but it may run.
            self.announce_pending(out);
        }
        let turn = std::mem::take(&mut self.turn);
        self.earlier.clear();
        self.earlier.extend(turn.ended);
        self.earlier
            .extend(turn.open.into_iter().map(|open| open.call.id));
        self.text = Joiner::default();
        self.thoughts = Joiner::default();
        let failed = end.as_ref().map(|end| end.failed);
        let end = end.unwrap_or_default();
        RunSummary {
            ended_with_error: failed,
            session_id: self.session.clone(),
            model: self.model.clone(),
            usage: end.figures.usage,
            session_usage: end.figures.session_usage,
            usage_by_model: end.figures.by_model,
            cost: end.figures.cost,
            stop_reason: end.stop_reason,
            ..RunSummary::default()
        }
    }

    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        self.dialect.stderr_evidence(stderr)
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        self.dialect.classify_stderr(stderr)
    }

    fn classify_exit_code(&self, code: i32) -> Option<ErrorKind> {
        self.dialect.classify_exit_code(code)
    }
}

impl SessionProtocol for AcpProtocol {
    fn exchange(&mut self) -> &mut Exchange {
        &mut self.exchange
    }

    fn open(&mut self) {
        let mut none = Events::new();
        self.advance(&mut none);
    }

    fn order(&mut self, order: Order, out: &mut Events) {
        self.obey(order, out);
    }

    fn unsupported_answer(&self, id: u64, answer: &PermissionAnswer) -> Option<String> {
        self.unsupported(id, answer)
    }

    fn interrupted(&self) -> bool {
        self.interrupted
    }

    fn session_id(&self) -> Option<Id> {
        if !self.resumable {
            return None;
        }
        let given = || self.settings.session_id.as_deref().map(Id::from);
        self.session.clone().or_else(given)
    }

    fn session_cost_usd(&self) -> Option<f64> {
        self.cost_usd
    }
}

/// Returns the error of a turn that stopped early, from the protocol's stop reason.
fn cut_short(stop_reason: Option<&str>) -> Option<AgentError> {
    let (kind, message) = match stop_reason? {
        "max_turn_requests" => (
            ErrorKind::MaxTurns,
            "the agent made as many requests to the model as it may in one turn",
        ),
        "max_tokens" => (
            ErrorKind::Invalid,
            "the answer was cut off at the limit of output tokens",
        ),
        "refusal" => (ErrorKind::Invalid, "the model refused to answer"),
        _ => return None,
    };
    Some(AgentError::new(ErrorCode::CliError, kind, message))
}

pub(crate) fn rpc_error(raw: &RawValue) -> RpcError {
    let plain = || RpcError::new(0, raw.get());
    parse(raw.get()).unwrap_or_else(plain)
}

#[cfg(test)]
mod tests;
