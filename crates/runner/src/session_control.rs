//! Control of a live session by its clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use teamster_api::{Command, RefusalCode, Reply, TraceContext};
use teamster_core::sync::lock;
use teamster_core::time::epoch_ms;
use teamster_core::{
    AbortHandle, AgentError, AgentEvent, AgentSession, BudgetKind, CancellationToken, EventStream,
    Image, NoticeLevel, NoticeSource, PermissionMode, Stopping,
};
use teamster_orchestrator::Budget;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::log_task::Note;
use crate::server::refused;
use crate::session_runs::spent;
use crate::status::StatusBoard;

/// Time for which an interrupt between two turns ends a turn that the agent begins by itself: it may have begun, and the CLI
/// has printed nothing of it.
const ABOUT_TO_BEGIN: Duration = Duration::from_secs(5);

/// Prompt for the session's next turn.
pub(crate) struct Prompt {
    pub(crate) text: String,
    pub(crate) images: Vec<Image>,
    pub(crate) from: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) trace: Option<TraceContext>,
    /// Receives the turn's id and the number of the entry with the prompt.
    pub(crate) accepted: oneshot::Sender<(String, u64)>,
}

/// Handle of a live session for its clients. Clones control the same session.
#[derive(Clone)]
pub struct SessionControl(Arc<Shared>);

struct Shared {
    sessions: Vec<Arc<dyn AgentSession>>,
    state: Mutex<State>,
    status: StatusBoard,
    prompts: mpsc::UnboundedSender<Prompt>,
    notes: mpsc::UnboundedSender<Note>,
    end: CancellationToken,
    budget: Budget,
    /// Turns that were begun with a key. Locked until the turn has begun.
    keyed: tokio::sync::Mutex<HashMap<String, KeyedTurn>>,
}

/// Turn that was begun with a key.
struct KeyedTurn {
    prompt: String,
    run_id: String,
    seq: u64,
}

#[derive(Default)]
struct State {
    /// Index of the session in use.
    current: usize,
    turn: Option<Turn>,
    /// Time of the last interrupt between two turns.
    interrupted_at: Option<Instant>,
    /// A model that was set since the last turn began.
    model: Option<String>,
}

/// Turn in progress or about to begin.
struct Turn {
    from: Option<String>,
    began_at: u64,
    /// Handle that stops the turn, once it has begun.
    abort: Option<AbortHandle>,
    /// The turn was interrupted. `true`: by force.
    interrupted: Option<bool>,
}

impl SessionControl {
    pub(crate) fn new(
        sessions: Vec<Arc<dyn AgentSession>>,
        status: StatusBoard,
        budget: Budget,
    ) -> (
        Self,
        mpsc::UnboundedReceiver<Prompt>,
        mpsc::UnboundedReceiver<Note>,
    ) {
        let (prompts, prompt_receiver) = mpsc::unbounded_channel();
        let (notes, note_receiver) = mpsc::unbounded_channel();
        let control = Self(Arc::new(Shared {
            sessions,
            state: Mutex::default(),
            status,
            prompts,
            notes,
            end: CancellationToken::new(),
            budget,
            keyed: tokio::sync::Mutex::default(),
        }));
        (control, prompt_receiver, note_receiver)
    }

    /// Ends the session and the turn in progress.
    pub fn end(&self, stopping: Stopping) {
        self.0.status.ending();
        self.0.end.cancel();
        self.interrupt(stopping);
    }

    pub(crate) async fn ended(&self) {
        self.0.end.cancelled().await;
    }

    pub(crate) fn is_ending(&self) -> bool {
        self.0.end.is_cancelled()
    }

    pub(crate) fn set_current(&self, current: usize) {
        self.state().current = current;
    }

    /// Returns the model that was set since the last turn began.
    pub(crate) fn take_model(&self) -> Option<String> {
        self.state().model.take()
    }

