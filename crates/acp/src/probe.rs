//! Probe of an agent: checks that it speaks the protocol, and reads its self-description.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use teamster_core::provider::json_line::{self, parse, value};
use teamster_core::provider::{
    DecodedResult, Decoder, Events, Exit, Launch, Outbox, SessionCommand, SessionProtocol,
};
use teamster_core::sync::lock;
use teamster_core::text::excerpt;
use teamster_core::{
    AgentError, AgentEvent, Capabilities, CliInfo, CliProvider, ExecuteParams, Id,
    SessionCapabilities, SessionOptions, SessionProvider, TurnEnd,
};

use crate::errors::RequestKind;
use crate::protocol::rpc_error;
use crate::settings::AcpSettings;
use crate::wire::Message;
use crate::write;

/// Maximum length of an excerpt of an unreadable line, in bytes.
const GARBAGE_BYTES: usize = 200;

const INITIALIZE: u64 = 1;
const NEW_SESSION: u64 = 2;

/// Responses of a probed agent.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ProbeResponses {
    /// Response to `initialize`: version, capabilities, login methods.
    pub initialized: Option<Result<Value, AgentError>>,
    /// Response to `session/new`: models, modes and other settings.
    pub session: Option<Result<Value, AgentError>>,
    /// First line on stdout that was not a message.
    pub garbage: Option<String>,
    /// Number of lines that were not messages.
    pub lines: u64,
}

/// A provider that only probes an agent. Its turns send no prompt: each sends `initialize` and `session/new`, and
/// ends when both have a response or one of them fails.
#[derive(Debug, Clone)]
pub struct Probe<P> {
    agent: P,
    seen: Arc<Mutex<ProbeResponses>>,
}

impl<P: SessionProvider> Probe<P> {
    /// Creates a probe of this agent.
    pub fn new(agent: P) -> Self {
        Self {
            agent,
            seen: Arc::default(),
        }
    }

    /// Returns the responses so far.
    pub fn seen(&self) -> ProbeResponses {
        lock(&self.seen).clone()
    }
}

impl<P: SessionProvider> CliProvider for Probe<P> {
    fn info(&self) -> &'static CliInfo {
        self.agent.info()
    }

    fn capabilities(&self) -> &Capabilities {
        self.agent.capabilities()
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        self.agent.launch(params)
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        self.protocol(&SessionOptions::new(params.clone()))
    }
}

impl<P: SessionProvider> SessionProvider for Probe<P> {
    fn session_capabilities(&self) -> &SessionCapabilities {
        self.agent.session_capabilities()
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        self.agent.launch_session(options)
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        Box::new(Asking {
            outbox: Outbox::new(),
            settings: AcpSettings::of(options),
            seen: Arc::clone(&self.seen),
            is_asked: false,
            is_answered: false,
            has_ended: false,
        })
    }

    fn only_sessions(&self) -> bool {
        true
    }
}

struct Asking {
    outbox: Outbox,
    settings: AcpSettings,
    seen: Arc<Mutex<ProbeResponses>>,
    /// True once a turn waits for the responses.
    is_asked: bool,
    is_answered: bool,
    has_ended: bool,
}

impl Asking {
    fn message(&mut self, text: &str) -> Option<()> {
        let message: Message<'_> = parse(text)?;
        match (message.method.as_deref(), message.id) {
            (Some(_), Some(id)) => write::no_such_method(&mut self.outbox, id),
            (Some(_), None) => {}
            (None, _) => {
                let number = message.number()?;
                let answer = match message.error {
                    Some(error) => Err(rpc_error(error).plain(RequestKind::Start)),
                    None => Ok(message.result.map_or(Value::Null, value)),
                };
                self.answered(number, answer)?;
            }
        }
        Some(())
    }

    fn answered(&mut self, number: u64, answer: Result<Value, AgentError>) -> Option<()> {
        let is_well = answer.is_ok();
        match number {
            INITIALIZE => {
                lock(&self.seen).initialized = Some(answer);
                if is_well {
                    let outbox = &mut self.outbox;
                    write::open_session(
                        outbox,
                        NEW_SESSION,
                        "session/new",
                        &self.settings,
                        None,
                        None,
                    );
                }
                self.is_answered = !is_well;
            }
            NEW_SESSION => {
                lock(&self.seen).session = Some(answer);
                self.is_answered = true;
            }
            _ => return None,
        }
        Some(())
    }

    fn end(&mut self, out: &mut Events) {
        if self.is_asked && self.is_answered && !self.has_ended {
            self.has_ended = true;
            out.push(AgentEvent::TurnEnd(Box::new(TurnEnd::new(false))));
        }
    }

    fn keep(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let mut seen = lock(&self.seen);
        seen.lines += 1;
        if seen.garbage.is_none() && !line.trim().is_empty() {
            seen.garbage = Some(excerpt(line.trim(), GARBAGE_BYTES));
        }
    }
}

impl Decoder for Asking {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        if json_line::read(line, |text| self.message(text)).is_none() {
            self.keep(line);
            out.unknown(line);
        }
        self.end(out);
    }

    fn plain_line(&mut self, line: &[u8]) {
        self.keep(line);
    }

    fn finish(&mut self, _: &Exit, _: &mut Events) -> DecodedResult {
        DecodedResult {
            ended_with_error: self.is_answered.then_some(false),
            ..DecodedResult::default()
        }
    }
}

impl SessionProtocol for Asking {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    fn open(&mut self) {
        write::initialize(&mut self.outbox, INITIALIZE, false);
    }

    fn command(&mut self, command: SessionCommand, out: &mut Events) {
        match command {
            SessionCommand::Turn(_) => {
                self.is_asked = true;
                self.has_ended = false;
                self.end(out);
            }
            other => self
                .outbox
                .refuse(&other, "the agent is only asked who it is"),
        }
    }

    fn interrupted(&self) -> bool {
        false
    }

    fn session_id(&self) -> Option<Id> {
        None
    }
}
