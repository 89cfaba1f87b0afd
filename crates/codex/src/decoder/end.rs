//! Turns and what they used.
//!
//! The CLI reports running totals of the session, over all processes that resumed it and over the
//! session that it was forked from. What this run used is the difference to what the total was
//! before.

use teamster_core::provider::{Activity, Events, RunSummary};
use teamster_core::{AgentEvent, TurnEnd, Usage};

use super::wire::Object;

/// What is known of the turns so far.
#[derive(Debug, Default)]
pub(super) struct Turns {
    before: Baseline,
    /// The total at the end of the last turn.
    total: Option<Totals>,
    in_turn: bool,
    ended_with_error: Option<bool>,
    stop_reason: Option<String>,
}

/// The session's total before this run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Baseline {
    /// This much.
    Known(Totals),
    /// It cannot be known.
    Unknown,
}

/// A new session has used nothing.
impl Default for Baseline {
    fn default() -> Self {
        Self::Known(Totals::default())
    }
}

/// Tokens as the CLI counts them: those read from and written to a cache are in `input`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    input: Option<u64>,
    cached_input: Option<u64>,
    cache_write_input: Option<u64>,
    output: Option<u64>,
    reasoning_output: Option<u64>,
}

impl Turns {
    pub(super) fn new(before: Baseline) -> Self {
        Self {
            before,
            ..Self::default()
        }
    }

    /// The CLI began another session than the one that the total before is of.
    pub(super) fn not_resumed(&mut self) {
        self.before = Baseline::default();
    }

    pub(super) fn started(&mut self) {
        self.in_turn = true;
    }

    pub(super) fn completed(&mut self, total: Option<Totals>, out: &mut Events) {
        // Zeros all over are no figures: a review gives them whatever it used.
        let total = total.filter(|total| !total.is_zero());
        let usage = total.and_then(|total| match self.total {
            Some(last) => total.less(&last),
            None => self.since_before(total),
        });
        let usage = usage.filter(|usage| !usage.is_zero());
        self.total = total.or(self.total);
        self.ended(false, None, usage, out);
    }

    /// Whether no tokens were used before this total.
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
        out.push(AgentEvent::TurnEnd(Box::new(
            TurnEnd::new(is_error)
                .stop_reason(self.stop_reason.clone())
                .usage(usage.map(Usage::from)),
        )));
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

    pub(super) fn summary(&self) -> RunSummary {
        RunSummary {
            ended_with_error: self.ended_with_error.filter(|_| !self.in_turn),
            usage: self
                .total
                .and_then(|total| self.since_before(total))
                // Nothing at all is no figure either.
                .filter(|usage| !usage.is_zero())
                .map(Usage::from),
            session_usage: self.total.map(Usage::from),
            stop_reason: self.stop_reason.clone(),
            ..RunSummary::default()
        }
    }
}

impl Totals {
    /// The figures in an object of the CLI's.
    pub(crate) fn of(usage: &Object<'_>) -> Self {
        Self {
            input: usage.get("input_tokens"),
            cached_input: usage.get("cached_input_tokens"),
            cache_write_input: usage.get("cache_write_input_tokens"),
            output: usage.get("output_tokens"),
            reasoning_output: usage.get("reasoning_output_tokens"),
        }
    }

    fn figures(&self) -> [Option<u64>; 5] {
        [
            self.input,
            self.cached_input,
            self.cache_write_input,
            self.output,
            self.reasoning_output,
        ]
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.figures().into_iter().flatten().all(|n| n == 0)
    }

    /// What came since the total was `before`. `None` if it is no later total of the same session.
    pub(crate) fn less(self, before: &Self) -> Option<Self> {
        let mut since = self.figures();
        for (figure, before) in since.iter_mut().zip(before.figures()) {
            if let Some(figure) = figure {
                *figure = figure.checked_sub(before.unwrap_or(0))?;
            }
        }
        let [
            input,
            cached_input,
            cache_write_input,
            output,
            reasoning_output,
        ] = since;
        Some(Self {
            input,
            cached_input,
            cache_write_input,
            output,
            reasoning_output,
        })
    }
}

impl Totals {
    /// Both together.
    pub(crate) fn plus(self, other: &Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        Self {
            input: sum(self.input, other.input),
            cached_input: sum(self.cached_input, other.cached_input),
            cache_write_input: sum(self.cache_write_input, other.cache_write_input),
            output: sum(self.output, other.output),
            reasoning_output: sum(self.reasoning_output, other.reasoning_output),
        }
    }
}

impl From<Totals> for Usage {
    fn from(totals: Totals) -> Self {
        let cached = totals.cached_input.unwrap_or(0);
        let written = totals.cache_write_input.unwrap_or(0);
        let uncached = |input: u64| input.saturating_sub(cached).saturating_sub(written);
        Self::default()
            .input_tokens(totals.input.map(uncached))
            .output_tokens(totals.output)
            .cache_read_tokens(totals.cached_input)
            .cache_write_tokens(totals.cache_write_input)
            .reasoning_tokens(totals.reasoning_output)
    }
}