    /// Returns a turn that the CLI began by itself, unless a prompt is pending.
    pub(crate) fn take_unasked(&self, session: &dyn AgentSession) -> Option<EventStream> {
        let mut state = self.state();
        if state.turn.is_some() {
            return None;
        }
        let begun = session.unasked()?;
        let mut turn = Turn::new(None);
        let interrupted_at = state.interrupted_at.take();
        if interrupted_at.is_some_and(|at| at.elapsed() < ABOUT_TO_BEGIN) {
            turn.interrupted = Some(false);
        }
        state.turn = Some(turn);
        Some(begun)
    }

    /// Reports the start of a turn, with the handle that stops it.
    pub(crate) fn turn_began(&self, abort: AbortHandle, from: Option<String>) {
        let mut state = self.state();
        let turn = state.turn.get_or_insert_with(|| Turn::new(from));
        match turn.interrupted {
            Some(true) => abort.kill(),
            Some(false) => abort.abort(),
            None if self.is_ending() => abort.abort(),
            None => {}
        }
        turn.abort = Some(abort);
    }

    pub(crate) fn turn_ended(&self) {
        self.state().turn = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }

    /// Returns the session of the agent in use.
    pub fn session(&self) -> Arc<dyn AgentSession> {
        let current = self.state().current;
        self.0.sessions[current].clone()
    }

    /// Interrupts the turn, or one that the agent is about to begin by itself. Returns whether there was one.
    fn interrupt(&self, stopping: Stopping) -> bool {
        let mut state = self.state();
        let Some(turn) = &mut state.turn else {
            state.interrupted_at = Some(Instant::now());
            return false;
        };
        turn.interrupted = Some(stopping.is_kill() || turn.interrupted == Some(true));
        if let Some(abort) = &turn.abort {
            abort.stop(stopping);
        }
        true
    }

    /// Carries out a client's command: a prompt, an interrupt, or a change of settings.
    pub async fn carry_out(&self, command: Command) -> Reply {
        let reply = self.try_carry_out(command).await;
        reply.unwrap_or_else(|error| refused(RefusalCode::Unsupported, error.message))
    }

    /// Carries out a command as [`carry_out`](Self::carry_out) does, with the agent's own error.
    ///
    /// # Errors
    ///
    /// Fails if the agent refuses to steer, to clear or to change a setting.
    pub async fn try_carry_out(&self, command: Command) -> Result<Reply, AgentError> {
        Ok(match command {
            Command::Send {
                prompt,
                images,
                from,
                key,
                trace,
            } => {
                let (accepted, reply) = oneshot::channel();
                let prompt = Prompt {
                    text: prompt,
                    images,
                    from,
                    key,
                    trace,
                    accepted,
                };
                match prompt.key.clone() {
                    Some(key) => self.send_once(prompt, reply, key).await,
                    None => self.send(prompt, reply).await,
                }
            }
            Command::Steer { text, from } => self.steer(text, from).await?,
            Command::Interrupt { kill } => {
                if self.interrupt(Stopping::kill_if(kill)) {
                    Reply::Done
                } else {
                    no_turn()
                }
            }
            Command::Clear => {
                let notice = "the context is cleared: a new session begins";
                let clear = async {
                    let cleared = self.session().clear().await;
                    cleared.map(|()| self.0.status.cleared())
                };
                self.apply_setting(clear, notice).await?
            }
            Command::SetModel { model } => {
                let notice = format!("model from the next turn on: {model}");
                let set = async {
                    let set = self.session().set_model(model.clone()).await;
                    set.map(|()| self.state().model = Some(model))
                };
                self.apply_setting(set, &notice).await?
            }
            Command::SetPermission { mode } => {
                let notice = format!("permission from the next turn on: {mode}");
                let set = async { self.session().set_permission(mode).await };
                // Who begins a turn meanwhile needs the right to the wider of both modes.
                let is_widest = mode == PermissionMode::Bypass;
                let before = is_widest.then(|| self.0.status.permission(Some(mode)));
                let reply = self.apply_setting(set, &notice).await;
                let is_set = matches!(reply, Ok(Reply::Done));
                match before {
                    None if is_set => _ = self.0.status.permission(Some(mode)),
                    Some(before) if !is_set => _ = self.0.status.permission(before),
                    _ => {}
                }
                reply?
            }
            _ => refused(
                RefusalCode::Unsupported,
                "the runner of this session has another version and does not support this command",
            ),
        })
    }

