//! Options that several commands share. A command's own arguments are in its folder of `commands`.

mod agent;
mod fleet;
mod mcp;
mod output;
pub(crate) mod provider;
mod remote;
mod store;
pub(crate) mod value;

use clap::Arg;

pub(crate) use agent::{
    AgentSessionArgs, AskTimeoutArgs, ChatLimitArgs, EnvironmentArgs, ModelArgs, PERMISSION_LIMITS,
    PermissionArgs, ProcessArgs, ResultArgs, StdinMode, SystemArgs, TimeoutArgs, TurnArgs,
};
#[cfg(feature = "fleet")]
pub(crate) use fleet::FleetArgs;
pub(crate) use fleet::PlacementArgs;
pub(crate) use mcp::{McpArgs, ServerArgs};
pub(crate) use output::{AttachOutputArgs, OutputArgs};
pub(crate) use remote::{REMOTE_TOKEN_VARIABLE, REMOTE_VARIABLE, RemoteArgs};
pub(crate) use store::{STORE_VARIABLE, StoreArgs};
pub(crate) use teamster::Fallback;
pub(crate) use value::EnvVar;

/// The help heading of the most used options: `-h` lists them together with `--help` itself.
pub(crate) const COMMON: Option<&str> = None;

/// Leaves an option under a heading of its own out of `-h`.
pub(crate) fn only_common(arg: Arg) -> Arg {
    let is_rare = arg.get_help_heading().is_some();
    if is_rare {
        arg.hide_short_help(true)
    } else {
        arg
    }
}
