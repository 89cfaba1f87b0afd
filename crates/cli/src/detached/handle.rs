//! Handles to detached runs and sessions, local or on a server.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context;
use teamster::PermissionMode;
use teamster::agent_loop::supervisor::{Config, FILE_NAME, FILE_VARIABLE};
use teamster::agent_loop::{ORCHESTRATOR, agent_run};
use teamster_api::{Answer, LiveStatus, LogLine, PendingRequest, RunInfo, RunKind};
use teamster_client::SessionChange;
use teamster_host::state;
use teamster_runner::client::{self, Follow, StartedTurn};
use teamster_runner::{RunFolder, RunsError};

use crate::remote::{Machine, RemoteFollow, RemoteRun};
use crate::words;

/// A handle to a detached run or session.
#[derive(Debug, Clone)]
pub(crate) enum RunHandle {
    /// On this machine.
    Local(RunFolder),
    /// On a server.
    Remote(RemoteRun),
}

/// A stream of log entries.
#[derive(Debug)]
pub(crate) enum Entries {
    Local(Box<Follow>),
    Remote(RemoteFollow),
}

impl Entries {
    /// Returns the next entry; `None` after the last. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Option<LogLine>, RunsError> {
        match self {
            Self::Local(follow) => follow.next().await,
            Self::Remote(follow) => follow.next().await,
        }
    }
}

impl RunHandle {
    /// Finds a run by its id, a unique prefix or a turn's id (which names its session). On this machine, `id` may also
    /// be the directory or name of a loop's agent, which stands for its current or last tick.
    pub(crate) async fn find(machine: &Machine, id: &str) -> anyhow::Result<Self> {
        match machine {
            Machine::Here => Ok(Self::Local(find_local(id)?)),
            Machine::There(client) => Ok(Self::Remote(RemoteRun::find(client, id).await?)),
        }
    }

    /// Finds several runs, each as [`find`](Self::find) does.
    pub(crate) async fn find_all(machine: &Machine, ids: &[String]) -> anyhow::Result<Vec<Self>> {
        let mut found = Vec::new();
        for id in ids {
            found.push(Self::find(machine, id).await?);
        }
        Ok(found)
    }

    pub(crate) fn info(&self) -> &RunInfo {
        match self {
            Self::Local(run) => run.info(),
            Self::Remote(run) => &run.info,
        }
    }

    pub(crate) fn id(&self) -> &str {
        &self.info().run_id
    }

    pub(crate) fn is_session(&self) -> bool {
        self.info().kind == RunKind::Session
    }

    /// Returns `true` if the run is on this machine.
    pub(crate) fn is_local(&self) -> bool {
        matches!(self, Self::Local(_))
    }

    /// Follows the entries after the one with this number.
    pub(crate) fn follow(&self, after: u64) -> Result<Entries, RunsError> {
        Ok(match self {
            Self::Local(run) => Entries::Local(Box::new(Follow::new(run.clone(), after)?)),
            Self::Remote(run) => Entries::Remote(run.follow(after)),
        })
    }

    /// Returns the number of the newest entry.
    pub(crate) async fn newest(&self) -> Result<u64, RunsError> {
        match self {
            Self::Local(run) => Ok(run.last_line()?.map_or(0, |line| line.seq())),
            Self::Remote(run) => Ok(run.view().await?.seq),
        }
    }

    /// Waits for the last entry. `None` if the log ended without one.
    pub(crate) async fn end(&self) -> Result<Option<LogLine>, RunsError> {
        match self {
            Self::Local(run) => Follow::end(run.clone()).await,
            Self::Remote(run) => run.end().await,
        }
    }

    /// Stops the run; with `kill`, by force.
    pub(crate) async fn cancel(&self, kill: bool) -> Result<(), RunsError> {
        match self {
            Self::Local(run) => client::cancel(run, kill).await,
            Self::Remote(run) => run.cancel(kill).await,
        }
    }

    /// Returns the pending requests.
    pub(crate) async fn requests(&self) -> Result<Vec<PendingRequest>, RunsError> {
        match self {
            Self::Local(run) => client::requests(run).await,
            Self::Remote(run) => Ok(run.view().await?.requests.clone()),
        }
    }

    /// Answers a request.
    pub(crate) async fn answer(&self, id: &str, answer: Answer) -> Result<(), RunsError> {
        match self {
            Self::Local(run) => client::answer(run, id, answer).await,
            Self::Remote(run) => run.answer(id, &answer).await,
        }
    }

