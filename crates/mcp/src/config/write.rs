//! Servers as JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use teamster_core::{McpServer, McpTransport};

use super::expand::escape;

/// The servers as [`parse`](super::parse) reads them, in the form of `.mcp.json`.
///
/// It holds the values of variables and headers, which may be secret: keep it out of logs and of files
/// that others can read. A `${` in a value is written so that it is not taken for a variable. Of two
/// servers with one name the later counts, limits of time are kept to the millisecond, and of a `cwd`
/// that is no UTF-8 what can be is kept.
pub fn to_json(servers: &[McpServer]) -> Value {
    let servers = servers
        .iter()
        .map(|it| (it.name.clone(), Value::Object(server(it))));
    json!({ "mcpServers": servers.collect::<Map<_, _>>() })
}

fn server(server: &McpServer) -> Map<String, Value> {
    let mut fields = Map::new();
    let mut set = |name: &str, value: Value| {
        fields.insert(name.to_owned(), value);
    };
    set("type", server.transport.as_str().into());
    match &server.transport {
        McpTransport::Stdio {
            command,
            args,
            env,
            cwd,
        } => {
            set("command", escape(command).into());
            if !args.is_empty() {
                let args = args.iter().map(|arg| escape(arg));
                set("args", args.collect());
            }
            if !env.is_empty() {
                set("env", escaped(env));
            }
            if let Some(cwd) = cwd {
                set("cwd", escape(&cwd.to_string_lossy()).into());
            }
        }
        McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
            set("url", escape(url).into());
            if !headers.is_empty() {
                set("headers", escaped(headers));
            }
        }
        // The enumeration may grow; what it has now is above.
        _ => {}
    }
    if let Some(limit) = server.startup_timeout {
        set("startup_timeout_sec", seconds(limit));
    }
    if let Some(limit) = server.tool_timeout {
        set("tool_timeout_sec", seconds(limit));
    }
    if let Some(only) = &server.tools.only {
        set("includeTools", only.clone().into());
    }
    if !server.tools.except.is_empty() {
        set("excludeTools", server.tools.except.clone().into());
    }
    fields
}

fn escaped(map: &BTreeMap<String, String>) -> Value {
    let escaped = map.iter().map(|(key, value)| (key.clone(), escape(value)));
    escaped.collect::<BTreeMap<_, _>>().into_iter().collect()
}

fn seconds(limit: Duration) -> Value {
    if limit.subsec_millis() == 0 {
        limit.as_secs().into()
    } else {
        limit.as_secs_f64().into()
    }
}
