//! Live sessions: a process that is kept between turns.

mod asking;
pub(crate) mod commands;
mod current;
mod offers;
mod reading;
mod replies;
mod shared;
mod silence;

use std::path::Path;
use std::sync::{Arc, Mutex};

use teamster_core::provider::{RunAssembler, Secrets, SessionAssembler, SessionProtocol};
use teamster_core::sync::lock;
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, AgentSession, ErrorCode, ErrorKind, EventStream, Id,
    NoticeLevel, NoticeSource, Offers, PermissionMode, PermissionPolicy, SessionCapabilities,
    SessionFuture, SessionOptions, SessionProvider, SessionRuntime, Turn,
};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

use crate::config::{RecordTo, RuntimeConfig};
use crate::guard::Guarded;
use crate::identity::{Presence, ProcessIdentity};
use crate::images;
use crate::launch::{check_displaced, make_absolute};
use crate::queue::{Consumer, queue};
use crate::reset_time::limit_reset_ms;
use crate::runtime::{CliRuntime, Entries};
use crate::spill::Spill;
use crate::start::{Refused, start};
use reading::SessionReading;
use shared::{Command, CommandKind, Known, NewTurn, Setting};

/// Limit of attempts to send a turn, each to a new process, if processes end before the turn begins.
const TRIES: usize = 3;

impl<P: SessionProvider> SessionRuntime for CliRuntime<P> {
    fn session_capabilities(&self) -> &SessionCapabilities {
        self.provider().session_capabilities()
    }

    fn open(&self, mut options: SessionOptions) -> Result<Box<dyn AgentSession>, AgentError> {
        make_absolute(&mut options.params);
        options.params.prompt.clear();
        if !options.params.images.is_empty() {
            return Err(AgentError::refused("images", "pass images with each turn"));
        }
        // A replay repeats denials, but cannot repeat other answers.
        let is_replayed = self.provider().only_sessions()
            && matches!(options.permissions, PermissionPolicy::Deny);
        let one_run = matches!(self.config().record_to, Some(RecordTo::Run(_)));
        if one_run && options.one_turn && !is_replayed {
            let problem = "a run in which permission requests are answered cannot be recorded";
            return Err(AgentError::refused("record_to", problem));
        }
        let name = self.provider().info().name;
        options.check_tool_hooks(name, self.provider().session_capabilities())?;
        let launch = self.provider().launch_session(&options)?;
        check_displaced(&launch, self.config(), &options.params)?;
        let session_id = options.params.session_id.as_deref().map(Id::from);
        Ok(Box::new(CliSession(Arc::new(Inner {
            provider: self.shared_provider(),
            config: self.shared_config(),
            turns: Arc::new(Semaphore::new(1)),
            has_unasked: Arc::default(),
            state: Mutex::new(State {
                options,
                session_id,
                talk: None,
                closed: false,
                processes: 0,
            }),
        }))))
    }

    fn offers(
        &self,
        options: SessionOptions,
    ) -> SessionFuture<'_, Result<Option<Offers>, AgentError>> {
        let provider: Arc<dyn SessionProvider> = self.shared_provider();
        Box::pin(offers::ask(provider, self.config().clone(), options))
    }
}

/// A live session with a CLI.
struct CliSession<P>(Arc<Inner<P>>);

struct Inner<P> {
    provider: Arc<P>,
    config: Arc<RuntimeConfig>,
    /// Held by the turn in progress, or while the process starts.
    turns: Arc<Semaphore>,
    /// Notified of unasked turns of any process of the session.
    has_unasked: Arc<Notify>,
    state: Mutex<State>,
}

struct State {
    options: SessionOptions,
    /// Id reported by the last process, or set by the caller.
    session_id: Option<Id>,
    talk: Option<Talk>,
    /// True if the caller closed the session.
    closed: bool,
    /// Number of processes that were started.
    processes: u32,
}

