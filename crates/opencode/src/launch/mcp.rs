//! MCP servers of a run, in the format of OpenCode's configuration.
//!
//! The CLI replaces `{env:NAME}` and then `{file:PATH}` in the text of a configuration, before it parses the JSON.
//! The value of a variable is inserted unescaped, so it could break the JSON or be expanded itself. The text of a
//! file is escaped as a JSON string and not expanded, but loses its surrounding white space. Therefore secrets, and
//! texts that the CLI would expand, are in a private file whose path is in a variable, and the surrounding white
//! space is in the configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value, json};
use teamster_core::provider::{FileLocation, PathLocation, PrivateFile, mcp_variable};
use teamster_core::{AgentError, ExecuteParams, McpServer, McpTransport};

use super::settings::configured_servers;
use crate::tool_names::in_tool_names;

/// Files that a run may lease, and others that the CLI reads.
pub(crate) const CONFIG_FILES: &[FileLocation] = &[
    FileLocation::Project("opencode.jsonc"),
    FileLocation::Project(".opencode/opencode.jsonc"),
    in_config("opencode/opencode.jsonc"),
    FileLocation::Project("opencode.json"),
    FileLocation::Project(".opencode/opencode.json"),
    in_config("opencode/opencode.json"),
];

const fn in_config(path: &'static str) -> FileLocation {
    FileLocation::user("XDG_CONFIG_HOME", ".config", path)
}

/// The CLI's default timeouts for the start of a server and for a tool call (measured).
const STARTS_WITHIN: Duration = Duration::from_secs(30);
const CALL_ENDS_WITHIN: Duration = Duration::from_mins(1);

/// Maximum of the CLI's timers in milliseconds. They fire immediately with more.
const LONGEST_TIMEOUT_MS: u128 = i32::MAX as u128;

/// The CLI's own tools and permissions whose names look like those of a server's tools.
const OWN_NAMES: &str = "
    apply_patch doom_loop external_directory list_mcp_resources list_mcp_resource_templates
    plan_enter plan_exit read_mcp_resource
";

/// Servers in the CLI's format.
#[derive(Debug, Default)]
pub(super) struct Servers {
    /// Name and definition of each server, without secrets.
    pub(super) entries: Vec<(String, Value)>,
    /// Files that the definitions refer to.
    pub(super) files: Vec<PrivateFile>,
}

impl Servers {
    pub(super) fn of(params: &ExecuteParams) -> Result<Self, AgentError> {
        let configured = configured_servers(params);
        let mut servers = Self::default();
        for server in &params.mcp_servers {
            let definition = check_name(&server.name, &configured)
                .and_then(|()| servers.definition(server))
                .map_err(|problem| refused(&server.name, &problem))?;
            servers.entries.push((server.name.clone(), definition));
        }
        Ok(servers)
    }

    fn definition(&mut self, server: &McpServer) -> Result<Value, String> {
        let mut of = Map::new();
        match &server.transport {
            McpTransport::Stdio {
                command,
                args,
                env,
                cwd,
            } => {
                // Names of variables and headers never contain `=`, so these keys are unique.
                let mut words = vec![self.text(server, "command=", command)];
                for (index, arg) in args.iter().enumerate() {
                    words.push(self.text(server, &format!("args={index}"), arg));
                }
                of.insert("type".into(), json!("local"));
                of.insert("command".into(), words.into());
                if !env.is_empty() {
                    check_variables(env)?;
                    of.insert("environment".into(), self.secrets(server, env));
                }
                if let Some(cwd) = cwd {
                    let cwd = cwd.to_str().ok_or("cwd: OpenCode takes paths in UTF-8")?;
                    of.insert("cwd".into(), self.text(server, "cwd=", cwd));
                }
            }
            McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                of.insert("type".into(), json!("remote"));
                // User, password and query may be secret.
                let address = if url.contains(['@', '?', '#']) {
                    self.secret(server, "url=", url)
                } else {
                    self.text(server, "url=", url)
                };
                of.insert("url".into(), address);
                if !headers.is_empty() {
                    of.insert("headers".into(), self.secrets(server, headers));
                }
                // A run cannot log in with a browser.
                of.insert("oauth".into(), json!(false));
            }
            other => {
                return Err(format!(
                    "type: OpenCode does not support {} servers",
                    other.as_str()
                ));
            }
        }
        of.insert("enabled".into(), json!(true));
        if let Some(ms) = timeout(server)? {
            of.insert("timeout".into(), json!(ms));
        }
        Ok(Value::Object(of))
    }

    /// Returns the value of a text that is not secret.
    fn text(&mut self, server: &McpServer, key: &str, text: &str) -> Value {
        if is_replaced(text) {
            self.secret(server, key, text)
        } else {
            json!(text)
        }
    }

    fn secrets(&mut self, server: &McpServer, values: &BTreeMap<String, String>) -> Value {
        let values = values.iter();
        let values = values.map(|(name, value)| (name.clone(), self.secret(server, name, value)));
        Value::Object(values.collect())
    }

    /// Returns the value of a text that the CLI reads from a private file.
    fn secret(&mut self, server: &McpServer, key: &str, text: &str) -> Value {
        // A superset of the characters that the CLI trims.
        let is_blank = |c: char| c.is_whitespace() || c == '\u{feff}';
        let core = text.trim_matches(is_blank);
        if core.is_empty() {
            return json!(text);
        }
        let after_begin = text.trim_start_matches(is_blank);
        let begin = &text[..text.len() - after_begin.len()];
        let end = &after_begin[core.len()..];
        let variable = mcp_variable(&server.name, key);
        let value = format!("{begin}{{file:{{env:{variable}}}}}{end}");
        self.files.push(PrivateFile {
            location: PathLocation::Variable(variable),
            content: core.as_bytes().to_vec(),
        });
        json!(value)
    }
}

