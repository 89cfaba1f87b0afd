//! Status of a live run or session, derived from its log.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard};

use teamster_api::{LiveState, LiveStatus, RunEvent, RunLogEntry, TurnStatus};
use teamster_core::sync::lock;
use teamster_core::time::epoch_ms;
use teamster_core::{AgentEvent, Id, PermissionMode, RunResult, UsageLedger};

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
    pub(crate) fn add(&mut self, result: &RunResult) {
        self.turns += 1;
        let mut used = UsageLedger::default();
        used.result(result);
        self.used = self.used.plus(used);
        self.duration_ms = self.duration_ms.saturating_add(result.duration_ms);
        self.answers = self.answers.saturating_add(result.num_turns.unwrap_or(1));
    }

    pub(crate) fn write_to(self, result: &mut RunResult) {
        result.usage = self.used.usage;
        result.total_cost_usd = self.used.cost_usd;
        result.cost_source = self.used.cost_source();
        result.num_turns = u32::try_from(self.turns).ok();
    }
}

/// Status of a run, updated by the writer of its log. Clones share their state.
#[derive(Debug, Clone)]
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
    /// Creates the status of a run that starts now.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Board {
            since: epoch_ms(),
            ..Board::default()
        })))
    }

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
        let mut status = LiveStatus::new(state, board.since);
        status.turns = board.totals.turns;
        status.turn.clone_from(&board.turn);
        status.provider.clone_from(&board.provider);
        status.model.clone_from(&board.model);
        status.session_id.clone_from(&board.session_id);
        status.usage = used.usage;
        status.cost_usd = used.cost_usd;
        status.cost_source = used.cost_source();
        status.permission = board.permission;
        status
    }

    /// Updates the status from a log entry.
    pub(crate) fn see(&self, entry: &RunLogEntry) {
        let mut board = self.board();
        match entry {
            RunLogEntry::Agent(entry) => match &entry.event {
                AgentEvent::SessionStarted(session) => {
                    board.session_id = Some(session.session_id.clone());
                    board.model = session.model.clone().or(board.model.take());
                }
                AgentEvent::PermissionMode(change) => board.permission = Some(change.mode),
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
        let mut turn = TurnStatus::new(run_id, now);
        turn.from = from;
        board.turn = Some(turn);
    }

    /// Reports the end of a session's turn, with the sums over all turns.
    pub(crate) fn turn_ended(&self, totals: Totals) {
        let mut board = self.board();
        board.totals = totals;
        board.used = UsageLedger::default();
    }

    /// Returns the agent's session, as the log has it.
    pub(crate) fn session_id(&self) -> Option<Id> {
        self.board().session_id.clone()
    }

    /// Reports that the next turn begins another session of the agent.
    pub(crate) fn cleared(&self) {
        self.board().session_id = None;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_before_the_first_entry_is_running_since_its_creation() {
        let before = epoch_ms();
        let status = StatusBoard::new().status(false);
        assert_eq!(status.state, LiveState::Running);
        assert!((before..=epoch_ms()).contains(&status.since), "{status:?}");
    }
}
