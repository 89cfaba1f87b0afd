//! Several runs at a time.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use teamster_mock_model::Cli;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::play::{Bench, Played, play};
use crate::scenario::Scenario;

/// A scenario that was played with a CLI.
pub(crate) struct Done {
    pub(crate) cli: Cli,
    pub(crate) scenario: Arc<Scenario>,
    pub(crate) played: anyhow::Result<Vec<Played>>,
    pub(crate) time: Duration,
}

impl Done {
    /// The runs, and the folder in which those of this CLI were recorded.
    pub(crate) fn recorded(&self, bench: &Bench) -> anyhow::Result<(&[Played], PathBuf)> {
        let played = self
            .played
            .as_ref()
            .map_err(|error| anyhow::anyhow!("{error:#}"))?;
        let folder = bench.record.as_ref().context("nothing was recorded")?;
        Ok((played, folder.join(self.cli.id())))
    }
}

/// Plays every scenario with every CLI, so many at a time, and tells each as it is done.
pub(crate) fn play_all(
    bench: &Bench,
    clis: &[Cli],
    scenarios: &[Arc<Scenario>],
    jobs: usize,
    mut done: impl FnMut(Done),
) -> anyhow::Result<()> {
    for cli in clis {
        bench.prepare(*cli);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let places = Arc::new(Semaphore::new(jobs.max(1)));
        let mut plays = JoinSet::new();
        for scenario in scenarios {
            for cli in clis {
                let (cli, scenario) = (*cli, Arc::clone(scenario));
                let (bench, places) = (bench.clone(), Arc::clone(&places));
                plays.spawn(async move {
                    let _place = places.acquire_owned().await;
                    let begun = Instant::now();
                    let played = play(&bench, cli, &scenario).await;
                    Done {
                        cli,
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
