//! Usage of each turn. The CLI reports a thread's total after each request to the model.

use std::collections::HashMap;

use teamster_core::Usage;

use crate::totals::{Baseline, Totals};
use crate::wire::Object;

/// Usage figures of a session.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// Total of the session, if known.
    total: Option<Totals>,
    /// Usage of the main agent in the turn.
    turn: Option<Totals>,
    in_turn: bool,
    /// Totals of the other threads.
    agents: HashMap<String, Totals>,
    /// Usage of the other threads in the turn.
    by_agents: Option<Totals>,
    /// Usage of the other threads since the end of the turn.
    since: Option<Totals>,
}

impl Figures {
    /// Creates the figures of a new session, or of one that continues from a total.
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

    /// Begins a turn. Usage of agents that continued after an interrupt counts for this turn.
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

    /// Handles a report about the session's thread, with `of_turn` if it is about the current turn. Returns whether
    /// the turn's usage has increased.
    pub(super) fn reported(&mut self, report: &Object<'_>, of_turn: bool) -> Option<bool> {
        let total = Totals::of(&report.object("total")?);
        let last = report.object("last").map(|last| Totals::of(&last));
        // The total is zero after the context was too small: the CLI replaces the figures with its own estimate.
        if total.is_zero() {
            return Some(false);
        }
        let mut has_grown = false;
        if of_turn {
            // The figures of the last request are unreliable: after a truncated answer the CLI repeats the previous
            // ones. They are used only if the total is unknown or has restarted.
            let before = self.total.as_ref();
            let used = before.and_then(|before| total.less(before)).or(last);
            if let Some(used) = used.filter(|used| !used.is_zero()) {
                self.turn = Some(plus(self.turn, used));
                has_grown = true;
            }
        } else if self.turn.is_some() {
            // A late report, about an earlier turn.
            return Some(false);
        }
        self.total = Some(total);
        Some(has_grown)
    }

    /// Handles a report about an agent's thread. Returns whether the usage of the current turn has increased.
    pub(super) fn reported_by_agent(&mut self, thread: &str, report: &Object<'_>) -> Option<bool> {
        let total = Totals::of(&report.object("total")?);
        if total.is_zero() {
            return Some(false);
        }
        let last = || report.object("last").map(|last| Totals::of(&last));
        // The total of an agent of an earlier process includes earlier usage.
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

    /// Returns the usage of the turn so far, including agents.
    pub(super) fn of_turn(&self) -> Option<Usage> {
        let all = match self.by_agents {
            Some(used) => Some(plus(self.turn, used)),
            None => self.turn,
        };
        all.map(Usage::from)
    }

    /// Returns the figures from which the session continues.
    pub(super) fn total(&self) -> Baseline {
        self.total.map_or(Baseline::Unknown, Baseline::Known)
    }

    /// Returns the usage of the main agent in the session so far.
    pub(super) fn of_session(&self) -> Option<Usage> {
        let total = self.total.filter(|total| !total.is_zero());
        total.map(Usage::from)
    }
}

fn plus(so_far: Option<Totals>, used: Totals) -> Totals {
    so_far.map_or(used, |so_far| so_far.plus(&used))
}
