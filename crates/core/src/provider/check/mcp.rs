//! Validation of MCP servers.

use std::collections::BTreeMap;

use crate::{AgentError, CliInfo, ExecuteParams, McpServer, McpSupport, McpTransport};

/// Refuses servers that are invalid or that this CLI does not support. Messages name the server and the field.
pub(super) fn check(
    params: &ExecuteParams,
    info: &CliInfo,
    can: &McpSupport,
) -> Result<(), AgentError> {
    if params.mcp_strict && !can.strict {
        let problem = format!(
            "{} cannot leave out the user's own MCP servers; omit it",
            info.name
        );
        return Err(AgentError::refused("mcp_strict", problem));
    }
    for (index, server) in params.mcp_servers.iter().enumerate() {
        let problem = if can.transports.is_empty() {
            Err(format!("{} has no way to take them", info.name))
        } else if params.mcp_servers[..index]
            .iter()
            .any(|other| other.name == server.name)
        {
            Err("there are two servers of this name".to_owned())
        } else {
            problem_of(server, info, can)
        };
        if let Err(problem) = problem {
            return Err(AgentError::refused_server(&server.name, problem));
        }
    }
    if params.mcp_servers.is_empty() || can.deliveries.contains(&params.mcp_delivery) {
        return Ok(());
    }
    let ways: Vec<_> = can.deliveries.iter().map(|way| way.as_str()).collect();
    let problem = format!(
        "{} does not take MCP servers by {}, only by {}",
        info.name,
        params.mcp_delivery,
        ways.join(", ")
    );
    Err(AgentError::refused("mcp_delivery", problem))
}

fn problem_of(server: &McpServer, info: &CliInfo, can: &McpSupport) -> Result<(), String> {
    check_name(&server.name, info, can)?;
    let transport = server.transport.as_str();
    if !can.transports.contains(&transport) {
        return Err(format!(
            "type: {} does not support {transport} servers, only {}",
            info.name,
            can.transports.join(", ")
        ));
    }
    let has_cwd = matches!(&server.transport, McpTransport::Stdio { cwd: Some(_), .. });
    for (field, asked, honoured) in [
        ("cwd", has_cwd, can.cwd),
        (
            "startup_timeout",
            server.startup_timeout.is_some(),
            can.startup_timeout,
        ),
        (
            "tool_timeout",
            server.tool_timeout.is_some(),
            can.tool_timeout,
        ),
        ("tools.only", server.tools.only.is_some(), can.only_tools),
        (
            "tools.except",
            !server.tools.except.is_empty(),
            can.except_tools,
        ),
    ] {
        if asked && !honoured {
            return Err(format!(
                "{field}: {} has no way to honour it; leave it out",
                info.name
            ));
        }
    }
    server.problem().map_or(Ok(()), Err)
}

fn check_name(name: &str, info: &CliInfo, can: &McpSupport) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || can.name_marks.contains(c);
    if name.is_empty() || name.len() > can.longest_name || !name.chars().all(allowed) {
        let marks: Vec<_> = can.name_marks.chars().map(|c| format!("`{c}`")).collect();
        return Err(format!(
            "name: for {} it must have 1 to {} ASCII letters, digits and {}",
            info.name,
            can.longest_name,
            marks.join(" ")
        ));
    }
    Ok(())
}

impl McpServer {
    /// Returns a problem that applies to every CLI: the field and the reason, without any value.
    pub fn problem(&self) -> Option<String> {
        if self.name.is_empty() {
            return Some("name: it is empty".to_owned());
        }
        for (field, limit) in [
            ("startup_timeout", self.startup_timeout),
            ("tool_timeout", self.tool_timeout),
        ] {
            if limit.is_some_and(|limit| limit.as_millis() == 0) {
                return Some(format!("{field}: it must be at least 1 ms"));
            }
        }
        let tools = self.tools.only.iter().flatten().chain(&self.tools.except);
        for tool in tools {
            if tool.is_empty() || tool.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return Some(format!("tools: {tool:?} is not the name of a tool"));
            }
        }
        match &self.transport {
            McpTransport::Stdio {
                command, args, env, ..
            } => problem_of_program(command, args, env),
            McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                problem_of_address(url, headers)
            }
        }
    }
}

fn problem_of_program(
    command: &str,
    args: &[String],
    env: &BTreeMap<String, String>,
) -> Option<String> {
    if command.trim().is_empty() {
        return Some("command: it is empty".to_owned());
    }
    if command.contains('\0') || args.iter().any(|arg| arg.contains('\0')) {
        return Some("command, args: a NUL byte, which an argument cannot contain".to_owned());
    }
    for (name, value) in env {
        if name.is_empty() || name.contains(['=', '\0']) {
            return Some(format!(
                "env: {name:?} cannot be the name of an environment variable"
            ));
        }
        if value.contains('\0') {
            return Some(format!(
                "env.{name}: it has a NUL byte, which a variable cannot contain"
            ));
        }
    }
    None
}

