//! The nesting depth of agents that start agents.
//!
//! An agent gets its depth in its environment. Its CLI may clear the environment of the programs that it starts, so they
//! read the environments of their ancestors, too.

use std::collections::BTreeMap;

use teamster_api::AgentDepth;

use crate::environment;

/// The number of runs around a process.
const DEPTH: &str = "TEAMSTER_AGENT_DEPTH";
/// The limit of the outermost program that set one.
const LIMIT: &str = "TEAMSTER_AGENT_MAX_DEPTH";
/// The maximum number of ancestors to inspect.
#[cfg(target_os = "linux")]
const ANCESTORS: usize = 64;

/// Returns the depth of the agent around this process, from its environment, else from that of its nearest ancestor that
/// has one. Returns the default for a process outside of any agent.
pub fn agent_depth() -> AgentDepth {
    let own = read(environment::text);
    own.or_else(from_ancestors).unwrap_or_default()
}

/// Adds the variables of an agent at this depth, or at that of this process if it is stricter.
pub(crate) fn set(depth: Option<AgentDepth>, variables: &mut BTreeMap<String, String>) {
    // An agent inherits the depth of this process.
    let Some(depth) = depth else { return };
    let AgentDepth { own, limit, .. } = depth.and(agent_depth());
    variables.insert(DEPTH.to_owned(), own.to_string());
    if let Some(limit) = limit {
        variables.insert(LIMIT.to_owned(), limit.to_string());
    }
}

fn read(variable: impl Fn(&str) -> Option<String>) -> Option<AgentDepth> {
    let own = variable(DEPTH)?.parse().ok()?;
    let limit = variable(LIMIT).and_then(|it| it.parse().ok());
    Some(AgentDepth::new(own, limit))
}

#[cfg(target_os = "linux")]
fn from_ancestors() -> Option<AgentDepth> {
    let mut pid = std::process::id();
    for _ in 0..ANCESTORS {
        pid = parent(pid)?;
        // The environment of another user's process is not readable.
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        if let Some(found) = read(|name| in_environment(&environment, name)) {
            return Some(found);
        }
    }
    None
}

#[cfg(not(target_os = "linux"))]
fn from_ancestors() -> Option<AgentDepth> {
    None
}

#[cfg(target_os = "linux")]
fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    parent.trim().parse().ok().filter(|parent| *parent > 0)
}

#[cfg(target_os = "linux")]
fn in_environment(environment: &[u8], name: &str) -> Option<String> {
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| {
        variable
            .strip_prefix(name.as_bytes())
            .and_then(|rest| rest.strip_prefix(b"="))
    })?;
    String::from_utf8(value.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_cannot_be_read_is_none() {
        let of = |depth: &str, limit: Option<&str>| {
            read(|name| match name {
                DEPTH => Some(depth.to_owned()),
                _ => limit.map(str::to_owned),
            })
        };
        assert_eq!(of("2", Some("3")), Some(AgentDepth::new(2, Some(3))));
        assert_eq!(of("2", None), Some(AgentDepth::new(2, None)));
        assert_eq!(of("2", Some("x")), Some(AgentDepth::new(2, None)));
        assert_eq!(of("x", Some("3")), None);
    }

    #[test]
    fn only_a_spec_with_a_depth_sets_variables() {
        let mut variables = BTreeMap::new();
        set(None, &mut variables);
        assert_eq!(variables, BTreeMap::new());
        // No test runs in an agent this deep.
        set(Some(AgentDepth::new(1_000_000, Some(0))), &mut variables);
        let expected = [(DEPTH, "1000000"), (LIMIT, "0")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(variables, BTreeMap::from(expected));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_variable_is_found_in_the_environment_of_a_process() {
        let environment = b"A=1\0TEAMSTER_AGENT_DEPTH=2\0TEAMSTER_AGENT_DEPTH_X=3\0";
        assert_eq!(in_environment(environment, DEPTH).as_deref(), Some("2"));
        assert_eq!(in_environment(environment, LIMIT), None);
        assert!(parent(std::process::id()).is_some());
    }
}
