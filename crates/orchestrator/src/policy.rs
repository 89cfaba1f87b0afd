//! Policies for failed attempts: which kinds of errors are retried, and the lengths of delays.
//!
//! The module `plan` applies them.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use teamster_core::{AgentError, ErrorKind, ToolUse};

/// Reaction to an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Action {
    /// Try the same candidate again after a delay. If its retries are used up, or the service requires a longer wait
    /// than [`RetryPolicy::max_wait`], this acts as [`FallBack`](Self::FallBack).
    Retry,
    /// Wait until the limit resets and try the same candidate again, which does not count as a retry.
    ///
    /// If the reset is unknown, in the past, or further away than [`RetryPolicy::max_wait`], this acts as
    /// [`FallBack`](Self::FallBack). If the limit still applies after the wait, further waits last at least as long as
    /// the delays of retries, even if the service names a shorter one.
    Wait,
    /// Try the next candidate at once. If there is none and the error is a limit that resets soon enough, this acts as
    /// [`Wait`](Self::Wait). Otherwise the run ends.
    FallBack,
    /// End the run.
    End,
}

impl Action {
    /// Returns the default action for an error of this kind.
    ///
    /// | Kind | Action |
    /// |---|---|
    /// | `rate_limit`, `overloaded`, `network`, `timeout`, `protocol` | retry |
    /// | `quota` | fall back; without another candidate, wait |
    /// | `auth`, `model_not_found`, `not_found`, `context_window`, `internal` | fall back |
    /// | `session_not_found`, `permission`, `budget`, `max_turns`, `mcp`, `aborted`, `invalid` | end |
    ///
    /// [`RetryPolicy::action`] corrects the table by the error's own property ([`AgentError::retryable`]).
    pub fn for_kind(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::RateLimit
            | ErrorKind::Overloaded
            | ErrorKind::Network
            | ErrorKind::Timeout
            | ErrorKind::Protocol => Self::Retry,
            ErrorKind::Quota
            | ErrorKind::Auth
            | ErrorKind::ModelNotFound
            | ErrorKind::NotFound
            | ErrorKind::ContextWindow
            | ErrorKind::Internal => Self::FallBack,
            // Another candidate would lose the conversation, meet the same denial, exceed the budget, or get the same
            // invalid request.
            _ => Self::End,
        }
    }
}

/// Policy for failed attempts: reactions, delays and limits.
///
/// ```
/// use teamster_core::ErrorKind;
/// use teamster_orchestrator::{Action, RetryPolicy};
///
/// let policy = RetryPolicy::default()
///     .retries(1)
///     .on(ErrorKind::Auth, Action::End);
/// assert_eq!(policy.retries, 1);
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// Number of retries of each candidate. Default: 2.
    pub retries: u32,
    /// Maximum number of attempts of the run, excluding those after a wait for a quota. Default: no limit.
    pub max_attempts: Option<u32>,
    /// Time after the run's acceptance in which attempts may begin. It applies to the first attempt too, which may wait
    /// for a slot. A wait beyond it falls back at once. Default: no limit.
    #[serde(with = "humantime_serde")]
    pub max_elapsed: Option<Duration>,
    /// Delay before the first retry if the service names none. It doubles with each retry. Default: 1 s.
    #[serde(with = "humantime_serde")]
    pub base_delay: Duration,
    /// Maximum of such a delay. Default: 1 min.
    #[serde(with = "humantime_serde")]
    pub max_delay: Duration,
    /// Add a random part to each such delay, up to its own length, so that runs that failed together do not retry
    /// together. Default: on.
    pub jitter: bool,
    /// Maximum wait that a service requires (`retryAfterMs`, `resetsAt`) or that a hold on the provider causes.
    /// Default: 5 min.
    #[serde(with = "humantime_serde")]
    pub max_wait: Duration,
    /// Overrides of [`Action::for_kind`]. They apply regardless of [`AgentError::retryable`].
    pub actions: HashMap<ErrorKind, Action>,
    /// Reaction to failures after side effects.
    pub side_effects: SideEffects,
}

