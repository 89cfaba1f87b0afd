//! MCP servers: a private file for `--additional-mcp-config`, and the rules that allow their tools.

use std::collections::BTreeMap;
use std::path::{Path, absolute};

use serde_json::{Map, Value, json};
use teamster_core::provider::Args;
use teamster_core::{AgentError, ExecuteParams, McpServer, McpTools, McpTransport};

/// Maximum length of a tool's name, `<server>-<tool>`, in characters. The CLI truncates longer names (measured), and
/// loses tools whose names become equal.
const LONGEST_TOOL_NAME: usize = 64;

/// Names that mean the CLI's own tools in rules: `--allow-tool=shell` allows the shell.
const KINDS: &[&str] = &["shell", "write", "url"];

/// The CLI's own servers.
const BUILT_IN: &[&str] = &[
    "github-mcp-server",
    "githubiq",
    "workiq",
    "browser-use",
    "github-copilot-browser",
];

/// Longest timeout that the CLI accepts, in milliseconds.
const LONGEST_TOOL_TIMEOUT_MS: u128 = u32::MAX as u128;

/// Adds the flags for the servers of this run.
pub(super) fn options(params: &ExecuteParams, args: &mut Args) -> Result<(), AgentError> {
    if params.mcp_servers.is_empty() {
        return Ok(());
    }
    args.private_file("--additional-mcp-config=@", config(params)?);
    for server in &params.mcp_servers {
        args.value("--allow-tool", &server.name);
        // The user's settings may have disabled a server of this name.
        args.value("--enable-mcp-server", &server.name);
        if server.tools.only.is_none() {
            for tool in &server.tools.except {
                args.value("--excluded-tools", tool_name(&server.name, tool));
            }
        }
    }
    Ok(())
}

/// Refuses names that have another meaning to the CLI.
pub(super) fn check(params: &ExecuteParams) -> Result<(), AgentError> {
    for McpServer { name, .. } in &params.mcp_servers {
        let is_one_of = |names: &[&str]| names.iter().any(|other| name.eq_ignore_ascii_case(other));
        let problem = if is_one_of(KINDS) {
            "GitHub Copilot CLI applies rules with this name to its own tools"
        } else if is_one_of(BUILT_IN) {
            "reserved by GitHub Copilot CLI"
        } else {
            continue;
        };
        return Err(invalid(name, &format!("name: {problem}; use another")));
    }
    for McpServer {
        name, transport, ..
    } in &params.mcp_servers
    {
        if let McpTransport::Stdio { env, .. } = transport
            && let Some((key, _)) = env.iter().find(|(_, value)| is_trimmed(value))
        {
            return Err(invalid(
                name,
                &format!(
                    "env.{key}: GitHub Copilot CLI drops white space at the ends of a value that holds \
                     `$`; leave one of them out"
                ),
            ));
        }
    }
    Ok(())
}

fn invalid(server: &str, problem: &str) -> AgentError {
    AgentError::refused_server(server, problem)
}

/// Returns the CLI's name of a tool.
fn tool_name(server: &str, tool: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let tool = tool.chars().map(|c| if allowed(c) { c } else { '-' });
    let name = server.chars().chain(['-']).chain(tool);
    name.take(LONGEST_TOOL_NAME).collect()
}

/// Returns the content of the configuration file.
fn config(params: &ExecuteParams) -> Result<String, AgentError> {
    let here = params.working_directory.as_deref();
    let here = absolute(here.unwrap_or(Path::new("."))).unwrap_or_default();
    let mut servers = Map::new();
    for server in &params.mcp_servers {
        servers.insert(server.name.clone(), entry(server, &here)?);
    }
    Ok(json!({ "mcpServers": servers }).to_string())
}

fn entry(server: &McpServer, here: &Path) -> Result<Value, AgentError> {
    let kind = server.transport.as_str();
    let mut entry = match &server.transport {
        McpTransport::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            let args: Vec<_> = args.iter().map(|arg| literal(arg)).collect();
            let mut entry = json!({"type": kind, "command": literal(command), "args": args,
                                   "env": literals(env)});
            if let Some(cwd) = cwd {
                let cwd = here.join(cwd);
                let cwd = cwd.to_str().ok_or_else(|| {
                    invalid(
                        &server.name,
                        "cwd: it is not UTF-8, so JSON cannot contain it; use a path that is",
                    )
                })?;
                entry["cwd"] = literal(cwd).into();
            }
            entry
        }
        McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
            json!({"type": kind, "url": literal(url), "headers": literals(headers)})
        }
        // `check` has refused unknown transports.
        _ => json!({}),
    };
    entry["tools"] = tools(&server.tools);
    if let Some(limit) = server.tool_timeout {
        entry["timeout"] = json!(limit.as_millis().min(LONGEST_TOOL_TIMEOUT_MS) as u64);
    }
    Ok(entry)
}

fn tools(tools: &McpTools) -> Value {
    let Some(only) = &tools.only else {
        return json!(["*"]);
    };
    let left: Vec<_> = only
        .iter()
        .filter(|tool| !tools.except.contains(tool))
        .collect();
    json!(left)
}

fn literals(values: &BTreeMap<String, String>) -> Map<String, Value> {
    values
        .iter()
        .map(|(name, value)| (name.clone(), literal(value).into()))
        .collect()
}

/// Returns whether the CLI would change a variable's value (measured).
fn is_trimmed(value: &str) -> bool {
    let trimmed = value.trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    value.contains('$') && trimmed != value
}

/// Escapes a text, so that the CLI reads it literally. The CLI expands `$NAME` and `${NAME}`, and its only escape is
/// the default of an unset variable: `${NAME:-$}` becomes `$`.
fn literal(text: &str) -> String {
    text.replace('$', "${TEAMSTER_MCP_DOLLAR:-$}")
}

#[cfg(test)]
mod tests;
