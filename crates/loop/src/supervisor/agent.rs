//! One agent: what is wanted of it and what runs. Pure: the time is given, and what is to be done comes out.

use std::fmt;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use derive_setters::Setters;
use serde::Deserialize;
use teamster_process::ProcessIdentity;

/// The times of a supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Setters)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Policy {
    /// The delay before a loop that crashed is started again, the first time. It doubles with every crash.
    #[serde(with = "humantime_serde")]
    pub first_delay: Duration,
    /// The longest delay.
    #[serde(with = "humantime_serde")]
    pub longest_delay: Duration,
    /// A loop that ran for so long before it crashed begins with the first delay again.
    #[serde(with = "humantime_serde")]
    pub settled_after: Duration,
    /// How long until an agent whose directory or instructions are missing is looked at again.
    #[serde(with = "humantime_serde")]
    pub look_again: Duration,
    /// How long a loop that was asked to end may take before it is killed.
    #[serde(with = "humantime_serde")]
    pub grace: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            first_delay: Duration::from_secs(1),
            longest_delay: Duration::from_mins(5),
            settled_after: Duration::from_mins(5),
            look_again: Duration::from_secs(30),
            grace: Duration::from_secs(5),
        }
    }
}

impl Policy {
    fn delays(&self) -> ExponentialBackoff {
        ExponentialBuilder::default()
            .with_min_delay(self.first_delay.min(self.longest_delay))
            .with_max_delay(self.longest_delay)
            .without_max_times()
            .build()
    }
}

/// How a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Unknown: it was no child of this supervisor's.
    Unknown,
}

/// So many crashes in a row make a crash loop: a single one may come from outside.
const CRASHES_IN_A_ROW: u32 = 2;
/// In order: another program asked the loop to end.
const IN_ORDER: i32 = 0;
/// The loop reports that its directory or its settings are wrong. It is started again after the longest delay.
pub(super) const UNUSABLE: i32 = 2;

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(IN_ORDER) => write!(f, "ended by itself, in order"),
            Self::Code(UNUSABLE) => {
                write!(
                    f,
                    "ended with code 2: its directory or a setting cannot be used, or another loop runs \
                     there; its log has the reason"
                )
            }
            Self::Code(code) => write!(f, "ended with code {code}"),
            Self::Signal(signal) => match nix::sys::signal::Signal::try_from(*signal) {
                Ok(signal) => write!(f, "was ended by {signal}"),
                Err(_) => write!(f, "was ended by signal {signal}"),
            },
            Self::Unknown => write!(f, "ended"),
        }
    }
}

/// The state of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Nothing runs, and nothing shall.
    Stopped,
    /// It ended in order without being asked from here. It is not started again by itself.
    Ended,
    /// It cannot run before something is put right. It is tried again then.
    Failed { until: Instant },
    /// Nothing runs; it is to be started then.
    Waiting { until: Instant },
    /// It is being started.
    Starting,
    Running {
        process: ProcessIdentity,
        since: Instant,
    },
    /// It is to end.
    Stopping {
        process: ProcessIdentity,
        stage: StopStage,
    },
}

/// How far the stopping is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopStage {
    /// The request is still to be sent.
    Ask,
    /// The request was sent; it is killed then.
    Wait { until: Instant },
    /// It has been killed.
    Killed,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start a loop, and report [`Agent::started`] or [`Agent::not_started`].
    Start,
    /// Ask this one to end, with its group.
    Terminate(ProcessIdentity),
    /// Kill it, with its group.
    Kill(ProcessIdentity),
}

/// One agent.
#[derive(Debug)]
pub(crate) struct Agent {
    policy: Policy,
    wanted: bool,
    phase: Phase,
    delays: ExponentialBackoff,
    /// How often it was restarted automatically since the last requested start.
    restarts: u32,
    /// Crashes in a row, without a loop that ran well for a while between them.
    crashes: u32,
}

