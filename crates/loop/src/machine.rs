//! State machine of a loop, without a clock, files or processes.
//!
//! The driver feeds it what it [observes](Input), performs the [actions](Action) it returns, and feeds back their
//! outcome. So every rule about flags, wakes, failures and sleep is here, and its tests need no time.

use std::time::Duration;

use serde::Deserialize;
use teamster_api::agents::Prompt;
use teamster_core::Id;

#[cfg(test)]
mod tests;

/// Intervals of a loop, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Pace {
    /// Sleep after a tick that did work. Default: 60.
    pub min_sleep: u64,
    /// Increase of the sleep with each idle tick. Default: 60.
    pub idle_step: u64,
    /// Longest sleep, at least `min_sleep`. Default: 3600.
    pub max_sleep: u64,
    /// Minimum time between two clears in one session. Default: 600.
    pub clear_min_gap: u64,
}

teamster_core::setters! {
    Pace {
        set min_sleep: u64,
        set idle_step: u64,
        set max_sleep: u64,
        set clear_min_gap: u64,
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            min_sleep: 60,
            idle_step: 60,
            max_sleep: 3600,
            clear_min_gap: 600,
        }
    }
}

/// Seconds to wait after a failure, for each failure in a row.
const FAILURE_STEP: u64 = 5;
/// The longest wait after a failure, in seconds.
const MAX_FAILURE_WAIT: u64 = 60;
/// Failures in a row after which a session is given up.
const MAX_SESSION_FAILURES: u32 = 2;

/// State that the driver observes before each action.
#[derive(Debug, Clone, Default)]
pub(crate) struct Input {
    /// Time since the loop began.
    pub(crate) now: Duration,
    /// The loop was asked to end.
    pub(crate) stop: bool,
    /// A tick was requested since the previous input.
    pub(crate) woken: bool,
    /// The agent's process runs, or the next tick starts it.
    pub(crate) alive: bool,
    /// The agent's session, if its id is known.
    pub(crate) session: Option<Id>,
    /// `clear-session` is set.
    pub(crate) clear: bool,
    /// `reset-session` is set.
    pub(crate) reset: bool,
}

