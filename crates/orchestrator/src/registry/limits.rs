//! Concurrency limits.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use teamster_core::AgentError;

/// Limits of concurrent attempts. An absent one means no limit.
///
/// Only attempts count: a run that waits for its next one leaves its slot to others.
///
/// ```
/// use teamster_orchestrator::Limits;
///
/// let limits = Limits::default().overall(8).per_provider(4).provider("claude", 2);
/// assert_eq!(limits.of_provider("claude"), Some(2));
/// assert_eq!(limits.of_provider("codex"), Some(4));
/// assert!(limits.check().is_ok());
///
/// let error = limits.provider("codex", 0).check().unwrap_err();
/// assert_eq!(error.parameter(), Some("limits.provider"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Limits {
    /// Limit of all providers together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overall: Option<usize>,
    /// Limit of each provider that is not named in [`providers`](Self::providers).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_provider: Option<usize>,
    /// Limits of individual providers, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub providers: BTreeMap<String, usize>,
}

teamster_core::setters! {
    Limits {
        some overall: usize,
        some per_provider: usize,
    }
}

impl Limits {
    /// Sets the limit of one provider.
    #[must_use]
    pub fn provider(mut self, name: impl Into<String>, limit: usize) -> Self {
        self.providers.insert(name.into(), limit);
        self
    }

    /// Returns the limit of a provider: its own, else the limit per provider.
    pub fn of_provider(&self, name: &str) -> Option<usize> {
        self.providers.get(name).copied().or(self.per_provider)
    }

    /// Checks the limits.
    ///
    /// # Errors
    ///
    /// Fails if a limit is 0, because a run would then wait forever.
    pub fn check(&self) -> Result<(), AgentError> {
        let problem = "a limit of 0 attempts at once would let no run begin: make it 1 or more, or \
                       leave it out for no limit";
        if self.overall == Some(0) {
            return Err(AgentError::refused("limits.overall", problem));
        }
        if self.per_provider == Some(0) {
            return Err(AgentError::refused("limits.per_provider", problem));
        }
        match self.providers.iter().find(|(_, limit)| **limit == 0) {
            Some((name, _)) => Err(AgentError::refused_item("limits.provider", name, problem)),
            None => Ok(()),
        }
    }
}
