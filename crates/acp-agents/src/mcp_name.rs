//! Names of the tools of MCP servers.

use teamster_core::{ExecuteParams, McpTool};

/// Names of the MCP servers of a run or session, for splitting tool names.
#[derive(Debug, Default)]
pub(crate) struct Servers(Vec<String>);

impl Servers {
    pub(crate) fn of(params: &ExecuteParams) -> Self {
        let names = params.mcp_servers.iter();
        Self(names.map(|server| server.name.clone()).collect())
    }

    /// Splits a name such as `mcp__server__tool` into server and tool. `prefix` is the part before the server's name.
    pub(crate) fn tool(&self, name: &str, prefix: &str) -> Option<McpTool> {
        let rest = name.strip_prefix(prefix)?;
        let known = self.0.iter().find_map(|server| {
            let tool = rest.strip_prefix(server.as_str())?.strip_prefix("__")?;
            Some((server.as_str(), tool))
        });
        // A server of the user's own configuration.
        let split = || rest.split_once("__").filter(|_| !prefix.is_empty());
        let (server, tool) = known.or_else(split)?;
        Some(McpTool::new(server, tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_apart_by_the_servers_that_are_known() {
        let servers = Servers(vec!["a__b".into()]);
        let tool = |name, prefix| servers.tool(name, prefix).map(|it| (it.server, it.tool));
        let is = |server: &str, tool: &str| Some((server.to_owned(), tool.to_owned()));
        assert_eq!(tool("mcp__a__b__c", "mcp__"), is("a__b", "c"));
        assert_eq!(tool("mcp__x__y__z", "mcp__"), is("x", "y__z"));
        assert_eq!(tool("a__b__c", ""), is("a__b", "c"));
        assert_eq!(tool("x__y", ""), None);
        assert_eq!(tool("read_file", "mcp__"), None);
    }
}