/// Next action of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start the agent.
    Start {
        resume: Option<Id>,
        /// Reason, for the log.
        why: StartReason,
    },
    /// Take `clear-session` and empty the context, in the same process if the agent supports it.
    Clear,
    /// Take `reset-session` and `clear-session`, and end the agent.
    Reset,
    /// Run a tick.
    Tick(Prompt),
    /// Sleep for this time, or until a tick is requested.
    Sleep(Sleep),
    /// End the agent and the loop.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartReason {
    /// The loop has begun.
    First,
    /// An earlier loop was cut off; its session is resumed.
    Recovered,
    /// The agent's process has ended.
    Died,
    /// The session failed twice in a row and is given up.
    GivenUp,
    /// The session cannot be resumed.
    Unusable,
    /// `reset-session` was set.
    Reset,
    /// The context could not be emptied.
    NotCleared,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sleep {
    pub(crate) seconds: u64,
    /// Reason, for people.
    pub(crate) reason: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TickEnd {
    /// The agent completed its turn.
    Completed,
    /// The agent reported a failure and is alive. A new session would fail too.
    Failed,
    /// The service refused the request and the agent is alive. The content of the session may be the cause.
    Refused,
    /// The turn exceeded its limit and was interrupted.
    TimedOut,
    /// The turn exceeded its limit, ignored the interrupt, and its process was ended.
    Stuck,
    /// The agent's process ended, or could not be started.
    Died,
    /// The session cannot be resumed: the CLI does not know it, or its context is full.
    Unusable,
}

/// Decides the next action of the loop.
#[derive(Debug)]
pub(crate) struct Machine {
    pace: Pace,
    /// Reason of the pending start, if one is pending.
    to_start: Option<StartReason>,
    /// Session to resume at the next start.
    session: Option<Id>,
    /// The next tick needs the full prompt.
    needs_full_prompt: bool,
    /// Pending sleep after the last tick.
    rest: Option<Sleep>,
    /// A tick was requested and has not begun.
    woken: bool,
    current_sleep: u64,
    failures: u32,
    /// Ticks and starts in a row that failed.
    failed_ticks: u32,
    /// The session that failed last, and its failures in a row.
    failed: Option<(Id, u32)>,
    last_clear: Option<Duration>,
}

impl Machine {
    /// Creates the machine of a new loop. `recovered` is the session of an earlier loop that was cut off.
    pub(crate) fn new(pace: Pace, recovered: Option<Id>) -> Self {
        let pace = Pace {
            max_sleep: pace.max_sleep.max(pace.min_sleep),
            ..pace
        };
        let why = match recovered {
            Some(_) => StartReason::Recovered,
            None => StartReason::First,
        };
        Self {
            pace,
            to_start: Some(why),
            session: recovered,
            needs_full_prompt: true,
            rest: None,
            woken: false,
            current_sleep: pace.min_sleep,
            failures: 0,
            failed_ticks: 0,
            failed: None,
            last_clear: None,
        }
    }

    /// Returns the sleep after the last tick, in seconds.
    pub(crate) fn current_sleep(&self) -> u64 {
        self.current_sleep
    }

    #[cfg(test)]
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns the failed ticks and starts in a row; 0 after a completed tick.
    pub(crate) fn failed_ticks(&self) -> u32 {
        self.failed_ticks
    }

    /// Returns the next action. A repeated call without new input returns the same action.
    pub(crate) fn next(&mut self, input: &Input) -> Action {
        self.woken |= input.woken;
        if input.stop {
            return Action::End;
        }
        if self.woken {
            self.rest = None;
        }
        if let Some(rest) = &self.rest {
            return Action::Sleep(rest.clone());
        }
        if self.to_start.is_none() && !input.alive {
            self.session.clone_from(&input.session);
            self.to_start = Some(StartReason::Died);
        }
        if let Some(why) = self.to_start {
            return self.start(why);
        }
        if input.reset {
            return Action::Reset;
        }
        if input.clear && self.clear_held_back(input.now).is_none() {
            return Action::Clear;
        }
        // This tick serves all requests so far.
        self.woken = false;
        Action::Tick(if self.needs_full_prompt {
            Prompt::Full
        } else {
            Prompt::Light
        })
    }

    fn start(&self, why: StartReason) -> Action {
        if self.is_given_up() {
            Action::Start {
                resume: None,
                why: StartReason::GivenUp,
            }
        } else {
            Action::Start {
                resume: self.session.clone(),
                why,
            }
        }
    }

    /// Returns whether the session has reached its failure limit.
    fn is_given_up(&self) -> bool {
        (self.failed.as_ref()).is_some_and(|(id, times)| {
            self.session.as_ref() == Some(id) && *times >= MAX_SESSION_FAILURES
        })
    }

    /// Returns the seconds until a clear is allowed; `None` if it is allowed now.
    pub(crate) fn clear_held_back(&self, now: Duration) -> Option<u64> {
        let since = now.saturating_sub(self.last_clear?);
        let gap = Duration::from_secs(self.pace.clear_min_gap);
        let left = gap.saturating_sub(since);
        (!left.is_zero()).then(|| left.as_secs().max(1))
    }

    /// Reports the success of [`Action::Start`]. The process may start only with the next tick.
    pub(crate) fn started(&mut self) {
        if self.is_given_up() {
            self.session = None;
            self.failed = None;
        }
        self.to_start = None;
        self.needs_full_prompt = true;
        // `clear_min_gap` applies within one session.
        self.last_clear = None;
    }

    /// Reports the success of [`Action::Clear`].
    pub(crate) fn cleared(&mut self, now: Duration) {
        self.needs_full_prompt = true;
        self.last_clear = Some(now);
    }

    /// Reports that the agent was ended for `reset-session`.
    pub(crate) fn reset(&mut self) {
        self.session = None;
        self.to_start = Some(StartReason::Reset);
    }

    /// Reports that the agent was ended because its context could not be cleared.
    pub(crate) fn not_cleared(&mut self) {
        self.session = None;
        self.to_start = Some(StartReason::NotCleared);
    }

    /// Reports a failed start, which counts as a tick that [died](TickEnd::Died).
    pub(crate) fn start_failed(&mut self) {
        let session = self.session.take();
        self.failed_ticks = self.failed_ticks.saturating_add(1);
        // A requested tick does not skip the wait after a failure.
        self.woken = false;
        self.restart_after_failure(session);
    }

    /// Delays the start by these seconds. This is no failure, and the session is kept.
    pub(crate) fn start_later(&mut self, seconds: u64) {
        self.woken = false;
        self.rest = Some(Sleep {
            seconds: seconds.clamp(1, MAX_FAILURE_WAIT),
            reason: "waiting until the session is available".to_owned(),
        });
    }

    /// Drops a session that cannot be resumed and starts the agent without it.
    pub(crate) fn start_without_session(&mut self) {
        self.session = None;
        self.to_start = Some(StartReason::First);
    }

    /// Reports the end of a tick; `did_work` is whether `did-work` is set. Returns whether the flag is taken: a
    /// tick whose process ended leaves it to the next tick.
    pub(crate) fn tick_ended(&mut self, end: TickEnd, did_work: bool, session: Option<Id>) -> bool {
        self.failed_ticks = match end {
            TickEnd::Completed => 0,
            _ => self.failed_ticks.saturating_add(1),
        };
        match end {
            TickEnd::Completed => {
                self.needs_full_prompt = false;
                self.failures = 0;
                self.failed = None;
            }
            TickEnd::Failed | TickEnd::TimedOut => {}
            TickEnd::Refused => {
                self.count_failure(session);
                if self.is_given_up() {
                    self.to_start = Some(StartReason::GivenUp);
                }
            }
            TickEnd::Stuck => self.count_failure(session),
            TickEnd::Died => {
                self.restart_after_failure(session);
                return false;
            }
            TickEnd::Unusable => {
                self.restart_after_failure(session);
                self.session = None;
                self.to_start = Some(StartReason::Unusable);
                return false;
            }
        }
        let pace = self.pace;
        let reason = if did_work {
            self.current_sleep = pace.min_sleep;
            "work done".to_owned()
        } else {
            let longer = self.current_sleep.saturating_add(pace.idle_step);
            self.current_sleep = longer.min(pace.max_sleep);
            format!("idle (+{} s, at most {} s)", pace.idle_step, pace.max_sleep)
        };
        self.rest = Some(Sleep {
            seconds: self.current_sleep,
            reason,
        });
        did_work
    }

    fn restart_after_failure(&mut self, session: Option<Id>) {
        self.count_failure(session);
        self.to_start = Some(StartReason::Died);
        self.rest = Some(Sleep {
            seconds: (u64::from(self.failures) * FAILURE_STEP).min(MAX_FAILURE_WAIT),
            reason: match self.failures {
                1 => "waiting after a failure".to_owned(),
                times => format!("waiting after {times} failures in a row"),
            },
        });
    }

    fn count_failure(&mut self, session: Option<Id>) {
        self.failures = self.failures.saturating_add(1);
        self.needs_full_prompt = true;
        // A session whose id is not known cannot be resumed, so it cannot fail again.
        self.failed = session.clone().map(|id| match &self.failed {
            Some((before, times)) if *before == id => (id, times + 1),
            _ => (id, 1),
        });
        self.session = session;
    }

    /// Reports that a fallback ran the tick: the agent's own context lacks the prompt.
    pub(crate) fn ran_on_fallback(&mut self) {
        self.needs_full_prompt = true;
    }

    /// Extends the pending sleep to these seconds, at most `max_sleep`, because the service is limited.
    pub(crate) fn hold_off(&mut self, seconds: u64) {
        let seconds = seconds.min(self.pace.max_sleep);
        if let Some(rest) = (self.rest.as_mut()).filter(|rest| rest.seconds < seconds) {
            rest.seconds = seconds;
            "waiting for a service limit to reset".clone_into(&mut rest.reason);
        }
    }

    /// Reports the end of the sleep.
    pub(crate) fn rested(&mut self) {
        self.rest = None;
    }
}
