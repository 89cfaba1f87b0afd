//! Policies for failed attempts: which kinds of errors are retried, and the lengths of delays.
//!
//! `plan` applies them.

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use derive_setters::Setters;
use serde::{Deserialize, Serialize};
use teamster_core::{AgentError, ErrorKind, ToolUse};

/// Reaction to an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Action {
    /// Try the same candidate again after a delay; when its retries are spent, or the service wants a
    /// longer wait than [`RetryPolicy::max_wait`], as [`FallBack`](Self::FallBack).
    Retry,
    /// Wait until the limit resets and try the same candidate again. That does not count as a retry.
    /// When the reset is not known, is past, or is further away than [`RetryPolicy::max_wait`], as
    /// [`FallBack`](Self::FallBack). When the limit is not over then, further waits last at least as
    /// long as the delays of retries, even if the service names a shorter one.
    Wait,
    /// Try the next candidate at once. If there is none and the error is a limit that resets soon
    /// enough, as [`Wait`](Self::Wait); else the run ends.
    FallBack,
    /// End the run.
    End,
}

impl Action {
    /// The decision table: what is done after an error of this kind.
    ///
    /// | Kind | Action |
    /// |---|---|
    /// | `rate_limit`, `overloaded`, `network`, `timeout`, `protocol` | retry |
    /// | `quota` | fall back; without another candidate, wait |
    /// | `auth`, `model_not_found`, `not_found`, `context_window`, `internal` | fall back |
    /// | `session_not_found`, `permission`, `budget`, `max_turns`, `mcp`, `aborted`, `invalid` | end |
    ///
    /// The error's own property ([`AgentError::retryable`]) corrects the table:
    /// [`RetryPolicy::action`].
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
            // Another candidate would lose the conversation, meet the same denial, spend more than
            // was allowed, or be asked the same wrong thing.
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
#[derive(Debug, Clone, PartialEq, Deserialize, Setters)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How often each candidate is tried again. 2.
    pub retries: u32,
    /// The most attempts of the whole run, those after a wait for a quota not counted. No limit.
    pub max_attempts: Option<u32>,
    /// No attempt begins later than this after the run's acceptance, also not the first one when it
    /// had to wait for a slot. What would take too long to wait for falls back at once. No limit.
    #[serde(with = "humantime_serde")]
    pub max_elapsed: Option<Duration>,
    /// The delay before the first retry, where the service names none; it doubles with each. 1 s.
    #[serde(with = "humantime_serde")]
    pub base_delay: Duration,
    /// The longest such delay. 1 min.
    #[serde(with = "humantime_serde")]
    pub max_delay: Duration,
    /// Add a random part to each such delay, up to its own length, so that runs that failed together
    /// do not come again together. On.
    pub jitter: bool,
    /// The longest wait that a service can require (`retryAfterMs`, `resetsAt`), or that happens because
    /// its provider is on hold. 5 min.
    #[serde(with = "humantime_serde")]
    pub max_wait: Duration,
    /// Other actions than those of [`Action::for_kind`]. An entry here applies independently of
    /// [`AgentError::retryable`].
    #[setters(skip)]
    pub actions: HashMap<ErrorKind, Action>,
    /// Reaction once something has been changed.
    pub side_effects: SideEffects,
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
    /// One attempt and no more; fallbacks are tried.
    pub fn none() -> Self {
        Self {
            retries: 0,
            ..Self::default()
        }
    }

    /// Sets the action for errors of this kind, in place of [`Action::for_kind`].
    #[must_use]
    pub fn on(mut self, kind: ErrorKind, action: Action) -> Self {
        self.actions.insert(kind, action);
        self
    }

    /// The action after this error: that of the policy for its kind, else that of the table
    /// ([`Action::for_kind`]), corrected by the error's own property: one that the table would
    /// retry but that is marked as permanent falls back; an internal one that is marked as temporary is
    /// retried.
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

    /// Whether it may try again after a wait, which is no retry.
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

/// Reaction of a run once a tool has been used that can change things. The prompt is never sent again
/// then: the agent would do it all again.
#[derive(Clone, Deserialize, Setters)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct SideEffects {
    /// The alternative to a new start.
    pub then: AfterSideEffects,
    /// The prompt that the agent gets when its session is resumed. Calls that were cut off are named after it: some
    /// CLIs forget them.
    #[setters(into)]
    pub continuation: String,
    /// Which uses of tools count; unset, those whose kind
    /// [has side effects](teamster_core::ToolKind::has_side_effects). For example to say which tools of
    /// an MCP server only read. Changes of files that the stream reports always count.
    #[serde(skip)]
    #[setters(skip)]
    pub counts: Option<SideEffectRule>,
}

/// Decides whether a use of a tool can change things.
pub type SideEffectRule = Arc<dyn Fn(&ToolUse) -> bool + Send + Sync>;

/// The alternative to a new start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AfterSideEffects {
    /// The session is resumed with a continuation, by a candidate of the same provider; where that
    /// cannot be, the run ends.
    #[default]
    Resume,
    /// The run ends.
    End,
}

impl SideEffects {
    /// Decides by this rule which uses of tools count.
    #[must_use]
    pub fn count_if(mut self, rule: impl Fn(&ToolUse) -> bool + Send + Sync + 'static) -> Self {
        self.counts = Some(Arc::new(rule));
        self
    }

    /// Whether this use of a tool counts. It does if the caller's rule panics.
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

impl fmt::Debug for SideEffects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SideEffects")
            .field("then", &self.then)
            .field("continuation", &self.continuation)
            .field(
                "counts",
                &self.counts.as_ref().map(|_| "a rule of the caller's"),
            )
            .finish()
    }
}

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
