//! Servers from several texts: configurations, and servers as a person types them.
//!
//! ```
//! use teamster_core::McpServer;
//! use teamster_mcp_config::source::{Source, merge};
//!
//! let sources = [
//!     Source::new("team.json", r#"{"mcpServers": {"docs": {"url": "https://example.com/mcp"}}}"#),
//!     Source::typed("the command line", "tracker=TOKEN=${TOKEN} tracker-mcp -v").unwrap(),
//! ];
//! let merged = merge(&sources, &|name| (name == "TOKEN").then(|| "secret".into())).unwrap();
//! let tracker = McpServer::stdio("tracker", "tracker-mcp", ["-v"]).env("TOKEN", "secret");
//! assert_eq!(merged.servers[1], tracker);
//! assert_eq!(merged.origins, ["team.json", "the command line"]);
//! ```

mod typed;

use serde_json::{Map, Value, json};
use teamster_core::McpServer;

use crate::config::{self, ConfigError};
pub use typed::TypedError;

/// A text with servers. `Debug` leaves it out, because it may contain secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    /// Origin of the text, for messages.
    origin: String,
    text: String,
}

teamster_core::debug_fields!(Source { origin });

impl Source {
    /// Creates the source of a configuration, in one of the forms of [`config`].
    pub fn new(origin: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            origin: origin.into(),
            text: text.into(),
        }
    }

    /// Creates the source of one server from `NAME=COMMAND` or `NAME=URL`. The command is split as a shell does, and variables
    /// may come before it; `${NAME}` in it is replaced when the sources are [merged](merge).
    ///
    /// # Errors
    ///
    /// Fails if there is no name, or if the rest is neither a command that can be run without a shell nor a URL.
    pub fn typed(origin: impl Into<String>, text: &str) -> Result<Self, TypedError> {
        // The errors do not show the text, which may contain a secret.
        let named = text.split_once('=').filter(|(name, _)| is_name(name));
        let (name, value) = named.ok_or(TypedError::NoName)?;
        let servers: Map<String, Value> = [(name.to_owned(), typed::server(name, value)?)]
            .into_iter()
            .collect();
        Ok(Self::new(
            origin,
            json!({ "mcpServers": servers }).to_string(),
        ))
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '/' || c == ':')
}

/// The servers of several sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Merged {
    /// The servers, in the order of the sources.
    pub servers: Vec<McpServer>,
    /// The origin of each server.
    pub origins: Vec<String>,
    /// Fields without effect, each with its origin, the server and the reason.
    pub ignored: Vec<String>,
}

/// Error of servers from several sources.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A configuration cannot be used.
    #[error("{origin}: {error}")]
    Config {
        /// Its source.
        origin: String,
        /// The reason.
        error: ConfigError,
    },
    /// Two sources have a server of this name.
    #[error("there are two MCP servers called `{name}`: in {first} and in {second}")]
    Twice {
        /// The name.
        name: String,
        /// The origin of the first.
        first: String,
        /// The origin of the second.
        second: String,
    },
}

/// Parses the servers of all sources. `variables` returns the value of a variable that is set.
///
/// # Errors
///
/// Fails if a source cannot be parsed, or if two servers have the same name.
pub fn merge(
    sources: &[Source],
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<Merged, MergeError> {
    let mut merged = Merged::default();
    for Source { origin, text } in sources {
        let parsed = config::parse(text, variables).map_err(|error| MergeError::Config {
            origin: origin.clone(),
            error,
        })?;
        for server in parsed.servers {
            let named = merged.servers.iter().position(|it| it.name == server.name);
            if let Some(first) = named {
                return Err(MergeError::Twice {
                    name: server.name,
                    first: merged.origins[first].clone(),
                    second: origin.clone(),
                });
            }
            merged.servers.push(server);
            merged.origins.push(origin.clone());
        }
        let ignored = parsed.ignored.iter().map(|it| format!("{origin}: {it}"));
        merged.ignored.extend(ignored);
    }
    Ok(merged)
}

#[cfg(test)]
mod tests;
