//! Usage of each turn. The CLI reports the total of a thread after each request to the model.

use std::collections::HashMap;

use teamster_core::Usage;

use crate::totals::{Baseline, Totals};
use crate::wire::Object;

/// The figures of a session.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// The total of the session, if it is known.
    total: Option<Totals>,
    /// Usage of the main agent in the turn.
    turn: Option<Totals>,
    in_turn: bool,
    /// The total of each other thread.
    agents: HashMap<String, Totals>,
    /// Their usage in the turn.
    by_agents: Option<Totals>,
    /// Their usage since it ended.
    since: Option<Totals>,
}

impl Figures {
    /// Those of a session that begins, or that continues from a total.
    pub(super) fn from(baseline: &Baseline) -> Self {
        let total = match baseline {
            Baseline::Known(total) => Some(*total),
            Baseline::Unknown => None,
        };
        Self {
            total,
            ..Self::default()
        }
    }

    /// Usage of agents that an interrupt did not end at once counts for the next turn.
    pub(super) fn turn_begins(&mut self) {
        self.turn = None;
        if !self.in_turn {
            self.in_turn = true;
            self.by_agents = self.since.take();
        }
    }

    pub(super) fn turn_ends(&mut self) {
        self.in_turn = false;
    }

    /// Takes a report on the thread of the session; `of_turn` if it is about the turn that is being played.
    /// Returns whether that has used more.
    pub(super) fn reported(&mut self, report: &Object<'_>, of_turn: bool) -> Option<bool> {
        let total = Totals::of(&report.object("total")?);
        let last = report.object("last").map(|last| Totals::of(&last));
        // So it is where the context was too small: the CLI sets its own estimate in their place.
        if total.is_zero() {
            return Some(false);
        }
        let mut has_grown = false;
        if of_turn {
            // The last request's figures are not always there: after an answer that was cut the CLI
            // repeats the previous ones. But a total that is not known, or has begun again,
            // leaves nothing else.
            let before = self.total.as_ref();
            let used = before.and_then(|before| total.less(before)).or(last);
            if let Some(used) = used.filter(|used| !used.is_zero()) {
                self.turn = Some(plus(self.turn, used));
                has_grown = true;
            }
        } else if self.turn.is_some() {
            // A late one, of before this turn.
            return Some(false);
        }
        self.total = Some(total);
        Some(has_grown)
    }

    /// Takes a report on the thread of an agent. Returns whether the turn that is being played has used more.
    pub(super) fn reported_by_agent(&mut self, thread: &str, report: &Object<'_>) -> Option<bool> {
        let total = Totals::of(&report.object("total")?);
        if total.is_zero() {
            return Some(false);
        }
        let last = || report.object("last").map(|last| Totals::of(&last));
        // Of one that comes from an earlier process the total is more than what it has used since.
        let used = match self.agents.insert(thread.to_owned(), total) {
            Some(before) => total.less(&before).or_else(last),
            None => last().or(Some(total)),
        };
        let Some(used) = used.filter(|used| !used.is_zero()) else {
            return Some(false);
        };
        let so_far = if self.in_turn {
            &mut self.by_agents
        } else {
            &mut self.since
        };
        *so_far = Some(plus(*so_far, used));
        Some(self.in_turn)
    }

    /// Usage of the turn so far, agents included.
    pub(super) fn of_turn(&self) -> Option<Usage> {
        let all = match self.by_agents {
            Some(used) => Some(plus(self.turn, used)),
            None => self.turn,
        };
        all.map(Usage::from)
    }

    /// The figures from which the session continues.
    pub(super) fn total(&self) -> Baseline {
        self.total.map_or(Baseline::Unknown, Baseline::Known)
    }

    /// Usage of the main agent in the session so far.
    pub(super) fn of_session(&self) -> Option<Usage> {
        let total = self.total.filter(|total| !total.is_zero());
        total.map(Usage::from)
    }
}

fn plus(so_far: Option<Totals>, used: Totals) -> Totals {
    so_far.map_or(used, |so_far| so_far.plus(&used))
}
