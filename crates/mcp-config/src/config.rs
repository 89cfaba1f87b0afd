//! Servers from existing JSON: `.mcp.json`, and the `mcpServers` of other programs.
//!
//! ```
//! use teamster_core::McpServer;
//! use teamster_mcp_config::config;
//!
//! let text = r#"{
//!   // As Claude Code and others read it.
//!   "mcpServers": {
//!     "tracker": {
//!       "command": "tracker-mcp",
//!       "args": ["--read-only"],
//!       "env": { "TRACKER_TOKEN": "${TRACKER_TOKEN}" },
//!     },
//!   },
//! }"#;
//! let parsed = config::parse(text, &|name| (name == "TRACKER_TOKEN").then(|| "secret".into()))?;
//! let tracker = McpServer::stdio("tracker", "tracker-mcp", ["--read-only"]);
//! assert_eq!(parsed.servers, [tracker.env("TRACKER_TOKEN", "secret")]);
//! # Ok::<(), config::ConfigError>(())
//! ```
//!
//! # Accepted forms
//!
//! The servers are the members of `mcpServers`, of `servers` (VS Code), of `mcp` (OpenCode) or of `mcp.servers`.
//! Without any of these, they are the members of the top-level object. All other members of a settings file are
//! ignored. Comments, trailing commas and a byte order mark are accepted. A field of a server that is `null` counts as
//! absent.
//!
//! | Field | Form |
//! |---|---|
//! | `type` | `stdio` or `local`; `http`, `streamable-http`, `streamableHttp` or `remote`; `sse`. Without it, a server with a `command` is `stdio` and one with a `url` is `http` |
//! | `command`, `args` | a string and a list, or one list with both |
//! | `env` or `environment` | an object with strings |
//! | `cwd` | a string |
//! | `url`, `httpUrl` or `serverUrl`, `headers` | a string, and an object with strings |
//! | `startup_timeout_sec`, `tool_timeout_sec` | seconds, as in Codex |
//! | `timeout` | time limit of a tool call, in milliseconds. In Gemini CLI and OpenCode also of the start; not here |
//! | `tools`, `includeTools` or `enabled_tools` | a list; `"tools": ["*"]` selects all of them |
//! | `excludeTools` or `disabled_tools` | a list |
//! | `disabled`, `enabled` | a disabled server is left out |
//! | `trust`, `description` | no effect |
//!
//! Any other member of a server is reported in [`Parsed::ignored`], because it may be a typing error.
//!
//! # Variables
//!
//! `${NAME}` and `${NAME:-default}` are replaced in `command`, `args`, `env`, `cwd`, `url` and `headers`, as in Claude
//! Code. A variable that is set to an empty string counts as set. Inserted values are not expanded again.

mod expand;
mod fields;
mod server;
#[cfg(test)]
mod tests;
mod write;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::{CollectOptions, parse_to_ast};
use teamster_core::McpServer;

use crate::edit::JSON_WITH_COMMENTS;
use server::Problem;
pub use server::is_typo_of;
pub use write::to_json;

/// Error in a configuration. It contains no value, because values may be secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{problem}", location(server.as_deref(), *position))]
#[non_exhaustive]
pub struct ConfigError {
    /// The name of the server in the configuration.
    pub server: Option<String>,
    /// Line and column, counted from 1, if the text is not valid JSON.
    pub position: Option<(usize, usize)>,
    /// The problem: the field and the reason.
    pub problem: String,
}

impl ConfigError {
    fn new(problem: impl Into<String>) -> Self {
        Self {
            server: None,
            position: None,
            problem: problem.into(),
        }
    }

    fn of(server: &str, problem: impl Into<String>) -> Self {
        Self {
            server: Some(server.to_owned()),
            ..Self::new(problem)
        }
    }
}

fn location(server: Option<&str>, position: Option<(usize, usize)>) -> String {
    match (server, position) {
        (Some(server), _) => format!("{}: ", shown(server)),
        (None, Some((line, column))) => format!("line {line}, column {column}: "),
        (None, None) => String::new(),
    }
}

/// A parsed configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parsed {
    /// The servers in the order of the text, without disabled ones.
    pub servers: Vec<McpServer>,
    /// Fields without effect, because they are unknown or conflict with others. Each text has the server, the field and
    /// the reason.
    pub ignored: Vec<String>,
    /// The servers that [`parse_available`] has left out: their names, and the field and the reason.
    pub left_out: Vec<(String, String)>,
}

