//! MCP servers: a private file for `--mcp-config`, and the rules that let their tools run.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use teamster_core::provider::Args;
use teamster_core::{AgentError, ExecuteParams, McpServer, McpTransport};

/// Under these names the CLI loads no server of a caller's (measured: it leaves it out without a word),
/// or, under `ide`, hides its tools.
const RESERVED: &[&str] = &[
    "workspace",
    "computer-use",
    "claude-in-chrome",
    "Claude_Preview",
    "ide",
];

/// The CLI ignores a shorter limit of a tool call (measured).
const SHORTEST_TOOL_TIMEOUT: Duration = Duration::from_secs(1);

/// The longest limit of a tool call that is passed on: 24 days, the most that a JavaScript timer takes.
const LONGEST_TOOL_TIMEOUT_MS: u128 = i32::MAX as u128;

/// How long the CLI waits for the servers of the run before it asks the model, in milliseconds: as
/// long as it gives each of them to start. By its own default it continues after 5 s, and the model has
/// no tools of those that come later.
const START_LIMIT: (&str, &str) = ("MCP_CONNECT_TIMEOUT_MS", "30000");

/// How often the CLI looks for `${NAME}` in a header's value, and in any other text (measured).
const PASSES_OVER_HEADERS: usize = 2;
const PASSES: usize = 1;

/// The flags for the servers of this run.
pub(super) fn options(params: &ExecuteParams, args: &mut Args) {
    if !params.mcp_servers.is_empty() {
        // It takes any number of values, so a flag must follow: the rules do.
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

/// The variables for the servers of this run. The caller's own come over them.
pub(super) fn env(params: &ExecuteParams) -> Option<(String, String)> {
    let (name, value) = START_LIMIT;
    (!params.mcp_servers.is_empty()).then(|| (name.to_owned(), value.to_owned()))
}

/// Refuses what the CLI would leave out or ignore without a word.
pub(super) fn check(params: &ExecuteParams) -> Result<(), AgentError> {
    for server in &params.mcp_servers {
        let problem = if RESERVED.contains(&server.name.as_str()) {
            "name: Claude Code keeps it for a server of its own; use another"
        } else if server.name.starts_with("__") || server.name == "_" {
            // To the CLI, the server's name is then empty in the names of its tools.
            "name: Claude Code has no rule that allows its tools; use another"
        } else if server
            .tool_timeout
            .is_some_and(|limit| limit < SHORTEST_TOOL_TIMEOUT)
        {
            "tool_timeout: Claude Code ignores one under 1 s"
        } else {
            continue;
        };
        return Err(AgentError::refused_server(&server.name, problem));
    }
    Ok(())
}

/// The rule that allows all tools of a server. The CLI takes what follows the first `__` for the tool,
/// so the plain name of the server is not enough if it holds that, or makes it with what follows.
fn rule(server: &str) -> String {
    if server.contains("__") || server.ends_with('_') {
        format!("mcp__{server}__*")
    } else {
        format!("mcp__{server}")
    }
}

/// A tool as the CLI names it.
pub(crate) fn tool_name(server: &str, tool: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let tool: String = tool
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    format!("mcp__{server}__{tool}")
}

/// The file.
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
        // `check` has refused what is not known.
        _ => json!({}),
    };
    // The CLI waits for such a server only; the others may come after the model was asked, and their
    // calls fail until then (measured). The model then also gets all their tools at once.
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

/// A text that the CLI reads as this one. It puts variables in the place of `${NAME}`, and has no way
/// to write that literally but the default of a variable that is not set: `${NAME:-$}` gives `$`.
fn literal(text: &str, passes: usize) -> String {
    (0..passes).fold(text.to_owned(), |text, _| {
        text.replace("${", "${TEAMSTER_MCP_DOLLAR:-$}{")
    })
}

#[cfg(test)]
mod tests;