impl Agent {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            delays: policy.delays(),
            policy,
            wanted: false,
            phase: Phase::Stopped,
            restarts: 0,
            crashes: 0,
        }
    }

    /// Whether the loop that runs has crashed repeatedly and has not run well for a while since.
    pub(crate) fn is_crash_looping(&self, now: Instant) -> bool {
        let Phase::Running { since, .. } = self.phase else {
            return false;
        };
        self.crashes >= CRASHES_IN_A_ROW
            && now.saturating_duration_since(since) < self.policy.settled_after
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn restarts(&self) -> u32 {
        self.restarts
    }

    /// The current process, also while it is being stopped.
    pub(crate) fn process(&self) -> Option<ProcessIdentity> {
        match self.phase {
            Phase::Running { process, .. } | Phase::Stopping { process, .. } => Some(process),
            _ => None,
        }
    }

    /// Whether a loop is started as soon as nothing is in its way.
    pub(crate) fn comes_next(&self, now: Instant) -> bool {
        match self.phase {
            Phase::Starting => true,
            Phase::Waiting { until } => until <= now,
            Phase::Stopping { .. } => self.wanted,
            _ => false,
        }
    }

    /// A loop was found that runs already.
    pub(crate) fn adopt(&mut self, process: ProcessIdentity, restarts: u32, now: Instant) {
        self.restarts = restarts;
        self.phase = Phase::Running {
            process,
            since: now,
        };
    }

    /// A requested start. A loop that runs continues.
    pub(crate) fn start(&mut self, now: Instant) {
        self.wanted = true;
        match self.phase {
            Phase::Stopped | Phase::Ended | Phase::Failed { .. } | Phase::Waiting { .. } => {
                self.afresh();
                self.phase = Phase::Waiting { until: now };
            }
            // One that is ending is started when it has ended.
            Phase::Starting | Phase::Running { .. } | Phase::Stopping { .. } => {}
        }
    }

    /// A requested stop.
    pub(crate) fn stop(&mut self) {
        self.wanted = false;
        match self.phase {
            Phase::Running { process, .. } => self.end(process),
            Phase::Stopped | Phase::Ended | Phase::Failed { .. } | Phase::Waiting { .. } => {
                self.phase = Phase::Stopped;
            }
            Phase::Starting | Phase::Stopping { .. } => {}
        }
    }

    /// A requested restart.
    pub(crate) fn restart(&mut self, now: Instant) {
        if let Phase::Running { process, .. } = self.phase {
            self.wanted = true;
            self.afresh();
            self.end(process);
        } else {
            self.start(now);
        }
    }

    /// If it is to end, no more waiting for that.
    pub(crate) fn hurry(&mut self, now: Instant) {
        if let Phase::Stopping {
            stage: StopStage::Ask | StopStage::Wait { .. },
            process,
        } = self.phase
        {
            self.phase = Phase::Stopping {
                process,
                stage: StopStage::Wait { until: now },
            };
        }
    }

    /// What is to be done now, if anything. To be asked until nothing is.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Action> {
        match self.phase {
            Phase::Waiting { until } | Phase::Failed { until } if until <= now => {
                self.phase = Phase::Starting;
                Some(Action::Start)
            }
            Phase::Stopping {
                process,
                stage: StopStage::Ask,
            } => {
                self.phase = Phase::Stopping {
                    process,
                    stage: StopStage::Wait {
                        until: later(now, self.policy.grace),
                    },
                };
                Some(Action::Terminate(process))
            }
            Phase::Stopping {
                process,
                stage: StopStage::Wait { until },
            } if until <= now => {
                self.phase = Phase::Stopping {
                    process,
                    stage: StopStage::Killed,
                };
                Some(Action::Kill(process))
            }
            _ => None,
        }
    }

    /// When [`poll`](Self::poll) has something to say if nothing happens before.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Waiting { until }
            | Phase::Failed { until }
            | Phase::Stopping {
                stage: StopStage::Wait { until },
                ..
            } => Some(until),
            _ => None,
        }
    }

    /// The loop of [`Action::Start`] runs.
    pub(crate) fn started(&mut self, process: ProcessIdentity, now: Instant) {
        self.phase = Phase::Running {
            process,
            since: now,
        };
        if !self.wanted {
            self.end(process);
        }
    }

    /// When a start is due by itself, if one is.
    pub(crate) fn starts_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Waiting { until } | Phase::Failed { until } => Some(until),
            _ => None,
        }
    }

    /// The loop of [`Action::Start`] does not run. `hopeless`: it will not, before something is put
    /// right.
    pub(crate) fn not_started(&mut self, hopeless: bool, now: Instant) {
        self.phase = match (self.wanted, hopeless) {
            (false, _) => Phase::Stopped,
            (true, true) => self.failed(now),
            (true, false) => self.later(now),
        };
    }

    /// This process has ended. Of another one than that of the agent nothing follows.
    pub(crate) fn exited(&mut self, process: ProcessIdentity, exit: Exit, now: Instant) {
        match self.phase {
            Phase::Running {
                process: running,
                since,
            } if running == process => {
                self.phase = match exit {
                    Exit::Code(IN_ORDER) => Phase::Ended,
                    Exit::Code(UNUSABLE) => self.later_failed(now),
                    _ => {
                        if now.saturating_duration_since(since) >= self.policy.settled_after {
                            self.delays = self.policy.delays();
                            self.crashes = 0;
                        }
                        self.crashes = self.crashes.saturating_add(1);
                        self.later(now)
                    }
                };
            }
            Phase::Stopping {
                process: running, ..
            } if running == process => {
                self.phase = if self.wanted {
                    Phase::Waiting { until: now }
                } else {
                    Phase::Stopped
                };
            }
            _ => {}
        }
    }

    fn end(&mut self, process: ProcessIdentity) {
        self.phase = Phase::Stopping {
            process,
            stage: StopStage::Ask,
        };
    }

    fn afresh(&mut self) {
        self.delays = self.policy.delays();
        self.restarts = 0;
        self.crashes = 0;
    }

    /// What keeps it from running can be looked at without starting it: soon again.
    pub(crate) fn look_again(&mut self, now: Instant) {
        if let Phase::Failed { .. } = self.phase {
            self.phase = self.failed(now);
        }
    }

    fn failed(&self, now: Instant) -> Phase {
        Phase::Failed {
            until: later(now, self.policy.look_again),
        }
    }

    /// Only another start shows whether it can run now.
    fn later_failed(&mut self, now: Instant) -> Phase {
        self.restarts = self.restarts.saturating_add(1);
        Phase::Failed {
            until: later(now, self.policy.longest_delay),
        }
    }

    fn later(&mut self, now: Instant) -> Phase {
        self.restarts = self.restarts.saturating_add(1);
        // It has no end.
        let delay = self.delays.next().unwrap_or(self.policy.longest_delay);
        Phase::Waiting {
            until: later(now, delay),
        }
    }
}

/// A time beyond the clock's range is never reached either.
fn later(now: Instant, delay: Duration) -> Instant {
    const YEAR: Duration = Duration::from_hours(24 * 365);
    now.checked_add(delay).unwrap_or(now + YEAR)
}

#[cfg(test)]
mod tests;
