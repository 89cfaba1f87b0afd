//! A CLI with a separate model, and runs with it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use teamster_api::{Outcome, RunEvent};
use teamster_mock_model::{Cli, MockModel, MockModelSettings, Pointing, Request, Script, Turn};
use teamster_orchestrator::{
    ActiveRun, Candidate, Orchestrator, OrchestratorConfig, RunPhase, RunRequest,
};

use super::answers::PROMPT;
use super::failures;
use crate::bench::Bench;
use crate::location::{self, Location};
use crate::play;
use crate::scenario::Run;

const POLL: Duration = Duration::from_millis(20);

/// Maximum time until a CLI calls its tool.
const SOON: Duration = Duration::from_mins(1);

/// A CLI in a separate home, with a separate model.
pub(crate) struct Stage {
    pub(crate) cli: Cli,
    pub(crate) model: Arc<MockModel>,
    bench: Bench,
    location: Location,
    /// Working directory: its own, or that of another stage whose work it may take over.
    pub(crate) directory: PathBuf,
    pointing: Pointing,
}

impl Stage {
    pub(crate) async fn new(
        bench: &Bench,
        cli: Cli,
        name: &str,
        turns: Vec<Turn>,
        directory: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        Self::of_script(bench, cli, name, Script::new(turns)?, directory).await
    }

    /// Creates a stage with a script that may include sub-agents.
    pub(crate) async fn of_script(
        bench: &Bench,
        cli: Cli,
        name: &str,
        script: Script,
        directory: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let location = Location::new(bench, cli, name)?;
        let directory = directory.unwrap_or_else(|| location.directory());
        let mut settings = MockModelSettings::default();
        settings.directory = Some(directory.clone());
        settings.cli = Some(cli);
        let model = MockModel::start_with(script, settings).await?;
        let mut pointing = cli.point_at(&model.url());
        failures::impatient(cli, &mut pointing)?;
        pointing.write_files(&location.home())?;
        Ok(Self {
            cli,
            model: Arc::new(model),
            bench: bench.clone(),
            location,
            directory,
            pointing,
        })
    }

    /// Returns a candidate with this CLI and prompt for an orchestrator.
    pub(crate) fn candidate(&self, prompt: &str) -> anyhow::Result<Candidate> {
        let mut run = Run::new(prompt);
        run.cli_retries = Some(failures::CLI_RETRIES);
        let mut params = play::params(
            &self.bench,
            self.cli,
            &run,
            &self.location,
            &self.pointing,
            None,
        )?;
        params.working_directory = Some(self.directory.clone());
        let config = play::config(&self.bench, self.cli);
        let runtime = teamster::create_cli_runtime(self.cli.id(), config)?;
        Ok(Candidate::new(runtime, params))
    }

    /// Returns the content of a file that the agent may have created, or an empty text.
    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.join(name)).unwrap_or_default()
    }

    /// Kills the CLI at any point.
    pub(crate) fn kill(&self) -> anyhow::Result<()> {
        location::kill(&self.location.home())
    }
}

/// A finished run.
pub(crate) struct Ran {
    pub(crate) events: Vec<RunEvent>,
    /// The events of the callback, each with the number of requests to each model at that time.
    pub(crate) called: Vec<(RunEvent, Vec<usize>)>,
    pub(crate) outcome: Outcome,
    /// Requests to the models, by model.
    requests: Vec<Vec<Request>>,
    pub(crate) processes_left: Vec<String>,
    pub(crate) active_after: bool,
}

impl Ran {
    /// Returns the requests to a model after the first event that matches, in order.
    pub(crate) fn asked_after(&self, model: usize, is: impl Fn(&RunEvent) -> bool) -> &[Request] {
        let since = self.called.iter().find(|(event, _)| is(event));
        let all = &self.requests[model];
        since.map_or(&[], |(_, asked)| &all[asked[model]..])
    }

    /// Returns the announced retries: the attempt, and the session that it resumes.
    pub(crate) fn retries(&self) -> Vec<(u32, Option<teamster::Id>)> {
        let events = self.events.iter();
        let retries = events.filter_map(|event| match event {
            RunEvent::Retry { next, .. } => Some((next.attempt, next.resumes.clone())),
            _ => None,
        });
        retries.collect()
    }

    pub(crate) fn asked(&self, model: usize) -> &[Request] {
        &self.requests[model]
    }
}

