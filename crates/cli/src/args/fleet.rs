//! Arguments that select a fleet, and what of it may carry a run out.

use clap::Args;

/// A fleet, used instead of this machine.
#[cfg(feature = "fleet")]
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Remote")]
pub(crate) struct FleetArgs {
    /// Use the runs and machines of your fleet, which `teamster fleet use` names
    ///
    /// A run waits in its queue until one of its machines takes it. The fleet can also be named by the variables
    /// `TEAMSTER_FLEET` (its servers), `TEAMSTER_FLEET_CREDS` (a file of credentials) and `TEAMSTER_FLEET_OWNER`.
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) fleet: bool,
}

/// The machines of a fleet that may carry a run or session out, and the secrets that it needs there.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Remote")]
pub(crate) struct PlacementArgs {
    /// In a fleet: let the machines of this pool take it [default: those of the pool `default`]
    #[arg(long, value_name = "NAME", conflicts_with = "machine")]
    pub(crate) pool: Option<String>,
    /// In a fleet: let this machine alone take it, by the name of its worker
    #[arg(long, value_name = "NAME")]
    pub(crate) machine: Option<String>,
    /// In a fleet: give the agent this secret as a variable, such as `NPM_TOKEN` (repeatable)
    ///
    /// The value is on the machine that carries it out, whose owner decides who may use it. A machine without it leaves
    /// the run to others.
    #[arg(long, value_name = "NAME")]
    pub(crate) secret: Vec<String>,
}