fn problem_of_address(url: &str, headers: &BTreeMap<String, String>) -> Option<String> {
    let rest = url
        .strip_prefix("https://")
        .or_else(|| url.strip_prefix("http://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    if host.is_none_or(str::is_empty) {
        return Some("url: it must begin with http:// or https:// and name a host".to_owned());
    }
    if url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("url: it holds white space".to_owned());
    }
    for (name, value) in headers {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(is_token) {
            return Some(format!("headers: {name:?} cannot be a header's name"));
        }
        if value.contains(['\r', '\n', '\0']) {
            return Some(format!("headers.{name}: it holds a line break or NUL byte"));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::tests::{INFO, refused};
    use super::*;
    use crate::{Capabilities, McpDelivery};

    fn can() -> Capabilities {
        let mut can = Capabilities::none();
        can.mcp.transports = &["stdio", "http"];
        can.mcp.deliveries = &[McpDelivery::Private];
        can.mcp.name_marks = "-_";
        can
    }

    fn refused_server(server: McpServer) -> String {
        refused(&can(), |params| params.mcp_servers = vec![server])
    }

    const NO_ARGS: [&str; 0] = [];

    #[test]
    fn valid_servers_are_accepted() {
        let mut params = ExecuteParams::new("hi");
        params.mcp_servers = vec![
            McpServer::stdio("a", "cmd", ["", "-x"]).env("K", ""),
            McpServer::http("b_-1", "http://[::1]:80?x").header("X-Y", "z"),
        ];
        assert_eq!(params.check(&INFO, &can()), Ok(()));
        params.mcp_servers.clear();
        assert_eq!(params.check(&INFO, &Capabilities::none()), Ok(()));
    }

    #[test]
    fn the_error_names_server_and_field() {
        let stdio = |name: &str| McpServer::stdio(name, "cmd", NO_ARGS);
        let mut slow = stdio("a");
        slow.tool_timeout = Some(Duration::from_secs(1));
        let mut filtered = stdio("a");
        filtered.tools.only = Some(Vec::new());
        let mut elsewhere = stdio("a");
        if let McpTransport::Stdio { cwd, .. } = &mut elsewhere.transport {
            *cwd = Some("d".into());
        }
        for (server, begins) in [
            (stdio(""), "mcp_servers: : name: "),
            (
                stdio("a.b"),
                "mcp_servers: a.b: name: for X it must have 1 to 64 ASCII letters, digits and `-` `_`",
            ),
            (
                McpServer::stdio("a", " ", NO_ARGS),
                "mcp_servers: a: command: ",
            ),
            (stdio("a").env("A=B", ""), "mcp_servers: a: env: \"A=B\""),
            (stdio("a").env("K", "\0"), "mcp_servers: a: env.K: "),
            (McpServer::http("a", "example.com"), "mcp_servers: a: url: "),
            (McpServer::http("a", "https:///x"), "mcp_servers: a: url: "),
            (McpServer::http("a", "http://x/ y"), "mcp_servers: a: url: "),
            (
                McpServer::http("a", "http://x").header("A:", ""),
                "mcp_servers: a: headers: ",
            ),
            (
                McpServer::http("a", "http://x").header("A", "b\nc"),
                "mcp_servers: a: headers.A: ",
            ),
            (
                McpServer::sse("a", "http://x"),
                "mcp_servers: a: type: X does not support sse servers, only stdio, http",
            ),
            (slow, "mcp_servers: a: tool_timeout: X has no way"),
            (filtered, "mcp_servers: a: tools.only: X has no way"),
            (elsewhere, "mcp_servers: a: cwd: X has no way"),
        ] {
            let message = refused_server(server);
            assert!(message.starts_with(begins), "{message}");
        }
    }

    #[test]
    fn two_servers_of_one_name_are_refused() {
        let message = refused(&can(), |params| {
            params.mcp_servers = vec![
                McpServer::stdio("a", "x", NO_ARGS),
                McpServer::http("a", "http://x"),
            ];
        });
        assert_eq!(
            message,
            "mcp_servers: a: there are two servers of this name"
        );
    }

    #[test]
    fn a_way_that_the_cli_does_not_have_is_refused() {
        let message = refused(&can(), |params| params.mcp_strict = true);
        assert!(message.starts_with("mcp_strict: X "), "{message}");
        let message = refused(&can(), |params| {
            params.mcp_servers = vec![McpServer::http("a", "http://x")];
            params.mcp_delivery = McpDelivery::UserConfig;
        });
        assert_eq!(
            message,
            "mcp_delivery: X does not take MCP servers by user-config, only by private"
        );
        let message = refused(&Capabilities::none(), |params| {
            params.mcp_servers = vec![McpServer::http("a", "http://x")];
        });
        assert_eq!(message, "mcp_servers: a: X has no way to take them");
    }
}
