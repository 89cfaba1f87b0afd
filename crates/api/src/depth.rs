//! The depth of agents that start agents.

use serde::{Deserialize, Serialize};

/// Depth of an agent among agents that start agents, and its limit.
///
/// An agent without one was started by no other, or by one whose depth is unknown.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct AgentDepth {
    /// The number of runs around the agent, its own included.
    pub own: u32,
    /// The depth from which on an agent starts no others. Absent: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

impl AgentDepth {
    /// Creates the depth with this limit.
    pub fn new(own: u32, limit: Option<u32>) -> Self {
        Self { own, limit }
    }

    /// Returns whether an agent at this depth may start others.
    pub fn allows_runs(self) -> bool {
        self.limit.is_none_or(|limit| self.own < limit)
    }

    /// Returns the depth of an agent that one at this depth starts.
    #[must_use]
    pub fn deeper(self) -> Self {
        Self {
            own: self.own.saturating_add(1),
            ..self
        }
    }

    /// Returns the greater depth and the lower limit of both, so that neither lifts a limit of the other.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let limits = self.limit.into_iter().chain(other.limit);
        Self {
            own: self.own.max(other.own),
            limit: limits.min(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_at_the_limit_starts_no_other() {
        let depth = |own, limit| AgentDepth::new(own, Some(limit));
        assert!(depth(0, 1).allows_runs());
        assert!(!depth(1, 1).allows_runs());
        assert!(!depth(0, 0).allows_runs());
        assert!(AgentDepth::new(u32::MAX, None).allows_runs());
        assert_eq!(depth(1, 3).deeper(), depth(2, 3));
    }

    #[test]
    fn the_stricter_of_two_depths_counts() {
        let none = AgentDepth::new(0, None);
        let deep = AgentDepth::new(2, Some(3));
        assert_eq!(none.and(deep), deep);
        assert_eq!(deep.and(none), deep);
        let low = AgentDepth::new(1, Some(1));
        assert_eq!(deep.and(low), AgentDepth::new(2, Some(1)));
    }

    #[test]
    fn a_depth_without_a_limit_has_none_in_its_json() {
        let json = serde_json::to_value(AgentDepth::new(2, None)).unwrap();
        assert_eq!(json, serde_json::json!({"own": 2}));
        let read: AgentDepth = serde_json::from_value(json).unwrap();
        assert_eq!(read, AgentDepth::new(2, None));
        let wrong = serde_json::json!({"own": 2, "most": 3});
        let error = serde_json::from_value::<AgentDepth>(wrong).unwrap_err();
        assert!(error.to_string().contains("`most`"), "{error}");
    }
}
