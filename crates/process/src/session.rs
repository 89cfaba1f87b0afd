//! Sessions: a process that is kept for many turns.

mod asking;
pub(crate) mod commands;
mod reading;
mod replies;
mod shared;

use std::sync::{Arc, Mutex};

use teamster_core::provider::{RunAssembler, Secrets, SessionAssembler, SessionProtocol};
use teamster_core::sync::lock;
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, AgentSession, ErrorCode, ErrorKind, EventStream, Id,
    NoticeLevel, NoticeSource, PermissionMode, PermissionPolicy, SessionCapabilities,
    SessionFuture, SessionOptions, SessionProvider, SessionRuntime, Turn,
};
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};

use crate::config::RuntimeConfig;
use crate::guard::Guarded;
use crate::identity::{Presence, ProcessIdentity};
use crate::launch::make_absolute;
use crate::queue::{Consumer, queue};
use crate::runtime::{CliRuntime, Entries};
use crate::spill::Spill;
use crate::start::{Refused, start};
use reading::{SessionReading, Setting};
use shared::{Command, Known, NewTurn, Wish};

/// How often a turn is sent to a new process because the old one ended just then.
const TRIES: usize = 3;

impl<P: SessionProvider> SessionRuntime for CliRuntime<P> {
    fn session_capabilities(&self) -> &SessionCapabilities {
        self.provider().session_capabilities()
    }

    fn open(&self, mut options: SessionOptions) -> Result<Box<dyn AgentSession>, AgentError> {
        make_absolute(&mut options.params);
        options.params.prompt.clear();
        if !options.params.images.is_empty() {
            return Err(AgentError::refused(
                "images",
                "those of a session go with its turns",
            ));
        }
        // A replay makes the same denials. Other answers it does not know.
        let is_replayed = self.provider().only_sessions()
            && matches!(options.permissions, PermissionPolicy::Deny);
        if self.config().record_to.is_some() && options.one_turn && !is_replayed {
            let problem = "a run in which permission requests are answered cannot be recorded";
            return Err(AgentError::refused("record_to", problem));
        }
        self.provider().launch_session(&options)?;
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
}

/// A session with a CLI.
struct CliSession<P>(Arc<Inner<P>>);

struct Inner<P> {
    provider: Arc<P>,
    config: Arc<RuntimeConfig>,
    /// Held by the turn in progress, or while the process starts.
    turns: Arc<Semaphore>,
    /// Notified of turns that the CLI began by itself, whichever process it was.
    has_unasked: Arc<Notify>,
    state: Mutex<State>,
}

struct State {
    options: SessionOptions,
    /// From the last process or the caller.
    session_id: Option<Id>,
    talk: Option<Talk>,
    /// There is no process because none was wanted any more.
    closed: bool,
    /// The number of processes that were started.
    processes: u32,
}

/// The way to one process.
#[derive(Clone)]
struct Talk {
    commands: mpsc::UnboundedSender<Command>,
    known: Arc<Known>,
    /// The CLI itself.
    process: Option<ProcessIdentity>,
}

impl State {
    fn id(&self) -> Option<Id> {
        let known = self.talk.as_ref().and_then(|talk| talk.known.session_id());
        known.or_else(|| self.session_id.clone())
    }