/// Handle to one process.
#[derive(Clone)]
struct Talk {
    commands: mpsc::UnboundedSender<Command>,
    known: Arc<Known>,
    /// Identity of the CLI's process.
    process: Option<ProcessIdentity>,
}

impl State {
    fn id(&self) -> Option<Id> {
        let known = self.talk.as_ref().and_then(|talk| talk.known.session_id());
        known.or_else(|| self.session_id.clone())
    }

    /// Returns the handle to the process, if it accepts commands.
    fn live(&self) -> Option<Talk> {
        (self.talk.clone()).filter(|talk| {
            let known = &talk.known;
            // A killed process has ended before its task notices.
            let has_ended = || (talk.process).is_some_and(|it| it.presence() == Presence::Ended);
            !(known.is_gone() || known.is_lost() || talk.commands.is_closed() || has_ended())
        })
    }
}

impl<P: SessionProvider> Inner<P> {
    /// Begins the turn, in a new process if necessary.
    async fn begin_turn(&self, mut turn: Turn, abort: &AbortHandle) -> Result<Consumer, Refused> {
        if !turn.images.is_empty() && !self.provider.session_capabilities().images {
            return Err(self.cannot("take images").into());
        }
        let reads = |_: &Path| !self.provider.opens_image_files();
        let timeouts = lock(&self.state).options.params.timeouts;
        let limit = images::limit(turn.timeouts.or(timeouts).or(self.config.timeouts));
        for _ in 0..TRIES {
            if abort.is_aborted() {
                break;
            }
            let permit = tokio::select! {
                biased;
                () = abort.aborted() => break,
                permit = self.turns.clone().acquire_owned() => permit,
            };
            let Ok(permit) = permit else {
                break;
            };
            // After the permit: turns keep the order of their first polls.
            let images = std::mem::take(&mut turn.images);
            turn.images = images::prepare(images, reads, limit, abort).await?;
            let talk = self.talk(&turn, abort).await?;
            let spill = Spill::new(
                self.config.spill_dir.as_deref(),
                self.config.spill_limit_bytes,
            );
            let (producer, consumer) = queue(self.config.queue_memory_bytes, spill);
            let (begun, has_begun) = oneshot::channel();
            let new = NewTurn {
                turn: turn.clone(),
                queue: producer,
                abort: abort.clone(),
                permit,
                begun,
            };
            if talk.commands.send(Command::Turn(Box::new(new))).is_err() {
                continue;
            }
            tokio::select! {
                biased;
                // Fails if the process ended before the turn began.
                begun = has_begun => if begun.is_ok() {
                    return Ok(consumer);
                },
                () = abort.aborted() => break,
            }
        }
        Err(if abort.is_aborted() {
            RunAssembler::aborted_error().into()
        } else {
            let name = self.provider.info().name;
            let message = format!("{name} ends each time before a turn can begin");
            AgentError::new(ErrorCode::StreamEndedEarly, ErrorKind::Protocol, message).into()
        })
    }

    /// Returns the configuration of a process of the session, by its number from 1. Each is recorded in its own folder.
    fn config_of_process(&self, number: u32, is_only: bool) -> Arc<RuntimeConfig> {
        match &self.config.record_to {
            Some(RecordTo::Run(dir)) if !is_only => {
                let dir = dir.join(number.to_string());
                Arc::new((*self.config).clone().record_to(dir))
            }
            _ => Arc::clone(&self.config),
        }
    }