/// Parses the servers of a configuration. `variables` returns the value of a variable that is set.
///
/// [`McpServer::problem`] accepts every returned server.
///
/// # Errors
///
/// Fails if the text is not valid JSON, if a server is invalid, or if a variable without a default is not set.
pub fn parse(
    text: &str,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<Parsed, ConfigError> {
    let parsed = parse_available(text, variables)?;
    match parsed.left_out.first() {
        Some((name, why)) => Err(ConfigError::of(name, why.as_str())),
        None => Ok(parsed),
    }
}

/// Parses the servers as [`parse`] does, but leaves out those that need a variable which is not set.
///
/// # Errors
///
/// Fails if the text is not valid JSON or a server is invalid.
pub fn parse_available(
    text: &str,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<Parsed, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (table, bare) = table(top(text)?);
    let mut parsed = Parsed::default();
    let mut names: Vec<String> = Vec::new();
    for property in table.properties {
        let name = property.name.into_string();
        let shown = shown(&name);
        if bare && is_no_server(&name) {
            continue;
        }
        if names.contains(&name) {
            return Err(ConfigError::of(&name, "there are two servers of this name"));
        }
        let object = match property.value {
            Value::Object(object) => object,
            other => {
                let kind = fields::kind(&other);
                return Err(ConfigError::of(
                    &name,
                    format!("expected an object, found {kind}"),
                ));
            }
        };
        match server::read(&name, object, variables) {
            Ok(read) => {
                parsed.servers.extend(read.server);
                let ignored = read.ignored.into_iter();
                let ignored = ignored.map(|what| format!("{shown}: {what}"));
                parsed.ignored.extend(ignored);
            }
            Err(Problem::Unset(what)) => parsed.left_out.push((name.clone(), what)),
            Err(problem @ Problem::Unreachable) if bare => {
                return Err(ConfigError::of(
                    &name,
                    format!("{problem}; or are the servers under another key than mcpServers?"),
                ));
            }
            Err(problem) => return Err(ConfigError::of(&name, problem.to_string())),
        }
        names.push(name);
    }
    Ok(parsed)
}

/// Parses the text as an object.
fn top(text: &str) -> Result<Object<'_>, ConfigError> {
    let result =
        parse_to_ast(text, &CollectOptions::default(), &JSON_WITH_COMMENTS).map_err(|error| {
            let mut what = error.kind().to_string();
            if let Some(first) = what.get_mut(..1) {
                first.make_ascii_lowercase();
            }
            ConfigError {
                position: Some((error.line_display(), error.column_display())),
                ..ConfigError::new(format!("no JSON: {what}"))
            }
        })?;
    match result.value {
        Some(Value::Object(object)) => Ok(object),
        Some(other) => Err(ConfigError::new(format!(
            "expected an object with servers, found {}",
            fields::kind(&other)
        ))),
        None => Err(ConfigError::new("it is empty")),
    }
}

/// Returns the object whose members are the servers, and whether that is the top-level object.
fn table(mut top: Object<'_>) -> (Object<'_>, bool) {
    let mut inside_mcp = false;
    loop {
        let key = ["mcpServers", "servers", "mcp"].into_iter().find(|key| {
            let wraps = top.get(key).is_some_and(|member| match &member.value {
                Value::Object(object) => *key == "mcpServers" || !looks_like_a_server(object),
                _ => false,
            });
            wraps && (!inside_mcp || *key == "servers")
        });
        let Some(Value::Object(inner)) = key.and_then(|key| top.take(key)).map(|it| it.value)
        else {
            return (top, !inside_mcp);
        };
        if key != Some("mcp") || inside_mcp {
            return (inner, false);
        }
        top = inner;
        inside_mcp = true;
    }
}

/// Returns whether the object is a server whose name is that of a table of servers by chance.
fn looks_like_a_server(object: &Object<'_>) -> bool {
    ["command", "url", "httpUrl", "serverUrl"]
        .into_iter()
        .any(|key| {
            object
                .get(key)
                .is_some_and(|member| !matches!(member.value, Value::Object(_)))
        })
}

/// Returns whether a member of a file of servers is not a server.
fn is_no_server(name: &str) -> bool {
    matches!(name, "$schema" | "inputs")
}

/// Returns a name for a message, with control characters escaped, because a terminal would interpret them.
fn shown(name: &str) -> String {
    name.chars().fold(String::new(), |mut shown, c| {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
        shown
    })
}