teamster_core::setters! {
    RetryPolicy {
        set retries: u32,
        some max_attempts: u32,
        some max_elapsed: Duration,
        set base_delay: Duration,
        set max_delay: Duration,
        set jitter: bool,
        set max_wait: Duration,
        set side_effects: SideEffects,
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 2,
            max_attempts: None,
            max_elapsed: None,
            base_delay: Duration::from_secs(1),
            max_delay: Duration::from_mins(1),
            jitter: true,
            max_wait: Duration::from_mins(5),
            actions: HashMap::new(),
            side_effects: SideEffects::default(),
        }
    }
}

impl RetryPolicy {
    /// Creates a policy without retries. Fallbacks are still tried.
    pub fn none() -> Self {
        Self {
            retries: 0,
            ..Self::default()
        }
    }

    /// Sets the retries and the longest wait for a limit to reset that a user has chosen. Without a wait of the user's, it
    /// is the default one; no retries then mean no waits either.
    ///
    /// ```
    /// use std::time::Duration;
    /// use teamster_core::ErrorKind;
    /// use teamster_orchestrator::{Action, RetryPolicy};
    ///
    /// let patient = RetryPolicy::default().chosen(0, Some(Duration::from_mins(1)));
    /// assert_eq!(patient.actions[&ErrorKind::RateLimit], Action::Wait);
    /// assert_eq!(RetryPolicy::default().chosen(0, None).max_wait, Duration::ZERO);
    /// ```
    #[must_use]
    pub fn chosen(mut self, retries: u32, max_wait: Option<Duration>) -> Self {
        self.retries = retries;
        self.max_wait = match max_wait {
            Some(longest) => longest,
            None if retries == 0 => Duration::ZERO,
            None => Self::default().max_wait,
        };
        if retries == 0 && max_wait.is_some() {
            // Waiting for a limit is not a retry. Limits of other kinds are waited for by default.
            self.actions.insert(ErrorKind::RateLimit, Action::Wait);
        }
        self
    }

    /// Sets the action for errors of this kind, in place of [`Action::for_kind`].
    #[must_use]
    pub fn on(mut self, kind: ErrorKind, action: Action) -> Self {
        self.actions.insert(kind, action);
        self
    }

    /// Returns the action for this error.
    ///
    /// An entry in [`actions`](Self::actions) for its kind takes precedence. Otherwise it is the action of
    /// [`Action::for_kind`], with two corrections. An error that the table would retry but that is marked as permanent
    /// falls back. An internal error that is marked as temporary is retried.
    ///
    /// ```
    /// use teamster_core::{AgentError, ErrorCode, ErrorKind};
    /// use teamster_orchestrator::{Action, RetryPolicy};
    ///
    /// let policy = RetryPolicy::default();
    /// let error = AgentError::new(ErrorCode::CliError, ErrorKind::Quota, "used up");
    /// assert_eq!(policy.action(&error), Action::FallBack);
    /// let policy = policy.on(ErrorKind::Quota, Action::Wait);
    /// assert_eq!(policy.action(&error), Action::Wait);
    /// ```
    pub fn action(&self, error: &AgentError) -> Action {
        if let Some(action) = self.actions.get(&error.kind) {
            return *action;
        }
        match (Action::for_kind(error.kind), error.retryable) {
            (Action::Retry, false) => Action::FallBack,
            (Action::FallBack, true) if error.kind == ErrorKind::Internal => Action::Retry,
            (action, _) => action,
        }
    }

    /// Returns whether the policy may try again after a wait that does not count as a retry.
    pub(crate) fn may_wait(&self) -> bool {
        let limits = [ErrorKind::Quota, ErrorKind::RateLimit];
        let falls_back = limits.into_iter().any(|kind| {
            let action = self.actions.get(&kind).copied();
            action.unwrap_or_else(|| Action::for_kind(kind)) != Action::End
        });
        let waits = self.actions.values().any(|action| *action == Action::Wait);
        !self.max_wait.is_zero() && (falls_back || waits)
    }
}

