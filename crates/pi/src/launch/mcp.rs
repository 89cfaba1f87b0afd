//! MCP servers of a run: an extension in a private file registers them, so no file of the user's is changed.
//!
//! The CLI has servers since version 1.0; tested with 1.6.0.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use teamster_core::provider::Args;
use teamster_core::{AgentError, McpServer, McpTransport};

/// Prefix of the names of all tools of servers.
pub(crate) const PREFIX: &str = "mcp__";

/// Returns a server's name as it is in the names of its tools.
pub(crate) fn in_names(server: &str) -> Cow<'_, str> {
    if server.contains('-') {
        Cow::Owned(server.replace('-', "_"))
    } else {
        Cow::Borrowed(server)
    }
}

/// Returns the pattern of all tools of a server.
pub(super) fn all_tools(server: &McpServer) -> String {
    format!("{PREFIX}{}__*", in_names(&server.name))
}

/// Adds the extension that registers the servers.
pub(super) fn add(servers: &[McpServer], args: &mut Args) {
    if servers.is_empty() {
        return;
    }
    let all: Map<String, Value> = (servers.iter())
        .map(|server| (server.name.clone(), config(server)))
        .collect();
    let extension = format!(
        "export default function (pi) {{\n\
           if (typeof pi.registerMcpServer !== \"function\") {{\n\
             throw new Error(\"this version of Pi takes no MCP servers: update it, or run without them\");\n\
           }}\n\
           for (const [name, server] of Object.entries({})) {{\n\
             pi.registerMcpServer(name, server);\n\
           }}\n\
         }}\n",
        Value::Object(all)
    );
    args.add("--extension");
    args.private_file_named("", ".mjs", extension);
}

/// Returns a server in the CLI's form. The model gets its tools at once (`direct`), not by a search.
fn config(server: &McpServer) -> Value {
    let mut config = match &server.transport {
        McpTransport::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            let mut config = json!({"command": command, "args": args, "env": env});
            if let Some(cwd) = cwd {
                config["cwd"] = json!(cwd);
            }
            config
        }
        McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
            json!({"url": url, "headers": headers})
        }
        // Unreachable: the parameter checks refuse other transports.
        _ => json!({}),
    };
    if let Some(limit) = server.tool_timeout {
        // Whole seconds, at least one.
        config["timeout"] = json!(limit.as_secs().max(1));
    }
    config["exposure"] = json!("direct");
    config
}

/// Refuses values in which the CLI would put variables, or which it would run as commands.
pub(super) fn check(servers: &[McpServer]) -> Result<(), AgentError> {
    for server in servers {
        let values: Vec<&String> = match &server.transport {
            McpTransport::Stdio { env, .. } => env.values().collect(),
            McpTransport::Http { headers, .. } => headers.values().collect(),
            _ => Vec::new(),
        };
        if values
            .iter()
            .any(|value| value.starts_with('!') || value.contains("${"))
        {
            return Err(AgentError::refused_server(
                &server.name,
                "Pi runs a value that begins with `!` as a command, and replaces `${NAME}`; set the value in the \
                 server's own environment",
            ));
        }
    }
    Ok(())
}
