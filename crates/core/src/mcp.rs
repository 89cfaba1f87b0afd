//! MCP servers for one run.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::constants;

/// An MCP server for one run, in addition to those of the user.
///
/// Its tools may be used without a permission request in every permission mode.
///
/// ```
/// use teamster_core::{ExecuteParams, McpServer};
///
/// let mut params = ExecuteParams::new("Which issues are open?");
/// params.mcp_servers = vec![
///     McpServer::stdio("tracker", "tracker-mcp", ["--read-only"]).env("TRACKER_TOKEN", "secret"),
///     McpServer::http("docs", "https://mcp.example.com/docs").header("Authorization", "Bearer x"),
/// ];
/// ```
///
/// Its JSON has the values of variables and headers, which may be secret.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    feature = "config",
    derive(Serialize, Deserialize),
    serde(rename_all = "camelCase", deny_unknown_fields)
)]
#[non_exhaustive]
pub struct McpServer {
    /// Name of the server, from which CLIs derive the names of its tools. All CLIs accept ASCII letters, digits, `-`
    /// and `_`. Some accept more ([`McpSupport::name_marks`]). The longest name differs
    /// ([`McpSupport::longest_name`]).
    pub name: String,
    /// Transport of the server.
    pub transport: McpTransport,
    /// Time limit of its start.
    #[cfg_attr(
        feature = "config",
        serde(
            default,
            with = "humantime_serde",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub startup_timeout: Option<Duration>,
    /// Time limit of one tool call.
    #[cfg_attr(
        feature = "config",
        serde(
            default,
            with = "humantime_serde",
            skip_serializing_if = "Option::is_none"
        )
    )]
    pub tool_timeout: Option<Duration>,
    /// Selection of the tools that the agent gets.
    #[cfg_attr(
        feature = "config",
        serde(default, skip_serializing_if = "McpTools::is_all")
    )]
    pub tools: McpTools,
}

impl McpServer {
    /// Creates a server with nothing else set.
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            startup_timeout: None,
            tool_timeout: None,
            tools: McpTools::default(),
        }
    }

    /// Creates a server that is a program and communicates over stdin and stdout.
    pub fn stdio(
        name: impl Into<String>,
        command: impl Into<String>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let transport = McpTransport::Stdio {
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cwd: None,
        };
        Self::new(name, transport)
    }

    /// Creates a server with the streamable HTTP transport.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        let transport = McpTransport::Http {
            url: url.into(),
            headers: BTreeMap::new(),
        };
        Self::new(name, transport)
    }

    /// Creates a server with the older transport of HTTP with server-sent events (before 2025).
    pub fn sse(name: impl Into<String>, url: impl Into<String>) -> Self {
        let transport = McpTransport::Sse {
            url: url.into(),
            headers: BTreeMap::new(),
        };
        Self::new(name, transport)
    }

    /// Adds an environment variable. Has no effect unless it is a stdio server.
    #[must_use]
    pub fn env(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        if let McpTransport::Stdio { env, .. } = &mut self.transport {
            env.insert(key.into(), value.into());
        }
        self
    }

    /// Adds an HTTP header. Has no effect on a stdio server.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if let McpTransport::Http { headers, .. } | McpTransport::Sse { headers, .. } =
            &mut self.transport
        {
            headers.insert(name.into(), value.into());
        }
        self
    }
}

/// Prefix of all variables that [`mcp_variable`] names. Their values may be secret.
pub const MCP_VARIABLES: &str = "TEAMSTER_MCP_";

/// Returns the name of the environment variable with a secret of a server, for a CLI that reads secrets only there.
/// Each pair of server and key has its own name.
///
/// ```
/// assert_eq!(
///     teamster_core::provider::mcp_variable("my-srv", "API_KEY"),
///     "TEAMSTER_MCP_my_2Dsrv_x_API__KEY"
/// );
/// ```
pub fn mcp_variable(server: &str, key: &str) -> String {
    let mut name = MCP_VARIABLES.to_owned();
    encode(server, &mut name);
    // Encoded text has no underscore before an `x`.
    name.push_str("_x_");
    encode(key, &mut name);
    name
}

/// Encodes a text for a variable's name. Different texts have different encodings.
fn encode(text: &str, name: &mut String) {
    for byte in text.bytes() {
        match byte {
            b'_' => name.push_str("__"),
            _ if byte.is_ascii_alphanumeric() => name.push(char::from(byte)),
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(name, "_{byte:02X}");
            }
        }
    }
}

/// Transport of an MCP server.
///
/// Values of `env` and `headers` are treated as secrets. They reach the CLI by its environment or in a file that
/// only this user can read, never as arguments, and `Debug` does not show them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum McpTransport {
    /// A program that the CLI starts.
    Stdio {
        /// The program: a path, or a name on `PATH`.
        command: String,
        /// Its arguments. Every user of the machine can read them.
        args: Vec<String>,
        /// Environment variables for it.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
        /// Its working directory. Default: the agent's working directory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Http {
        /// The address, with `http://` or `https://`.
        url: String,
        /// HTTP headers of each request.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
    /// HTTP with server-sent events, the older transport (before 2025).
    Sse {
        /// The address, with `http://` or `https://`.
        url: String,
        /// HTTP headers of each request.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        headers: BTreeMap<String, String>,
    },
}

