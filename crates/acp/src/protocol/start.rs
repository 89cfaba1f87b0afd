//! Start of a session: from a new process to readiness for a turn.

use serde_json::value::RawValue;
use teamster_core::provider::json_line::parse;
use teamster_core::provider::{Events, SessionCommand};
use teamster_core::{
    AgentError, AgentEvent, ErrorCode, ErrorKind, Id, McpTransport, NoticeLevel, NoticeSource,
    SessionStarted,
};

use super::modes::Modes;
use super::{AcpProtocol, Ask};
use crate::cost::SessionOrigin;
use crate::errors::{RequestKind, RpcError};
use crate::settings::ModeSwitch;
use crate::wire::{Initialized, Opened};
use crate::write;

/// Stage of the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The agent has not responded to `initialize`.
    Unconnected,
    /// `initialize` succeeded.
    Connected,
    /// The session is open.
    Open,
    /// The session is configured.
    Ready,
}

/// Method that opens a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening {
    New,
    Load,
    Resume,
    Fork,
}

/// A setting that is sent before the first turn.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Model(String),
    Effort(String),
    Mode(ModeSwitch),
}

/// Settings that a session offers, and the last choices.
#[derive(Debug, Default)]
pub(super) struct Offers {
    /// True if the model is set by `session/set_model`.
    pub(super) models: bool,
    /// Id of the option for the model.
    pub(super) model_option: Option<String>,
    /// Id of the option for the reasoning effort.
    pub(super) effort_option: Option<String>,
    /// True if a model was set before, which proves that it can be set even without an offer.
    pub(super) takes_models: bool,
    /// Mode that was set last.
    pub(super) chosen_mode: Option<ModeSwitch>,
    /// Mode that the session must be set to first.
    pub(super) first_mode: Option<ModeSwitch>,
    pub(super) modes: Modes,
}

/// Supported version of the protocol.
const VERSION: u64 = 1;

impl AcpProtocol {
    /// Takes the next step of the start, unless a response is pending.
    pub(super) fn advance(&mut self, out: &mut Events) {
        if self.starting {
            return;
        }
        match self.stage {
            Stage::Unconnected => {
                let id = self.ask(Ask::Initialize);
                write::initialize(&mut self.outbox, id, self.settings.asks);
                self.starting = true;
            }
            Stage::Connected => match self.way() {
                Ok(how) => {
                    let id = self.ask(Ask::Open(how));
                    self.open_session(how, id);
                    self.starting = true;
                }
                Err(error) => self.cannot_start(error, out),
            },
            Stage::Open => match self.steps.front().cloned() {
                Some(step) => match self.take_step(step) {
                    Ok(true) => self.starting = true,
                    Ok(false) => {
                        self.steps.pop_front();
                        self.advance(out);
                    }
                    Err(error) => self.cannot_start(error, out),
                },
                None => {
                    self.stage = Stage::Ready;
                    self.advance(out);
                }
            },
            Stage::Ready => {
                for command in std::mem::take(&mut self.late) {
                    self.run_command(command, out);
                }
                if self.waiting.is_some()
                    && self.asks(out)
                    && let Some(turn) = self.waiting.take()
                {
                    self.send_prompt(&turn, out);
                }
            }
        }
    }

    /// Returns the method that opens the session, given the agent's capabilities.
    fn way(&self) -> Result<Opening, AgentError> {
        let name = self.dialect.name();
        for server in &self.settings.mcp_servers {
            let can = match &server.transport {
                McpTransport::Http { .. } => self.can.mcp_capabilities.http,
                McpTransport::Sse { .. } => self.can.mcp_capabilities.sse,
                _ => true,
            };
            if !can {
                return Err(AgentError::refused_server(
                    &server.name,
                    format!(
                        "{name} does not support {} servers",
                        server.transport.as_str()
                    ),
                ));
            }
        }
        let ways = &self.can.session_capabilities;
        if !self.settings.add_dirs.is_empty() && ways.additional_directories.is_none() {
            return Err(AgentError::refused(
                "add_dirs",
                format!("{name} does not accept additional directories"),
            ));
        }
        if self.settings.session_id.is_none() {
            Ok(Opening::New)
        } else if self.settings.fork && ways.fork.is_some() {
            Ok(Opening::Fork)
        } else if self.settings.fork {
            Err(AgentError::refused(
                "fork",
                format!("{name} cannot do that"),
            ))
        } else if ways.resume.is_some() {
            Ok(Opening::Resume)
        } else if self.can.load_session {
            Ok(Opening::Load)
        } else {
            Err(AgentError::refused(
                "session_id",
                format!("{name} cannot resume a session"),
            ))
        }
    }

