//! `cargo xtask conformance`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use teamster_mock_model::Cli;

use crate::differences::{Differences, Verdict};
use crate::install;
use crate::isolation::Network;
use crate::play::{Bench, Played};
use crate::scenario::{self, Scenario};
use crate::schedule::{self, Done};
use crate::{matrix, say, story};

/// Play every scenario with the real CLIs and compare their stories.
///
/// The pinned versions of the CLIs (`conformance/package.json`) are installed with npm into the target
/// folder. Each scenario (`conformance/scenarios`) is a script for the model and says what story must
/// come of it; what a CLI forces to be different is declared in `conformance/differences.toml`, and any
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
    /// Tell the whole stories, and what was asked of the model
    #[arg(long, short)]
    verbose: bool,
    /// List the scenarios and do nothing
    #[arg(long)]
    list: bool,
    /// Write nothing: the matrix in docs/conformance.md must be as this run gives it, its date aside
    #[arg(long)]
    check: bool,
    /// Keep what the CLIs print in this folder: one folder a run, in the form of a fixture
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
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
    match (&args.inner.programs, args.inner.network) {
        (Some(programs), Some(network)) => {
            let bench = Bench {
                programs: programs.clone(),
                boxes: std::env::temp_dir(),
                record: args.record.clone(),
            };
            let scenarios: Vec<_> = scenarios.into_iter().map(Arc::new).collect();
            play_all(args, &bench, network, &scenarios, &differences)
        }
        _ => crate::alone(&install::pinned_versions()?.programs),
    }
}

fn play_all(
    args: &Args,
    bench: &Bench,
    network: Network,
    scenarios: &[Arc<Scenario>],
    differences: &Differences,
) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let clis = if args.providers.is_empty() {
        Cli::ALL.to_vec()
    } else {
        args.providers.clone()
    };
    let complete = args.providers.is_empty() && args.scenarios.is_empty();
    say(format_args!(
        "{} scenarios, {} CLIs, {} at a time, {}",
        scenarios.len(),
        clis.len(),
        args.jobs,
        network.describe()
    ));
    let mut cells = BTreeMap::new();
    schedule::play_all(bench, &clis, scenarios, args.jobs, |done| {
        let verdict = match &done.played {
            Ok(played) => judge(args, differences, done.cli, &done.scenario, played),
            Err(error) => Verdict {
                undeclared: vec![format!("{error:#}")],
                ..Verdict::default()
            },
        };
        report(&done, &verdict);
        cells.insert((done.cli, done.scenario.name.clone()), verdict);
    })?;
    let unused = differences.unused(&cells, args.scenarios.is_empty());
    for unused in &unused {
        say(format_args!("declared in vain: {unused}"));
    }
    let failed = cells
        .values()
        .filter(|verdict| !verdict.undeclared.is_empty())
        .count();
    say(format_args!(
        "{} runs in {} s, {failed} with differences that are not declared, {} declarations in vain",
        cells.len(),
        begun.elapsed().as_secs(),
        unused.len()
    ));
    let mut fine = failed == 0 && unused.is_empty();
    if complete {
        let page = matrix::page(scenarios, &clis, &cells, differences, network)?;
        if !args.check {
            matrix::write(&page)?;
        } else if !matrix::is_current(&page)? {
            fine = false;
            say(format_args!(
                "docs/conformance.md is not what this run gives: `cargo xtask conformance` writes it"
            ));
        }
    }
    Ok(if fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

fn judge(
    args: &Args,
    differences: &Differences,
    cli: Cli,
    scenario: &Scenario,
    played: &[Played],
) -> Verdict {
    let mut all = Verdict::default();
    for (number, played) in played.iter().enumerate() {
        let expected = story::expected(scenario, number);
        let told = story::told(played, &expected);
        if args.verbose {
            tell(cli, scenario, played, &told);
        }
        let verdict = differences.compare(cli, &scenario.name, &expected, &told);
        all.declared.extend(verdict.declared);
        let which = if number == 0 {
            String::new()
        } else {
            format!("run {}: ", number + 1)
        };
        all.undeclared.extend(
            verdict
                .undeclared
                .into_iter()
                .map(|found| format!("{which}{found}")),
        );
    }
    all
}

fn tell(cli: Cli, scenario: &Scenario, played: &Played, told: &story::Story) {
    say(format_args!(
        "-- {cli} {} ({} ms)",
        scenario.name,
        played.time.as_millis()
    ));
    for (fact, value) in told {
        say(format_args!("   {fact} = {value}"));
    }
    for request in &played.requests {
        say(format_args!(
            "   asked: {} {} {:?} turn {:?} attempt {:?} -> {}",
            request.method,
            request.path,
            request.cli.map(Cli::id),
            request.turn,
            request.attempt,
            request.status
        ));
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
    say(format_args!(
        "{:<24} {:<9} {:>6.1} s  {what}",
        done.scenario.name,
        done.cli.id(),
        done.time.as_secs_f64()
    ));
    for found in &verdict.undeclared {
        say(format_args!("    {found}"));
    }
}
