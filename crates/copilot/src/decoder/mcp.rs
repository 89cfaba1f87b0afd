//! Finds the MCP server and tool of a call.

use teamster_core::{McpTool, ToolKind};

use super::tools::kind_of_own;
use super::wire::ToolStart;

/// Known names of servers: the requested ones, and those that the CLI reported.
#[derive(Debug, Default)]
pub(crate) struct Servers(Vec<String>);

impl Servers {
    pub(crate) fn new(asked: Vec<String>) -> Self {
        Self(asked)
    }

    pub(crate) fn know(&mut self, name: &str) {
        if !name.is_empty() && !self.0.iter().any(|known| known == name) {
            self.0.push(name.to_owned());
        }
    }

    /// Returns the server and its tool, or `None` for the CLI's own tools. The CLI reports them in separate fields,
    /// but omits these for a tool that the server does not have. Then the name is split at the longest matching
    /// server name.
    pub(crate) fn tool(&self, line: &ToolStart<'_>) -> Option<McpTool> {
        let name = line.tool_name.text();
        let tool = line.mcp_tool_name.get().filter(|tool| !tool.is_empty());
        let server = line.mcp_server_name.get().filter(|name| !name.is_empty());
        if let Some(server) = server {
            let tool = tool.or_else(|| tool_in(name, server)).unwrap_or(name);
            return Some(mcp_tool(server, tool));
        }
        let found = self.tool_named(name)?;
        Some(mcp_tool(&found.server, tool.unwrap_or(&found.tool)))
    }

    /// Returns the server and its tool by the tool's name alone.
    pub(crate) fn tool_named(&self, name: &str) -> Option<McpTool> {
        if kind_of_own(name) != ToolKind::Other {
            return None;
        }
        let fitting = self
            .0
            .iter()
            .filter(|server| tool_in(name, server).is_some());
        let server = fitting.max_by_key(|server| server.len())?;
        Some(mcp_tool(server, tool_in(name, server)?))
    }
}

fn mcp_tool(server: &str, tool: &str) -> McpTool {
    McpTool::new(server, tool)
}

/// Returns the tool in the model's name for it. That name is the server's name, with every character but ASCII
/// letters, digits, `_` and `-` replaced by `-`, then `-` and the tool's name.
fn tool_in<'a>(name: &'a str, server: &str) -> Option<&'a str> {
    let spelled = server.chars().map(|c| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '-',
    });
    let spelled: String = spelled.chain(['-']).collect();
    name.strip_prefix(&spelled).filter(|tool| !tool.is_empty())
}
