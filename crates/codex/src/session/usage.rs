//! What each turn used. The CLI tells the total of the session after each request to the model.

use teamster_core::Usage;

use crate::decoder::wire::Object;
use crate::decoder::{Baseline, Totals};

/// The figures of a session.
#[derive(Debug, Default)]
pub(super) struct Figures {
    /// The total of the session, if it is known.
    total: Option<Totals>,
    /// What the turn has used.
    turn: Option<Totals>,
}

impl Figures {
    /// Those of a session that begins, or goes on from a total.
    pub(super) fn from(baseline: &Baseline) -> Self {
        let total = match baseline {
            Baseline::Known(total) => Some(*total),
            Baseline::Unknown => None,
        };
        Self { total, turn: None }
    }

    pub(super) fn turn_begins(&mut self) {
        self.turn = None;
    }

    /// Takes a report; `of_turn` if it is about the turn that is being played.
    pub(super) fn reported(&mut self, report: &Object<'_>, of_turn: bool) -> Option<()> {
        let total = Totals::of(&report.object("total")?);
        let last = report.object("last").map(|last| Totals::of(&last));
        // So it is where the context was too small: the CLI sets its own estimate in their place.
        if total.is_zero() {
            return Some(());
        }
        if of_turn {
            // The last request's figures are not always there: after an answer that was cut the CLI
            // repeats those of the one before. But a total that is not known, or has begun again,
            // leaves nothing else.
            let before = self.total.as_ref();
            let used = before.and_then(|before| total.less(before)).or(last);
            if let Some(used) = used.filter(|used| !used.is_zero()) {
                self.turn = Some(self.turn.map_or(used, |so_far| so_far.plus(&used)));
            }
        } else if self.turn.is_some() {
            // A late one, of before this turn.
            return Some(());
        }
        self.total = Some(total);
        Some(())
    }

    /// What the turn used so far.
    pub(super) fn of_turn(&self) -> Option<Usage> {
        self.turn.map(Usage::from)
    }

    /// From which figures the session goes on.
    pub(super) fn total(&self) -> Baseline {
        self.total.map_or(Baseline::Unknown, Baseline::Known)
    }

    /// What the session used so far.
    pub(super) fn of_session(&self) -> Option<Usage> {
        let total = self.total.filter(|total| !total.is_zero());
        total.map(Usage::from)
    }
}