/// Reaction of a run after a tool was used that can change things. The prompt is never sent again then, because the
/// agent would repeat the changes.
#[derive(Clone, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct SideEffects {
    /// Action in place of a new start.
    pub then: AfterSideEffects,
    /// Prompt for the agent when its session is resumed. Interrupted calls are listed after it, because some CLIs
    /// forget them.
    pub continuation: String,
    /// Rule for which tool uses count as side effects. Default: those whose kind
    /// [has side effects](teamster_core::ToolKind::has_side_effects). A rule can, for example, exempt the read-only
    /// tools of an MCP server. File changes that the stream reports always count.
    #[serde(skip)]
    pub counts: Option<SideEffectRule>,
}

teamster_core::setters! {
    SideEffects {
        set then: AfterSideEffects,
        into continuation: String,
    }
}

/// Returns whether a tool use can change things.
pub type SideEffectRule = Arc<dyn Fn(&ToolUse) -> bool + Send + Sync>;

/// Action in place of a new start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AfterSideEffects {
    /// The session is resumed with a continuation, by a candidate of the same provider. If that is not possible, the
    /// run ends.
    #[default]
    Resume,
    /// The run ends.
    End,
}

impl SideEffects {
    /// Returns whether this tool use counts. If the caller's rule panics, it does.
    pub fn counts(&self, tool: &ToolUse) -> bool {
        match &self.counts {
            Some(rule) => catch_unwind(AssertUnwindSafe(|| rule(tool))).unwrap_or(true),
            None => tool.kind.has_side_effects(),
        }
    }
}

impl Default for SideEffects {
    fn default() -> Self {
        Self {
            then: AfterSideEffects::default(),
            continuation:
                "Your last turn was cut off by a technical error before it was finished. Look \
                           at what has been done already, do not do it again, and go on from there."
                    .into(),
            counts: None,
        }
    }
}

teamster_core::debug_fields!(SideEffects |it| {
    then: it.then,
    continuation: it.continuation,
    counts: it.counts.as_ref().map(|_| "a rule of the caller's"),
});

impl PartialEq for SideEffects {
    fn eq(&self, other: &Self) -> bool {
        self.then == other.then
            && self.continuation == other.continuation
            && match (&self.counts, &other.counts) {
                (Some(a), Some(b)) => Arc::ptr_eq(a, b),
                (None, None) => true,
                _ => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_waits_for_a_limit_unless_no_action_may() {
        let ends = RetryPolicy::default()
            .on(ErrorKind::Quota, Action::End)
            .on(ErrorKind::RateLimit, Action::End);
        for (policy, waits) in [
            (RetryPolicy::default(), true),
            (RetryPolicy::default().max_wait(Duration::ZERO), false),
            (
                RetryPolicy::default().on(ErrorKind::Quota, Action::End),
                true,
            ),
            (ends.clone(), false),
            (ends.clone().on(ErrorKind::Auth, Action::Retry), false),
            (ends.on(ErrorKind::Auth, Action::Wait), true),
        ] {
            assert_eq!(policy.may_wait(), waits, "{policy:?}");
        }
    }

    #[test]
    fn a_policy_is_read_from_configuration() {
        let json = r#"{"retries": 1, "maxWait": "10m", "maxElapsed": "1h",
            "actions": {"auth": "end", "quota": "wait", "network": "fall-back"},
            "sideEffects": {"then": "end"}}"#;
        let policy: RetryPolicy = serde_json::from_str(json).unwrap();
        let mut expected = RetryPolicy::default()
            .retries(1)
            .max_wait(Duration::from_mins(10))
            .max_elapsed(Duration::from_hours(1))
            .on(ErrorKind::Auth, Action::End)
            .on(ErrorKind::Quota, Action::Wait)
            .on(ErrorKind::Network, Action::FallBack);
        expected.side_effects.then = AfterSideEffects::End;
        assert_eq!(policy, expected);
        let typo = serde_json::from_str::<RetryPolicy>(r#"{"retry": 1}"#);
        assert!(typo.unwrap_err().to_string().contains("retry"));
    }
}
