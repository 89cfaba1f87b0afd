//! `cargo xtask conformance --times`: durations of runs, and of turns of an existing process.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use teamster::{EventStream, RunResult, RunStatus, Turn};
use teamster_core::time::millis;
use teamster_mock_model::{Cli, Script};

use crate::bench::Bench;
use crate::column::Column;
use crate::isolation::Network;
use crate::markdown::{head, row};
use crate::play::{self, LIMIT, Stage};
use crate::results::{Results, Times};
use crate::scenario::{self, Scenario};
use crate::{hot, say};

const SCENARIO: &str = "text";
const ROUNDS: usize = 5;
/// Measurements of each round.
const WHAT: [&str; 4] = [
    "cold, new session",
    "cold, resumed",
    "hot, first turn",
    "hot, second turn",
];

/// The durations of one round in milliseconds, by [`WHAT`]; `None` for turns of CLIs without sessions.
type Round = [Option<u64>; WHAT.len()];

/// Measures, prints the results, and writes them to the docs if requested.
pub(crate) fn run(
    bench: &Bench,
    clis: &[Cli],
    network: Network,
    write: bool,
) -> anyhow::Result<ExitCode> {
    let scenario = scenario::read(&[SCENARIO.to_owned()])?.remove(0);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut times = Times {
        conditions: format!("on {processors} processors, {}", network.describe()),
        ..Times::default()
    };
    for cli in clis {
        bench.prepare(*cli);
        let rounds = runtime.block_on(measure(bench, *cli, &scenario));
        let rounds = rounds.with_context(|| cli.id())?;
        for (number, round) in rounds.iter().enumerate() {
            let cells = cells(round).join(" | ");
            say(format_args!("{cli} {}: {cells}", number + 1));
        }
        times.medians.insert(cli.id().to_owned(), medians(&rounds));
    }
    say(format_args!("\n{}", section(&times)));
    if write {
        let stored = Results {
            times,
            ..Results::read()?
        };
        crate::settle(&stored, false, "cargo xtask conformance --times")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures all rounds in one home, in which the CLI has been run before.
async fn measure(bench: &Bench, cli: Cli, scenario: &Scenario) -> anyhow::Result<Vec<Round>> {
    let answer = scenario.script.turns.first();
    let answer = answer.context("the scenario has no answer")?;
    let script = Script::new(vec![answer.clone(); 2])?;
    let stage = Stage::new(bench, cli, "times", scenario, script).await?;
    cold(bench, cli, scenario, &stage, None).await?;
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut round = Round::default();
        let (time, first) = cold(bench, cli, scenario, &stage, None).await?;
        round[0] = Some(time);
        let session = first.session_id.as_deref().map(str::to_owned);
        let session = session.context("the run reported no session")?;
        let (time, second) = cold(bench, cli, scenario, &stage, Some(session)).await?;
        round[1] = Some(time);
        same(&first, &second)?;
        if !Column::of(&[cli], false, true).is_empty() {
            let run = &scenario.test.run[0];
            let params = play::params(bench, cli, run, &stage.location, &stage.pointing, None)?;
            let prompt = params.prompt.clone();
            let session = hot::open(cli, play::config(bench, cli), params, None)?;
            for time in &mut round[2..] {
                let begun = Instant::now();
                let (took, turn) = timed(begun, session.send(Turn::new(prompt.as_str()))).await?;
                *time = Some(took);
                same(&first, &turn)?;
            }
            session.close().await;
        }
        rounds.push(round);
    }
    Ok(rounds)
}

/// Measures a run with a separate process, from the call to `done`.
async fn cold(
    bench: &Bench,
    cli: Cli,
    scenario: &Scenario,
    stage: &Stage,
    session: Option<String>,
) -> anyhow::Result<(u64, RunResult)> {
    let run = &scenario.test.run[0];
    let params = play::params(bench, cli, run, &stage.location, &stage.pointing, session)?;
    let begun = Instant::now();
    let runtime = teamster::create_cli_runtime(cli.id(), play::config(bench, cli))?;
    timed(begun, runtime.execute(params)).await
}

/// Returns the time since `begun` in milliseconds, and the result.
async fn timed(begun: Instant, stream: EventStream) -> anyhow::Result<(u64, RunResult)> {
    let result = tokio::time::timeout(LIMIT, stream.result()).await;
    let result = result.with_context(|| format!("it was not over after {LIMIT:?}"))?;
    let time = millis(begun.elapsed());
    if result.status != RunStatus::Completed {
        bail!("it ended as {:?}: {:?}", result.status, result.errors);
    }
    Ok((time, result))
}

/// Checks that both runs did the same work.
fn same(one: &RunResult, other: &RunResult) -> anyhow::Result<()> {
    if one.text != other.text {
        bail!(
            "one run answered {:?} and another {:?}",
            one.text,
            other.text
        );
    }
    Ok(())
}

fn medians(rounds: &[Round]) -> Round {
    std::array::from_fn(|what| {
        let mut times: Vec<_> = rounds.iter().filter_map(|round| round[what]).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied()
    })
}

fn cells(round: &Round) -> [String; WHAT.len()] {
    round.map(|time| time.map_or_else(|| "none".to_owned(), |time| time.to_string()))
}

/// Renders the section of `docs/conformance.md`.
pub(crate) fn section(times: &Times) -> String {
    let mut page = format!(
        "## Times\n\n\
         Written by `cargo xtask conformance --times`; do not edit.\n\n\
         From the call to `done`, in ms: the median of {ROUNDS} rounds of the scenario `{SCENARIO}`, one \
         after another {}. The model takes 10 ms between two pieces of its text. The \
         home is one in which the CLI has been run before. A first turn starts the process.\n\n",
        times.conditions
    );
    head(&mut page, [""].into_iter().chain(WHAT));
    for cli in Cli::ALL {
        if let Some(round) = times.medians.get(cli.id()) {
            let cells = cells(round).into_iter();
            row(&mut page, [cli.id().to_owned()].into_iter().chain(cells));
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_five_rounds_the_third_counts() {
        let round = |ms: u64| [Some(ms), None, None, None];
        let rounds = [9, 1, 5, 7, 3].map(round);
        let medians = medians(&rounds);
        assert_eq!(medians, round(5));
        assert_eq!(cells(&medians), ["5", "none", "none", "none"]);
    }
}