    /// Returns the handle to the process, and starts one if there is none. The caller MUST hold the permit.
    async fn talk(&self, turn: &Turn, abort: &AbortHandle) -> Result<Talk, Refused> {
        let before = {
            let state = lock(&self.state);
            if let Some(talk) = state.live() {
                return Ok(talk);
            }
            state.talk.clone()
        };
        if let Some(before) = before {
            // Two processes must not write to one session at the same time. Sending fails if the process is gone.
            let _ = before.commands.send(Command::Close);
            tokio::select! {
                () = before.commands.closed() => {}
                () = abort.aborted() => return Err(RunAssembler::aborted_error().into()),
            }
        }
        let (mut options, again, number) = {
            let mut state = lock(&self.state);
            state.processes += 1;
            state.session_id = match &state.talk {
                Some(talk) if talk.known.is_lost() => None,
                _ => state.id(),
            };
            let cost = (state.talk.as_ref())
                .and_then(|talk| talk.known.cost_of(state.session_id.as_ref()));
            if let Some(mode) = state
                .talk
                .as_ref()
                .and_then(|it| it.known.permission_mode())
            {
                state.options.params.permission = mode;
            }
            let unwanted = state.closed;
            let again = (state.talk.take()).is_some_and(|talk| !unwanted && !talk.known.was_idle());
            state.closed = false;
            let mut options = state.options.clone();
            if state.session_id.as_deref() != options.params.session_id.as_deref() {
                // An earlier process began the session or made the fork.
                options.params.fork = false;
                options.params.new_session_id = None;
                options.restarted = state.session_id.is_some();
            }
            options.session_cost_usd = cost;
            options.params.session_id = state.session_id.as_deref().map(str::to_owned);
            (options, again, state.processes)
        };
        let launch = self.provider.launch_session(&options)?;
        let (protocol, panicked) =
            Guarded::<dyn SessionProtocol>::new(self.provider.protocol(&options));
        let params = &options.params;
        let mut assembler = SessionAssembler::new(Box::new(protocol))
            .include_native(params.include_native)
            .hide(Secrets::of(&params.mcp_servers))
            .resumes(params.session_id.is_some())
            .may_be_silent(params.commands())
            .reset_time(limit_reset_ms);
        if again {
            let outcome = match params.session_id {
                Some(_) => "the session continues in a new one",
                None => "a new session begins",
            };
            let message = format!(
                "the process of {} had ended; {outcome}",
                self.provider.info().name
            );
            assembler.runtime_event(AgentEvent::notice(
                NoticeLevel::Warning,
                NoticeSource::Runtime,
                message,
            ));
        }
        let (commands, receiver) = mpsc::unbounded_channel();
        let known = Arc::new(Known::new(self.has_unasked.clone()));
        // The known values until the process has completed a turn.
        known.set_cost(
            options.params.session_id.as_deref().map(Id::from),
            options.session_cost_usd,
        );
        let permissions = options.permissions.clone();
        if options.one_turn {
            // The recording shows the prompt.
            options.params.prompt.clone_from(&turn.prompt);
        }
        let params = &options.params;
        // Before the process starts: what a resumed session has recorded so far is not of this process.
        let record = assembler.record_files();
        let setting = Setting {
            assembler,
            panicked,
            commands: receiver,
            known: known.clone(),
            idle: options.idle,
            restarted: options.restarted,
            interruptible: self.provider.session_capabilities().interrupt,
            interrupt_grace: self.config.interrupt_grace,
            queue_memory_bytes: self.config.queue_memory_bytes,
            spill_dir: self.config.spill_dir.clone(),
            spill_limit_bytes: self.config.spill_limit_bytes,
        };
        let mut process = None;
        start(
            &*self.provider,
            &self.config_of_process(number, options.one_turn),
            params,
            launch,
            record,
            abort,
            |limits, pid| {
                process = pid.and_then(ProcessIdentity::of);
                SessionReading::new(setting, permissions, limits)
            },
        )
        .await?;
        let talk = Talk {
            commands,
            known,
            process,
        };
        lock(&self.state).talk = Some(talk.clone());
        Ok(talk)
    }

    fn cannot(&self, what: &str) -> AgentError {
        let name = self.provider.info().name;
        AgentError::invalid_params(format!("a session with {name} cannot {what}"))
    }

