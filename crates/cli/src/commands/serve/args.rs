//! Arguments of `teamster serve`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use teamster_server::ListenAddress;

const SHORT: &str = "\
Examples:
  teamster serve
  teamster serve --listen unix:/run/user/1000/teamster.sock
Requests with curl, tokens and the exit codes: teamster serve --help";

const EXAMPLES: &str = "\
Examples:
  teamster serve                                     on http://127.0.0.1:7420
  teamster serve --listen 127.0.0.1:0                on a free port, which it prints
  teamster serve --listen unix:/run/user/1000/teamster.sock   no token: the file decides
  teamster token add phone --scope answer            a token that can only read and answer

Requests, in another terminal:
  token=$(cat ~/.local/state/teamster/server/token)
  api() { curl -sS -H \"Authorization: Bearer $token\" \"http://127.0.0.1:7420/v1$@\"; }
  api /runs --json '{\"provider\": \"claude\", \"prompt\": \"Fix the failing test\"}'
  api /runs/ID/events                                entries of its log, as they come
  api /requests                                      pending requests
  api /requests/ID/1 --json '{\"decision\": \"allow\"}'
  api /openapi.json                                  everything else

Exit codes:
    0  SIGTERM or Ctrl-C ended it
    1  it cannot listen there, or an internal failure
    2  the command line is wrong, or the token cannot be used";

/// Serve an HTTP API and a page for detached runs: start, follow, answer and stop them.
///
/// The server only reads the logs of runs and sends commands to their processes: runs continue when it ends, and
/// clients resume where they were when it is back. Every request needs a token. The first start creates one with
/// all scopes, in a file that only you can read; `teamster token add` creates others.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Listen on ADDRESS:PORT or unix:PATH (repeatable)
    ///
    /// Port 0 picks a free one; the address is printed on stdout. Only you can connect to a Unix socket, so it
    /// needs no token.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7420")]
    pub(crate) listen: Vec<ListenAddress>,
    /// Serve one client on stdin and stdout, then end; no port is opened
    ///
    /// This is what `--remote ssh:HOST` starts on the other machine. The client has all scopes; runs continue when it
    /// is gone. In `authorized_keys`, `command="teamster serve --stdio"` limits a key to this, without
    /// what the `--allow` options allow.
    #[arg(
        long,
        hide_short_help = true,
        conflicts_with_all = ["listen", "token_file", "allow_host", "callback", "allow_private_callbacks", "web_push", "insecure_http"]
    )]
    pub(crate) stdio: bool,
    /// Read the token with all scopes from this file
    /// [default: `teamster/server/token` in `$XDG_STATE_HOME`, else in `~/.local/state`; created at the first start]
    ///
    /// One line of at least 16 characters. Other users must not be able to read it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
    /// Accept requests to this host name, besides localhost and IP addresses (repeatable)
    ///
    /// For example, the name of a proxy in front of the server. Requests to other names are refused: otherwise any
    /// web page could reach the server by a name that resolves to this machine (DNS rebinding).
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// Allow runs with the permission `bypass`, for tokens with the scope admin
    #[arg(long)]
    pub(crate) allow_bypass: bool,
    /// Allow runs whose agent is any command: `cmd:COMMAND`, `acp:COMMAND`; MCP servers that are commands, too
    #[arg(long)]
    pub(crate) allow_commands: bool,
    /// Allow runs to bring MCP servers along that are reached by a URL
    #[arg(long, hide_short_help = true)]
    pub(crate) allow_mcp: bool,
    /// Allow runs to push what they have committed, with git's logins of this machine
    #[arg(long, hide_short_help = true)]
    pub(crate) allow_push: bool,
    /// Allow runs to set this environment variable for their agents (repeatable); `*` is any
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) allow_env: Vec<String>,
    /// Allow runs to choose this container for their agents, such as docker:agents:1 (repeatable); `*` is any
    ///
    /// They mount nothing of this machine but their workspace. `TEAMSTER_IN` sets the container of all other runs.
    #[arg(long, value_name = "ENGINE:IMAGE", hide_short_help = true)]
    pub(crate) allow_in: Vec<String>,
    /// Send a request to this URL when a run has ended or needs an answer
    ///
    /// A run can also have a callback of its own. Requests are signed as in Standard Webhooks; the secret is in
    /// `teamster/server/webhook-secret` beside the token. Failed ones are retried for about an hour.
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub(crate) callback: Option<String>,
    /// Allow callbacks to addresses of this machine and its networks
    #[arg(long, hide_short_help = true)]
    pub(crate) allow_private_callbacks: bool,
    /// Notify browsers of requests and of ended runs, also while the page is closed
    ///
    /// Browsers turn it on in the page, which needs HTTPS or localhost. Each message goes to the push service of
    /// the browser's maker, encrypted for the browser: the title of the run and what happened. The key and the
    /// subscriptions are beside the token.
    #[arg(long, hide_short_help = true)]
    pub(crate) web_push: bool,
    /// Listen beyond this machine without TLS; needs --token-file
    ///
    /// Anyone on the network path can read the token and the agents' output. Prefer a proxy with TLS in front of
    /// 127.0.0.1, or a VPN.
    #[arg(long, requires = "token_file", hide_short_help = true)]
    pub(crate) insecure_http: bool,
    /// Show the agents of this supervisor configuration [default: ./agents.config.json, if it exists]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub(crate) agents: Option<PathBuf>,
}
