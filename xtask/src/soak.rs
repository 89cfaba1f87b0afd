//! `cargo xtask soak` and `cargo xtask leases`: tests that take minutes.

use std::time::Instant;

use anyhow::Context as _;
use clap::ValueEnum;

use crate::{Outcome, cargo, complain};

/// Play very many turns, events, runs, ticks and hours, and compare what a process holds at the end with what it held
/// at the beginning.
///
/// Each part is a test with a process of its own, and prints memory, descriptors, threads and times after a tenth and at
/// the end. In `ticks`, stand-ins of agents die and hang in a loop that is killed again and again: no flag may be lost,
/// no wake and no session.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// Which parts [default: all]
    parts: Vec<Part>,
    /// A fortieth of each, to try it
    #[arg(long)]
    quick: bool,
    /// How many of each
    #[arg(long, value_name = "N", conflicts_with = "quick")]
    count: Option<u64>,
    /// Which chances for `ticks`
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Part {
    /// 5,000 turns of one session
    Turns,
    /// 5 million events of one run
    Events,
    /// 2,000 runs of one orchestrator
    Runs,
    /// 2,000 runs of one server
    Server,
    /// 2,000 ticks of a loop, for three kinds of agents
    Ticks,
    /// 4,000 hours of idle sessions, by a clock that jumps
    Idle,
}

impl Part {
    /// The package of the test, its name or that of its module, and how many.
    fn test(self) -> (&'static str, &'static str, u64) {
        match self {
            Self::Turns => (
                "teamster-testkit",
                "engine::session::soak::many_turns",
                5000,
            ),
            Self::Events => ("teamster-testkit", "engine::soak::many_events", 5_000_000),
            Self::Runs => ("teamster-testkit", "engine::soak::many_runs", 2000),
            Self::Server => ("teamster-cli", "cli::serve::soak::many_runs", 2000),
            Self::Ticks => ("teamster-cli", "soak::a_", 2000),
            Self::Idle => (
                "teamster-testkit",
                "engine::session::soak::many_hours",
                4000,
            ),
        }
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let parts = match &args.parts[..] {
        [] => Part::value_variants(),
        parts => parts,
    };
    let mut failed = false;
    for part in parts {
        let (package, test, many) = part.test();
        let count = args
            .count
            .unwrap_or(if args.quick { many / 40 } else { many });
        let began = Instant::now();
        let status = cargo()
            .args(["test", "--quiet", "--package", package, "--test", "it"])
            .args(["--", test, "--nocapture"])
            .env("TEAMSTER_TEST_SOAK", count.to_string())
            .env("TEAMSTER_TEST_SOAK_SEED", args.seed.to_string())
            .status()
            .context("cannot start cargo")?;
        if !status.success() {
            complain(format_args!(
                "{part:?} failed after {} s",
                began.elapsed().as_secs()
            ));
            failed = true;
        }
    }
    Ok(Outcome::problems_if(failed))
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
