//! The configuration of a server.

use teamster_metrics::Metrics;

use crate::{OwnerToken, Tokens, Triggers};

/// The configuration of a server.
#[derive(Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The tokens with scopes of their own.
    pub tokens: Tokens,
    /// The owner's token, which has every permission. Without it, only `tokens` are valid.
    pub owner: Option<OwnerToken>,
    /// Allowed values of the `Host` header, in addition to `localhost` and IP addresses.
    pub hosts: Vec<String>,
    /// Allow runs with the permission `bypass`.
    pub allow_bypass: bool,
    /// Allow runs that name their agent by a command (`acp:COMMAND`, `cmd:COMMAND`), or MCP servers that are commands.
    pub allow_commands: bool,
    /// Allow runs to bring MCP servers along that are reached by a URL.
    pub allow_mcp: bool,
    /// Allow runs to push what they have committed to a remote of their repository, with the server's logins.
    pub allow_push: bool,
    /// Names of the environment variables that runs may set for their agents; `*` is any.
    pub allow_env: Vec<String>,
    /// Containers that runs may choose for their agents, such as `docker:agents:1`; `*` is any. They have no mounts.
    pub allow_containers: Vec<String>,
    /// The callback URL for all runs: it receives a request when a run ends or needs an answer.
    pub callback: Option<String>,
    /// Take runs with a callback of their own. Default: true. A server that ends with its client sends none.
    pub allow_callbacks: bool,
    /// Allow callbacks, and push services of browsers, at addresses that are not public.
    pub allow_private_callbacks: bool,
    /// Notify the browsers that subscribe, by their push services, when a run ends or needs an answer.
    pub web_push: bool,
    /// Runs that requests of other programs start.
    pub triggers: Triggers,
    /// The figures of `/metrics`, if they are also used elsewhere: the server keeps them up from its start. Default: its own,
    /// which it keeps up from the first request.
    pub figures: Option<Metrics>,
    /// Called for each problem that belongs to no request, such as a callback that was given up.
    pub on_warning: fn(&str),
    /// The maximum number of concurrent connections with a valid token; requests of further ones are refused. Default:
    /// 1024. Up to 128 others may wait for one; the oldest of them is closed for a further one.
    pub max_connections: usize,
}

impl ServerConfig {
    /// Creates a configuration in which everything optional is off.
    pub fn new(tokens: Tokens) -> Self {
        Self {
            tokens,
            owner: None,
            hosts: Vec::new(),
            allow_bypass: false,
            allow_commands: false,
            allow_mcp: false,
            allow_push: false,
            allow_env: Vec::new(),
            allow_containers: Vec::new(),
            callback: None,
            allow_callbacks: true,
            allow_private_callbacks: false,
            web_push: false,
            triggers: Triggers::default(),
            figures: None,
            on_warning: |_| {},
            max_connections: 1024,
        }
    }
}
