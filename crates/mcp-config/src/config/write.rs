//! Serialization of servers.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use teamster_core::{McpServer, McpTransport};

use super::expand::escape;

/// Converts servers to JSON in the form of `.mcp.json`, which [`parse`](super::parse) reads.
///
/// The result has the values of variables and headers, which may be secret. Keep it out of logs and of files that
/// others can read.
///
/// A `${` in a value is escaped, so that it is not expanded. Of several servers with the same name, the last one is
/// kept. Time limits are kept to the millisecond. Parts of a `cwd` that are not UTF-8 are replaced.
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
        // The enum is non-exhaustive. All current transports are above.
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