    pub(super) fn open_session(&mut self, how: Opening, id: u64) {
        let method = match how {
            Opening::New => "session/new",
            Opening::Load => "session/load",
            Opening::Resume => "session/resume",
            // It is not in the protocol's stable schema.
            Opening::Fork => "session/fork",
        };
        let session = self.settings.session_id.as_deref();
        write::open_session(
            &mut self.outbox,
            id,
            method,
            &self.settings,
            self.session_meta.as_ref(),
            session.filter(|_| how != Opening::New),
        );
    }

    /// Applies a setting. Returns whether a request was sent for it.
    fn take_step(&mut self, step: Step) -> Result<bool, AgentError> {
        let Some(session) = self.session.clone() else {
            return Ok(false);
        };
        let name = self.dialect.name();
        let cannot = |what: &str| {
            Err(AgentError::refused(
                what,
                format!("{name} does not let clients choose it"),
            ))
        };
        match step {
            Step::Model(model) => {
                let offers = &self.offers;
                if !offers.models && offers.model_option.is_none() && !offers.takes_models {
                    return cannot("model");
                }
                self.choose_model(&session, Ask::Step, &model);
            }
            Step::Effort(effort) => {
                let Some(option) = self.offers.effort_option.clone() else {
                    return cannot("effort");
                };
                let id = self.ask(Ask::Step);
                write::set_option(&mut self.outbox, id, &session, &option, &effort);
            }
            Step::Mode(switch) => return Ok(self.switch_mode(&session, Ask::Step, &switch)),
        }
        Ok(true)
    }

    pub(super) fn choose_model(&mut self, session: &str, ask: Ask, model: &str) {
        let id = self.ask(ask);
        match self
            .offers
            .model_option
            .clone()
            .filter(|_| !self.offers.models)
        {
            Some(option) => write::set_option(&mut self.outbox, id, session, &option, model),
            None => write::set_model(&mut self.outbox, id, session, model),
        }
    }

    pub(super) fn initialized(
        &mut self,
        answer: Result<Option<&RawValue>, RpcError>,
        out: &mut Events,
    ) {
        self.starting = false;
        let result = match answer {
            Ok(result) => result,
            Err(error) => {
                let error = self.dialect.error(&error, RequestKind::Start);
                return self.cannot_start(error, out);
            }
        };
        let result: Initialized = result
            .and_then(|result| parse(result.get()))
            .unwrap_or_default();
        if result.protocol_version.is_some_and(|it| it != VERSION) {
            let error = AgentError::new(
                ErrorCode::CliError,
                ErrorKind::Protocol,
                format!(
                    "{} speaks version {} of the Agent Client Protocol; teamster supports version {VERSION}",
                    self.dialect.name(),
                    result.protocol_version.unwrap_or_default()
                ),
            );
            return self.cannot_start(error, out);
        }
        self.can = result.agent_capabilities;
        self.session_meta = self.dialect.session_meta(&result.agent_info.name);
        self.stage = Stage::Connected;
        self.advance(out);
    }

    pub(super) fn opened(
        &mut self,
        how: Opening,
        answer: Result<Option<&RawValue>, RpcError>,
        out: &mut Events,
    ) {
        self.starting = false;
        let during = match how {
            Opening::New => RequestKind::Start,
            _ => RequestKind::Resume,
        };
        let result = match answer {
            Ok(result) => result,
            Err(error) => {
                let error = self.dialect.error(&error, during);
                return self.cannot_start(error, out);
            }
        };
        let result: Opened = result
            .and_then(|result| parse(result.get()))
            .unwrap_or_default();
        let known = match how {
            Opening::New | Opening::Fork => None,
            Opening::Load | Opening::Resume => self.settings.session_id.clone(),
        };
        let Some(id) = known.or_else(|| result.session_id.clone()) else {
            let error = AgentError::new(
                ErrorCode::CliError,
                ErrorKind::Protocol,
                format!("{} opened a session without an id", self.dialect.name()),
            );
            return self.cannot_start(error, out);
        };
        self.resumable = match how {
            Opening::New => self.dialect.keeps_empty_sessions(),
            _ => true,
        };
        self.dialect.session_opened(match how {
            Opening::New => SessionOrigin::New,
            Opening::Load | Opening::Resume | Opening::Fork => SessionOrigin::Continued,
        });
        // Omitted for a fork: its cost may start at 0 or at the original session's cost.
        let goes_on = matches!(how, Opening::Load | Opening::Resume);
        self.cost_usd = self.settings.session_cost_usd.filter(|_| goes_on);
        if let Some(usd) = self.cost_usd {
            self.dialect.set_earlier_cost(usd);
        }
        self.take_session(&id, &result, out);
        if let Err(error) = self.find_first_mode(&result) {
            return self.cannot_start(error, out);
        }
        let replays = how != Opening::New && self.dialect.replays_after_response();
        // The agent replays the session before it responds to this request.
        let current = self.mode.clone().filter(|_| replays);
        let mode = self.settings.mode.clone().or(current);
        let first = self.offers.first_mode.clone();
        let mode = first.or_else(|| mode.map(ModeSwitch::Mode));
        self.set_up(mode, out);
    }

