//! The next attempt after a failure, and the delay before it. Pure: it is given the time.
//!
//! The lengths of delays are set in [`RetryPolicy`].

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use teamster_core::{AgentError, ErrorKind, Id, NotRetried};

use crate::policy::{Action, AfterSideEffects, RetryPolicy};

/// A candidate as the plan sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanCandidate {
    pub(crate) provider: String,
    pub(crate) can_resume: bool,
}

/// The next step after a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// The candidate of this number is tried after the delay. With `resume`, its session is resumed;
    /// else the prompt is sent again.
    Try {
        candidate: usize,
        delay: Duration,
        resume: bool,
    },
    /// The run ends; if only one thing kept it from another attempt, this names it.
    End(Option<(NotRetried, String)>),
}

/// State after an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptState<'a> {
    /// Why it failed.
    pub(crate) error: &'a AgentError,
    /// It was begun: a candidate that is on hold is given up without that.
    pub(crate) attempted: bool,
    /// The session in which it worked.
    pub(crate) session: Option<&'a Id>,
    /// A change made in this run, or a possible one.
    pub(crate) changed: Option<&'a str>,
    /// Since the run's acceptance.
    pub(crate) elapsed: Duration,
    /// The time of day, in milliseconds since the Unix epoch.
    pub(crate) now_ms: u64,
}

/// Decides which attempt comes next.
#[derive(Debug)]
pub(crate) struct Plan {
    policy: RetryPolicy,
    who: Vec<PlanCandidate>,
    current: usize,
    retries: u32,
    /// The least delays of further waits for this candidate, once there was one.
    waits: Option<ExponentialBackoff>,
    /// The last considered attempt would have been too late.
    late: bool,
    /// Attempts that count for the limit of the run.
    attempts: u32,
    delays: ExponentialBackoff,
}

impl Plan {
    pub(crate) fn new(policy: RetryPolicy, who: Vec<PlanCandidate>) -> Self {
        let delays = delays(&policy);
        Self {
            policy,
            who,
            current: 0,
            retries: 0,
            waits: None,
            late: false,
            attempts: 1,
            delays,
        }
    }

    /// The number of the candidate whose turn it is.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// Whether to wait for a provider that is on hold because of this error for so long. If not, the
    /// candidate has failed by that, and [`after`](Self::after) decides.
    pub(crate) fn wait_for_hold(&self, held: &AgentError, left: Duration) -> bool {
        let patient = match self.policy.action(held) {
            Action::Retry | Action::Wait => true,
            Action::FallBack => self.current + 1 >= self.who.len(),
            Action::End => false,
        };
        patient && left <= self.policy.max_wait
    }

    /// The next step after this attempt.
    pub(crate) fn after(&mut self, standing: AttemptState<'_>) -> Next {
        self.late = false;
        let wanted = wanted_wait(standing.error, standing.now_ms);
        let step = match self.policy.action(standing.error) {
            Action::End => return Next::End(None),
            Action::Retry => self
                .retry(wanted, &standing)
                .or_else(|| self.next(&standing)),
            Action::Wait => self
                .wait(wanted, &standing)
                .or_else(|| self.next(&standing)),
            Action::FallBack => self.next(&standing).or_else(|| {
                let limit = matches!(standing.error.kind, ErrorKind::Quota | ErrorKind::RateLimit);
                limit.then(|| self.wait(wanted, &standing)).flatten()
            }),
        };
        step.unwrap_or_else(|| Next::End(self.why_not(&standing)))
    }

    /// The next step after an attempt whose session, left by an earlier attempt of this run, is
    /// gone; `standing` has the error of that earlier attempt. The same candidate begins a session if
    /// nothing was changed, which is not one of its retries: the attempt that is over was.
    pub(crate) fn after_lost_session(&mut self, standing: AttemptState<'_>) -> Next {
        self.late = false;
        let begins = standing.changed.is_none() && self.attempts_left();
        if !begins || !self.in_time(Duration::ZERO, &standing) {
            return self.after(standing);
        }
        self.attempts += 1;
        Next::Try {
            candidate: self.current,
            delay: Duration::ZERO,
            resume: false,
        }
    }

    /// Whether an attempt after this delay is not too late. If it is, that is remembered.
    fn in_time(&mut self, delay: Duration, standing: &AttemptState<'_>) -> bool {
        let begins = standing.elapsed.saturating_add(delay);
        self.late = self.policy.max_elapsed.is_some_and(|most| begins > most);
        !self.late
    }