impl McpTransport {
    /// Returns the name, as in the `type` of a configuration: `stdio`, `http` or `sse`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "http",
            Self::Sse { .. } => "sse",
        }
    }
}

/// Omits values that may be secret.
impl fmt::Debug for McpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<Vec<_>>();
        match self {
            Self::Stdio {
                command,
                args,
                env,
                cwd,
            } => f
                .debug_struct("Stdio")
                .field("command", command)
                .field("args", args)
                .field("env", &names(env))
                .field("cwd", cwd)
                .finish(),
            Self::Http { url, headers } => f
                .debug_struct("Http")
                .field("url", &without_credentials(url))
                .field("headers", &names(headers))
                .finish(),
            Self::Sse { url, headers } => f
                .debug_struct("Sse")
                .field("url", &without_credentials(url))
                .field("headers", &names(headers))
                .finish(),
        }
    }
}

/// Returns an address without the parts that may be secret: user, password and query.
///
/// ```
/// let shown = teamster_core::provider::without_credentials("https://me:pw@example.com/mcp?key=1");
/// assert_eq!(shown, "https://example.com/mcp?…");
/// ```
pub fn without_credentials(url: &str) -> String {
    let (base, query) = match url.split_once(['?', '#']) {
        Some((base, _)) => (base, "?…"),
        None => (url, ""),
    };
    let Some((scheme, rest)) = base.split_once("://") else {
        return "…".to_owned();
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}{query}")
}

/// Selection of the tools of a server that the agent gets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct McpTools {
    /// The only tools that the agent gets. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only: Option<Vec<String>>,
    /// Tools that the agent does not get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub except: Vec<String>,
}

impl McpTools {
    /// Selects all tools.
    pub fn all() -> Self {
        Self::default()
    }

    /// Returns whether all tools are selected.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Selects only these tools.
    pub fn only(tools: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            only: Some(tools.into_iter().map(Into::into).collect()),
            except: Vec::new(),
        }
    }

    /// Excludes a tool.
    #[must_use]
    pub fn except(mut self, tool: impl Into<String>) -> Self {
        self.except.push(tool.into());
        self
    }
}

/// Delivery of MCP servers to the CLI.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum McpDelivery {
    /// By arguments, the environment and private files, without a change to any file of the user.
    #[default]
    Private,
    /// In the CLI's configuration file in the working directory, which is leased for the run.
    ProjectConfig,
    /// In the user's own configuration file, which is leased for the run.
    UserConfig,
}

/// The properties of an [`McpServer`] that a provider supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct McpSupport {
    /// Transports of MCP servers (`mcp_servers`).
    #[serde(deserialize_with = "constants::texts")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub transports: &'static [&'static str],
    /// Characters of a server's name, in addition to ASCII letters and digits.
    #[serde(deserialize_with = "constants::text")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub name_marks: constants::Text,
    /// Limit of a server's name, in characters.
    pub longest_name: usize,
    /// Deliveries of MCP servers to the CLI (`mcp_delivery`).
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    #[serde(deserialize_with = "constants::deliveries")]
    pub deliveries: &'static [McpDelivery],
    /// Only these servers, none of the user's (`mcp_strict`).
    pub strict: bool,
    /// Working directory of a stdio server (`cwd`).
    pub cwd: bool,
    /// Time limit for the start of a server (`startup_timeout`).
    pub startup_timeout: bool,
    /// Time limit for a call (`tool_timeout`).
    pub tool_timeout: bool,
    /// Only some of a server's tools (`tools.only`).
    pub only_tools: bool,
    /// All but some of a server's tools (`tools.except`).
    pub except_tools: bool,
}

impl McpSupport {
    /// Creates the support of a provider without MCP servers.
    pub const fn none() -> Self {
        Self {
            transports: &[],
            name_marks: "-_",
            longest_name: 64,
            deliveries: &[],
            strict: false,
            cwd: false,
            startup_timeout: false,
            tool_timeout: false,
            only_tools: false,
            except_tools: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let servers = [
            McpServer::stdio("a", "cmd", ["x"]).env("TOKEN", "sk-1"),
            McpServer::http("b", "https://me:sk-2@example.com/mcp?key=sk-3").header("X", "sk-4"),
            McpServer::sse("c", "sk-5"),
        ];
        let shown = format!("{servers:?}");
        assert!(shown.contains("TOKEN"), "{shown}");
        assert!(shown.contains("https://example.com/mcp?…"), "{shown}");
        assert!(!shown.contains("sk-"), "{shown}");
    }

    #[test]
    fn an_address_is_shown_without_user_and_query() {
        for (url, shown) in [
            ("https://h", "https://h"),
            ("https://u:p@h:1/a@b?c=d#e", "https://h:1/a@b?…"),
            ("http://h#f", "http://h?…"),
            ("h/p", "…"),
        ] {
            assert_eq!(without_credentials(url), shown);
        }
    }

    #[test]
    fn any_selection_is_not_all_tools() {
        assert!(McpTools::default().is_all());
        assert!(!McpTools::default().except("a").is_all());
        // No tool at all is a selection too.
        let none = McpTools::only([""; 0]);
        assert!(!none.is_all() && none.only == Some(Vec::new()));
    }
}
