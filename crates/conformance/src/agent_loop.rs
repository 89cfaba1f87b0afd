//! `cargo xtask loop`.

mod checks;
mod day;
mod killed;
mod page;
mod stage;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::bail;
use teamster_mock_model::Cli;

use crate::bench::Bench;
use crate::isolation::Network;
use crate::results::Results;
use crate::{given_or, install, say, schedule};
use checks::{Check, Findings};

pub(crate) use page::section;

/// Run `teamster loop` with the real CLIs, and see what the model is asked.
///
/// The program itself plays some ticks in an agent's directory with each of the pinned CLIs
/// (`crates/conformance/package.json`); their model is a script, which sets flags by the CLI's own shell tool. A
/// run with all of them writes the section `Agent loop` of `docs/conformance.md`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Providers [default: all]
    #[arg(value_name = "PROVIDER", value_parser = crate::cli)]
    providers: Vec<Cli>,
    /// How many loops run at the same time
    #[arg(long, default_value_t = 2, value_name = "N")]
    jobs: usize,
    /// Print the log of every loop, and what was asked of the models
    #[arg(long, short)]
    verbose: bool,
    /// Write nothing: the stored results must be those of this run
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    inner: crate::Inner,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args.inner.bench(None) {
        Some((bench, network)) => play_all(args, &bench, network),
        None => crate::alone(&install::pinned_versions()?.programs),
    }
}

/// Returns the program, which is next to this one.
fn teamster() -> anyhow::Result<PathBuf> {
    let program = std::env::current_exe()?.with_file_name("teamster");
    if !program.exists() {
        bail!("teamster is not beside this program; `cargo xtask loop` builds both");
    }
    Ok(program)
}

fn play_all(args: &Args, bench: &Bench, network: Network) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let clis = given_or(&args.providers, install::clis());
    say(format_args!(
        "{} CLIs, {} at a time, {}",
        clis.len(),
        args.jobs,
        network.describe()
    ));
    for cli in &clis {
        bench.prepare(*cli);
    }
    let program = teamster()?;
    let plays = clis.into_iter().map(|cli| {
        let (bench, program) = (bench.clone(), program.clone());
        let play = async move { (cli, play(&bench, cli, &program).await) };
        (false, play)
    });
    let mut all = BTreeMap::new();
    schedule::in_slots(args.jobs, plays.collect(), |(cli, findings), time| {
        report(args, cli, &findings, time);
        all.insert(cli, findings.ok());
    })?;
    let holds = |findings: &Option<Findings>| findings.as_ref().is_some_and(Findings::holds);
    let failed = all.values().filter(|findings| !holds(findings)).count();
    say(format_args!(
        "{} loops in {} s, {failed} in which not all holds",
        all.len(),
        begun.elapsed().as_secs()
    ));
    let mut fine = failed == 0;
    if args.providers.is_empty() {
        let mut stored = Results::read()?;
        let of_cli = |(cli, findings): (&Cli, &Option<Findings>)| {
            (cli.id().to_owned(), cells(findings.as_ref()))
        };
        stored.agent_loop = all.iter().map(of_cli).collect();
        fine &= crate::settle(&stored, args.check, "cargo xtask loop")?;
    }
    Ok(ExitCode::from(u8::from(!fine)))
}

/// Returns whether each check holds. Without findings none does.
fn cells(findings: Option<&Findings>) -> BTreeMap<String, bool> {
    let holds = |check: &Check| {
        let holds = findings.is_some_and(|it| it.wrong.iter().all(|(wrong, _)| wrong != check));
        (check.name().to_owned(), holds)
    };
    match findings {
        Some(findings) => findings.looked.iter().map(holds).collect(),
        None => Check::ALL.iter().map(holds).collect(),
    }
}

async fn play(bench: &Bench, cli: Cli, program: &Path) -> anyhow::Result<Findings> {
    let mut findings = day::play(bench, cli, program).await?;
    killed::play(bench, cli, program, &mut findings).await?;
    Ok(findings)
}

fn report(args: &Args, cli: Cli, findings: &anyhow::Result<Findings>, time: Duration) {
    let (cli, time) = (cli.id(), time.as_secs_f64());
    let line = |what: &str| say(format_args!("{cli:<9} {time:>6.1} s  {what}"));
    let findings = match findings {
        Ok(findings) => findings,
        Err(error) => {
            line("FAILS");
            say(format_args!("    {error:#}"));
            return;
        }
    };
    line(if findings.holds() { "holds" } else { "FAILS" });
    for (check, wrong) in &findings.wrong {
        say(format_args!("    {}: {wrong}", check.name()));
    }
    if args.verbose || !findings.holds() {
        for line in &findings.details {
            say(format_args!("   {line}"));
        }
    }
}
