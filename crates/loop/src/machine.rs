//! State machine of a loop, without a clock, files or processes.
//!
//! The driver feeds it what it [observes](Input), performs the [actions](Action) it returns, and feeds back their
//! outcome. So every rule about flags, wakes, failures and sleep is here, and its tests need no time.

use std::time::Duration;

use derive_setters::Setters;
use serde::{Deserialize, Serialize};
use teamster_core::Id;

#[cfg(test)]
mod tests;

/// How fast the loop goes. All in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Setters)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Pace {
    /// Sleep after a tick that did something. 60.
    pub min_sleep: u64,
    /// What each idle tick adds to the sleep. 60.
    pub idle_step: u64,
    /// The longest sleep; never less than the shortest. 3600.
    pub max_sleep: u64,
    /// Time between two clears in one session. 600.
    pub clear_min_gap: u64,
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

/// After a failure, so many seconds for each one in a row.
const FAILURE_STEP: u64 = 5;
/// The longest wait after a failure, in seconds.
const LONGEST_FAILURE_WAIT: u64 = 60;
/// So many failures in a row with one session, and it is given up.
const FAILURES_OF_A_SESSION: u32 = 2;

/// What the driver sees when it asks what to do.
#[derive(Debug, Clone, Default)]
pub(crate) struct Input {
    /// Time since the loop began.
    pub(crate) now: Duration,
    /// The loop is asked to end.
    pub(crate) stop: bool,
    /// A tick was requested since this was last returned.
    pub(crate) woken: bool,
    /// The agent's process is there, or none is needed before the next tick.
    pub(crate) alive: bool,
    /// The agent's session, if its id is known.
    pub(crate) session: Option<Id>,
    /// `clear-session` is set.
    pub(crate) clear: bool,
    /// `reset-session` is set.
    pub(crate) reset: bool,
}

/// What the driver is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start the agent.
    Start {
        /// The session that continues.
        resume: Option<Id>,
        /// Why, for the log.
        why: StartReason,
    },
    /// Take `clear-session` and begin with an empty context, in the same process if the agent can.
    Clear,
    /// Take `reset-session`, and `clear-session` with it, and end the agent.
    Reset,
    /// Play a tick.
    Tick(Prompt),
    /// Wait so long, or until a tick is requested.
    Sleep(Sleep),
    /// End the agent and leave.
    End,
}

/// Why the agent is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartReason {
    /// The loop has begun.
    First,
    /// An earlier loop was cut off: its session continues.
    Recovered,
    /// Its process has ended.
    Died,
    /// Its session failed twice in a row and is given up.
    GivenUp,
    /// Its session cannot be used any more.
    Unusable,
    /// `reset-session` was set.
    Reset,
    /// Its context could not be emptied.
    NotCleared,
}

/// Which prompt a tick has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "TickPrompt")
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Prompt {
    /// The agent has its instructions in its context.
    Light,
    /// The agent has to read its instructions; also what only a newer version knows.
    #[serde(other)]
    Full,
}

impl Prompt {
    /// Its name, in capitals.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "FULL",
            Self::Light => "LIGHT",
        }
    }
}

/// How long the loop rests, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sleep {
    /// Seconds.
    pub(crate) seconds: u64,
    /// Why, for a person.
    pub(crate) reason: String,
}

/// How a tick ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TickEnd {
    /// The agent came to its end.
    Completed,
    /// The agent reported a failure, and is live. With another session it would fail too.
    Failed,
    /// The agent is there, but what it asks is refused, and what is in its session may be why.
    Refused,
    /// It took too long and was interrupted.
    TimedOut,
    /// It took too long, did not obey the interrupt, and its process was ended.
    Stuck,
    /// The agent's process ended, or could not be started.
    Died,
    /// The session cannot go on: the CLI does not know it any more, or its context is full.
    Unusable,
}

/// Decides what the loop does.
#[derive(Debug)]
pub(crate) struct Machine {
    pace: Pace,
    /// Whether the agent keeps in its context what it got in one tick for the next.
    keeps_context: bool,
    /// Why the agent is to be started, if it is.
    to_start: Option<StartReason>,
    /// The session that continues at the next start.
    session: Option<Id>,
    /// The next tick needs the full prompt.
    fresh: bool,
    /// What is due after the last tick.
    rest: Option<Sleep>,
    /// A tick was requested and has not begun.
    woken: bool,
    current_sleep: u64,
    /// Failures in a row.
    failures: u32,
    /// Ticks and starts in a row that failed.
    failed_ticks: u32,
    /// A session and how often it failed in a row.
    failed: Option<(Id, u32)>,
    last_clear: Option<Duration>,
}

