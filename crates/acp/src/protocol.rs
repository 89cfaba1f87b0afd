//! Client side of the protocol.

mod calls;
mod commands;
mod elicitation;
mod ending;
mod modes;
mod offered;
mod permissions;
mod start;
mod updates;

use std::borrow::Cow;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use teamster_core::provider::json_line::{self, parse, repaired};
use teamster_core::provider::surrogates::Joiner;
use teamster_core::provider::{
    Activity, CommandId, DecodedResult, Decoder, Events, Exit, LiveOutput, Outbox, RecordFiles,
    SessionCommand, SessionProtocol,
};
use teamster_core::{AgentError, ErrorCode, ErrorKind, Id, Offers, PermissionAnswer, Turn, Usage};

use crate::dialect::{Dialect, Figures, NextUpdate};
use crate::errors::{RequestKind, RpcError};
use crate::settings::{AcpSettings, Approve, ModeSwitch};
use crate::turn::TurnSoFar;
use crate::wire::{AgentCapabilities, Message};
use crate::write;
use ending::{Answer, OwnTurn};
use permissions::Pending;
use start::{Opening, Stage, Step};
use updates::Held;

/// Reason with which an interrupted turn ends.
const CANCELLED: &str = "cancelled";

/// Connection to one process of an agent.
pub struct AcpProtocol {
    dialect: Box<dyn Dialect>,
    settings: AcpSettings,
    outbox: Outbox,
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
    /// Extension data (`_meta`) of the requests that open a session.
    session_meta: Option<Map<String, Value>>,
    /// True if the session can be resumed by its id.
    resumable: bool,
    model: Option<String>,
    /// The agent's id of the current mode.
    mode: Option<String>,
    /// Current cost of the session in USD, as reported by the agent.
    cost_usd: Option<f64>,
    offers: start::Offers,
    /// What the session offers, as it was reported.
    offers_reported: Offers,
    /// Turn that waits until the session is ready.
    waiting: Option<Turn>,
    /// Id of the prompt request of the active turn.
    prompt_id: Option<u64>,
    /// The answer to that request, while more of the turn may come.
    answer: Option<Answer>,
    /// The active turn that the agent began by itself.
    own: Option<OwnTurn>,
    /// True if the agent begins another one right after the turn that ends.
    begins_next: bool,
    turn: TurnSoFar,
    /// The agent's ids of calls of earlier turns.
    earlier: HashSet<String>,
    live: LiveOutput,
    held: Option<Held>,
    text: Joiner,
    thoughts: Joiner,
    permissions: Vec<Pending>,
    next_permission: u64,
    /// Commands that wait until the session is ready.
    late: Vec<SessionCommand>,
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
    Clear(CommandId),
    Model(CommandId, String),
    /// With the tools that the new mode approves, if it changes them.
    Mode(CommandId, ModeSwitch, Option<Approve>),
    /// Back to a mode in which the agent asks.
    BackToAsking(ModeSwitch),
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
    pub fn new(dialect: Box<dyn Dialect>, settings: AcpSettings) -> Self {
        let resumable = settings.session_id.is_some() && !settings.fork;
        Self {
            dialect,
            outbox: Outbox::new(),
            last_id: 0,
            asked: Vec::new(),
            stage: Stage::Unconnected,
            starting: false,
            steps: VecDeque::new(),
            can: AgentCapabilities::default(),
            session: None,
            session_meta: None,
            resumable,
            model: None,
            mode: None,
            cost_usd: None,
            offers: start::Offers::default(),
            offers_reported: Offers::new(),
            waiting: None,
            prompt_id: None,
            answer: None,
            own: None,
            begins_next: false,
            turn: TurnSoFar::default(),
            earlier: HashSet::new(),
            live: LiveOutput::default(),
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
                self.permission(id, &repaired(message.params?), out);
                Some(())
            }
            (Some("elicitation/create"), Some(id)) => {
                self.elicitation(id, &repaired(message.params?), out);
                Some(())
            }
            // The agent learned by itself that the user has visited the page of a question.
            (Some("elicitation/complete"), None) => Some(()),
            (Some("$/cancel_request"), None) => self.cancelled_by_agent(message.params?),
            (Some(_), Some(id)) => {
                // Requests for files and terminals, which `initialize` does not offer, and unknown ones.
                write::no_such_method(&mut self.outbox, id);
                self.announced(&message, out);
                Some(())
            }
            (Some(_), None) => self.announced(&message, out).then_some(()),
            (None, _) => {
                let number = message.number()?;
                let at = self.asked.iter().position(|(id, _)| *id == number)?;
                let (_, ask) = self.asked.remove(at);
                let result = message.result.map(repaired);
                let answer = match message.error {
                    Some(error) => Err(rpc_error(error)),
                    None => Ok(result.as_deref()),
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
            Ask::Prompt if self.prompt_id == Some(number) && self.answer.is_none() => {
                let answer = answer.map(|result| result.map_or(Value::Null, json_line::value));
                self.prompt_answered(answer, out);
            }
            Ask::Prompt => {}
            Ask::Clear(command) => self.cleared(command, answer, out),
            Ask::Model(command, model) => {
                if answer.is_ok() {
                    self.model = Some(model.clone());
                    self.settings.model = Some(model);
                    self.settings.restarted = true;
                    self.offers.takes_models = true;
                }
                self.settle(command, answer.err());
            }
            Ask::Mode(command, switch, approve) => {
                if answer.is_ok() {
                    self.settings.approve = approve.unwrap_or(self.settings.approve);
                    self.offers.modes.switched(&switch);
                    self.offers.chosen_mode = Some(switch);
                }
                self.settle(command, answer.err());
            }
            Ask::BackToAsking(switch) => match answer {
                Ok(_) => self.offers.modes.switched(&switch),
                Err(error) => {
                    let error = self.dialect.error(&error, RequestKind::Setting);
                    self.does_not_ask(&error, out);
                }
            },
        }
    }

    fn settle(&mut self, command: CommandId, error: Option<RpcError>) {
        let result = match error {
            Some(error) => Err(self.dialect.error(&error, RequestKind::Setting)),
            None => Ok(()),
        };
        self.outbox.answer(command, result);
    }

    fn ask(&mut self, ask: Ask) -> u64 {
        self.last_id += 1;
        self.asked.push((self.last_id, ask));
        self.last_id
    }

    /// Sends the prompt of a waiting turn.
    fn send_prompt(&mut self, turn: &Turn, out: &mut Events) {
        let Some(session) = self.session.clone() else {
            return;
        };
        // A leading blank makes any prompt text, also where the agent ignores it.
        let is_command = self.settings.slash_commands && turn.prompt.starts_with('/');
        let prompt = if is_command {
            Cow::Borrowed(turn.prompt.as_str())
        } else {
            self.dialect.not_a_command(&turn.prompt)
        };
        let content = if turn.images.is_empty() || self.can.prompt_capabilities.image {
            write::content(&prompt, &turn.images)
        } else {
            Err(AgentError::refused(
                "images",
                format!("{} does not accept images", self.dialect.name()),
            ))
        };
        match content {
            Ok(content) => {
                self.dialect.turn_begins(is_command);
                let id = self.ask(Ask::Prompt);
                write::prompt(&mut self.outbox, id, &session, &content);
                self.prompt_id = Some(id);
            }
            Err(error) => self.fail_turn(error, out),
        }
    }

    fn fail_turn(&mut self, error: AgentError, out: &mut Events) {
        out.error(error);
        let end = End {
            failed: true,
            ..End::default()
        };
        self.end_turn(end, out);
    }
}

impl Decoder for AcpProtocol {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        if json_line::read(line, |text| self.message(text, out)).is_none() {
            out.unknown(line);
        }
    }

