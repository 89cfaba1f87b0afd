//! Time limits of a run.

use std::time::Duration;

use crate::setters::setters;

/// Limits of the time without a line from the CLI.
///
/// `None` selects the default of the next layer: run, runtime, provider, engine. [`Duration::MAX`] disables a
/// limit.
///
/// ```
/// use std::time::Duration;
///
/// use teamster_core::Timeouts;
///
/// let timeouts = Timeouts::default().idle(Duration::from_secs(90));
/// assert_eq!(timeouts.idle, Some(Duration::from_secs(90)));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "config",
    derive(serde::Serialize, serde::Deserialize),
    serde(default, rename_all = "camelCase", deny_unknown_fields)
)]
pub struct Timeouts {
    /// Time until the first line.
    #[cfg_attr(
        feature = "config",
        serde(with = "humantime_serde", skip_serializing_if = "Option::is_none")
    )]
    pub startup: Option<Duration>,
    /// Time between lines while no tool runs.
    #[cfg_attr(
        feature = "config",
        serde(with = "humantime_serde", skip_serializing_if = "Option::is_none")
    )]
    pub idle: Option<Duration>,
    /// Time between lines while a tool runs.
    #[cfg_attr(
        feature = "config",
        serde(with = "humantime_serde", skip_serializing_if = "Option::is_none")
    )]
    pub tool: Option<Duration>,
}

setters! {
    Timeouts {
        some startup: Duration,
        some idle: Duration,
        some tool: Duration,
    }
}

impl Timeouts {
    /// The limits of a CLI whose provider sets none: 2 minutes, 5 minutes and 30 minutes. Every field is set.
    pub const DEFAULT: Self = Self {
        startup: Some(Duration::from_mins(2)),
        idle: Some(Duration::from_mins(5)),
        tool: Some(Duration::from_mins(30)),
    };

    /// Returns these limits, with unset ones taken from `below`.
    #[must_use]
    pub fn or(self, below: Self) -> Self {
        Self {
            startup: self.startup.or(below.startup),
            idle: self.idle.or(below.idle),
            tool: self.tool.or(below.tool),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_are_not_set_come_from_the_next_layer() {
        let seconds = |s| Some(Duration::from_secs(s));
        let own = Timeouts::default().idle(Duration::from_secs(1));
        let below = Timeouts {
            startup: seconds(2),
            idle: seconds(3),
            tool: None,
        };
        let both = own.or(below);
        assert_eq!(
            (both.startup, both.idle, both.tool),
            (seconds(2), seconds(1), None)
        );
        let all = both.or(Timeouts::DEFAULT);
        assert_eq!(all.tool, seconds(30 * 60));
        assert_eq!(Timeouts::default().or(Timeouts::DEFAULT), Timeouts::DEFAULT);
        let (startup, idle) = (Timeouts::DEFAULT.startup, Timeouts::DEFAULT.idle);
        assert_eq!((startup, idle), (seconds(120), seconds(300)));
    }
}