impl Machine {
    /// A loop that begins. `recovered` is the session of an earlier one that was cut off.
    pub(crate) fn new(pace: Pace, keeps_context: bool, recovered: Option<Id>) -> Self {
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
            keeps_context,
            to_start: Some(why),
            session: recovered,
            fresh: true,
            rest: None,
            woken: false,
            current_sleep: pace.min_sleep,
            failures: 0,
            failed_ticks: 0,
            failed: None,
            last_clear: None,
        }
    }

    /// The sleep after the last tick, in seconds.
    pub(crate) fn current_sleep(&self) -> u64 {
        self.current_sleep
    }

    /// Failures in a row.
    #[cfg(test)]
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// Ticks and starts in a row that failed; 0 after a tick that completed.
    pub(crate) fn failed_ticks(&self) -> u32 {
        self.failed_ticks
    }

    /// What to do now. Called again without an input in between, it returns the same.
    pub(crate) fn next(&mut self, seen: &Input) -> Action {
        self.woken |= seen.woken;
        if seen.stop {
            return Action::End;
        }
        if self.woken {
            self.rest = None;
        }
        if let Some(rest) = &self.rest {
            return Action::Sleep(rest.clone());
        }
        if self.to_start.is_none() && !seen.alive {
            self.session.clone_from(&seen.session);
            self.to_start = Some(StartReason::Died);
        }
        if let Some(why) = self.to_start {
            return self.start(why);
        }
        if seen.reset {
            return Action::Reset;
        }
        if seen.clear && self.clear_held_back(seen.now).is_none() {
            return Action::Clear;
        }
        // This tick answers all requests until now.
        self.woken = false;
        let whole = self.fresh || !self.keeps_context;
        Action::Tick(if whole { Prompt::Full } else { Prompt::Light })
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

    /// Whether the session has failed too often to go on.
    fn is_given_up(&self) -> bool {
        (self.failed.as_ref()).is_some_and(|(id, times)| {
            self.session.as_ref() == Some(id) && *times >= FAILURES_OF_A_SESSION
        })
    }

    /// How many seconds a clear is still held back, if it is.
    pub(crate) fn clear_held_back(&self, now: Duration) -> Option<u64> {
        let since = now.saturating_sub(self.last_clear?);
        let gap = Duration::from_secs(self.pace.clear_min_gap);
        let left = gap.saturating_sub(since);
        (!left.is_zero()).then(|| left.as_secs().max(1))
    }

    /// The agent was started by [`Action::Start`]. Its process may come with the next tick only.
    pub(crate) fn started(&mut self) {
        if self.is_given_up() {
            self.session = None;
            self.failed = None;
        }
        self.to_start = None;
        self.fresh = true;
        // The gap is one between clears within a session.
        self.last_clear = None;
    }

    /// The context is empty, in the same process if that could be.
    pub(crate) fn cleared(&mut self, now: Duration) {
        self.fresh = true;
        self.last_clear = Some(now);
    }

    /// The agent was ended because of `reset-session`.
    pub(crate) fn reset(&mut self) {
        self.session = None;
        self.to_start = Some(StartReason::Reset);
    }

    /// The agent was ended because it could not be cleared.
    pub(crate) fn not_cleared(&mut self) {
        self.session = None;
        self.to_start = Some(StartReason::NotCleared);
    }

    /// The agent could not be started: as a tick that [died](TickEnd::Died).
    pub(crate) fn start_failed(&mut self) {
        let session = self.session.take();
        self.failed_ticks = self.failed_ticks.saturating_add(1);
        // A request for a tick does not mean to try all the time.
        self.woken = false;
        self.failed_with(session);
    }

    /// The agent cannot be started yet, but in so many seconds: that is no failure, and its session continues.
    pub(crate) fn start_later(&mut self, seconds: u64) {
        self.woken = false;
        self.rest = Some(Sleep {
            seconds: seconds.clamp(1, LONGEST_FAILURE_WAIT),
            reason: "waiting until the session can go on".to_owned(),
        });
    }

    /// The session that was to go on is none that can: the agent is started without it.
    pub(crate) fn start_anew(&mut self) {
        self.session = None;
        self.to_start = Some(StartReason::First);
    }

    /// A tick has ended. `did_work` is whether `did-work` is set; the result is whether it is taken: one
    /// that was cut off by the end of its process has not come to its own end, and leaves it for the next.
    pub(crate) fn tick_ended(&mut self, end: TickEnd, did_work: bool, session: Option<Id>) -> bool {
        self.failed_ticks = match end {
            TickEnd::Completed => 0,
            _ => self.failed_ticks.saturating_add(1),
        };
        match end {
            TickEnd::Completed => {
                self.fresh = false;
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
                self.failed_with(session);
                return false;
            }
            TickEnd::Unusable => {
                self.failed_with(session);
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

    fn failed_with(&mut self, session: Option<Id>) {
        self.count_failure(session);
        self.to_start = Some(StartReason::Died);
        self.rest = Some(Sleep {
            seconds: (u64::from(self.failures) * FAILURE_STEP).min(LONGEST_FAILURE_WAIT),
            reason: match self.failures {
                1 => "waiting after a failure".to_owned(),
                times => format!("waiting after {times} failures in a row"),
            },
        });
    }

    fn count_failure(&mut self, session: Option<Id>) {
        self.failures = self.failures.saturating_add(1);
        self.fresh = true;
        // A session whose id is not known cannot be resumed, so it cannot fail again.
        self.failed = session.clone().map(|id| match &self.failed {
            Some((before, times)) if *before == id => (id, times + 1),
            _ => (id, 1),
        });
        self.session = session;
    }

    /// Another agent has played the tick in this one's place: this one does not know the prompt.
    pub(crate) fn played_by_fallback(&mut self) {
        self.fresh = true;
    }

    /// The service must get no request for so many seconds: the rest is as long, but never longer than the
    /// longest sleep.
    pub(crate) fn hold_off(&mut self, seconds: u64) {
        let seconds = seconds.min(self.pace.max_sleep);
        if let Some(rest) = (self.rest.as_mut()).filter(|rest| rest.seconds < seconds) {
            rest.seconds = seconds;
            "waiting for a limit of the service".clone_into(&mut rest.reason);
        }
    }

    /// The rest is over, or a tick was requested.
    pub(crate) fn rested(&mut self) {
        self.rest = None;
    }
}
