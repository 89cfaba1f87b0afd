//! Sessions: one process of `pi --mode rpc` for many turns.
//!
//! Each command is a JSON line with an id, and its `response` has the same id. The events of a turn are those of a
//! run. `agent_settled` ends a turn.

mod commands;
mod dialogs;
mod lines;
mod offers;
mod wire;

use std::collections::HashMap;

use teamster_core::provider::{
    Activity, CommandId, DecodedResult, Decoder, Events, Exit, OffersQuery, Outbox, SessionCommand,
    SessionProtocol,
};
use teamster_core::{
    AgentError, ErrorCode, ErrorKind, Id, PermissionAnswer, SessionCapabilities, SessionOptions,
    SessionProvider,
};

use crate::{Pi, PiDecoder, launch};

static CAPABILITIES: SessionCapabilities = {
    let mut can = SessionCapabilities::none();
    can.interrupt = true;
    can.steer = true;
    can.clear = true;
    can.set_model = true;
    can.images = true;
    // For questions of extensions. The CLI itself asks for no permission.
    can.permissions = true;
    can
};

impl SessionProvider for Pi {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &CAPABILITIES
    }

    fn launch_session(
        &self,
        options: &SessionOptions,
    ) -> Result<teamster_core::provider::Launch, AgentError> {
        launch::launch_session(options)
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        Box::new(PiSession::new(options))
    }

    fn offers_query(&self, options: &SessionOptions) -> Result<Option<OffersQuery>, AgentError> {
        let launch = launch::launch_query(options)?;
        Ok(Some(OffersQuery::new(launch, offers::query(options))))
    }
}

/// Protocol with one process.
#[derive(Default)]
struct PiSession {
    decoder: PiDecoder,
    outbox: Outbox,
    slash_commands: bool,
    /// The session is not a run: what it offers is of use.
    has_offers: bool,
    /// Number of commands so far.
    commands: u64,
    /// Commands without a response, by id.
    pending: HashMap<String, Purpose>,
    /// True during a turn.
    in_turn: bool,
    /// True if the turn must be interrupted.
    interrupt: bool,
    /// True if the CLI has responded to the abort, which it also does before a turn has begun.
    abort_answered: bool,
    /// True if the last turn was interrupted.
    interrupted: bool,
    /// True while a message in a turn waits until the agent takes it.
    steering: bool,
    /// The provider of the model, in the CLI's terms.
    model_provider: Option<String>,
    /// Size of the model's context, in tokens.
    context_window: Option<u64>,
    /// The session, once the CLI has saved it.
    resumable: Option<Id>,
    /// Questions of extensions without an answer.
    dialogs: Vec<dialogs::Open>,
    dialogs_so_far: u64,
}

/// Purpose of a command.
#[derive(Debug)]
enum Purpose {
    State,
    /// Asks for what the session offers.
    Offers,
    Prompt,
    /// Asks whether the CLI is working after a prompt that may have been a command, or that an extension took.
    IsAtWork,
    Abort,
    Steer(CommandId),
    Clear(CommandId),
    /// Asks for the session's id after it was cleared.
    Cleared(CommandId),
    SetModel(CommandId),
    Unimportant,
}

impl PiSession {
    fn new(options: &SessionOptions) -> Self {
        let params = &options.params;
        let resumed = params.session_id.as_deref().filter(|_| !params.fork);
        Self {
            decoder: PiDecoder::for_run(params),
            slash_commands: params.slash_commands,
            has_offers: !options.one_turn,
            resumable: resumed.map(Id::from),
            ..Self::default()
        }
    }

    /// Fails all open orders, because no responses will come.
    fn settle_all(&mut self) {
        let orders: Vec<_> = self
            .pending
            .drain()
            .filter_map(|(_, it)| it.command())
            .collect();
        for order in orders {
            let error = AgentError::new(
                ErrorCode::CliExitError,
                ErrorKind::Internal,
                "Pi ended before it had done that",
            );
            self.outbox.answer(order, Err(error));
        }
    }
}

impl Purpose {
    fn command(&self) -> Option<CommandId> {
        match self {
            Self::Steer(order)
            | Self::Clear(order)
            | Self::Cleared(order)
            | Self::SetModel(order) => Some(*order),
            _ => None,
        }
    }
}

impl Decoder for PiSession {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        self.read(line, out);
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        let summary = self.decoder.finish(exit, out);
        if exit.code.is_some() || exit.signal.is_some() {
            self.settle_all();
        }
        self.in_turn = false;
        self.close_dialogs();
        self.interrupt = false;
        self.decoder.next_turn();
        summary
    }

    fn activity(&self) -> Activity {
        if self.in_turn {
            Activity::Turn
        } else {
            Activity::None
        }
    }

    fn stderr_evidence<'a>(&self, stderr: &'a str) -> std::borrow::Cow<'a, str> {
        self.decoder.stderr_evidence(stderr)
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        self.decoder.classify_stderr(stderr)
    }
}

impl SessionProtocol for PiSession {
    fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    fn open(&mut self) {
        self.ask_state();
        self.ask_offers();
    }

    fn command(&mut self, command: SessionCommand, out: &mut Events) {
        self.run_command(command, out);
    }

    fn unsupported_answer(&self, id: u64, answer: &PermissionAnswer) -> Option<String> {
        self.is_no_answer(id, answer)
    }

    fn interrupted(&self) -> bool {
        self.interrupted
    }

    fn session_id(&self) -> Option<Id> {
        self.resumable.clone()
    }
}

#[cfg(test)]
mod tests;