    /// Sets the model, the effort and this mode of a session that was opened.
    fn set_up(&mut self, mode: Option<ModeSwitch>, out: &mut Events) {
        let settings = &self.settings;
        self.steps.clear();
        self.steps.extend(settings.model.clone().map(Step::Model));
        self.steps.extend(settings.effort.clone().map(Step::Effort));
        self.steps.extend(mode.map(Step::Mode));
        self.stage = Stage::Open;
        self.advance(out);
    }

    /// Handles the response to [`SessionCommand::Clear`].
    pub(super) fn cleared(
        &mut self,
        command: teamster_core::provider::CommandId,
        answer: Result<Option<&RawValue>, RpcError>,
        out: &mut Events,
    ) {
        let result = match answer {
            Ok(result) => result,
            Err(error) => return self.settle(command, Some(error)),
        };
        let result: Opened = result
            .and_then(|result| parse(result.get()))
            .unwrap_or_default();
        let Some(id) = result.session_id.clone() else {
            let error = RpcError::new(0, "the agent opened a session without an id");
            return self.settle(command, Some(error));
        };
        // Leaves the current session as it is.
        if let Err(error) = self.find_first_mode(&result) {
            return self.outbox.answer(command, Err(error));
        }
        self.resumable = self.dialect.keeps_empty_sessions();
        self.settings.session_id = None;
        self.settings.fork = false;
        self.dialect.session_opened(SessionOrigin::New);
        self.cost_usd = None;
        self.take_session(&id, &result, out);
        self.settle(command, None);
        let first = self.settings.mode.clone().map(ModeSwitch::Mode);
        let chosen = self.offers.chosen_mode.clone();
        let mode = chosen.or(first).or(self.offers.first_mode.clone());
        self.set_up(mode, out);
    }

    fn take_session(&mut self, id: &str, opened: &Opened, out: &mut Events) {
        let id = Id::from(id);
        let is_new = self.session.as_ref() != Some(&id);
        self.session = Some(id.clone());
        let models = opened.models.as_ref();
        let option = |category: &str| {
            (opened.config_options.iter())
                .find(|option| option.category.as_deref() == Some(category))
        };
        self.offers.models = models.is_some();
        self.offers.model_option = option("model").map(|option| option.id.clone());
        self.offers.effort_option = option("thought_level").map(|option| option.id.clone());
        self.model = models
            .and_then(|models| models.current_model_id.clone())
            .or_else(|| option("model")?.current_value.clone())
            .or_else(|| self.model.take());
        let modes = opened.modes.as_ref();
        self.mode = modes.and_then(|modes| modes.current_mode_id.clone());
        if is_new {
            out.push(AgentEvent::SessionStarted(Box::new(
                SessionStarted::new(id)
                    .model(self.settings.model.clone().or_else(|| self.model.clone())),
            )));
            self.report_offers(out);
        }
        self.options_offered(models, &opened.config_options, out);
    }

    pub(super) fn stepped(&mut self, error: Option<RpcError>, out: &mut Events) {
        self.starting = false;
        if let Some(error) = error {
            let error = self.dialect.error(&error, RequestKind::Setting);
            let is_effort = matches!(self.steps.front(), Some(Step::Effort(_)));
            if !is_effort || !self.settings.restarted {
                return self.cannot_start(error, out);
            }
            let message = format!("effort: {}", error.message);
            out.notice(NoticeLevel::Warning, NoticeSource::Runtime, message);
        }
        let step = self.steps.pop_front();
        match step {
            Some(Step::Model(model)) => self.model = Some(model),
            Some(Step::Mode(switch)) => self.offers.modes.switched(&switch),
            _ => {}
        }
        self.advance(out);
    }

    /// Fails the waiting turn and orders. The next turn tries to start again.
    fn cannot_start(&mut self, error: AgentError, out: &mut Events) {
        for command in std::mem::take(&mut self.late) {
            if let SessionCommand::Clear(id)
            | SessionCommand::SetModel(id, _)
            | SessionCommand::SetPermission(id, _) = command
            {
                self.outbox.answer(id, Err(error.clone()));
            }
        }
        if self.waiting.is_some() {
            self.fail_turn(error, out);
        }
    }
}
