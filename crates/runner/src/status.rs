//! Status of a live run or session, derived from its log.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};
use teamster_core::sync::lock;
use teamster_core::time::epoch_ms;
use teamster_core::{AgentEvent, CostSource, Id, PermissionMode, RunResult, Usage, UsageLedger};
use teamster_orchestrator::{RunEvent, RunLogEntry};

use crate::RunFolder;

/// Status of a live run or session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LiveStatus {
    /// State of the run or session.
    pub state: LiveState,
    /// Start of the state, in milliseconds since the Unix epoch.
    pub since: u64,
    /// Number of ended turns of a session. 0 for a run.
    pub turns: u64,
    /// The turn in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnStatus>,
    /// Provider in use, which may be a fallback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Model in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Id of the provider's session, to resume it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    /// Usage so far, as reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Cost so far in USD.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The source of the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_source: Option<CostSource>,
    /// Permission mode of a session, if it was changed after the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<String>"))]
    pub permission: Option<PermissionMode>,
    /// Process id of a runner that does not answer, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
}

impl LiveStatus {
    /// Creates the status of a run whose runner, the process `pid`, does not answer.
    pub fn not_answering(run: &RunFolder, pid: Option<u32>) -> Self {
        let since = run.changed_at().unwrap_or(run.info().accepted_at);
        let mut status = Self::new(LiveState::NotAnswering, since);
        status.pid = pid;
        status
    }

    /// Creates a status with only a state.
    pub fn new(state: LiveState, since: u64) -> Self {
        Self {
            state,
            since,
            turns: 0,
            turn: None,
            provider: None,
            model: None,
            session_id: None,
            usage: None,
            cost_usd: None,
            cost_source: None,
            permission: None,
            pid: None,
        }
    }
}

/// Status of a live run or session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LiveState {
    /// The session waits for a prompt.
    Idle,
    /// The agent is working.
    Running,
    /// The agent waits for the answer to a request.
    Waiting,
    /// The run or session is being stopped.
    Ending,
    /// The runner does not answer: it is stopped (`SIGSTOP`), hangs, or has lost its socket.
    NotAnswering,
    /// Value of a later version.
    #[serde(other)]
    Other,
}

/// Turn in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TurnStatus {
    /// Id of the turn in the log and in the history.
    pub run_id: String,
    /// Name of the sender, such as `terminal pts/3`. `None` for a turn that the agent began by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Start time, in milliseconds since the Unix epoch.
    pub began_at: u64,
}

impl TurnStatus {
    /// Creates a turn that began at this time, in milliseconds since the Unix epoch.
    pub fn new(run_id: impl Into<String>, began_at: u64) -> Self {
        Self {
            run_id: run_id.into(),
            from: None,
            began_at,
        }
    }
}

/// Sums over turns.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) turns: u64,
    pub(crate) used: UsageLedger,
    pub(crate) duration_ms: u64,
    /// Number of answers of the model.
    pub(crate) answers: u32,
    /// True if tokens were used of a model without a price, by an agent that reports no cost.
    pub(crate) unpriced: bool,
}

impl Totals {
    /// Adds the result of a turn.
    pub(crate) fn add(&mut self, result: &RunResult) {
        self.turns += 1;
        let mut used = UsageLedger::default();
        used.result(result);
        self.used = self.used.plus(used);
        self.duration_ms = self.duration_ms.saturating_add(result.duration_ms);
        self.answers = self.answers.saturating_add(result.num_turns.unwrap_or(1));
    }

    /// Writes the sums to the result of the session.
    pub(crate) fn write_to(self, result: &mut RunResult) {
        result.usage = self.used.usage;
        result.total_cost_usd = self.used.cost_usd;
        result.cost_source = self.used.cost_source();
        result.num_turns = u32::try_from(self.turns).ok();
    }
}

/// Status of a run, updated by the writer of its log. Clones share their state.
#[derive(Debug, Clone, Default)]
pub(crate) struct StatusBoard(Arc<Mutex<Board>>);

#[derive(Debug, Default)]
struct Board {
    is_idle: bool,
    is_ending: bool,
    since: u64,
    turn: Option<TurnStatus>,
    totals: Totals,
    provider: Option<String>,
    model: Option<String>,
    session_id: Option<Id>,
    permission: Option<PermissionMode>,
    /// Usage of the turn in progress.
    used: UsageLedger,
}

impl StatusBoard {
    /// Returns the status. `is_waiting`: a request waits for an answer.
    pub(crate) fn status(&self, is_waiting: bool) -> LiveStatus {
        let board = self.board();
        let state = match () {
            () if board.is_ending => LiveState::Ending,
            () if is_waiting => LiveState::Waiting,
            () if board.is_idle => LiveState::Idle,
            () => LiveState::Running,
        };
        let used = board.totals.used.plus(board.used);
        LiveStatus {
            state,
            since: board.since,
            turns: board.totals.turns,
            turn: board.turn.clone(),
            provider: board.provider.clone(),
            model: board.model.clone(),
            session_id: board.session_id.clone(),
            usage: used.usage,
            cost_usd: used.cost_usd,
            cost_source: used.cost_source(),
            permission: board.permission,
            pid: None,
        }
    }

    /// Updates the status from a log entry.
    pub(crate) fn see(&self, entry: &RunLogEntry) {
        let mut board = self.board();
        if board.since == 0 {
            board.since = epoch_ms();
        }
        match entry {
            RunLogEntry::Agent(entry) => match &entry.event {
                AgentEvent::Session(session) => {
                    board.session_id = Some(session.session_id.clone());
                    board.model = session.model.clone().or(board.model.take());
                }
                event @ AgentEvent::Usage(_) => board.used.event(event),
                _ => {}
            },
            RunLogEntry::Run(entry) => match &entry.event {
                RunEvent::Start {
                    provider, model, ..
                } => {
                    board.provider = Some(provider.clone());
                    board.model = model.clone().or(board.model.take());
                }
                RunEvent::Fallback { next, .. } => {
                    board.provider = Some(next.provider.clone());
                    board.model.clone_from(&next.model);
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// Reports that the session waits for a prompt.
    pub(crate) fn idle(&self) {
        let mut board = self.board();
        board.is_idle = true;
        board.turn = None;
        board.since = epoch_ms();
    }

    /// Reports the start of a session's turn.
    pub(crate) fn turn(&self, run_id: &str, from: Option<String>) {
        let mut board = self.board();
        let now = epoch_ms();
        board.is_idle = false;
        board.since = now;
        board.turn = Some(TurnStatus {
            run_id: run_id.to_owned(),
            from,
            began_at: now,
        });
    }

    /// Reports the end of a session's turn, with the sums over all turns.
    pub(crate) fn turn_ended(&self, totals: Totals) {
        let mut board = self.board();
        board.totals = totals;
        board.used = UsageLedger::default();
    }

    pub(crate) fn totals(&self) -> Totals {
        self.board().totals
    }

    /// Reports the permission mode from the next turn on. Returns the previous one.
    pub(crate) fn permission(&self, mode: Option<PermissionMode>) -> Option<PermissionMode> {
        mem::replace(&mut self.board().permission, mode)
    }

    /// Reports that the run or session is being stopped.
    pub(crate) fn ending(&self) {
        let mut board = self.board();
        if !board.is_ending {
            board.is_ending = true;
            board.since = epoch_ms();
        }
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        lock(&self.0)
    }
}