    /// Returns the live status.
    pub(crate) async fn status(&self) -> Result<LiveStatus, RunsError> {
        match self {
            Self::Local(run) => client::status(run).await,
            Self::Remote(run) => {
                let live = run.view().await?.live.clone();
                live.ok_or_else(|| RunsError::Ended {
                    id: run.id().to_owned(),
                })
            }
        }
    }

    /// Starts a turn of a session.
    pub(crate) async fn send(
        &self,
        prompt: String,
        from: Option<String>,
    ) -> Result<StartedTurn, RunsError> {
        match self {
            Self::Local(run) => client::send(run, prompt, from).await,
            Self::Remote(run) => {
                let turn = run
                    .client
                    .say(run.id(), &prompt, from.as_deref(), None)
                    .await;
                let turn = turn.map_err(run.failed())?;
                Ok(StartedTurn::new(turn.run_id, turn.seq))
            }
        }
    }

    /// Adds text to the turn in progress.
    pub(crate) async fn steer(&self, text: String, from: Option<String>) -> Result<(), RunsError> {
        match self {
            Self::Local(run) => client::steer(run, text, from).await,
            Self::Remote(run) => {
                let sent = run.client.steer(run.id(), &text, from.as_deref()).await;
                sent.map_err(run.failed())
            }
        }
    }

    /// Interrupts the turn in progress; with `kill`, by force.
    pub(crate) async fn interrupt(&self, kill: bool) -> Result<(), RunsError> {
        match self {
            Self::Local(run) => client::interrupt(run, kill).await,
            Self::Remote(run) => {
                let interrupted = run.client.interrupt(run.id(), kill).await;
                interrupted.map_err(run.failed())
            }
        }
    }

    /// Clears the context of a session.
    pub(crate) async fn clear(&self) -> Result<(), RunsError> {
        match self {
            Self::Local(run) => client::clear(run).await,
            Self::Remote(run) => run.client.clear(run.id()).await.map_err(run.failed()),
        }
    }

    /// Sets the model from the next turn on.
    pub(crate) async fn set_model(&self, model: &str) -> Result<(), RunsError> {
        match self {
            Self::Local(run) => client::set_model(run, model).await,
            Self::Remote(run) => run.change(SessionChange::model(model)).await,
        }
    }

    /// Sets the permission mode from the next turn on.
    pub(crate) async fn set_permission(&self, mode: PermissionMode) -> Result<(), RunsError> {
        match self {
            Self::Local(run) => client::set_permission(run, mode).await,
            Self::Remote(run) => run.change(SessionChange::permission(mode)).await,
        }
    }
}

/// Finds a run on this machine, as [`RunHandle::find`] describes.
fn find_local(id: &str) -> anyhow::Result<RunFolder> {
    let runs = state::runs()?;
    let found = runs.find(id);
    let Err(RunsError::NotFound { .. }) = &found else {
        return Ok(found?);
    };
    if let Some((session, _)) = turn_of(id)
        && let Ok(session) = runs.find(session)
        && session.info().kind == RunKind::Session
    {
        return Ok(session);
    }
    let Some(directory) = agent_directory(id) else {
        return Ok(found?);
    };
    let name = words::one_line(id);
    let tick = agent_run(&directory).with_context(|| {
        format!("the agent in {name} has no tick with a log yet: run `teamster loop {name}`")
    })?;
    let run = runs.find(&tick.run_id).with_context(|| {
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

/// Splits a turn's id into its session's id and its number.
pub(crate) fn turn_of(id: &str) -> Option<(&str, u64)> {
    let (session, number) = id.rsplit_once('.')?;
    Some((session, number.parse().ok()?))
}

/// Returns the directory of a loop's agent, by its path or by its name in the supervisor's configuration.
fn agent_directory(id: &str) -> Option<PathBuf> {
    let directory = Path::new(id);
    if directory.join(ORCHESTRATOR).is_dir() {
        return Some(directory.to_owned());
    }
    // An unusable configuration has no agents.
    let file = env::var_os(FILE_VARIABLE).filter(|file| !file.is_empty());
    let config = Config::read(Path::new(&file.unwrap_or_else(|| FILE_NAME.into()))).ok()?;
    let agent = config.agents.into_iter().find(|agent| agent.id == id)?;
    Some(agent.working_dir)
}
