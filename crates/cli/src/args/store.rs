//! The option that selects the store.

use clap::Args;

/// The environment variable that selects the store.
pub(crate) use teamster_host::STORE_VARIABLE;

/// The store of sessions and run history.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Store")]
pub(crate) struct StoreArgs {
    /// The store of sessions and run history: a file, `postgres://...`, or `off`
    /// [default: `teamster/store.db` in `$XDG_STATE_HOME`, else in `~/.local/state`]
    ///
    /// The history has one row per run: its title, a hash of the prompt, the agent, times, tokens, cost,
    /// and how it ended. Put a URL with a password into the variable: arguments are visible to every user
    /// of the machine.
    #[arg(
        long = "store",
        value_name = "FILE|URL|off",
        env = STORE_VARIABLE,
        hide_env_values = true,
        hide_short_help = true
    )]
    pub(crate) url: Option<String>,
}