    /// Sends a command to the process and returns its outcome. `None` if there is no process, or if it ended meanwhile.
    async fn command(&self, kind: CommandKind) -> Option<Result<(), AgentError>> {
        let talk = lock(&self.state).live()?;
        let (reply, settled) = oneshot::channel();
        talk.commands.send(Command::WithOutcome(kind, reply)).ok()?;
        settled.await.ok()
    }
}

#[async_trait::async_trait]
impl<P: SessionProvider> AgentSession for CliSession<P> {
    fn provider(&self) -> &str {
        self.0.provider.info().id
    }

    fn id(&self) -> Option<Id> {
        lock(&self.0.state).id()
    }

    fn capabilities(&self) -> &SessionCapabilities {
        self.0.provider.session_capabilities()
    }

    fn send(&self, turn: Turn) -> EventStream {
        let abort = AbortHandle::new(&turn.cancel);
        let stop = abort.clone();
        let inner = self.0.clone();
        let starting = async move { inner.begin_turn(turn, &stop).await };
        EventStream::of_batches(Entries::Starting { start: starting }, abort)
    }

    fn interrupt(&self) {
        if let Some(talk) = lock(&self.0.state).live() {
            // Sending fails if the process is gone. Then there is no turn to interrupt.
            let _ = talk.commands.send(Command::Interrupt);
        }
    }

    async fn steer(&self, text: String) -> Result<(), AgentError> {
        if !self.capabilities().steer {
            return Err(self.0.cannot("take messages during a turn"));
        }
        let none = || Err(AgentError::no_turn());
        self.0
            .command(CommandKind::Steer(text))
            .await
            .unwrap_or_else(none)
    }

    async fn clear(&self) -> Result<(), AgentError> {
        if !self.capabilities().clear {
            return Err(self.0.cannot("start over"));
        }
        // The semaphore is never closed, so this never fails.
        let _permit = self.0.turns.acquire().await;
        let settled = self.0.command(CommandKind::Clear).await;
        if !matches!(settled, Some(Err(_))) {
            let mut state = lock(&self.0.state);
            state.session_id = None;
            state.options.params.session_id = None;
            state.options.params.fork = false;
            if settled.is_none() {
                state.talk = None;
            }
        }
        settled.unwrap_or(Ok(()))
    }

    async fn set_model(&self, model: String) -> Result<(), AgentError> {
        if !self.capabilities().set_model {
            return Err(self.0.cannot("change its model"));
        }
        let settled = self.0.command(CommandKind::Model(model.clone())).await;
        settled.unwrap_or(Ok(()))?;
        lock(&self.0.state).options.params.model = Some(model);
        Ok(())
    }

    async fn set_permission(&self, mode: PermissionMode) -> Result<(), AgentError> {
        if !self.capabilities().set_permission {
            return Err(self.0.cannot("change its permission mode"));
        }
        let settled = self.0.command(CommandKind::Permission(mode)).await;
        settled.unwrap_or(Ok(()))?;
        let mut state = lock(&self.0.state);
        if let Some(talk) = &state.talk {
            talk.known.set_permission_mode(None);
        }
        state.options.params.permission = mode;
        Ok(())
    }

    fn unasked(&self) -> Option<EventStream> {
        lock(&self.0.state).talk.as_ref()?.known.take_unasked()
    }

    async fn unasked_ready(&self) {
        self.0.has_unasked.notified().await;
    }

    async fn close(&self) {
        let talk = {
            let mut state = lock(&self.0.state);
            state.closed = true;
            state.talk.clone()
        };
        if let Some(talk) = talk {
            // Sending fails if the process is gone.
            let _ = talk.commands.send(Command::Close);
            talk.commands.closed().await;
        }
    }

    async fn close_if_idle(&self) {
        // Only its task knows whether a turn is on its way to it.
        if let Some(talk) = lock(&self.0.state).live() {
            // Sending fails if the process is gone.
            let _ = talk.commands.send(Command::CloseIfIdle);
        }
    }

    fn is_live(&self) -> bool {
        (lock(&self.0.state).live()).is_some_and(|talk| !talk.known.is_in_turn())
    }
}