    /// The same candidate again, as one of its retries.
    fn retry(&mut self, wanted: Option<Duration>, standing: &AttemptState<'_>) -> Option<Next> {
        if self.retries >= self.policy.retries
            || !self.attempts_left()
            || wanted.is_some_and(|wanted| wanted > self.policy.max_wait)
        {
            return None;
        }
        let resume = self.resume(self.current, standing)?;
        // The delays never run out: they are built without a limit of times.
        let own = self.delays.next().unwrap_or(self.policy.max_delay);
        let delay = wanted.filter(|wanted| !wanted.is_zero()).unwrap_or(own);
        if !self.in_time(delay, standing) {
            return None;
        }
        self.retries += 1;
        self.attempts += 1;
        Some(Next::Try {
            candidate: self.current,
            delay,
            resume,
        })
    }

    /// The same candidate again when its limit resets, which is no retry.
    fn wait(&mut self, wanted: Option<Duration>, standing: &AttemptState<'_>) -> Option<Next> {
        let wanted =
            wanted.filter(|wanted| !wanted.is_zero() && *wanted <= self.policy.max_wait)?;
        let resume = self.resume(self.current, standing)?;
        // Such waits are not counted. So when the limit was not over when it should have been, the
        // next ones get longer, or a service that always answers `1 ms` would be called a thousand
        // times a second.
        let delays = delays(&self.policy);
        let waits = self.waits.as_mut().filter(|_| standing.attempted);
        let least = waits.and_then(Iterator::next).unwrap_or_default();
        let delay = wanted.max(least);
        if !self.in_time(delay, standing) {
            return None;
        }
        self.waits.get_or_insert(delays);
        Some(Next::Try {
            candidate: self.current,
            delay,
            resume,
        })
    }

    /// The next candidate that can go on.
    fn next(&mut self, standing: &AttemptState<'_>) -> Option<Next> {
        let counts = standing.attempted && standing.error.kind != ErrorKind::Quota;
        if counts && !self.attempts_left() {
            return None;
        }
        let (candidate, resume) = (self.current + 1..self.who.len())
            .find_map(|candidate| Some((candidate, self.resume(candidate, standing)?)))?;
        if !self.in_time(Duration::ZERO, standing) {
            return None;
        }
        self.current = candidate;
        self.retries = 0;
        self.waits = None;
        self.attempts += u32::from(counts);
        self.delays = delays(&self.policy);
        Some(Next::Try {
            candidate,
            delay: Duration::ZERO,
            resume,
        })
    }

    /// How this candidate would go on: with the session (`true`), from the start (`false`), or not at
    /// all.
    fn resume(&self, candidate: usize, standing: &AttemptState<'_>) -> Option<bool> {
        if standing.changed.is_none() {
            return Some(false);
        }
        let who = &self.who[candidate];
        let can = self.policy.side_effects.then == AfterSideEffects::Resume
            && who.can_resume
            && who.provider == self.who[self.current].provider
            && standing.session.is_some();
        can.then_some(true)
    }

    fn attempts_left(&self) -> bool {
        self.policy
            .max_attempts
            .is_none_or(|most| self.attempts < most)
    }

    /// Why there is no further attempt, for a person.
    fn why_not(&self, standing: &AttemptState<'_>) -> Option<(NotRetried, String)> {
        if let Some(most) = self.policy.max_elapsed.filter(|_| self.late) {
            let why = format!("not tried again: the time for attempts ({most:?}) would be over");
            return Some((NotRetried::OutOfTime, why));
        }
        let changed = standing.changed?;
        let another = self.current + 1 < self.who.len();
        let could = match self.policy.action(standing.error) {
            Action::Retry => another || self.retries < self.policy.retries,
            Action::Wait => true,
            _ => another,
        };
        let resumable =
            self.policy.side_effects.then == AfterSideEffects::Resume && standing.session.is_some();
        let why = if resumable && self.who[self.current].can_resume {
            "the session can be resumed"
        } else {
            "look at what has been done before you ask again"
        };
        could.then(|| {
            let why = format!("not started over, because {changed}; {why}");
            (NotRetried::SideEffects, why)
        })
    }
}

/// The delay that the service requires, if it reports one.
pub(crate) fn wanted_wait(error: &AgentError, now_ms: u64) -> Option<Duration> {
    let millis = match (error.retry_after_ms, error.resets_at) {
        (Some(after), _) => after,
        (None, Some(at)) => at.saturating_sub(now_ms),
        (None, None) => return None,
    };
    Some(Duration::from_millis(millis))
}

fn delays(policy: &RetryPolicy) -> ExponentialBackoff {
    let builder = ExponentialBuilder::default()
        .with_min_delay(policy.base_delay.min(policy.max_delay))
        .with_max_delay(policy.max_delay)
        .without_max_times();
    if policy.jitter {
        builder.with_jitter().build()
    } else {
        builder.build()
    }
}

#[cfg(test)]
mod tests;