/// Executes a run, while a concurrent action affects it.
pub(crate) async fn perform(
    orchestrator: &Orchestrator,
    request: RunRequest,
    stages: &[&Stage],
    meanwhile: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Ran> {
    let called = Arc::new(Mutex::new(Vec::new()));
    let models: Vec<_> = stages.iter().map(|stage| stage.model.clone()).collect();
    let before: Vec<_> = models.iter().map(|model| model.requests().len()).collect();
    let request = request.on_event({
        let (called, models, before) = (called.clone(), models.clone(), before.clone());
        move |event| {
            let asked: Vec<_> = models
                .iter()
                .zip(&before)
                .map(|(model, before)| model.requests_from(*before).len())
                .collect();
            let mut called = called.lock().unwrap_or_else(PoisonError::into_inner);
            called.push((event.clone(), asked));
        }
    });
    let mut run = orchestrator.start(request);
    let id = run.id().clone();
    let mut events = Vec::new();
    let reading = async {
        while let Some(event) = run.next().await {
            events.push(event);
        }
        anyhow::Ok(())
    };
    let both = async { tokio::try_join!(reading, meanwhile) };
    match tokio::time::timeout(play::LIMIT, both).await {
        Err(_) => bail!("it was not over after {} s", play::LIMIT.as_secs()),
        Ok(done) => done?,
    };
    let Some(RunEvent::End(outcome)) = events.last() else {
        bail!("the run has no end");
    };
    let outcome = (**outcome).clone();
    let called = std::mem::take(&mut *called.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(Ran {
        outcome,
        called,
        requests: models
            .iter()
            .zip(&before)
            .map(|(model, before)| model.requests_from(*before))
            .collect(),
        processes_left: stages
            .iter()
            .flat_map(|stage| location::processes_of(&stage.location.home()))
            .collect(),
        active_after: orchestrator.is_run_active(&id).await,
        events,
    })
}

/// The action for a run that is not affected.
pub(crate) async fn nothing() -> anyhow::Result<()> {
    Ok(())
}

/// Waits until a run is in this phase.
pub(crate) async fn phase(
    orchestrator: &Orchestrator,
    run_id: &str,
    phase: RunPhase,
) -> anyhow::Result<ActiveRun> {
    let looks = Looks::begin();
    loop {
        let runs = orchestrator.active_runs().await;
        let run = runs
            .into_iter()
            .find(|run| &*run.run_id == run_id && run.phase == phase);
        if let Some(run) = run {
            return Ok(run);
        }
        let otherwise = || format!("the run was not {}", phase.as_str());
        looks.again().await.with_context(otherwise)?;
    }
}

/// Waits until the tool of a run works and all its output is recorded. `announced` is true if the CLI
/// announces its tool before the tool has ended.
pub(crate) async fn in_tool(
    orchestrator: &Orchestrator,
    run_id: &str,
    stage: &Stage,
    file: &str,
    announced: bool,
) -> anyhow::Result<()> {
    let looks = Looks::begin();
    loop {
        let runs = orchestrator.active_runs().await;
        let run = runs.iter().find(|run| &*run.run_id == run_id);
        let known = run.is_some_and(|run| {
            run.session_id.is_some() && (run.phase == RunPhase::InTool || !announced)
        });
        if known && !stage.file(file).is_empty() {
            break;
        }
        looks.again().await.context("no tool was at work")?;
    }
    // The CLI writes its record of the session at an unknown time after it acts.
    tokio::time::sleep(Duration::from_millis(700)).await;
    Ok(())
}

/// Polling with a time limit.
struct Looks {
    begun: Instant,
}

impl Looks {
    fn begin() -> Self {
        let begun = Instant::now();
        Self { begun }
    }

    /// Waits until the next poll. Returns an error after the time limit.
    async fn again(&self) -> anyhow::Result<()> {
        if self.begun.elapsed() > SOON {
            bail!("not within {} s", SOON.as_secs());
        }
        tokio::time::sleep(POLL).await;
        Ok(())
    }
}

pub(crate) fn orchestrator() -> anyhow::Result<Orchestrator> {
    Ok(Orchestrator::new(OrchestratorConfig::default())?)
}

/// Returns a run with one early retry.
pub(crate) fn tried_again(stage: &Stage) -> anyhow::Result<RunRequest> {
    let candidate = stage.candidate(PROMPT)?;
    let mut request = RunRequest::new(candidate.runtime, candidate.params);
    request.retry.retries = 1;
    request.retry.base_delay = Duration::from_millis(50);
    request.retry.jitter = false;
    Ok(request)
}

/// Returns whether this is a retry of the same candidate.
pub(crate) fn is_retry(event: &RunEvent) -> bool {
    matches!(event, RunEvent::Retry { .. })
}
