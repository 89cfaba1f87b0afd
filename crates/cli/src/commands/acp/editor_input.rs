//! What an editor sends with a session, fitted to an agent.
//!
//! An editor sends its MCP servers and folders to every agent, and knows no fallback. So what an agent does not take is
//! left out, and reported, instead of refused.

use std::sync::{Arc, Mutex};

use teamster::{Capabilities, CliInfo, ExecuteParams};
use teamster_acp_server::Setup;
use teamster_core::sync::lock;

use crate::words;

/// The input of an editor, and what was left out of it.
#[derive(Clone)]
pub(super) struct EditorInput {
    setup: Arc<Setup>,
    left_out: Arc<Mutex<Vec<String>>>,
}

impl EditorInput {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            setup: Arc::new(setup.clone()),
            left_out: Arc::default(),
        }
    }

    /// Removes what this agent does not take. Returns `false` if it must not be a fallback, because it lacks the
    /// permission mode that the editor chose.
    pub(super) fn fit(
        &self,
        info: &CliInfo,
        can: &Capabilities,
        params: &mut ExecuteParams,
    ) -> bool {
        let mode = self.setup.settings.mode;
        let is_fallback = self.setup.agent.as_deref() != Some(info.id);
        if is_fallback && !can.permission_modes.contains(&mode) {
            self.leave_out(format!(
                "{} is no fallback: it has no mode {mode}",
                info.name
            ));
            return false;
        }
        // A prompt that begins with `/` is text for an agent without such commands.
        params.slash_commands &= can.slash_commands;
        let folders = &self.setup.add_dirs;
        if !can.add_dirs && !folders.is_empty() {
            params.add_dirs.retain(|folder| !folders.contains(folder));
            let count = words::plural(folders.len() as u64, "folder");
            self.leave_out(format!(
                "{} takes no folders beside its working directory: {count} left out",
                info.name
            ));
        }
        let delivery = params.mcp_delivery;
        let is_refused = |server: &teamster::McpServer| {
            let mut alone = ExecuteParams::new("x");
            alone.mcp_delivery = delivery;
            alone.mcp_servers.push(server.clone());
            alone.check(info, can).err()
        };
        let sent = &self.setup.mcp_servers;
        params.mcp_servers.retain(|server| {
            let refused = Some(server)
                .filter(|it| sent.contains(it))
                .and_then(is_refused);
            if let Some(error) = &refused {
                let name = words::one_line(&server.name);
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
    use teamster::{McpServer, PermissionMode};

    use super::*;

    /// Fits this setup of a session with the agent `first` to the agent `other`.
    fn fitted(first: &str, other: &str, mut setup: Setup) -> (bool, ExecuteParams, Vec<String>) {
        setup.agent = Some(first.to_owned());
        let provider = crate::global::providers().get(other).unwrap();
        let mut params = ExecuteParams::new("x");
        params.slash_commands = true;
        params.mcp_servers.clone_from(&setup.mcp_servers);
        params.add_dirs.clone_from(&setup.add_dirs);
        let own = McpServer::stdio("own", "/bin/own", ["x"]);
        params.mcp_servers.push(own);
        let input = EditorInput::new(&setup);
        let fits = input.fit(provider.info(), provider.capabilities(), &mut params);
        (fits, params, input.left_out())
    }

    fn setup() -> Setup {
        let mut setup = Setup::default();
        setup.mcp_servers = vec![
            McpServer::stdio("files", "/bin/files", ["x"]),
            McpServer::sse("old", "https://example.com/sse"),
            McpServer::stdio("a name of words", "/bin/files", ["x"]),
        ];
        setup.add_dirs = vec!["/other".into()];
        setup
    }

    #[test]
    fn an_agent_gets_what_it_takes() {
        let names = |params: &ExecuteParams| {
            let servers = params.mcp_servers.iter();
            servers.map(|it| it.name.clone()).collect::<Vec<_>>()
        };
        // No SSE, no slash commands.
        let (fits, params, left_out) = fitted("claude", "codex", setup());
        assert!(fits);
        assert!(!params.slash_commands);
        assert_eq!(names(&params), ["files", "own"]);
        assert_eq!(params.add_dirs.len(), 1);
        assert_eq!(left_out.len(), 2, "{left_out:?}");
        assert!(left_out[0].contains("old is left out"), "{left_out:?}");
        assert!(left_out[1].contains("a name of words"), "{left_out:?}");
        // No servers at all, no folders. The servers of the command line stay, and are refused.
        let (fits, params, left_out) = fitted("cline", "cline", setup());
        assert!(fits && params.slash_commands);
        assert_eq!(names(&params), ["own"]);
        assert_eq!(params.add_dirs.len(), 0);
        assert_eq!(left_out.len(), 4, "{left_out:?}");
        assert_eq!(
            left_out[0],
            "Cline takes no folders beside its working directory: 1 folder left out"
        );
    }

    #[test]
    fn a_fallback_has_the_permission_mode_of_the_session() {
        let mut setup = setup();
        setup.settings.mode = PermissionMode::ReadOnly;
        let (fits, _, left_out) = fitted("claude", "kimi", setup.clone());
        assert!(!fits);
        assert_eq!(
            left_out,
            ["Kimi Code is no fallback: it has no mode read-only"]
        );
        assert!(fitted("claude", "codex", setup).0);
    }
}