    /// Begins a turn, unless one was begun with this key.
    async fn send_once(&self, prompt: Prompt, accepted: Acceptance, key: String) -> Reply {
        let mut keyed = self.0.keyed.lock().await;
        if let Some(turn) = keyed.get(&key) {
            return if turn.prompt == prompt.text {
                Reply::Turn {
                    run_id: turn.run_id.clone(),
                    seq: turn.seq,
                    known: true,
                }
            } else {
                refused(
                    RefusalCode::KeyReused,
                    "this key was used with another prompt: use a new key for another turn",
                )
            };
        }
        let text = prompt.text.clone();
        let reply = self.send(prompt, accepted).await;
        if let Reply::Turn { run_id, seq, .. } = &reply {
            let turn = KeyedTurn {
                prompt: text,
                run_id: run_id.clone(),
                seq: *seq,
            };
            keyed.insert(key, turn);
        }
        reply
    }

    async fn send(&self, prompt: Prompt, accepted: Acceptance) -> Reply {
        if prompt.text.trim().is_empty() && prompt.images.is_empty() {
            return refused(RefusalCode::InvalidAnswer, "the prompt is empty");
        }
        {
            let mut state = self.state();
            if self.is_ending() {
                return ending();
            }
            if let Some(turn) = &state.turn {
                return refused(RefusalCode::Busy, turn.busy());
            }
            if let Some(spent) = spent(&self.0.budget, &self.0.status.totals()) {
                let code = match spent.kind {
                    BudgetKind::Time => RefusalCode::OutOfTime,
                    _ => RefusalCode::OverBudget,
                };
                return refused(code, spent.to_string());
            }
            state.interrupted_at = None;
            state.turn = Some(Turn::new(prompt.from.clone()));
        }
        // On an error the session has ended.
        let _ = self.0.prompts.send(prompt);
        match accepted.await {
            Ok((run_id, seq)) => Reply::Turn {
                run_id,
                seq,
                known: false,
            },
            Err(_) => ending(),
        }
    }

    async fn steer(&self, text: String, from: Option<String>) -> Result<Reply, AgentError> {
        if text.trim().is_empty() {
            let why = "the message is empty";
            return Ok(refused(RefusalCode::InvalidAnswer, why));
        }
        if self.state().turn.is_none() {
            return Ok(no_turn());
        }
        self.session().steer(text.clone()).await?;
        // The receiver lives as long as the session.
        let _ = self.0.notes.send(Note::Steer { text, from });
        Ok(Reply::Done)
    }

    async fn apply_setting(
        &self,
        setting: impl Future<Output = Result<(), AgentError>>,
        notice: &str,
    ) -> Result<Reply, AgentError> {
        if self.is_ending() {
            return Ok(ending());
        }
        setting.await?;
        let event = AgentEvent::notice(NoticeLevel::Info, NoticeSource::Runtime, notice);
        // The receiver lives as long as the session.
        let _ = self.0.notes.send(Note::Event(event));
        Ok(Reply::Done)
    }
}

/// Receives the id of the turn and the number of the entry with its prompt.
type Acceptance = oneshot::Receiver<(String, u64)>;

impl Turn {
    fn new(from: Option<String>) -> Self {
        Self {
            from,
            began_at: epoch_ms(),
            abort: None,
            interrupted: None,
        }
    }

    fn busy(&self) -> String {
        let from = match &self.from {
            Some(from) => format!("{from} began a turn"),
            None => "the agent began a turn by itself".to_owned(),
        };
        let seconds = epoch_ms().saturating_sub(self.began_at) / 1000;
        format!("{from} {seconds} s ago: wait for its end, interrupt it, or steer it")
    }
}

fn ending() -> Reply {
    refused(RefusalCode::Ending, "the session is ending")
}

fn no_turn() -> Reply {
    refused(RefusalCode::NoTurn, "no turn is in progress")
}
