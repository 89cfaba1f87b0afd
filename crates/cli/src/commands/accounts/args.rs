//! Arguments of `teamster accounts`.

use clap::{Args, Subcommand};

use crate::args::{StoreArgs, provider};

const EXAMPLES: &str = "\
Examples:
  teamster accounts list
  teamster accounts release claude       its limit was raised: ask the service again

Exit codes:
    0  done
    1  `accounts.toml` cannot be read, or the store cannot be read or written";

/// Show the accounts of agents and their limits, and end holds.
///
/// `accounts.toml` in the configuration folder (`~/.config/teamster`) names accounts by a home or by variables of their
/// own, for --account.
///
/// When a service names the end of a limit ("resets at 14:30"), no process of this machine asks it before that:
/// runs with the same login wait, fall back or end at once, by --max-wait and --fallback.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct AccountsArgs {
    #[command(subcommand)]
    pub(crate) command: AccountsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AccountsCommand {
    List(AccountsListArgs),
    Release(AccountsReleaseArgs),
}

/// List named accounts, and those that have reached a limit.
#[derive(Debug, Args)]
pub(crate) struct AccountsListArgs {
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}

/// Let runs ask a service again before the end of its limit.
#[derive(Debug, Args)]
pub(crate) struct AccountsReleaseArgs {
    /// Only the accounts of this agent
    #[arg(value_name = "AGENT", value_parser = provider::ProviderParser)]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
}
