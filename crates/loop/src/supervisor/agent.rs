//! State machine of one agent's process. Pure: the caller gives the time and performs the actions.

use std::fmt;
use std::time::{Duration, Instant};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use serde::Deserialize;
use teamster_process::ProcessIdentity;

/// Delays and time limits of a supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Policy {
    /// Delay before the first restart of a crashed loop. It doubles with every crash. Default: 1 s.
    #[serde(with = "humantime_serde")]
    pub first_delay: Duration,
    /// Longest delay before a restart. Default: 5 min.
    #[serde(with = "humantime_serde")]
    pub longest_delay: Duration,
    /// Run time after which a crash counts as the first one again. Default: 5 min.
    #[serde(with = "humantime_serde")]
    pub settled_after: Duration,
    /// Interval of the checks for a missing directory or instructions file. Default: 30 s.
    #[serde(with = "humantime_serde")]
    pub look_again: Duration,
    /// Time that a loop may take to end before it is killed. Default: 5 s.
    #[serde(with = "humantime_serde")]
    pub grace: Duration,
}

teamster_core::setters! {
    Policy {
        set first_delay: Duration,
        set longest_delay: Duration,
        set settled_after: Duration,
        set look_again: Duration,
        set grace: Duration,
    }
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// The process exited with this code.
    Code(i32),
    /// The process was killed by this signal.
    Signal(i32),
    /// The process was no child of this supervisor.
    Unknown,
}

/// Crashes in a row that make a crash loop. A single crash may have an external cause.
const CRASHES_IN_A_ROW: u32 = 2;
/// Exit code of a clean exit: another program asked the loop to end.
const CLEAN_EXIT: i32 = 0;
/// Exit code of a loop whose directory or settings are invalid. It is restarted after the longest delay.
pub(super) const UNUSABLE: i32 = 2;

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(CLEAN_EXIT) => write!(f, "exited cleanly"),
            Self::Code(UNUSABLE) => {
                write!(
                    f,
                    "exited with code 2: its directory or a setting cannot be used, or another loop is \
                     running there; see its log"
                )
            }
            Self::Code(code) => write!(f, "exited with code {code}"),
            Self::Signal(signal) => match nix::sys::signal::Signal::try_from(*signal) {
                Ok(signal) => write!(f, "killed by {signal}"),
                Err(_) => write!(f, "killed by signal {signal}"),
            },
            Self::Unknown => write!(f, "ended"),
        }
    }
}

/// State of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No loop runs, and none is to be started.
    Stopped,
    /// The loop ended cleanly without a request of this supervisor. It is not restarted automatically.
    Ended,
    /// The loop cannot run until a problem is fixed. The next attempt is at `until`.
    Failed { until: Instant },
    /// No loop runs. It is started at `until`.
    Waiting { until: Instant },
    /// The loop is being started.
    Starting,
    Running {
        process: ProcessIdentity,
        since: Instant,
    },
    /// The loop is being stopped.
    Stopping {
        process: ProcessIdentity,
        stage: StopStage,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopStage {
    /// SIGTERM has not been sent yet.
    Requested,
    /// SIGTERM was sent. The process is killed at `until`.
    Grace { until: Instant },
    /// SIGKILL was sent.
    Killed,
}

/// Action for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Start a loop and report it with [`Agent::started`] or [`Agent::not_started`].
    Start,
    /// Send SIGTERM to the group of this process.
    Terminate(ProcessIdentity),
    /// Send SIGKILL to the group of this process.
    Kill(ProcessIdentity),
}

/// State machine of one agent.
#[derive(Debug)]
pub(crate) struct Agent {
    policy: Policy,
    wanted: bool,
    phase: Phase,
    delays: ExponentialBackoff,
    /// Automatic restarts since the last requested start.
    restarts: u32,
    /// Crashes in a row, without a loop that ran for `settled_after` between them.
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

    /// Returns whether the running loop has crashed repeatedly and has not run for `settled_after` since.
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

    /// Returns the current process, even while it is being stopped.
    pub(crate) fn process(&self) -> Option<ProcessIdentity> {
        match self.phase {
            Phase::Running { process, .. } | Phase::Stopping { process, .. } => Some(process),
            _ => None,
        }
    }

    /// Returns whether a start is due, or follows the current stop.
    pub(crate) fn starts_next(&self, now: Instant) -> bool {
        match self.phase {
            Phase::Starting => true,
            Phase::Waiting { until } => until <= now,
            Phase::Stopping { .. } => self.wanted,
            _ => false,
        }
    }

    /// Adopts a loop that runs already.
    pub(crate) fn adopt(&mut self, process: ProcessIdentity, restarts: u32, now: Instant) {
        self.restarts = restarts;
        self.phase = Phase::Running {
            process,
            since: now,
        };
    }

    /// Requests a start. A running loop continues.
    pub(crate) fn start(&mut self, now: Instant) {
        self.wanted = true;
        match self.phase {
            Phase::Stopped | Phase::Ended | Phase::Failed { .. } | Phase::Waiting { .. } => {
                self.reset_backoff();
                self.phase = Phase::Waiting { until: now };
            }
            // A stopping loop is started after its end.
            Phase::Starting | Phase::Running { .. } | Phase::Stopping { .. } => {}
        }
    }

