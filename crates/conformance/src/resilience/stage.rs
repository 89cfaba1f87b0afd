//! A CLI with a model of its own, and runs on it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{Pid, getpgid};
use teamster::process::children;
use teamster_mock_model::{Cli, MockModel, Pointing, Request, Script, Settings, Turn};
use teamster_orchestrator::{
    ActiveRun, Candidate, Orchestrator, OrchestratorConfig, Outcome, RunEvent, RunPhase, RunRequest,
};

use super::answers::PROMPT;
use super::failures;
use crate::bench::Bench;
use crate::place::{self, Place};
use crate::play;
use crate::scenario::Run;

/// How often something is looked at while it is waited for.
const POLL: Duration = Duration::from_millis(20);

/// The longest that a CLI may need to come to its tool.
const SOON: Duration = Duration::from_mins(1);

/// A CLI in a place of its own, pointed at a model of its own.
pub(crate) struct Stage {
    pub(crate) cli: Cli,
    pub(crate) model: Arc<MockModel>,
    bench: Bench,
    place: Place,
    /// Where the agent works: in its own place, or in that of another whose work it may take over.
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

    /// With what sub-agents' models say, too.
    pub(crate) async fn of_script(
        bench: &Bench,
        cli: Cli,
        name: &str,
        script: Script,
        directory: Option<PathBuf>,
    ) -> anyhow::Result<Self> {
        let place = Place::new(bench, cli, name)?;
        let directory = directory.unwrap_or_else(|| place.directory());
        let mut settings = Settings::default();
        settings.directory = Some(directory.clone());
        settings.cli = Some(cli);
        let model = MockModel::start_with(script, settings).await?;
        let mut pointing = cli.point_at(&model.url());
        failures::impatient(cli, &mut pointing)?;
        pointing.write_files(&place.home())?;
        Ok(Self {
            cli,
            model: Arc::new(model),
            bench: bench.clone(),
            place,
            directory,
            pointing,
        })
    }

    /// This CLI with this prompt, as it may be asked by an orchestrator.
    pub(crate) fn candidate(&self, prompt: &str) -> anyhow::Result<Candidate> {
        let mut run = Run::new(prompt);
        run.cli_retries = Some(failures::CLI_RETRIES);
        let mut params = play::params(
            &self.bench,
            self.cli,
            &run,
            &self.place,
            &self.pointing,
            None,
        )?;
        params.working_directory = Some(self.directory.clone());
        let config = play::config(&self.bench, self.cli);
        let runtime = teamster::create_cli_runtime(self.cli.id(), config)?;
        Ok(Candidate::new(runtime, params))
    }

    /// Content of a file that the agent may have made.
    pub(crate) fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.join(name)).unwrap_or_default()
    }

    /// Kills the CLI as the system would that runs out of memory: without a word, in the middle of
    /// what it does. That is its whole process group, since some of these programs only start another.
    pub(crate) fn kill(&self) -> anyhow::Result<()> {
        let group = self.group().context("the CLI's process is not there")?;
        killpg(Pid::from_raw(group), Signal::SIGKILL).context("cannot kill the CLI")
    }

    /// The process group of the CLI: of our own child that has this home.
    fn group(&self) -> Option<i32> {
        let mark = format!("HOME={}", self.place.home().display());
        children().into_iter().find_map(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let mut variables = environment.split(|byte| *byte == 0);
            variables.find(|variable| *variable == mark.as_bytes())?;
            let group = getpgid(Some(Pid::from_raw(pid.cast_signed()))).ok()?;
            Some(group.as_raw())
        })
    }
}

/// A run that is over.
pub(crate) struct Ran {
    pub(crate) events: Vec<RunEvent>,
    /// The events by the callback, with how many requests each model had been asked by then.
    pub(crate) called: Vec<(RunEvent, Vec<usize>)>,
    pub(crate) outcome: Outcome,
    /// Requests to the models, by model.
    requests: Vec<Vec<Request>>,
    pub(crate) processes_left: Vec<String>,
    pub(crate) active_after: bool,
}

impl Ran {
    /// Requests to a model after the first event that matches, in order.
    pub(crate) fn asked_after(&self, model: usize, is: impl Fn(&RunEvent) -> bool) -> &[Request] {
        let since = self.called.iter().find(|(event, _)| is(event));
        let all = &self.requests[model];
        since.map_or(&[], |(_, asked)| &all[asked[model]..])
    }

    /// All that a model was asked.
    pub(crate) fn asked(&self, model: usize) -> &[Request] {
        &self.requests[model]
    }
}

/// Makes a run, while something else happens to it.
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
    let mut run = orchestrator.run(request);
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
            .flat_map(|stage| place::processes_of(&stage.place.home()))
            .collect(),
        active_after: orchestrator.is_run_active(&id).await,
        events,
    })
}

/// Nothing happens to the run.
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

/// Waits until the tool of a run is at work, and all that is known then is known. `announced`: the CLI
/// announces its tool before that has ended.
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
    // It writes its record of the session a little later than it acts, at an unknown time.
    tokio::time::sleep(Duration::from_millis(700)).await;
    Ok(())
}

/// Looks at something again and again, not forever.
struct Looks {
    begun: Instant,
}

impl Looks {
    fn begin() -> Self {
        let begun = Instant::now();
        Self { begun }
    }

    /// Waits until the next look. An error when it has been too long.
    async fn again(&self) -> anyhow::Result<()> {
        if self.begun.elapsed() > SOON {
            bail!("not within {} s", SOON.as_secs());
        }
        tokio::time::sleep(POLL).await;
        Ok(())
    }
}

/// An orchestrator as it comes.
pub(crate) fn orchestrator() -> anyhow::Result<Orchestrator> {
    Ok(Orchestrator::new(OrchestratorConfig::default())?)
}

/// A run that is tried once more when it fails, soon.
pub(crate) fn tried_again(stage: &Stage) -> anyhow::Result<RunRequest> {
    let candidate = stage.candidate(PROMPT)?;
    let mut request = RunRequest::new(candidate.runtime, candidate.params);
    request.retry.retries = 1;
    request.retry.base_delay = Duration::from_millis(50);
    request.retry.jitter = false;
    Ok(request)
}

/// Whether this is a retry of the same candidate.
pub(crate) fn is_retry(event: &RunEvent) -> bool {
    matches!(event, RunEvent::Retry { .. })
}
