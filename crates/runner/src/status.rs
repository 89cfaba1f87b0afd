//! The status of a live run or session, by its log.

use std::sync::{Arc, Mutex, MutexGuard};

use serde::{Deserialize, Serialize};
use teamster_core::sync::lock;
use teamster_core::time::epoch_ms;
use teamster_core::{AgentEvent, CostSource, Id, RunResult, Usage};
use teamster_orchestrator::{RunEvent, RunLogEntry};

/// What a live run or session is doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LiveStatus {
    /// What it is doing.
    pub state: LiveState,
    /// Since when, in milliseconds since the Unix epoch.
    pub since: u64,
    /// The turns of a session that have ended. 0 for a run.
    pub turns: u64,
    /// The turn in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnStatus>,
    /// The provider that works, which may be a fallback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's session, to resume it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    /// What was used so far, as far as it was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What it cost so far in USD, as far as that was reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

impl LiveStatus {
    /// A run or session of which only the state is known.
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
        }
    }
}

/// What a live run or session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LiveState {
    /// A session that waits for a prompt.
    Idle,
    /// The agent works.
    Running,
    /// The agent waits for the answer to a request.
    Waiting,
    /// It is being stopped.
    Ending,
    /// What only a newer version knows.
    #[serde(other)]
    Other,
}

/// A turn in progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TurnStatus {
    /// The turn's id in the log and in the history.
    pub run_id: String,
    /// Who has begun it, such as `terminal pts/3`. Unset for a turn that the agent began by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// When it began, in milliseconds since the Unix epoch.
    pub began_at: u64,
}

impl TurnStatus {
    /// A turn that began at this time, in milliseconds since the Unix epoch.
    pub fn new(run_id: impl Into<String>, began_at: u64) -> Self {
        Self {
            run_id: run_id.into(),
            from: None,
            began_at,
        }
    }
}

/// Figures of turns, summed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) turns: u64,
    pub(crate) usage: Option<Usage>,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) estimated: bool,
    pub(crate) duration_ms: u64,
    /// Answers of the model.
    pub(crate) answers: u32,
}

impl Totals {
    /// A turn has ended so.
    pub(crate) fn add(&mut self, result: &RunResult) {
        self.turns += 1;
        self.usage = sum(self.usage, result.usage);
        self.cost_usd = sum_cost(self.cost_usd, result.total_cost_usd);
        self.estimated |= result.cost_source == Some(CostSource::Estimated);
        self.duration_ms = self.duration_ms.saturating_add(result.duration_ms);
        self.answers = self.answers.saturating_add(result.num_turns.unwrap_or(1));
    }

    /// Writes the sums to the result of the session.
    pub(crate) fn write_to(self, result: &mut RunResult) {
        result.usage = self.usage;
        result.total_cost_usd = self.cost_usd;
        result.cost_source = self.cost_usd.map(|_| {
            if self.estimated {
                CostSource::Estimated
            } else {
                CostSource::Reported
            }
        });
        result.num_turns = u32::try_from(self.turns).ok();
    }
}

fn sum(one: Option<Usage>, other: Option<Usage>) -> Option<Usage> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.plus(other)),
        (one, other) => one.or(other),
    }
}

fn sum_cost(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}

/// The status of a run, kept by what writes its log. Clones are the same.
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
    /// Of the turn in progress.
    usage: Option<Usage>,
    cost_usd: Option<f64>,
}

impl StatusBoard {
    /// The status; with `is_waiting`, a request waits for an answer.
    pub(crate) fn status(&self, is_waiting: bool) -> LiveStatus {
        let board = self.board();
        let state = match () {
            () if board.is_ending => LiveState::Ending,
            () if is_waiting => LiveState::Waiting,
            () if board.is_idle => LiveState::Idle,
            () => LiveState::Running,
        };
        LiveStatus {
            state,
            since: board.since,
            turns: board.totals.turns,
            turn: board.turn.clone(),
            provider: board.provider.clone(),
            model: board.model.clone(),
            session_id: board.session_id.clone(),
            usage: sum(board.totals.usage, board.usage),
            cost_usd: sum_cost(board.totals.cost_usd, board.cost_usd),
        }
    }

    /// Takes note of an entry of the log.
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
                AgentEvent::Usage(report) => {
                    board.usage = Some(report.usage);
                    board.cost_usd = report.cost_usd.or(board.cost_usd);
                }
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

    /// A session waits for a prompt.
    pub(crate) fn idle(&self) {
        let mut board = self.board();
        board.is_idle = true;
        board.turn = None;
        board.since = epoch_ms();
    }

    /// A turn of a session begins.
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

    /// A turn of a session has ended so.
    pub(crate) fn add(&self, result: &RunResult) {
        let mut board = self.board();
        board.totals.add(result);
        board.usage = None;
        board.cost_usd = None;
    }

    pub(crate) fn totals(&self) -> Totals {
        self.board().totals
    }

    /// It is being stopped.
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