    pub(crate) fn stop(&mut self) {
        self.wanted = false;
        match self.phase {
            Phase::Running { process, .. } => self.begin_stop(process),
            Phase::Stopped | Phase::Ended | Phase::Failed { .. } | Phase::Waiting { .. } => {
                self.phase = Phase::Stopped;
            }
            Phase::Starting | Phase::Stopping { .. } => {}
        }
    }

    pub(crate) fn restart(&mut self, now: Instant) {
        if let Phase::Running { process, .. } = self.phase {
            self.wanted = true;
            self.reset_backoff();
            self.begin_stop(process);
        } else {
            self.start(now);
        }
    }

    pub(crate) fn skip_grace(&mut self, now: Instant) {
        if let Phase::Stopping {
            stage: StopStage::Requested | StopStage::Grace { .. },
            process,
        } = self.phase
        {
            self.phase = Phase::Stopping {
                process,
                stage: StopStage::Grace { until: now },
            };
        }
    }

    /// Returns the next action. The caller repeats the call until it returns `None`.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Action> {
        match self.phase {
            Phase::Waiting { until } | Phase::Failed { until } if until <= now => {
                self.phase = Phase::Starting;
                Some(Action::Start)
            }
            Phase::Stopping {
                process,
                stage: StopStage::Requested,
            } => {
                self.phase = Phase::Stopping {
                    process,
                    stage: StopStage::Grace {
                        until: saturating_add(now, self.policy.grace),
                    },
                };
                Some(Action::Terminate(process))
            }
            Phase::Stopping {
                process,
                stage: StopStage::Grace { until },
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

    /// Returns when [`poll`](Self::poll) has the next action, without further input.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.phase {
            Phase::Stopping {
                stage: StopStage::Grace { until },
                ..
            } => Some(until),
            _ => self.starts_at(),
        }
    }

    /// Reports that the loop of [`Action::Start`] runs.
    pub(crate) fn started(&mut self, process: ProcessIdentity, now: Instant) {
        self.phase = Phase::Running {
            process,
            since: now,
        };
        if !self.wanted {
            self.begin_stop(process);
        }
    }

    /// Returns the time of the next scheduled start.
    pub(crate) fn starts_at(&self) -> Option<Instant> {
        match self.phase {
            Phase::Waiting { until } | Phase::Failed { until } => Some(until),
            _ => None,
        }
    }

    /// Reports that [`Action::Start`] failed. `hopeless`: it fails until a problem is fixed.
    pub(crate) fn not_started(&mut self, hopeless: bool, now: Instant) {
        self.phase = match (self.wanted, hopeless) {
            (false, _) => Phase::Stopped,
            (true, true) => self.recheck_phase(now),
            (true, false) => self.backoff_phase(now),
        };
    }

    /// Reports the exit of a process. The exit of any other process than the agent's is ignored.
    pub(crate) fn exited(&mut self, process: ProcessIdentity, exit: Exit, now: Instant) {
        match self.phase {
            Phase::Running {
                process: running,
                since,
            } if running == process => {
                self.phase = match exit {
                    Exit::Code(CLEAN_EXIT) => Phase::Ended,
                    Exit::Code(UNUSABLE) => self.restart_phase(now),
                    _ => {
                        if now.saturating_duration_since(since) >= self.policy.settled_after {
                            self.delays = self.policy.delays();
                            self.crashes = 0;
                        }
                        self.crashes = self.crashes.saturating_add(1);
                        self.backoff_phase(now)
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

    fn begin_stop(&mut self, process: ProcessIdentity) {
        self.phase = Phase::Stopping {
            process,
            stage: StopStage::Requested,
        };
    }

    fn reset_backoff(&mut self) {
        self.delays = self.policy.delays();
        self.restarts = 0;
        self.crashes = 0;
    }

    /// Schedules an early retry, because the problem can be checked without a start.
    pub(crate) fn recheck(&mut self, now: Instant) {
        if let Phase::Failed { .. } = self.phase {
            self.phase = self.recheck_phase(now);
        }
    }

    fn recheck_phase(&self, now: Instant) -> Phase {
        Phase::Failed {
            until: saturating_add(now, self.policy.look_again),
        }
    }

    /// Schedules a late retry, because only a start shows whether the problem is fixed.
    fn restart_phase(&mut self, now: Instant) -> Phase {
        self.restarts = self.restarts.saturating_add(1);
        Phase::Failed {
            until: saturating_add(now, self.policy.longest_delay),
        }
    }

    fn backoff_phase(&mut self, now: Instant) -> Phase {
        self.restarts = self.restarts.saturating_add(1);
        // The iterator is endless.
        let delay = self.delays.next().unwrap_or(self.policy.longest_delay);
        Phase::Waiting {
            until: saturating_add(now, delay),
        }
    }
}

/// Adds a delay to a time. A result beyond the clock's range becomes a time in a year.
fn saturating_add(now: Instant, delay: Duration) -> Instant {
    const YEAR: Duration = Duration::from_hours(24 * 365);
    now.checked_add(delay).unwrap_or(now + YEAR)
}

#[cfg(test)]
mod tests;
