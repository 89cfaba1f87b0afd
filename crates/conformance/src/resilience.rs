//! `cargo xtask resilience`.

mod abort;
mod answers;
mod case;
mod checks;
mod facts;
mod failover;
mod failures;
mod limit;
mod page;
mod repeated;
mod side_effects;
mod stage;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use teamster_mock_model::Cli;

use crate::bench::Bench;
use crate::isolation::Network;
use crate::results::{self, Cells, Results};
use crate::{given_or, install, say, say_played, schedule};
use case::Case;
use checks::Findings;

pub(crate) use page::section;

/// Let runs of the real CLIs fail, and see that they go on and do nothing twice.
///
/// Each case is played by the orchestrator with the pinned CLIs (`crates/conformance/package.json`) against
/// scripted models that fail, or with a CLI that is killed. What must hold is asserted; what a CLI
/// forces to be different is declared in `crates/conformance/src/resilience/facts.rs`. A run of all cases
/// with all providers writes the section `Resilience` of `docs/conformance.md`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Providers [default: all]
    #[arg(value_name = "PROVIDER", value_parser = crate::cli)]
    providers: Vec<Cli>,
    /// Only these cases
    #[arg(long = "case", short, value_name = "NAME", value_parser = case::by_name)]
    cases: Vec<Case>,
    /// How many cases run at the same time
    #[arg(long, default_value_t = 2, value_name = "N")]
    jobs: usize,
    /// Print every event of every run, and what was asked of the models
    #[arg(long, short)]
    verbose: bool,
    /// List the cases and do nothing
    #[arg(long)]
    list: bool,
    /// Write nothing: the stored results must be those of this run
    #[arg(long)]
    check: bool,
    /// Store the results of the cases that are played, and keep the others
    #[arg(long, requires = "cases", conflicts_with_all = ["providers", "check"])]
    merge: bool,
    #[command(flatten)]
    inner: crate::Inner,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.list {
        let mut out = std::io::stdout().lock();
        for case in Case::ALL {
            writeln!(out, "{:<24} {}", case.name(), case.description())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    match args.inner.bench(None) {
        Some((bench, network)) => play_all(args, &bench, network),
        None => crate::alone(&install::pinned_versions()?.programs),
    }
}

fn play_all(args: &Args, bench: &Bench, network: Network) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let clis = given_or(&args.providers, install::clis());
    let cases = given_or(&args.cases, Case::ALL.to_vec());
    say(format_args!(
        "{} cases, {} CLIs, {} at a time, {}",
        cases.len(),
        clis.len(),
        args.jobs,
        network.describe()
    ));
    // A case may use another CLI as its fallback.
    for cli in install::clis() {
        bench.prepare(cli);
    }
    let mut plays = Vec::new();
    for case in cases {
        for &cli in &clis {
            if let Some(fact) = facts::cannot(cli, case) {
                let (name, cli) = (case.name(), cli.id());
                say(format_args!("{name:<24} {cli:<9}    -      {}", fact.name));
                continue;
            }
            let bench = bench.clone();
            plays.push((
                false,
                async move { (cli, case, play(&bench, cli, case).await) },
            ));
        }
    }
    let mut cells = Cells::new();
    schedule::in_slots(args.jobs, plays, |(cli, case, findings), time| {
        report(args, cli, case, &findings, time);
        let holds = findings.ok().filter(Findings::holds);
        let facts = holds.map(|findings| -> BTreeSet<String> {
            findings.facts.into_iter().map(str::to_owned).collect()
        });
        let of_cli = cells.entry(cli.id().to_owned()).or_default();
        of_cli.insert(case.name().to_owned(), facts);
    })?;
    for fact in facts::ALL {
        if clis.iter().any(|cli| fact.clis.contains(cli)) {
            say(format_args!("{}: {}", fact.name, fact.why));
        }
    }
    let all: Vec<_> = cells.values().flat_map(BTreeMap::values).collect();
    let failed = all.iter().filter(|cell| cell.is_none()).count();
    say(format_args!(
        "{} runs in {} s, {failed} in which not all holds",
        all.len(),
        begun.elapsed().as_secs()
    ));
    let mut fine = failed == 0;
    let complete = args.providers.is_empty() && args.cases.is_empty();
    if complete || args.merge {
        let mut stored = Results::read()?;
        results::merge(&mut stored.resilience, cells);
        fine &= crate::settle(&stored, args.check, "cargo xtask resilience")?;
    }
    Ok(ExitCode::from(u8::from(!fine)))
}

async fn play(bench: &Bench, cli: Cli, case: Case) -> anyhow::Result<Findings> {
    match case {
        Case::NoDoubleSideEffects => side_effects::failed_after_a_tool(bench, cli).await,
        Case::KilledInATool => side_effects::killed_in_a_tool(bench, cli).await,
        Case::CutAfterACall => side_effects::cut_after_a_call(bench, cli).await,
        Case::SentAgain => repeated::before_any_tool(bench, cli).await,
        Case::Failover => failover::to_another(bench, cli).await,
        Case::FailoverToEmbedded => failover::to_embedded(bench, cli).await,
        Case::ReadOnlyRetry => repeated::after_reading(bench, cli).await,
        Case::Abort => abort::play(bench, cli).await,
        Case::Limit => limit::play(bench, cli).await,
        Case::SubAgentLimit => limit::with_sub_agent(bench, cli).await,
    }
}

fn report(args: &Args, cli: Cli, case: Case, findings: &anyhow::Result<Findings>, time: Duration) {
    let line = |what: &str| say_played(case.name(), cli, time, what);
    let findings = match findings {
        Ok(findings) => findings,
        Err(error) => {
            line("FAILS");
            say(format_args!("    {error:#}"));
            return;
        }
    };
    let facts = findings.facts.join(", ");
    match (findings.holds(), facts.is_empty()) {
        (true, true) => line("holds"),
        (true, false) => line(&format!("holds; {facts}")),
        (false, _) => line("FAILS"),
    }
    for wrong in &findings.wrong {
        say(format_args!("    {wrong}"));
    }
    if args.verbose {
        for line in &findings.details {
            say(format_args!("   {line}"));
        }
    }
}
