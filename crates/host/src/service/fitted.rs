//! The offered part of a session's spec, fitted to each of its agents.
//!
//! An editor sends its MCP servers and folders to every agent, and knows no fallback. So what an agent does not take is
//! left out, and reported, instead of refused.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use teamster_api::{SessionSpec, Trusted};
use teamster_core::sync::lock;
use teamster_core::text::one_line;
use teamster_core::{Capabilities, CliInfo, ExecuteParams, McpServer, PermissionMode};

/// Offers of a session to its agents, and those that were left out.
#[derive(Clone)]
pub(super) struct Offered {
    input: Arc<Input>,
    left_out: Arc<Mutex<Vec<String>>>,
}

struct Input {
    agent: String,
    mode: PermissionMode,
    folders: Vec<PathBuf>,
    servers: Vec<McpServer>,
}

impl Offered {
    /// Creates what this session has beyond `required`.
    pub(super) fn new(spec: &SessionSpec, required: &Trusted) -> Self {
        let Trusted {
            add_dirs,
            mcp_servers,
            ..
        } = spec.trusted.clone();
        let is_offered = |folder: &PathBuf| !required.add_dirs.contains(folder);
        let folders = add_dirs.into_iter().filter(is_offered).collect();
        let is_offered = |server: &McpServer| !required.mcp_servers.contains(server);
        let servers = mcp_servers.into_iter().filter(is_offered).collect();
        let input = Arc::new(Input {
            agent: spec.provider.clone(),
            mode: spec.permission,
            folders,
            servers,
        });
        Self {
            input,
            left_out: Arc::default(),
        }
    }

    /// Removes what this agent does not take. Returns `false` if it must not be a fallback, because it lacks the
    /// session's permission mode.
    pub(super) fn fit(
        &self,
        info: &CliInfo,
        can: &Capabilities,
        params: &mut ExecuteParams,
    ) -> bool {
        let Input {
            agent,
            mode,
            folders,
            servers,
        } = &*self.input;
        let is_fallback = agent != info.id;
        if is_fallback && !can.has_session_mode(*mode) {
            self.leave_out(format!(
                "{} cannot be a fallback: it has no mode {mode}",
                info.name
            ));
            return false;
        }
        // A prompt that begins with `/` is text for an agent without such commands.
        params.slash_commands &= can.session_commands;
        if !can.add_dirs && !folders.is_empty() {
            params.add_dirs.retain(|folder| !folders.contains(folder));
            let count = match folders.len() {
                1 => "1 folder".to_owned(),
                count => format!("{count} folders"),
            };
            self.leave_out(format!(
                "{} takes no folders beside its working directory: {count} left out",
                info.name
            ));
        }
        let delivery = params.mcp_delivery;
        let is_refused = |server: &McpServer| {
            let mut alone = ExecuteParams::new("x");
            alone.mcp_delivery = delivery;
            alone.mcp_servers.push(server.clone());
            alone.check(info, can).err()
        };
        params.mcp_servers.retain(|server| {
            let refused = Some(server)
                .filter(|it| servers.contains(it))
                .and_then(is_refused);
            if let Some(error) = &refused {
                let name = one_line(&server.name);
                self.leave_out(format!(
                    "the MCP server {name} is left out: {}",
                    error.message
                ));
            }
            refused.is_none()
        });
        true
    }

    fn leave_out(&self, what: String) {
        lock(&self.left_out).push(what);
    }

    /// Returns a line for each part that was left out.
    pub(super) fn left_out(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use teamster_providers::Providers;

    use super::*;

    /// Fits this session, with the agent `first`, to the agent `other`.
    fn fitted(
        first: &str,
        other: &str,
        mut spec: SessionSpec,
    ) -> (bool, ExecuteParams, Vec<String>) {
        spec.provider = first.to_owned();
        let provider = Providers::builtin().get(other).unwrap();
        let own = McpServer::stdio("own", "/bin/own", ["x"]);
        spec.trusted.mcp_servers.push(own.clone());
        let mut params = crate::params::of_session(&spec).unwrap();
        let mut required = Trusted::default();
        required.mcp_servers.push(own);
        let input = Offered::new(&spec, &required);
        let fits = input.fit(provider.info(), provider.capabilities(), &mut params);
        (fits, params, input.left_out())
    }

    fn spec() -> SessionSpec {
        let mut spec = SessionSpec::new("");
        spec.trusted.slash_commands = true;
        spec.trusted.mcp_servers = vec![
            McpServer::stdio("files", "/bin/files", ["x"]),
            McpServer::sse("old", "https://example.com/sse"),
            McpServer::stdio("a name of words", "/bin/files", ["x"]),
        ];
        spec.trusted.add_dirs = vec!["/other".into()];
        spec
    }

    #[test]
    fn an_agent_gets_what_it_takes() {
        let names = |params: &ExecuteParams| {
            let servers = params.mcp_servers.iter();
            servers.map(|it| it.name.clone()).collect::<Vec<_>>()
        };
        // No SSE.
        let (fits, params, left_out) = fitted("claude", "codex", spec());
        assert!(fits);
        assert_eq!(names(&params), ["files", "own"]);
        assert_eq!(params.add_dirs.len(), 1);
        assert_eq!(left_out.len(), 2, "{left_out:?}");
        assert!(left_out[0].contains("old is left out"), "{left_out:?}");
        assert!(left_out[1].contains("a name of words"), "{left_out:?}");
        // No servers at all, no folders. The servers of the command line stay, and are refused.
        let (fits, params, left_out) = fitted("cline", "cline", spec());
        assert!(fits && params.slash_commands);
        assert_eq!(names(&params), ["own"]);
        assert_eq!(params.add_dirs.len(), 0);
        assert_eq!(left_out.len(), 4, "{left_out:?}");
        assert_eq!(
            left_out[0],
            "Cline takes no folders beside its working directory: 1 folder left out"
        );
        // Commands of its sessions only.
        let (_, params, _) = fitted("copilot", "copilot", spec());
        assert!(params.slash_commands);
        let provider = Providers::builtin().get("copilot").unwrap();
        let mut can = provider.capabilities().clone();
        can.session_commands = false;
        let mut params = ExecuteParams::new("x").slash_commands(true);
        let offered = Offered::new(&SessionSpec::new("copilot"), &Trusted::default());
        assert!(offered.fit(provider.info(), &can, &mut params));
        assert!(!params.slash_commands);
    }

    #[test]
    fn a_fallback_has_the_permission_mode_of_the_session() {
        let mut spec = spec();
        spec.permission = PermissionMode::ReadOnly;
        let (fits, _, left_out) = fitted("claude", "kimi", spec.clone());
        assert!(!fits);
        assert_eq!(
            left_out,
            ["Kimi Code cannot be a fallback: it has no mode read-only"]
        );
        assert!(fitted("claude", "codex", spec).0);
    }
}
