//! Turns and their usage.
//!
//! The CLI reports running totals of the session, over all processes that resumed it and the session that it was
//! forked from. The usage of this run is the difference to the total before it.

use teamster_core::provider::{Activity, DecodedResult, Events};
use teamster_core::{TurnEnd, Usage};

use crate::totals::{Baseline, Totals};

/// State of the turns so far.
#[derive(Debug, Default)]
pub(super) struct Turns {
    before: Baseline,
    /// The total at the end of the last turn.
    total: Option<Totals>,
    in_turn: bool,
    ended_with_error: Option<bool>,
    stop_reason: Option<String>,
}

impl Turns {
    pub(super) fn new(before: Baseline) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    /// Resets the baseline, because the CLI began a new session instead of resuming.
    pub(super) fn not_resumed(&mut self) {
        self.before = Baseline::default();
    }

    pub(super) fn started(&mut self) {
        self.in_turn = true;
    }

    pub(super) fn completed(&mut self, total: Option<Totals>, out: &mut Events) {
        // Totals of zero are missing figures: a review reports them for any usage.
        let total = total.filter(|total| !total.is_zero());
        let usage = total.and_then(|total| match self.total {
            Some(last) => total.less(&last),
            None => self.since_before(total),
        });
        let usage = usage.filter(|usage| !usage.is_zero());
        self.total = total.or(self.total);
        self.ended(false, None, usage, out);
    }

    /// Returns whether no tokens were used before this total.
    pub(super) fn used_nothing(&self, total: Totals) -> bool {
        let since = match self.total {
            Some(last) => total.less(&last),
            None => self.since_before(total),
        };
        total.is_zero() || since.is_some_and(|since| since.is_zero())
    }

    pub(super) fn failed(&mut self, stop_reason: Option<&str>, out: &mut Events) {
        self.ended(true, stop_reason, None, out);
    }

    fn ended(
        &mut self,
        is_error: bool,
        stop_reason: Option<&str>,
        usage: Option<Totals>,
        out: &mut Events,
    ) {
        self.in_turn = false;
        self.ended_with_error = Some(is_error);
        self.stop_reason = stop_reason.map(str::to_owned);
        out.push(
            TurnEnd::new(is_error)
                .stop_reason(self.stop_reason.clone())
                .usage(usage.map(Usage::from)),
        );
    }

    fn since_before(&self, total: Totals) -> Option<Totals> {
        match &self.before {
            Baseline::Known(before) => total.less(before),
            Baseline::Unknown => None,
        }
    }

    pub(super) fn activity(&self) -> Activity {
        if self.in_turn && self.ended_with_error.is_some() {
            Activity::Turn
        } else {
            Activity::None
        }
    }

    pub(super) fn summary(&self) -> DecodedResult {
        DecodedResult {
            ended_with_error: self.ended_with_error.filter(|_| !self.in_turn),
            usage: self
                .total
                .and_then(|total| self.since_before(total))
                // Zero usage is a missing figure, too.
                .filter(|usage| !usage.is_zero())
                .map(Usage::from),
            session_usage: self.total.map(Usage::from),
            stop_reason: self.stop_reason.clone(),
            ..DecodedResult::default()
        }
    }
}