    fn finish(&mut self, _: &Exit, out: &mut Events) -> DecodedResult {
        let is_cut = self.end_with_process(out);
        self.resolve(NextUpdate::Other, out);
        let end = self.end.take();
        if end.as_ref().is_none_or(|end| end.failed) {
            // The rest of a call that had begun never came, but it may run.
            self.announce_pending(out);
        }
        self.forget_turn();
        self.text = Joiner::default();
        self.thoughts = Joiner::default();
        if std::mem::take(&mut self.begins_next) {
            self.own = Some(OwnTurn::Announced);
        }
        let failed = end.as_ref().map(|end| end.failed).filter(|_| !is_cut);
        let end = end.unwrap_or_default();
        DecodedResult {
            ended_with_error: failed,
            session_id: self.session.clone(),
            model: self.model.clone(),
            usage: end.figures.usage,
            session_usage: end.figures.session_usage,
            usage_by_model: end.figures.by_model,
            cost: end.figures.cost,
            stop_reason: end.stop_reason,
            ..DecodedResult::default()
        }
    }

    fn record_files(&self) -> Option<RecordFiles> {
        let given = || self.settings.session_id.as_deref().map(Id::from);
        let session = self.session.clone().or_else(given)?;
        self.dialect.record_files(&session)
    }

    fn record_line(&mut self, line: &str) -> Option<Usage> {
        self.dialect.record_line(line);
        None
    }

    fn activity(&self) -> Activity {
        if self.own.is_none() && self.waits_for_background() {
            Activity::Waiting
        } else {
            Activity::None
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
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    fn open(&mut self) {
        let mut none = Events::new();
        self.advance(&mut none);
    }

    fn command(&mut self, command: SessionCommand, out: &mut Events) {
        self.run_command(command, out);
    }

    fn awaited_silence(&self) -> Option<Duration> {
        self.silence_of_end()
    }

    fn silence(&mut self, out: &mut Events) {
        self.end_after_silence(out);
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
            "the agent reached its limit of model requests in one turn",
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
    let repaired = repaired(raw);
    // An agent may have a mere text.
    let text = || parse::<String>(repaired.get()).map(|text| RpcError::new(0, text));
    parse(repaired.get())
        .or_else(text)
        .unwrap_or_else(|| RpcError::new(0, raw.get()))
}

#[cfg(test)]
mod tests;