/// Returns whether the CLI would expand this text.
fn is_replaced(text: &str) -> bool {
    text.contains("{env:") || text.contains("{file:")
}

fn check_name(name: &str, configured: &[(String, bool)]) -> Result<(), String> {
    let first = format!("{name}_");
    let mut own = OWN_NAMES.split_ascii_whitespace();
    if let Some(own) = own.find(|own| own.starts_with(&first)) {
        return Err(format!(
            "name: OpenCode would treat its own tool {own} as one of this server; choose another name"
        ));
    }
    if name == "__proto__" {
        return Err("name: OpenCode drops a server of this name; give it another".into());
    }
    if configured
        .iter()
        .any(|(other, _)| in_tool_names(other) == name)
    {
        return Err(
            "name: OPENCODE_CONFIG_CONTENT has a server of this name already, and OpenCode would mix \
             the two; give it another name"
                .into(),
        );
    }
    Ok(())
}

fn check_variables(env: &BTreeMap<String, String>) -> Result<(), String> {
    match env
        .keys()
        .find(|name| is_replaced(name) || *name == "__proto__")
    {
        Some(name) => Err(format!(
            "env: a variable named {name:?} would not reach the server; rename it"
        )),
        None => Ok(()),
    }
}

/// Returns the CLI's only timeout of a server in milliseconds: for its start, for the list of its tools and for each
/// call.
fn timeout(server: &McpServer) -> Result<Option<u64>, String> {
    let limit = match (server.startup_timeout, server.tool_timeout) {
        (None, None) => return Ok(None),
        (Some(start), Some(call)) if start == call => start,
        (Some(start), None) if start >= CALL_ENDS_WITHIN => start,
        (None, Some(call)) if call >= STARTS_WITHIN => call,
        _ => {
            return Err(format!(
                "startup_timeout, tool_timeout: OpenCode has one limit for the start of a server and \
                 for each call of a tool; set both to the same, or only the first to at least {} s, \
                 or only the second to at least {} s",
                CALL_ENDS_WITHIN.as_secs(),
                STARTS_WITHIN.as_secs()
            ));
        }
    };
    let ms = limit.as_millis().clamp(1, LONGEST_TIMEOUT_MS);
    Ok(u64::try_from(ms).ok())
}

/// Returns permission rules for a server's tools: names of permissions and actions. The last match applies.
pub(super) fn rules(server: &McpServer) -> Vec<(String, &'static str)> {
    let all = format!("{}_*", server.name);
    let of = |tool: &String| format!("{}_{}", server.name, in_tool_names(tool));
    let mut rules = match &server.tools.only {
        None => vec![(all, "allow")],
        Some(only) => {
            let mut rules = vec![(all, "deny")];
            rules.extend(only.iter().map(|tool| (of(tool), "allow")));
            rules
        }
    };
    rules.extend(server.tools.except.iter().map(|tool| (of(tool), "deny")));
    rules
}

/// Returns the servers whose tools can be recognized: those of the run, and those that the caller has configured in
/// the environment and not disabled. Servers in the user's files are unknown.
pub(crate) fn known_servers(params: &ExecuteParams) -> Vec<String> {
    let own = params.mcp_servers.iter().map(|server| server.name.clone());
    let configured = configured_servers(params).into_iter();
    let configured = configured.filter_map(|(name, is_on)| is_on.then_some(name));
    own.chain(configured)
        .filter(|name| !name.is_empty())
        .collect()
}

fn refused(server: &str, problem: &str) -> AgentError {
    AgentError::refused_server(server, problem)
}

/// Returns the longest timeout of the servers.
pub(super) fn longest(
    params: &ExecuteParams,
    limit: impl Fn(&McpServer) -> Option<Duration>,
) -> Duration {
    let limits = params.mcp_servers.iter().filter_map(limit);
    limits.max().unwrap_or_default()
}

/// Refuses a configuration that is too large for a variable.
pub(super) fn check_size(name: &str, text: &str) -> Result<(), AgentError> {
    /// Size in bytes, including the name, at which Linux refuses a variable (`MAX_ARG_STRLEN`).
    const TOO_LARGE: usize = 128 * 1024;
    let size = name.len() + 1 + text.len();
    if size < TOO_LARGE {
        return Ok(());
    }
    Err(AgentError::refused(
        "mcp_servers",
        format!(
            "with them {name} would have {size} bytes, and the system takes less than \
         {TOO_LARGE} in a variable; give fewer or shorter arguments, or another mcp_delivery"
        ),
    ))
}

#[cfg(test)]
mod tests;
