//! Concurrent runs.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use teamster_mock_model::Cli;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::bench::Bench;
use crate::column::Column;
use crate::hot;
use crate::play::{self, Played};
use crate::scenario::Scenario;

/// A scenario that was played with a CLI in one of two ways.
pub(crate) struct Done {
    pub(crate) column: Column,
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) played: anyhow::Result<Vec<Played>>,
    pub(crate) time: Duration,
}

impl Done {
    /// Returns the runs, and the folder with the recordings of this CLI.
    pub(crate) fn recorded(&self, bench: &Bench) -> anyhow::Result<(&[Played], PathBuf)> {
        let played = self
            .played
            .as_ref()
            .map_err(|error| anyhow::anyhow!("{error:#}"))?;
        let folder = bench.record.as_ref().context("nothing was recorded")?;
        Ok((played, folder.join(self.column.cli.id())))
    }
}

/// Number of concurrent scenarios that mostly wait, for each slot of the others.
pub(crate) const WAITING: usize = 3;

/// Plays every scenario for every column, with a limit of concurrent ones, and reports each as it ends. Those
/// that mostly wait start first and have separate slots.
pub(crate) fn play_all(
    bench: &Bench,
    columns: &[Column],
    versions: &BTreeMap<Cli, String>,
    scenarios: &[Arc<Scenario>],
    jobs: usize,
    mut done: impl FnMut(Done),
) -> anyhow::Result<()> {
    for column in columns {
        bench.prepare(column.cli);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let places = Arc::new(Semaphore::new(jobs.max(1)));
        let waiting = Arc::new(Semaphore::new(jobs.max(1) * WAITING));
        let mut plays = JoinSet::new();
        for scenario in waiting_first(scenarios) {
            for column in columns {
                let version = versions.get(&column.cli).map_or("", String::as_str);
                if column.hot && scenario.cold_only(column.cli).is_some()
                    || scenario.not_played(column.cli, version).is_some()
                {
                    continue;
                }
                let (column, scenario) = (*column, Arc::clone(scenario));
                let places = if scenario.test.waits {
                    &waiting
                } else {
                    &places
                };
                let (bench, places) = (bench.clone(), Arc::clone(places));
                plays.spawn(async move {
                    let _place = places.acquire_owned().await;
                    let begun = Instant::now();
                    let played = if column.hot {
                        hot::play(&bench, column.cli, &scenario).await
                    } else {
                        play::play(&bench, column.cli, &scenario).await
                    };
                    Done {
                        column,
                        scenario,
                        played,
                        time: begun.elapsed(),
                    }
                });
            }
        }
        while let Some(play) = plays.join_next().await {
            done(play?);
        }
        Ok(())
    })
}

/// Returns the scenarios, beginning with those that mostly wait. Otherwise the longest of them would end
/// last.
fn waiting_first(scenarios: &[Arc<Scenario>]) -> impl Iterator<Item = &Arc<Scenario>> {
    let (waiting, others): (Vec<_>, Vec<_>) =
        scenarios.iter().partition(|scenario| scenario.test.waits);
    waiting.into_iter().chain(others)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario;

    #[test]
    fn waiting_scenarios_begin_first_and_the_others_stay_in_order() {
        let names = ["command_fails", "rate_limit", "text"].map(str::to_owned);
        let scenarios: Vec<_> = scenario::read(&names)
            .unwrap()
            .into_iter()
            .map(Arc::new)
            .collect();
        let ordered: Vec<_> = waiting_first(&scenarios)
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(ordered, ["rate_limit", "command_fails", "text"]);
    }
}
