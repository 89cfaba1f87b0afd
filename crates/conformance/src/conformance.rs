//! `cargo xtask conformance`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use teamster_mock_model::Cli;

use crate::bench::Bench;
use crate::column::Column;
use crate::differences::{Differences, Verdict};
use crate::isolation::Network;
use crate::played::{Played, Which};
use crate::results::{self, Cells, Results};
use crate::scenario::{self, Scenario};
use crate::schedule::{self, Done};
use crate::{acp, conversation, given_or, hot, install, matrix, say, say_played, story, times};

/// Play every scenario with the real CLIs and compare their stories.
///
/// Each is played cold, with a process for each run, and hot: as turns of a session whose process is
/// there already.
///
/// The pinned versions of the CLIs (`crates/conformance/package.json`) are installed with npm into the target
/// folder. Each scenario (`crates/conformance/scenarios`) is a script for the model with the story that must
/// come of it; what a CLI forces to be different is declared in `crates/conformance/differences.toml`, and any
/// other difference is an error. A run of all scenarios with all providers writes the matrix in
/// `docs/conformance.md`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Providers [default: all]
    #[arg(value_name = "PROVIDER", value_parser = crate::cli)]
    providers: Vec<Cli>,
    /// Only these scenarios
    #[arg(long = "scenario", short, value_name = "NAME")]
    scenarios: Vec<String>,
    /// How many CLIs run at the same time
    #[arg(long, default_value_t = 2, value_name = "N")]
    jobs: usize,
    /// Only with a process for each run
    #[arg(long, conflicts_with = "hot")]
    cold: bool,
    /// Only as turns of a session, whose process is there already
    #[arg(long)]
    hot: bool,
    /// Measure how long runs and turns take, one at a time, and write that into docs/conformance.md
    #[arg(long, conflicts_with_all = ["scenarios", "cold", "hot", "record"])]
    times: bool,
    /// Print whole stories, and the requests to the model
    #[arg(long, short)]
    verbose: bool,
    /// List the scenarios and do nothing
    #[arg(long)]
    list: bool,
    /// Play what fails once more, by itself: on a busy machine a CLI may run out of time. That it failed
    /// is reported all the same
    #[arg(long)]
    again: bool,
    /// Write nothing: the stored results must be those of this run, their date aside
    #[arg(long)]
    check: bool,
    /// Store the results of the scenarios and providers that are played, and keep the others
    #[arg(long, conflicts_with_all = ["cold", "hot", "check"])]
    merge: bool,
    /// Play nothing: write docs/conformance.md again from the stored results, after a change of texts or of its form
    #[arg(long, exclusive = true)]
    render: bool,
    /// Keep what the CLIs print in this folder: one folder a run, in the form of a fixture
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    #[command(flatten)]
    acp: acp::AcpArgs,
    #[command(flatten)]
    inner: crate::Inner,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let scenarios = scenario::read(&args.scenarios)?;
    let differences = Differences::read()?;
    if args.list {
        let mut out = std::io::stdout().lock();
        for scenario in &scenarios {
            writeln!(out, "{:<24} {}", scenario.name, scenario.description())?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    if args.render {
        crate::write_page(&Results::read()?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some((bench, network)) = args.inner.bench(args.record.clone()) else {
        return crate::alone(&match &args.acp.acp {
            Some(command) => acp::programs(command)?,
            None => install::pinned_versions()?.programs,
        });
    };
    let clis = given_or(&args.providers, install::matrix());
    if args.times {
        return times::run(
            &bench,
            &clis,
            network,
            !args.check && args.providers.is_empty(),
        );
    }
    let scenarios: Vec<_> = scenarios.into_iter().map(Arc::new).collect();
    if let Some(command) = &args.acp.acp {
        let ways = acp::Ways {
            cold: !args.hot,
            hot: !args.cold,
        };
        let printing = acp::Printing {
            jobs: args.jobs,
            verbose: args.verbose,
            named: !args.scenarios.is_empty(),
        };
        return acp::run(
            &args.acp, command, &bench, ways, printing, network, &scenarios,
        );
    }
    play_all(args, &bench, &clis, network, &scenarios, &differences)
}

fn play_all(
    args: &Args,
    bench: &Bench,
    clis: &[Cli],
    network: Network,
    scenarios: &[Arc<Scenario>],
    differences: &Differences,
) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let columns = Column::of(clis, !args.hot, !args.cold);
    let complete =
        args.providers.is_empty() && args.scenarios.is_empty() && !args.hot && !args.cold;
    say(format_args!(
        "{} scenarios, {} CLIs, {} at a time, {}",
        scenarios.len(),
        clis.len(),
        args.jobs,
        network.describe()
    ));
    let versions = install::at(&bench.programs)?.versions;
    let differences = &differences.clone().of_versions(&versions);
    let mut cells = BTreeMap::new();
    let mut play = |columns: &[Column], scenarios: &[Arc<Scenario>], jobs: usize| {
        schedule::play_all(bench, columns, &versions, scenarios, jobs, |done| {
            let verdict = match &done.played {
                Ok(played) => judge(
                    differences,
                    done.column,
                    &done.scenario,
                    played,
                    args.verbose,
                )
                .unwrap_or_else(|error| Verdict::failed(&error)),
                Err(error) => Verdict::failed(error),
            };
            report(&done, &verdict);
            cells.insert((done.column, done.scenario.name.clone()), verdict);
        })?;
        anyhow::Ok(failed(&cells))
    };
    let failures = play(&columns, scenarios, args.jobs)?;
    if args.again {
        for (column, name) in failures {
            say(format_args!("once more: {name} {column}"));
            let scenario: Vec<_> = scenarios
                .iter()
                .filter(|it| it.name == name)
                .cloned()
                .collect();
            play(&[column], &scenario, 1)?;
        }
    }
    let unused = differences.unused(&cells, args.scenarios.is_empty());
    for unused in &unused {
        say(format_args!("declared in vain: {unused}"));
    }
    let failed = failed(&cells).len();
    say(format_args!(
        "{} runs in {} s, {failed} with differences that are not declared, {} declarations in vain",
        cells.len(),
        begun.elapsed().as_secs(),
        unused.len()
    ));
    let mut fine = failed == 0 && unused.is_empty();
    if complete || args.merge {
        let mut now = Cells::new();
        for ((column, scenario), verdict) in cells {
            let is_declared = verdict.undeclared.is_empty();
            let of_column = now.entry(column.to_string()).or_default();
            of_column.insert(scenario, is_declared.then_some(verdict.declared));
        }
        let mut stored = Results::read()?;
        stored.run_on = matrix::run_now(network);
        results::merge(&mut stored.scenarios, now);
        fine &= crate::settle(&stored, args.check, "cargo xtask conformance")?;
    }
    Ok(if fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Returns the cells with undeclared differences.
fn failed(cells: &BTreeMap<(Column, String), Verdict>) -> Vec<(Column, String)> {
    let failed = cells
        .iter()
        .filter(|(_, verdict)| !verdict.undeclared.is_empty());
    failed.map(|(cell, _)| cell.clone()).collect()
}

/// Compares the stories of a scenario's runs, or of its turns and those around them.
pub(crate) fn judge(
    differences: &Differences,
    column: Column,
    scenario: &Scenario,
    played: &[Played],
    verbose: bool,
) -> anyhow::Result<Verdict> {
    let mut all = Verdict::default();
    let mut process = None;
    for played in played {
        let number = match played.which {
            Which::Run(number) => number,
            Which::Ready | Which::Again => 0,
        };
        // The turns around the scenario's have separate stories.
        let (around, which) = match played.which {
            Which::Run(0) => (None, String::new()),
            Which::Run(number) => (None, format!("run {}: ", number + 1)),
            Which::Ready => (Some(hot::ready()?), "the turn before: ".to_owned()),
            Which::Again => (Some(hot::again(process)?), "the turn after: ".to_owned()),
        };
        process = played.process;
        let mut expected = match &around {
            Some(around) => story::expected(around, number),
            None if column.hot => story::expected_hot(scenario, number),
            None => story::expected(scenario, number),
        };
        let mut actual = story::actual(played, &expected);
        if column.cli == Cli::Embedded {
            // Its loop is in this process: the other processes are its MCP servers.
            expected.remove("process");
            actual.remove("process");
        }
        let name = &around.as_ref().unwrap_or(scenario).name;
        if verbose {
            show(column, name, played, &actual);
        }
        let verdict = differences.compare(column, name, &expected, &actual);
        // For turns around the scenario's, only explicitly declared differences count.
        let counts = |declared: &String| around.is_none() || differences.names(declared, name);
        all.declared
            .extend(verdict.declared.into_iter().filter(counts));
        let found = verdict.undeclared.into_iter();
        all.undeclared
            .extend(found.map(|found| format!("{which}{found}")));
    }
    Ok(all)
}

fn show(column: Column, scenario: &str, played: &Played, actual: &story::Story) {
    say(format_args!(
        "-- {column} {scenario} ({} ms)",
        played.time.as_millis()
    ));
    for (fact, value) in actual {
        say(format_args!("   {fact} = {value}"));
    }
    for request in &played.requests {
        say(format_args!("   {}", conversation::line(request)));
    }
    for error in &played.result.errors {
        say(format_args!(
            "   error: {:?} {:?}: {}",
            error.kind, error.code, error.message
        ));
    }
}

fn report(done: &Done, verdict: &Verdict) {
    let what = if !verdict.undeclared.is_empty() {
        "FAILS".to_owned()
    } else if verdict.declared.is_empty() {
        "same".to_owned()
    } else {
        let names: Vec<_> = verdict.declared.iter().map(String::as_str).collect();
        names.join(", ")
    };
    let what = turns(done) + &what;
    say_played(&done.scenario.name, done.column, done.time, &what);
    for found in &verdict.undeclared {
        say(format_args!("    {found}"));
    }
}

/// Returns the durations of a session's turns as text.
fn turns(done: &Done) -> String {
    match &done.played {
        Ok(played) if done.column.hot => {
            let times: Vec<_> = played
                .iter()
                .map(|turn| turn.time.as_millis().to_string())
                .collect();
            format!("({} ms)  ", times.join(", "))
        }
        _ => String::new(),
    }
}
