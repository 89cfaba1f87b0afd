//! The nesting depth of agents that call agents.
//!
//! Each run of a server gets its depth in the environment, and a server within the run reads it. An agent's CLI may
//! clear the environment of its MCP servers, so the environments of this process's ancestors are read too.

use std::env;

/// The number of runs around this process.
const DEPTH: &str = "TEAMSTER_AGENT_DEPTH";
/// The limit of the outermost server.
const LIMIT: &str = "TEAMSTER_AGENT_MAX_DEPTH";
/// The maximum number of ancestors to inspect.
#[cfg(target_os = "linux")]
const ANCESTORS: usize = 64;

/// The nesting depth of this process, and its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Depth {
    pub(super) own: u32,
    pub(super) limit: u32,
}

impl Depth {
    /// Determines the depth of this process. A server within a run is also bound by the limit of that run's server.
    pub(super) fn current(limit: u32) -> Self {
        let outer = outer_depth();
        Self {
            own: outer.map_or(0, |(depth, _)| depth),
            limit: outer.map_or(limit, |(_, outer)| outer.min(limit)),
        }
    }

    /// Returns the error for a run that would exceed the limit.
    pub(super) fn refusal(self) -> Option<String> {
        let Self { own, limit } = self;
        (own >= limit).then(|| {
            format!(
                "this agent was started by another one and cannot start more (depth {own} of at most {limit}): do \
                 the work yourself, or leave it to the caller; `teamster mcp serve --max-depth` sets the limit"
            )
        })
    }

    /// Returns the environment variables for a run that is started here.
    pub(super) fn run_variables(self) -> [(&'static str, String); 2] {
        [
            (DEPTH, self.own.saturating_add(1).to_string()),
            (LIMIT, self.limit.to_string()),
        ]
    }
}

/// Returns the depth and limit from this process's environment, else from its nearest ancestor that has them.
fn outer_depth() -> Option<(u32, u32)> {
    let own = read(|name| env::var(name).ok());
    own.or_else(from_ancestors)
}

fn read(variable: impl Fn(&str) -> Option<String>) -> Option<(u32, u32)> {
    let depth = variable(DEPTH)?.parse().ok()?;
    let limit = variable(LIMIT).and_then(|it| it.parse().ok());
    Some((depth, limit.unwrap_or(u32::MAX)))
}

#[cfg(target_os = "linux")]
fn from_ancestors() -> Option<(u32, u32)> {
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
fn from_ancestors() -> Option<(u32, u32)> {
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
    fn a_run_at_the_limit_starts_no_other() {
        let depth = |own, limit| Depth { own, limit };
        assert_eq!(depth(0, 1).refusal(), None);
        assert!(
            depth(1, 1)
                .refusal()
                .unwrap()
                .contains("depth 1 of at most 1")
        );
        assert!(depth(0, 0).refusal().is_some());
        assert_eq!(
            depth(1, 3).run_variables(),
            [(DEPTH, "2".to_owned()), (LIMIT, "3".to_owned())]
        );
    }

    #[test]
    fn a_limit_that_cannot_be_read_is_none() {
        let of = |depth: &str, limit: Option<&str>| {
            read(|name| match name {
                DEPTH => Some(depth.to_owned()),
                _ => limit.map(str::to_owned),
            })
        };
        assert_eq!(of("2", Some("3")), Some((2, 3)));
        assert_eq!(of("2", None), Some((2, u32::MAX)));
        assert_eq!(of("x", Some("3")), None);
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
