//! The next attempt after a failure, and the delay before it. Pure: the caller passes the time.
//!
//! [`RetryPolicy`] defines the lengths of delays.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use teamster_core::{AgentError, ErrorKind, Id, NotRetried};

use crate::policy::{Action, AfterSideEffects, RetryPolicy};

/// Candidate data that the plan needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanCandidate {
    pub(crate) sessions: Sessions,
    pub(crate) can_resume: bool,
}

/// Sessions that a candidate can resume: those of candidates with the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sessions {
    /// Those of its provider.
    OfProvider(String),
    /// Those of its group.
    OfGroup(String),
}

/// The next step after a failed attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Next {
    /// Try the candidate with this index after the delay. With `resume`, its session is resumed; otherwise the prompt
    /// is sent again.
    Try {
        candidate: usize,
        delay: Duration,
        resume: bool,
    },
    /// End the run. If a single reason prevented another attempt, it is given.
    End(Option<(NotRetried, String)>),
}

/// State after an attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AttemptState<'a> {
    pub(crate) error: &'a AgentError,
    /// True if the attempt began. A candidate on hold can be skipped without an attempt.
    pub(crate) attempted: bool,
    /// The session in which the attempt worked.
    pub(crate) session: Option<&'a Id>,
    /// Description of a change, or possible change, made in this run.
    pub(crate) changed: Option<&'a str>,
    /// Time since the run's acceptance.
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
    /// Minimum delays of further waits for this candidate. Set at the first wait.
    waits: Option<ExponentialBackoff>,
    /// True if the last considered attempt would have been too late.
    late: bool,
    /// Attempts that count towards the run's limit.
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

    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// Returns whether to wait this long for a provider that is on hold because of this error. If not, the candidate
    /// has failed with that error, and [`after`](Self::after) decides.
    pub(crate) fn wait_for_hold(&self, held: &AgentError, left: Duration) -> bool {
        let patient = match self.policy.action(held) {
            Action::Retry | Action::Wait => true,
            Action::FallBack => self.current + 1 >= self.who.len(),
            Action::End => false,
        };
        patient && left <= self.policy.max_wait
    }

    /// Returns the next step after this attempt.
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

    /// Returns the next step after an attempt that could not resume a session from an earlier attempt of this run.
    /// `standing` has the error of that earlier attempt.
    ///
    /// If nothing was changed, the same candidate begins a new session. That does not use up a retry, because the
    /// failed attempt already did.
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

    /// Checks that an attempt after this delay is in time, and records if it is too late.
    fn in_time(&mut self, delay: Duration, standing: &AttemptState<'_>) -> bool {
        let begins = standing.elapsed.saturating_add(delay);
        self.late = self.policy.max_elapsed.is_some_and(|most| begins > most);
        !self.late
    }

    /// Tries the same candidate again as a retry.
    fn retry(&mut self, wanted: Option<Duration>, standing: &AttemptState<'_>) -> Option<Next> {
        if self.retries >= self.policy.retries
            || !self.attempts_left()
            || wanted.is_some_and(|wanted| wanted > self.policy.max_wait)
        {
            return None;
        }
        let resume = self.resume(self.current, standing)?;
        // The iterator never ends: it is built without a maximum count.
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

    /// Tries the same candidate again when its limit resets. This does not count as a retry.
    fn wait(&mut self, wanted: Option<Duration>, standing: &AttemptState<'_>) -> Option<Next> {
        let wanted =
            wanted.filter(|wanted| !wanted.is_zero() && *wanted <= self.policy.max_wait)?;
        let resume = self.resume(self.current, standing)?;
        // Such waits are not counted, so repeated ones get longer. Otherwise a service that always answers `1 ms`
        // would be called a thousand times a second.
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

    /// Selects the next candidate that can continue the run.
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

    /// Returns how this candidate would continue: by resuming the session (`true`), from the start (`false`), or not
    /// at all (`None`).
    fn resume(&self, candidate: usize, standing: &AttemptState<'_>) -> Option<bool> {
        if standing.changed.is_none() {
            return Some(false);
        }
        let who = &self.who[candidate];
        let can = self.policy.side_effects.then == AfterSideEffects::Resume
            && who.can_resume
            && who.sessions == self.who[self.current].sessions
            && standing.session.is_some();
        can.then_some(true)
    }

    fn attempts_left(&self) -> bool {
        self.policy
            .max_attempts
            .is_none_or(|most| self.attempts < most)
    }

    /// Returns the reason for no further attempt, as text for a person.
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

/// Returns the delay that the service requires, if it reports one.
pub(crate) fn wanted_wait(error: &AgentError, now_ms: u64) -> Option<Duration> {
    let millis = match (error.retry_after_ms, error.resets_at_ms) {
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
