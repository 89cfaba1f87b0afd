//! What a server is made with.

use std::path::PathBuf;

use teamster_runner::Runs;

use crate::{OwnerToken, Tokens};

/// What a server is made with.
#[derive(Debug)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The runs that it shows.
    pub runs: Runs,
    /// The tokens with scopes of their own.
    pub tokens: Tokens,
    /// The token that may do everything; without one, only those of `tokens` are valid.
    pub owner: Option<OwnerToken>,
    /// Names by which the server may be addressed, beside `localhost` and addresses.
    pub hosts: Vec<String>,
    /// Whether a run may have the permission `bypass`.
    pub allow_bypass: bool,
    /// Whether a run may name its agent by a command (`acp:COMMAND`, `cmd:COMMAND`).
    pub allow_commands: bool,
    /// The configuration of the supervisor whose agents are shown.
    pub agents: Option<PathBuf>,
    /// The URL that gets a request when any run has ended or needs an answer.
    pub callback: Option<String>,
    /// Whether callbacks may go to addresses that are not public.
    pub allow_private_callbacks: bool,
    /// Is called with each problem that belongs to no request, such as a callback that was given up.
    pub on_warning: fn(&str),
    /// The most connections at a time; further ones are closed. 1024.
    pub max_connections: usize,
}

impl ServerConfig {
    /// A server of these runs and tokens that allows nothing else.
    pub fn new(runs: Runs, tokens: Tokens) -> Self {
        Self {
            runs,
            tokens,
            owner: None,
            hosts: Vec::new(),
            allow_bypass: false,
            allow_commands: false,
            agents: None,
            callback: None,
            allow_private_callbacks: false,
            on_warning: |_| {},
            max_connections: 1024,
        }
    }
}
