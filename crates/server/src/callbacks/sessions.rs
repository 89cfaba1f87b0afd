//! Sessions at rest: those whose turn has ended and that wait for a prompt.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use teamster_api::{LiveState, LiveStatus, RunHandle, RunKind, RunService, ViewState};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Runs;

/// The time that a turn must have taken for its end to be worth a message. The person who began a shorter one still looks
/// at it.
const LONG_TURN: Duration = Duration::from_secs(10);
/// The time for which the status of a session is awaited.
const LIMIT: Duration = Duration::from_secs(2);

/// Turns of the live sessions.
#[derive(Debug, Default)]
pub(super) struct Sessions(HashMap<String, Turns>);

/// Turns of a session.
#[derive(Debug, Default)]
struct Turns {
    /// The newest entry of the log when the session was at rest.
    seq: Option<u64>,
    /// The start of the turn in progress, in milliseconds since the Unix epoch.
    began_at_ms: Option<u64>,
    /// The number of turns, while the end of the last one is worth a message.
    rested: Option<u64>,
}

impl Sessions {
    /// Looks at the sessions among these runs that were working or have new entries.
    pub(super) async fn look(&mut self, service: &Arc<dyn RunService>, runs: &Runs) {
        let is_live = |id: &str| runs.get(id).is_some_and(|it| it.state != ViewState::Ended);
        self.0.retain(|id, _| is_live(id));
        let mut asked = JoinSet::new();
        for (id, run) in runs {
            if run.info.kind != RunKind::Session || run.state == ViewState::Ended {
                continue;
            }
            if self.0.entry(id.clone()).or_default().seq == Some(run.seq) {
                continue;
            }
            let handle = RunHandle::new(service.clone(), id.as_str());
            let (id, seq) = (id.clone(), run.seq);
            asked.spawn(async move { (id, seq, timeout(LIMIT, handle.status()).await) });
        }
        // Of all together: deliveries wait for them. One that does not answer is asked again with the next change.
        while let Some(answer) = asked.join_next().await {
            if let Ok((id, seq, Ok(Ok(status)))) = answer
                && let Some(turns) = self.0.get_mut(&id)
            {
                turns.see(&status, seq);
            }
        }
    }

    /// Returns the number of turns of a session at rest whose last turn took long.
    pub(super) fn rested(&self, id: &str) -> Option<u64> {
        self.0.get(id)?.rested
    }
}

impl Turns {
    fn see(&mut self, status: &LiveStatus, seq: u64) {
        if let Some(turn) = &status.turn {
            self.began_at_ms = Some(turn.began_at_ms);
            self.rested = None;
            return;
        }
        if status.state != LiveState::Idle {
            return;
        }
        self.seq = Some(seq);
        // A turn that was not seen ended before this server watched, or was short.
        if let Some(began_at_ms) = self.began_at_ms.take() {
            let took = Duration::from_millis(status.since.saturating_sub(began_at_ms));
            self.rested = (took >= LONG_TURN).then_some(status.turns);
        }
    }
}

#[cfg(test)]
mod tests {
    use teamster_api::TurnStatus;

    use super::*;

    fn working(since: u64) -> LiveStatus {
        let mut status = LiveStatus::new(LiveState::Running, since);
        status.turn = Some(TurnStatus::new("s.1", since));
        status
    }

    fn idle(since: u64, count: u64) -> LiveStatus {
        let mut status = LiveStatus::new(LiveState::Idle, since);
        status.turns = count;
        status
    }

    #[test]
    fn the_end_of_a_long_turn_counts_until_the_next_turn() {
        let mut turns = Turns::default();
        turns.see(&working(1_000), 3);
        assert_eq!((turns.rested, turns.seq), (None, None));
        turns.see(&idle(11_000, 1), 9);
        assert_eq!((turns.rested, turns.seq), (Some(1), Some(9)));
        turns.see(&working(50_000), 10);
        assert_eq!(turns.rested, None);
    }

    #[test]
    fn a_short_turn_and_one_that_nobody_watched_do_not_count() {
        let mut turns = Turns::default();
        turns.see(&idle(99_000, 4), 9);
        assert_eq!(turns.rested, None);
        turns.see(&working(100_000), 10);
        turns.see(&idle(109_999, 5), 20);
        assert_eq!((turns.rested, turns.seq), (None, Some(20)));
    }

    #[test]
    fn a_request_for_permission_is_no_rest() {
        let mut turns = Turns::default();
        let mut waiting = working(1_000);
        waiting.state = LiveState::Waiting;
        turns.see(&waiting, 3);
        turns.see(&LiveStatus::new(LiveState::Ending, 90_000), 5);
        assert_eq!(turns.rested, None);
    }
}
