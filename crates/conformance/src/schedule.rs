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
use crate::play;
use crate::played::Played;
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

/// Number of concurrent plays that mostly wait, for each slot of the others.
const WAITING: usize = 3;

/// Plays every scenario for every column, with a limit of concurrent ones, and reports each as it ends.
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
    let mut plays = Vec::new();
    for scenario in scenarios {
        for column in columns {
            let version = versions.get(&column.cli).map_or("", String::as_str);
            if column.hot && scenario.cold_only(column.cli).is_some()
                || scenario.not_played(column.cli, version).is_some()
            {
                continue;
            }
            let (bench, column, scenario) = (bench.clone(), *column, Arc::clone(scenario));
            plays.push((scenario.test.waits, async move {
                let played = if column.hot {
                    hot::play(&bench, column.cli, &scenario).await
                } else {
                    play::play(&bench, column.cli, &scenario).await
                };
                (column, scenario, played)
            }));
        }
    }
    in_slots(jobs, plays, |(column, scenario, played), time| {
        done(Done {
            column,
            scenario,
            played,
            time,
        });
    })
}

/// Runs all plays, with a limit of concurrent ones, and hands out each result with its time as it ends. Those that
/// mostly wait (`true`) start first and have separate slots.
pub(crate) fn in_slots<P>(
    jobs: usize,
    mut plays: Vec<(bool, P)>,
    mut done: impl FnMut(P::Output, Duration),
) -> anyhow::Result<()>
where
    P: Future<Output: Send> + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let permits = Arc::new(Semaphore::new(jobs.max(1)));
        let waiting = Arc::new(Semaphore::new(jobs.max(1) * WAITING));
        let mut running = JoinSet::new();
        // Otherwise the longest of those that mostly wait would end last.
        plays.sort_by_key(|(waits, _)| !waits);
        for (waits, play) in plays {
            let permits = Arc::clone(if waits { &waiting } else { &permits });
            running.spawn(async move {
                let _permit = permits.acquire_owned().await;
                let begun = Instant::now();
                (play.await, begun.elapsed())
            });
        }
        while let Some(ended) = running.join_next().await {
            let (result, time) = ended?;
            done(result, time);
        }
        Ok(())
    })
}
