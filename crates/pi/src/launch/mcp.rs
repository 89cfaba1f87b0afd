//! MCP servers of a run: an extension in a private file registers them, so no file of the user's is changed.
//!
//! The CLI has servers since version 0.99; tested with 1.6.0.

use std::borrow::Cow;

use serde_json::{Map, Value, json};
use teamster_core::provider::Args;
use teamster_core::{AgentError, McpServer, McpTransport};

/// Prefix of the names of all tools of servers.
pub(crate) const PREFIX: &str = "mcp__";

/// Pattern of the names of all tools of servers.
pub(super) const ALL: &str = "mcp__*";

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
    format!("{}__*", namespace(server))
}

/// Returns the name under which the CLI keeps the tools of a server together.
fn namespace(server: &McpServer) -> String {
    format!("{PREFIX}{}", in_names(&server.name))
}

/// The type of the session's entry in which the extension reports servers without tools.
pub(crate) const ENTRY: &str = "teamster";

/// The extension, between the servers and the servers of which the agent gets tools.
///
/// A run (`json`) does not say that a server failed, so the extension looks for the tools once the CLI has waited
/// for them. A session reports it itself.
const EXTENSION: [&str; 3] = [
    "export default function (pi) {
  if (typeof pi.registerMcpServer !== \"function\") {
    throw new Error(\"this version of Pi takes no MCP servers: update it, or run without them\");
  }
  for (const [name, server] of Object.entries(",
    ")) {
    pi.registerMcpServer(name, server);
  }
  const offering = ",
    ";
  let looked = false;
  pi.on(\"turn_start\", (_event, ctx) => {
    if (looked || ctx.mode !== \"json\") return;
    looked = true;
    const spaces = new Set(pi.getAllTools().map((tool) => tool.namespace?.name));
    const withoutTools = Object.keys(offering).filter((name) => !spaces.has(offering[name]));
    if (withoutTools.length > 0) pi.appendEntry(\"teamster\", { withoutTools });
  });
}
",
];

/// Adds the extension that registers the servers. `offers` returns whether the agent gets a server's tools.
pub(super) fn add(servers: &[McpServer], offers: impl Fn(&McpServer) -> bool, args: &mut Args) {
    if servers.is_empty() {
        return;
    }
    let all: Map<String, Value> = (servers.iter())
        .map(|server| (server.name.clone(), config(server)))
        .collect();
    let offering: Map<String, Value> = (servers.iter().filter(|server| offers(server)))
        .map(|server| (server.name.clone(), namespace(server).into()))
        .collect();
    let [begin, middle, end] = EXTENSION;
    let (all, offering) = (Value::Object(all), Value::Object(offering));
    args.add("--extension");
    args.private_file_named("", ".mjs", format!("{begin}{all}{middle}{offering}{end}"));
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
        config["timeout"] = json!(limit.as_secs_f64());
    }
    let (others, named) = match &server.tools.only {
        Some(only) => ("hidden", only.iter().map(|tool| (tool, "direct")).collect()),
        None => ("direct", Vec::new()),
    };
    config["exposure"] = json!(others);
    let except = server.tools.except.iter().map(|tool| (tool, "hidden"));
    let named: Map<String, Value> = (named.into_iter().chain(except))
        .map(|(tool, exposure)| (tool.clone(), exposure.into()))
        .collect();
    if !named.is_empty() {
        config["toolExposure"] = named.into();
    }
    config
}

/// Refuses values in which the CLI would put variables, or which it would run as commands.
/// Refuses a server whose tools the CLI could not tell from another one's, too.
pub(super) fn check(servers: &[McpServer]) -> Result<(), AgentError> {
    for (at, server) in servers.iter().enumerate() {
        let same = |other: &&McpServer| in_names(&other.name) == in_names(&server.name);
        if let Some(other) = servers[..at].iter().find(same) {
            let problem = format!(
                "name: for Pi it is the same as `{}`, because `-` and `_` are alike in the names of tools; use another",
                other.name
            );
            return Err(AgentError::refused_server(&server.name, problem));
        }
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
