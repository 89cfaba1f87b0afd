//! Time limits of the output.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use teamster_core::provider::Phase;
use teamster_core::{AgentError, ErrorCode, ErrorKind, Timeouts};
use tokio::time::{Instant, Sleep, sleep_until};

/// Limit of the CLI's silence in each phase.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    startup: Duration,
    idle: Duration,
    tool: Duration,
    /// True if the run has MCP servers. Some CLIs wait for them before they print anything.
    servers: bool,
}

impl Limits {
    /// Creates the limits, with [`Timeouts::DEFAULT`] for unset ones.
    pub(crate) fn new(timeouts: Timeouts, servers: bool) -> Self {
        let none = Self {
            startup: Duration::MAX,
            idle: Duration::MAX,
            tool: Duration::MAX,
            servers,
        };
        none.with(timeouts.or(Timeouts::DEFAULT))
    }

    /// Returns these limits, overridden by those of one turn.
    pub(crate) fn with(self, timeouts: Timeouts) -> Self {
        Self {
            startup: timeouts.startup.unwrap_or(self.startup),
            idle: timeouts.idle.unwrap_or(self.idle),
            tool: timeouts.tool.unwrap_or(self.tool),
            servers: self.servers,
        }
    }

    /// Returns the limit of a phase; [`Duration::MAX`] for none. The end of a turn has its own grace.
    pub(crate) fn of(&self, phase: &Phase) -> Duration {
        match phase {
            Phase::Startup => self.startup,
            Phase::Model => self.idle,
            Phase::Tools(_) | Phase::Background => self.tool,
            _ => Duration::MAX,
        }
    }

    /// Creates the error of a phase in which the CLI printed nothing for too long.
    pub(crate) fn error(&self, phase: &Phase) -> AgentError {
        let limit = self.of(phase);
        let (code, message) = match phase {
            Phase::Startup => (
                ErrorCode::StartupTimeout,
                format!(
                    "the CLI printed nothing within {limit:?} of its start{}",
                    if self.servers {
                        "; perhaps it waits for an MCP server that does not answer"
                    } else {
                        ""
                    }
                ),
            ),
            Phase::Tools(names) => (
                ErrorCode::WatchdogTimeout,
                format!(
                    "the CLI printed nothing for {limit:?} while {} ran: {}",
                    if names.len() == 1 { "a tool" } else { "tools" },
                    names.join(", ")
                ),
            ),
            Phase::Background => (
                ErrorCode::WatchdogTimeout,
                format!(
                    "the CLI printed nothing for {limit:?} while it waited for work in the background"
                ),
            ),
            _ => (
                ErrorCode::WatchdogTimeout,
                format!("the CLI printed nothing for {limit:?} while the model worked"),
            ),
        };
        AgentError::new(code, ErrorKind::Timeout, message)
    }
}

/// Returns the time `limit` after `start`; `None` on overflow.
pub(crate) fn deadline(start: Instant, limit: Duration) -> Option<Instant> {
    start.checked_add(limit)
}

pin_project! {
    /// A timer whose deadline moves often and is seldom reached.
    ///
    /// Moving it later only stores the new time. The timer wheel is updated when the old time is reached.
    pub(crate) struct Alarm {
        #[pin]
        sleep: Option<Sleep>,
        deadline: Option<Instant>,
    }
}

impl Alarm {
    pub(crate) fn new() -> Self {
        Self {
            sleep: None,
            deadline: None,
        }
    }

    /// Sets the deadline; `None` for never.
    pub(crate) fn set(self: Pin<&mut Self>, deadline: Option<Instant>) {
        *self.project().deadline = deadline;
    }

    /// Ready at the deadline, and until the deadline is moved.
    pub(crate) fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        let Some(deadline) = *this.deadline else {
            // The old time would wake the task needlessly.
            this.sleep.set(None);
            return Poll::Pending;
        };
        match this.sleep.as_mut().as_pin_mut() {
            None => this.sleep.set(Some(sleep_until(deadline))),
            Some(mut sleep) => {
                let early = sleep.deadline() < deadline;
                if sleep.deadline() > deadline || (early && sleep.is_elapsed()) {
                    sleep.as_mut().reset(deadline);
                }
            }
        }
        // At most twice: once for an old time that was reached, once for the new one.
        while let Some(mut sleep) = this.sleep.as_mut().as_pin_mut() {
            if sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            if sleep.deadline() >= deadline {
                return Poll::Ready(());
            }
            sleep.reset(deadline);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;

    #[test]
    fn each_phase_has_its_limit_and_is_named_by_the_error() {
        let timeouts = Timeouts {
            idle: Some(Duration::from_secs(7)),
            ..Timeouts::default()
        };
        let waits = Limits::new(timeouts, true).error(&Phase::Startup).message;
        let hint = "of its start; perhaps it waits for an MCP server that does not answer";
        assert!(waits.ends_with(hint), "{waits}");
        let limits = Limits::new(timeouts, false);
        assert_eq!(limits.of(&Phase::Startup), Duration::from_mins(2));
        assert_eq!(limits.of(&Phase::Background), Duration::from_mins(30));
        assert_eq!(limits.of(&Phase::Ended), Duration::MAX);
        let startup = limits.error(&Phase::Startup);
        assert_eq!(startup.code, ErrorCode::StartupTimeout);
        assert_eq!(startup.kind, ErrorKind::Timeout);
        assert_eq!(
            startup.message,
            "the CLI printed nothing within 120s of its start"
        );
        let tools = limits.error(&Phase::Tools(vec!["Bash".into(), "Read".into()]));
        assert_eq!(tools.code, ErrorCode::WatchdogTimeout);
        assert_eq!(
            tools.message,
            "the CLI printed nothing for 1800s while tools ran: Bash, Read"
        );
        assert_eq!(
            limits.error(&Phase::Background).message,
            "the CLI printed nothing for 1800s while it waited for work in the background"
        );
        assert_eq!(
            limits.error(&Phase::Model).message,
            "the CLI printed nothing for 7s while the model worked"
        );
    }

    #[test]
    fn a_model_may_be_silent_for_five_minutes() {
        let limits = Limits::new(Timeouts::default(), false);
        assert_eq!(limits.of(&Phase::Model), Duration::from_mins(5));
    }

    #[test]
    fn the_longest_duration_is_no_limit() {
        assert_eq!(deadline(Instant::now(), Duration::MAX), None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_alarm_follows_its_deadline_both_ways() {
        let start = Instant::now();
        let at = |seconds| Some(start + Duration::from_secs(seconds));
        let mut alarm = pin!(Alarm::new());
        alarm.as_mut().set(at(10));
        assert!(
            poll_fn(|cx| Poll::Ready(alarm.as_mut().poll(cx)))
                .await
                .is_pending()
        );
        alarm.as_mut().set(at(20));
        poll_fn(|cx| alarm.as_mut().poll(cx)).await;
        assert_eq!(start.elapsed().as_secs(), 20);
        alarm.as_mut().set(at(100));
        assert!(
            poll_fn(|cx| Poll::Ready(alarm.as_mut().poll(cx)))
                .await
                .is_pending()
        );
        alarm.as_mut().set(at(30));
        poll_fn(|cx| alarm.as_mut().poll(cx)).await;
        assert_eq!(start.elapsed().as_secs(), 30);
        alarm.as_mut().set(at(5));
        poll_fn(|cx| alarm.as_mut().poll(cx)).await;
        assert_eq!(start.elapsed().as_secs(), 30);
    }
}
