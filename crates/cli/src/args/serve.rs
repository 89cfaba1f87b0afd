//! Arguments of `teamster serve` and `teamster token`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use teamster_server::{ListenAddress, Scope};

const SERVE_SHORT: &str = "\
Examples:
  teamster serve
  teamster serve --listen unix:/run/user/1000/teamster.sock
Requests with curl, tokens and the exit codes: teamster serve --help";

const SERVE_EXAMPLES: &str = "\
Examples:
  teamster serve                                     on http://127.0.0.1:7420
  teamster serve --listen 127.0.0.1:0                on a free port, which it prints
  teamster serve --listen unix:/run/user/1000/teamster.sock   no token: the file decides
  teamster token add phone --scope answer            a token that can only look and answer

Requests, in another terminal:
  token=$(cat ~/.local/state/teamster/server/token)
  api() { curl -sS -H \"Authorization: Bearer $token\" \"http://127.0.0.1:7420/v1$@\"; }
  api /runs --json '{\"provider\": \"claude\", \"prompt\": \"Fix the failing test\"}'
  api /runs/ID/events                                entries of its log, as they come
  api /requests                                      what waits for an answer
  api /requests/ID/1 --json '{\"decision\": \"allow\"}'
  api /openapi.json                                  everything else

Exit codes:
    0  SIGTERM or Ctrl-C ended it
    1  it cannot listen there, or an internal failure
    2  the command line is wrong, or the token cannot be used";

/// Serve an HTTP API and a page for detached runs: start, follow, answer and stop them.
///
/// The server only reads the logs of runs and sends commands to their processes: runs continue when it ends, and
/// clients go on where they were when it is back. Every request needs a token. The first start makes one that
/// may do everything, in a file that only you can read; `teamster token add` makes others, with scopes.
#[derive(Debug, Args)]
#[command(after_help = SERVE_SHORT, after_long_help = SERVE_EXAMPLES)]
pub(crate) struct ServeArgs {
    /// Where to listen: ADDRESS:PORT, or unix:PATH (repeatable)
    ///
    /// Port 0 is any free one; the address is printed on stdout. The file of a Unix socket is for you alone, so
    /// that no token is needed there.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7420")]
    pub(crate) listen: Vec<ListenAddress>,
    /// A file with the token that may do everything
    /// [default: `teamster/server/token` in `$XDG_STATE_HOME`, else in `~/.local/state`; made at the first start]
    ///
    /// One line of at least 16 characters. Other users must not be able to read it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
    /// A name by which the server is addressed, beside localhost and addresses (repeatable)
    ///
    /// Such as the name at which a proxy serves it. Requests to other names are refused: with a name of its own
    /// for this machine, any web page could reach the server (DNS rebinding).
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// Allow runs with the permission `bypass`, for tokens with the scope admin
    #[arg(long)]
    pub(crate) allow_bypass: bool,
    /// Allow runs whose agent is any command: `cmd:COMMAND`, `acp:COMMAND`
    #[arg(long)]
    pub(crate) allow_commands: bool,
    /// A URL that gets a request when any run has ended, or needs an answer
    ///
    /// A run can also have a callback of its own. Requests are signed as Standard Webhooks has it; the secret is in
    /// `teamster/server/webhook-secret` beside the token. Failed ones are retried for about an hour.
    #[arg(long, value_name = "URL", hide_short_help = true)]
    pub(crate) callback: Option<String>,
    /// Allow callbacks to addresses of this machine and its networks
    #[arg(long, hide_short_help = true)]
    pub(crate) allow_private_callbacks: bool,
    /// Listen beyond this machine without TLS; needs --token-file
    ///
    /// Everybody on the way can read the token and all that agents say. A proxy with TLS in front of
    /// 127.0.0.1, or a VPN, is better.
    #[arg(long, requires = "token_file", hide_short_help = true)]
    pub(crate) insecure_http: bool,
    /// The configuration of the supervisor whose agents are shown [default: ./agents.config.json, if it is there]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub(crate) agents: Option<PathBuf>,
}

const TOKEN_EXAMPLES: &str = "\
Examples:
  teamster token add phone --scope answer
  teamster token add ci --scope run
  teamster token list
  teamster token revoke phone

Exit codes:
    0  done
    1  the tokens cannot be read or written
    2  no such token, or its name is taken or not valid";

/// Make and revoke tokens for the API of `teamster serve`.
///
/// Only hashes of these tokens are kept. Running servers know a new token at once, and refuse a revoked one.
#[derive(Debug, Args)]
#[command(after_help = TOKEN_EXAMPLES, arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    Add(TokenAddArgs),
    List(TokenListArgs),
    Revoke(TokenRevokeArgs),
}

/// Make a token and print it; it is shown only once.
#[derive(Debug, Args)]
pub(crate) struct TokenAddArgs {
    /// Its name, such as that of the device it is for
    pub(crate) name: String,
    /// What it allows (repeatable)
    #[arg(long, value_name = "SCOPE", required = true, value_delimiter = ',')]
    pub(crate) scope: Vec<ScopeName>,
}

/// List the tokens.
#[derive(Debug, Args)]
pub(crate) struct TokenListArgs {
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Revoke a token, and the logins that were made with it.
#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArgs {
    /// Its name
    pub(crate) name: String,
}

/// The name of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeName {
    /// See runs, requests, agents and usage
    Read,
    /// Start and stop runs, and see them
    Run,
    /// Answer requests, and see them
    Answer,
    /// Everything, the control of agents included
    Admin,
}

impl From<ScopeName> for Scope {
    fn from(name: ScopeName) -> Self {
        match name {
            ScopeName::Read => Self::Read,
            ScopeName::Run => Self::Run,
            ScopeName::Answer => Self::Answer,
            ScopeName::Admin => Self::Admin,
        }
    }
}
