//! Arguments of `teamster token`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use teamster_server::Scope;

use crate::args::value;

const EXAMPLES: &str = "\
Examples:
  teamster token add phone --scope answer
  teamster token add ci --scope run
  teamster token list
  teamster token revoke phone
  teamster token replace                 the token of the server's owner

Exit codes:
    0  done
    1  the tokens cannot be read or written
    2  no such token, or its name is taken or not valid";

/// Create and revoke tokens for the API of `teamster serve`.
///
/// Only hashes of these tokens are stored. Running servers accept a new token and refuse a revoked one at once.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    Add(TokenAddArgs),
    List(TokenListArgs),
    Revoke(TokenRevokeArgs),
    Replace(TokenReplaceArgs),
}

/// Create a token and print it; it is shown only once.
#[derive(Debug, Args)]
pub(crate) struct TokenAddArgs {
    /// The token's name, such as that of its device
    pub(crate) name: String,
    /// Grant this scope (repeatable)
    #[arg(long, value_name = "SCOPE", required = true, value_delimiter = ',', value_parser = value::named_values(SCOPES))]
    pub(crate) scope: Vec<Scope>,
}

/// List the tokens.
#[derive(Debug, Args)]
pub(crate) struct TokenListArgs {
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Revoke a token, and all logins with it.
#[derive(Debug, Args)]
pub(crate) struct TokenRevokeArgs {
    /// The token's name
    pub(crate) name: String,
}

/// Replace the token with all scopes, and print the new one.
///
/// Running servers refuse the previous one, and all logins with it, at once.
#[derive(Debug, Args)]
pub(crate) struct TokenReplaceArgs {
    /// The file of the token, if `teamster serve` has one with --token-file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
}

/// Values of `--scope` with their help texts.
const SCOPES: &[(Scope, &str)] = &[
    (Scope::Read, "See runs, requests, agents and usage"),
    (Scope::Run, "Start and stop runs, and see them"),
    (Scope::Answer, "Answer requests, and see them"),
    (Scope::Trigger, "Fire triggers, and nothing else"),
    (Scope::Admin, "Everything, the control of agents included"),
];
