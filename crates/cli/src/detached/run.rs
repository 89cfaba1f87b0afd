//! The runs and sessions that commands are about, and their logs.

use std::path::Path;

use anyhow::Context;
use teamster::agent_loop::{agent_directory, agent_run};
use teamster_api::{
    LogLine, LogStream, ProblemCode, RunHandle, RunInfo, RunKind, RunService, ServiceError,
    session_of_turn,
};

use crate::global::configuration;
use crate::remote::Machine;
use crate::words;

/// A run or session that a command is about.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) handle: RunHandle,
    pub(crate) info: RunInfo,
    /// It is on this machine.
    pub(crate) is_here: bool,
}

impl Run {
    /// Finds a run by its id, a unique prefix or a turn's id (which names its session). On this machine, `id` may also
    /// be the directory or name of a loop's agent, which stands for its current or last tick.
    pub(crate) async fn find(machine: &Machine, id: &str) -> anyhow::Result<Self> {
        let runs = machine.runs();
        let info = match resolve(&*runs, id).await {
            Err(error) if is_unknown(&error) && machine.is_here() => {
                match agent_directory(id, &configuration()) {
                    Some(directory) => tick(&*runs, id, &directory).await?,
                    None => return Err(error.into()),
                }
            }
            found => found?,
        };
        Ok(Self {
            handle: RunHandle::new(runs, &*info.run_id),
            info,
            is_here: machine.is_here(),
        })
    }

    /// Finds several runs, each as [`find`](Self::find) does.
    pub(crate) async fn find_all(machine: &Machine, ids: &[String]) -> anyhow::Result<Vec<Self>> {
        let mut found = Vec::new();
        for id in ids {
            found.push(Self::find(machine, id).await?);
        }
        Ok(found)
    }

    pub(crate) fn id(&self) -> &str {
        self.handle.id()
    }

    pub(crate) fn is_session(&self) -> bool {
        self.info.kind == RunKind::Session
    }

    /// Follows the entries after the one with this number.
    pub(crate) fn follow(&self, after: u64) -> Entries {
        Entries::new(&self.handle, after, self.is_here)
    }
}

/// A stream of log entries.
#[derive(Debug)]
pub(crate) struct Entries {
    log: LogStream,
    run_id: String,
    /// The number of the last entry.
    after: u64,
    is_here: bool,
}

impl Entries {
    /// Follows the entries of this run after the one with this number. `is_here` is true for a run of this machine.
    pub(crate) fn new(run: &RunHandle, after: u64, is_here: bool) -> Self {
        Self {
            log: run.follow(after),
            run_id: run.id().to_owned(),
            after,
            is_here,
        }
    }

    /// Returns the next entry; `None` after the last, and after an error. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Option<LogLine>, ServiceError> {
        let mut next = self.log.next().await.transpose();
        match &mut next {
            Ok(Some(line)) => self.after = line.seq(),
            Err(error) if error.retryable && !self.is_here => {
                error.message = format!(
                    "{error}; the run continues: resume with `{} attach {} --after {}`",
                    crate::global::typed(),
                    self.run_id,
                    self.after
                );
            }
            _ => {}
        }
        next
    }
}

/// Returns `true` if a command had no effect because of the state of its run: it has just ended, or another client was
/// first.
pub(crate) fn was_refused(error: &ServiceError) -> bool {
    !matches!(
        error.code,
        Some(ProblemCode::RunNotFound | ProblemCode::RunnerNotResponding | ProblemCode::Internal)
    )
}

fn is_unknown(error: &ServiceError) -> bool {
    error.code == Some(ProblemCode::RunNotFound)
}

/// Finds a run by its id, a unique prefix or a turn's id.
async fn resolve(runs: &dyn RunService, id: &str) -> Result<RunInfo, ServiceError> {
    let found = runs.resolve(id).await;
    if found.as_ref().is_err_and(is_unknown)
        && let Some((session, _)) = session_of_turn(id)
        && let Ok(session) = runs.resolve(session).await
        && session.kind == RunKind::Session
    {
        return Ok(session);
    }
    found
}

/// Finds the current or last tick of the agent in this directory. `id` is how the user named it.
async fn tick(runs: &dyn RunService, id: &str, directory: &Path) -> anyhow::Result<RunInfo> {
    let name = words::one_line(id);
    let tick = agent_run(directory).with_context(|| {
        format!("the agent in {name} has no tick with a log yet: run `teamster loop {name}`")
    })?;
    let run = runs.resolve(&tick.run_id).await.with_context(|| {
        format!(
            "the log of tick {} of the agent in {name} was removed",
            tick.tick
        )
    })?;
    if !tick.is_current {
        crate::report::warn(&[format!(
            "the agent in {name} runs no tick now; showing its last one, tick {}",
            tick.tick
        )]);
    }
    Ok(run)
}
