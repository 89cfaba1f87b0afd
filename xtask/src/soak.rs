//! `cargo xtask soak`, `cargo xtask loop` and `cargo xtask leases`.
//!
//! `soak` runs a test of a session with thousands of turns.
//! The loop with the real CLIs is in a separate package. `loop soak` runs a test of the loop with stand-ins
//! and more ticks. `leases` runs the tests of leases with more kills.

use anyhow::Context as _;

use crate::{Outcome, cargo, delegate};

/// Run `teamster loop` with the real CLIs and see what the model is asked; or, as `loop soak`, for a long time.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, args_conflicts_with_subcommands = true)]
#[group(skip)]
pub(crate) struct Args {
    #[command(subcommand)]
    task: Option<Task>,
    #[command(flatten)]
    real: delegate::Args,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    Soak(SoakArgs),
}

/// Play many ticks with stand-ins of agents that die and hang, in a loop that is killed again and again.
///
/// No flag may be lost, no wake and no session, and nothing may be left at the end. What was counted is
/// printed. It takes about half a second a tick and kind of agent.
#[derive(Debug, clap::Args)]
struct SoakArgs {
    /// How many ticks for each kind of agent
    #[arg(long, default_value_t = 200, value_name = "N")]
    ticks: u64,
    /// Which chances
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Print this
    #[arg(long, short, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let Some(Task::Soak(soak)) = &args.task else {
        return delegate::run("loop", &args.real);
    };
    let status = cargo()
        .args([
            "test",
            "--quiet",
            "--package",
            "teamster-cli",
            "--test",
            "it",
        ])
        .args(["--", "soak::", "--nocapture"])
        .env("TEAMSTER_SOAK_TICKS", soak.ticks.to_string())
        .env("TEAMSTER_SOAK_SEED", soak.seed.to_string())
        .status()
        .context("cannot start cargo")?;
    Ok(Outcome::problems_if(!status.success()))
}

/// Play thousands of turns in one session, and compare memory, descriptors and threads at its end with those at its
/// beginning.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct TurnsArgs {
    /// How many turns
    #[arg(long, default_value_t = 5000, value_name = "N")]
    turns: u64,
}

/// Runs the test of a session with many turns, by itself: what its process has is compared.
pub(crate) fn turns(args: &TurnsArgs) -> anyhow::Result<Outcome> {
    let status = cargo()
        .args([
            "test",
            "--quiet",
            "--package",
            "teamster-testkit",
            "--test",
            "it",
        ])
        .args(["--", "engine::session::soak::", "--nocapture"])
        .env("TEAMSTER_SOAK_TURNS", args.turns.to_string())
        .status()
        .context("cannot start cargo")?;
    Ok(Outcome::problems_if(!status.success()))
}

/// Runs the tests of killed leases with all of their steps.
pub(crate) fn leases() -> anyhow::Result<Outcome> {
    let status = cargo()
        .args(["test", "--package", "teamster-mcp-config", "--test", "it"])
        .args([
            "--",
            "lease::crash::",
            "lease::interleaving::",
            "--nocapture",
        ])
        .env("TEAMSTER_LEASE_SOAK", "1")
        .status()
        .context("cannot start cargo")?;
    Ok(Outcome::problems_if(!status.success()))
}