    /// The way to the process, if there is one that takes orders.
    fn live(&self) -> Option<Talk> {
        (self.talk.clone()).filter(|talk| {
            let known = &talk.known;
            // One that was killed is gone before its task has noticed.
            let has_ended = || (talk.process).is_some_and(|it| it.presence() == Presence::Ended);
            !(known.is_gone() || known.is_lost() || talk.commands.is_closed() || has_ended())
        })
    }
}

impl<P: SessionProvider> Inner<P> {
    /// Begins the turn, in a new process if need be.
    async fn play(&self, turn: &Turn, abort: &AbortHandle) -> Result<Consumer, Refused> {
        if !turn.images.is_empty() && !self.provider.session_capabilities().images {
            return Err(self.cannot("take images").into());
        }
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
            let talk = self.talk(turn, abort).await?;
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
                // It fails if the process has ended before.
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

    /// The settings of a process of the session, by its number from 1: it is recorded in a folder of its own.
    fn config_of_process(&self, number: u32, is_only: bool) -> Arc<RuntimeConfig> {
        match &self.config.record_to {
            Some(dir) if !is_only => {
                let dir = dir.join(number.to_string());
                Arc::new((*self.config).clone().record_to(dir))
            }
            _ => Arc::clone(&self.config),
        }
    }

    /// The way to the process, which is started if there is none. Only with the permit.
    async fn talk(&self, turn: &Turn, abort: &AbortHandle) -> Result<Talk, Refused> {
        let before = {
            let state = lock(&self.state);
            if let Some(talk) = state.live() {
                return Ok(talk);
            }
            state.talk.clone()
        };
        if let Some(before) = before {
            // Two processes would write to one session at the same time. If it is gone, this fails.
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
            let unwanted = state.closed;
            let again = (state.talk.take()).is_some_and(|talk| !unwanted && !talk.known.was_idle());
            state.closed = false;
            let mut options = state.options.clone();
            if state.session_id.as_deref() != options.params.session_id.as_deref() {
                // An earlier process has begun it, or made the fork.
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
        let mut assembler = SessionAssembler::new(Box::new(protocol), params.include_native)
            .hide(Secrets::of(&params.mcp_servers))
            .resumes(params.session_id.is_some() && !params.slash_commands);
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
        // Until it has played a turn, that is what is known.
        known.set_cost(
            options.params.session_id.as_deref().map(Id::from),
            options.session_cost_usd,
        );
        let permissions = options.permissions.clone();
        if options.one_turn {
            // For the recording.
            options.params.prompt.clone_from(&turn.prompt);
        }
        let params = &options.params;
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
            None,
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

    /// Has the process carry out an order. `None` if there is none that could, or if it ended meanwhile.
    async fn order(&self, wish: Wish) -> Option<Result<(), AgentError>> {
        let talk = lock(&self.state).live()?;
        let (reply, settled) = oneshot::channel();
        talk.commands.send(Command::Order(wish, reply)).ok()?;
        settled.await.ok()
    }
}

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
        let order = abort.clone();
        let inner = self.0.clone();
        let play = async move { inner.play(&turn, &order).await };
        EventStream::of_batches(Entries::Starting(play), abort)
    }

    fn interrupt(&self) {
        if let Some(talk) = lock(&self.0.state).live() {
            // A process that is gone plays nothing.
            let _ = talk.commands.send(Command::Interrupt);
        }
    }

    fn steer(&self, text: String) -> SessionFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            if !self.capabilities().steer {
                return Err(self.0.cannot("take messages during a turn"));
            }
            let none = || Err(AgentError::no_turn());
            self.0.order(Wish::Steer(text)).await.unwrap_or_else(none)
        })
    }

    fn clear(&self) -> SessionFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            if !self.capabilities().clear {
                return Err(self.0.cannot("start over"));
            }
            // Never closed, so this never fails.
            let _permit = self.0.turns.acquire().await;
            let settled = self.0.order(Wish::Clear).await;
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
        })
    }

    fn set_model(&self, model: String) -> SessionFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            if !self.capabilities().set_model {
                return Err(self.0.cannot("change its model"));
            }
            let settled = self.0.order(Wish::Model(model.clone())).await;
            settled.unwrap_or(Ok(()))?;
            lock(&self.0.state).options.params.model = Some(model);
            Ok(())
        })
    }

    fn set_permission(&self, mode: PermissionMode) -> SessionFuture<'_, Result<(), AgentError>> {
        Box::pin(async move {
            if !self.capabilities().set_permission {
                return Err(self.0.cannot("change its permission mode"));
            }
            let settled = self.0.order(Wish::Permission(mode)).await;
            settled.unwrap_or(Ok(()))?;
            lock(&self.0.state).options.params.permission = mode;
            Ok(())
        })
    }

    fn unasked(&self) -> Option<EventStream> {
        lock(&self.0.state).talk.as_ref()?.known.take_unasked()
    }

    fn unasked_ready(&self) -> SessionFuture<'_, ()> {
        Box::pin(self.0.has_unasked.notified())
    }

    fn close(&self) -> SessionFuture<'_, ()> {
        Box::pin(async move {
            let talk = {
                let mut state = lock(&self.0.state);
                state.closed = true;
                state.talk.clone()
            };
            if let Some(talk) = talk {
                // If it fails, the process is gone.
                let _ = talk.commands.send(Command::Close);
                talk.commands.closed().await;
            }
        })
    }

    fn close_if_idle(&self) -> SessionFuture<'_, ()> {
        Box::pin(async move {
            // Its task alone knows whether a turn is on its way to it.
            if let Some(talk) = lock(&self.0.state).live() {
                // If it fails, the process is gone.
                let _ = talk.commands.send(Command::CloseIfIdle);
            }
        })
    }

    fn is_live(&self) -> bool {
        (lock(&self.0.state).live()).is_some_and(|talk| !talk.known.is_playing())
    }
}
