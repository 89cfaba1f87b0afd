//! MCP servers: a private file for `--mcp-config`, and the rules that allow their tools.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use teamster_core::provider::Args;
use teamster_core::{AgentError, ExecuteParams, McpServer, McpTransport};

/// Names that the CLI reserves. It silently ignores a caller's server with such a name (measured), or hides its tools
/// in the case of `ide`.
const RESERVED: &[&str] = &[
    "workspace",
    "computer-use",
    "claude-in-chrome",
    "Claude_Preview",
    "ide",
];

/// Minimum timeout of a tool call. The CLI ignores a shorter one (measured).
const SHORTEST_TOOL_TIMEOUT: Duration = Duration::from_secs(1);

/// Maximum timeout of a tool call, about 24 days: the limit of a JavaScript timer.
const LONGEST_TOOL_TIMEOUT_MS: u128 = i32::MAX as u128;

/// Time that the CLI waits for the servers of the run before its first request to the model, in milliseconds. It is
/// as long as the start limit of one server. By default, the CLI continues after 5 s, and the model lacks the tools
/// of servers that connect later.
const START_LIMIT: (&str, &str) = ("MCP_CONNECT_TIMEOUT_MS", "30000");

/// Number of passes in which the CLI expands `${NAME}` in header values, and in other text (measured).
const PASSES_OVER_HEADERS: usize = 2;
const PASSES: usize = 1;

/// Adds the flags for the servers of this run.
pub(super) fn options(params: &ExecuteParams, args: &mut Args) {
    if !params.mcp_servers.is_empty() {
        // The flag takes any number of values, so another flag must follow: the rules do.
        args.private_file("--mcp-config=", config(&params.mcp_servers));
    }
    for server in &params.mcp_servers {
        args.value("--allowedTools", rule(&server.name));
        for tool in &server.tools.except {
            args.value("--disallowedTools", tool_name(&server.name, tool));
        }
    }
    if params.mcp_strict {
        args.add("--strict-mcp-config");
    }
}

/// Returns the environment variables for the servers of this run. The caller's variables override them.
pub(super) fn env(params: &ExecuteParams) -> Option<(String, String)> {
    let (name, value) = START_LIMIT;
    (!params.mcp_servers.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

/// Rejects servers and limits that the CLI would silently ignore.
pub(super) fn check(params: &ExecuteParams) -> Result<(), AgentError> {
    for server in &params.mcp_servers {
        let problem = if RESERVED.contains(&server.name.as_str()) {
            "name: reserved by Claude Code; use another"
        } else if server.name.starts_with("__") || server.name == "_" {
            // The CLI would parse the server's name as empty in the names of its tools.
            "name: Claude Code has no rule that allows its tools; use another"
        } else if server
            .tool_timeout
            .is_some_and(|limit| limit < SHORTEST_TOOL_TIMEOUT)
        {
            "tool_timeout: Claude Code ignores a limit below 1 s; set a longer one"
        } else {
            continue;
        };
        return Err(AgentError::refused_server(&server.name, problem));
    }
    Ok(())
}

/// Returns the rule that allows all tools of a server. The CLI takes the text after the first `__` as the tool, so
/// the server's name alone is ambiguous if it contains `__` or ends with `_`.
fn rule(server: &str) -> String {
    if server.contains("__") || server.ends_with('_') {
        format!("mcp__{server}__*")
    } else {
        format!("mcp__{server}")
    }
}

/// Returns a tool's name in the CLI.
pub(crate) fn tool_name(server: &str, tool: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let tool: String = tool
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    format!("mcp__{server}__{tool}")
}

/// Returns the content of the file.
fn config(servers: &[McpServer]) -> String {
    let servers: Map<_, _> = servers
        .iter()
        .map(|server| (server.name.clone(), entry(server)))
        .collect();
    json!({ "mcpServers": servers }).to_string()
}

fn entry(server: &McpServer) -> Value {
    let kind = server.transport.as_str();
    let mut entry = match &server.transport {
        McpTransport::Stdio {
            command, args, env, ..
        } => {
            let args: Vec<_> = args.iter().map(|arg| literal(arg, PASSES)).collect();
            json!({"type": kind, "command": literal(command, PASSES), "args": args,
                   "env": literals(env, PASSES)})
        }
        McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
            json!({"type": kind, "url": literal(url, PASSES),
                   "headers": literals(headers, PASSES_OVER_HEADERS)})
        }
        // `check` has rejected unknown transports.
        _ => json!({}),
    };
    // The CLI only waits for servers with this field. Others may connect after the first request, and their calls
    // fail until then (measured). The field also gives the model all their tools at once.
    entry["alwaysLoad"] = json!(true);
    if let Some(limit) = server.tool_timeout {
        entry["timeout"] = json!(limit.as_millis().min(LONGEST_TOOL_TIMEOUT_MS) as u64);
    }
    entry
}

fn literals(values: &BTreeMap<String, String>, passes: usize) -> Map<String, Value> {
    values
        .iter()
        .map(|(name, value)| (name.clone(), literal(value, passes).into()))
        .collect()
}

/// Escapes a text against the CLI's expansion of `${NAME}`. The CLI has no escape for it except the default value of
/// an unset variable: `${NAME:-$}` gives `$`.
fn literal(text: &str, passes: usize) -> String {
    (0..passes).fold(text.to_owned(), |text, _| {
        text.replace("${", "${TEAMSTER_MCP_DOLLAR:-$}{")
    })
}

#[cfg(test)]
mod tests;
