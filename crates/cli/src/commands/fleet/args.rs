//! Arguments of `teamster fleet`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

const SHORT: &str = "\
The way from nothing to a run on another machine: teamster fleet --help";

const EXAMPLES: &str = "\
A fleet is a NATS server with JetStream, which keeps the queue, and machines that take runs from it:
  nats-server -js                                    on any machine, for a first try
  teamster fleet use nats://127.0.0.1:4222           keep its address
  teamster fleet init                                make its streams, once
  teamster worker                                    on each machine that is to carry runs out
  teamster --fleet run codex \"Fix the failing test\" --repo .
  teamster --fleet runs list --live                  what waits and what runs, and where
  teamster fleet status                              its machines and queues";

/// Set up a fleet of machines, and look after it.
#[derive(Debug, Args)]
#[command(after_help = SHORT, after_long_help = EXAMPLES, arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct FleetCommandArgs {
    #[command(subcommand)]
    pub(crate) command: FleetCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FleetCommand {
    Use(FleetUseArgs),
    Init(FleetInitArgs),
    Check(FleetCheckArgs),
    Status(FleetStatusArgs),
    Drain(FleetDrainArgs),
    GiveUp(FleetGiveUpArgs),
    Rerun(FleetRerunArgs),
}

/// Keep how your fleet is reached, for --fleet.
///
/// The file is `teamster/fleet.json` in `$XDG_CONFIG_HOME`, else in `~/.config`; only you can read it. The connection is
/// tried first, so that a wrong address is not kept.
#[derive(Debug, Args)]
pub(crate) struct FleetUseArgs {
    /// Its servers, such as `tls://nats.example` or `wss://nats.example`, separated by commas; `-` reads them from stdin
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// The file with your credentials, from the operator of the fleet: `.creds`, or the seed of an nkey (`SU…`)
    ///
    /// Only you may be able to read it.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) creds: Option<PathBuf>,
    /// The certificate in PEM of the authority that signs those of the servers [default: those that this machine trusts]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) ca: Option<PathBuf>,
    /// The name under which your runs are kept: letters, digits, `-` and `_` [default: your user name]
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,
    /// The prefix of the subjects of answers, if the permissions of your credentials require one [default: `_INBOX_OWNER`]
    #[arg(long, value_name = "PREFIX", hide_short_help = true)]
    pub(crate) inbox: Option<String>,
}

/// Make the streams of the fleet, or bring those of an older version up to date.
///
/// For its operator, once. Streams that exist with other settings are refused and stay as they are.
#[derive(Debug, Args)]
pub(crate) struct FleetInitArgs {
    /// Keep this many copies of everything [default: 3 in a cluster, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=5))]
    pub(crate) replicas: Option<u8>,
    /// Keep at most this much of logs, such as 500M or 2G; the oldest go [default: 4G]
    #[arg(long, value_name = "SIZE", value_parser = crate::args::value::size)]
    pub(crate) logs: Option<u64>,
    /// Keep at most this much of files, such as repositories and results; more are refused [default: 16G]
    #[arg(long, value_name = "SIZE", value_parser = crate::args::value::size)]
    pub(crate) files: Option<u64>,
    /// Let at most this many runs wait; more are refused [default: 100000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) queue: Option<u64>,
}

/// Check the fleet's server: its version, its streams, and what can lose runs.
///
/// Exit code 1 if the fleet cannot work like this. Warnings are no failure.
#[derive(Debug, Args)]
pub(crate) struct FleetCheckArgs {
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show the machines of the fleet, and what they can carry out.
#[derive(Debug, Args)]
pub(crate) struct FleetStatusArgs {
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Give up a run whose machine does not report.
///
/// It is shown as failed from now on, though it may have worked. If its machine comes back, its agent is stopped there.
/// A run whose machine is there is cancelled instead.
#[derive(Debug, Args)]
pub(crate) struct FleetGiveUpArgs {
    /// The run's id, or a unique prefix of it
    pub(crate) id: String,
}

/// Submit a run again, as a new run with the same description; print its id.
///
/// For a run that has ended, was given up, or whose machine does not report. What it has changed outside of its machine
/// stays, and both may cost.
#[derive(Debug, Args)]
pub(crate) struct FleetRerunArgs {
    /// The run's id, or a unique prefix of it
    pub(crate) id: String,
}

/// Let a worker take no more runs, and end with those that it has.
///
/// As Ctrl-C on its machine does. It returns at once; `teamster fleet status` shows the worker until it has ended.
#[derive(Debug, Args)]
pub(crate) struct FleetDrainArgs {
    /// The name of the worker
    #[arg(value_name = "WORKER")]
    pub(crate) name: String,
}
