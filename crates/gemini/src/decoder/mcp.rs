//! MCP servers: whose tool a call is of, and what the CLI says of servers that failed.

use teamster_core::{ExecuteParams, McpTool};

use crate::recorded::Flags;

/// How the name of an MCP server's tool begins.
const PREFIX: &str = "mcp_";

/// All that the CLI says of servers that it could not start or that broke off, on stderr and once.
pub(super) const TROUBLE: &str = "MCP issues detected";

/// The servers of which it is known that the run may use them.
#[derive(Debug, Default)]
pub(super) struct Servers {
    /// Longer names first.
    known: Vec<String>,
    /// Those of this run's own.
    ours: Vec<String>,
}

impl Servers {
    pub(super) fn new(params: &ExecuteParams, given: &Flags) -> Self {
        let ours = params.mcp_servers.iter();
        let ours: Vec<_> = ours.map(|server| server.name.clone()).collect();
        let mut known = ours.clone();
        known.extend(given.servers.iter().cloned());
        known.sort_by_key(|name| std::cmp::Reverse(name.len()));
        Self { known, ours }
    }

    /// Server and tool in a name like `mcp_server_tool`. The CLI puts nothing between them that a name
    /// cannot hold, and nowhere lists the servers: where none is known that fits, the server is taken
    /// to end at the first `_`, as the CLI's own policies do.
    pub(super) fn tool(&self, name: &str) -> Option<McpTool> {
        let name = name.strip_prefix(PREFIX)?;
        let (server, tool) = self.split(name).or_else(|| name.split_once('_'))?;
        Some(McpTool {
            server: server.to_owned(),
            tool: tool.to_owned(),
        })
    }

    /// Whether a tool of this name is permitted if it is there, as long as nothing is denied.
    pub(super) fn permit(&self, name: &str) -> bool {
        name.strip_prefix(PREFIX)
            .is_some_and(|name| self.split(name).is_some())
    }

    fn split<'a>(&self, name: &'a str) -> Option<(&'a str, &'a str)> {
        self.known.iter().find_map(|server| {
            let tool = name.strip_prefix(server.as_str())?.strip_prefix('_')?;
            (!tool.is_empty()).then(|| (&name[..server.len()], tool))
        })
    }

    /// What to tell of servers that failed, if the CLI says that any did.
    pub(super) fn trouble(&self, stderr: &str) -> Option<String> {
        if !stderr.lines().any(|line| line.starts_with(TROUBLE)) {
            return None;
        }
        let mut message = format!(
            "{TROUBLE}: an MCP server did not start or broke off; Gemini CLI does not say which, nor why"
        );
        if !self.ours.is_empty() {
            message.push_str("; those of this run: ");
            message.push_str(&self.ours.join(", "));
        }
        Some(message)
    }
}
