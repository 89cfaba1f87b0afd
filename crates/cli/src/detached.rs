//! Commands about detached runs: each run has a process of its own, its runner, and a log.

pub(crate) mod answer;
pub(crate) mod attach;
pub(crate) mod cancel;
mod questions;
pub(crate) mod requests;
pub(crate) mod say;
mod screen;
mod speak;
pub(crate) mod wait;

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use teamster::agent_loop::supervisor::{Config, FILE_NAME, FILE_VARIABLE};
use teamster::agent_loop::{ORCHESTRATOR, agent_run};
use teamster_runner::{Retention, RunFolder, RunKind, Runs, RunsError, SessionLocks};

use crate::{args, store, words};

/// The folder of detached runs, beside the store.
const RUNS: &str = "teamster/runs";
/// The variables that set how long logs are kept.
const LOGS_AGE: &str = "TEAMSTER_LOGS_AGE";
const LOGS_SIZE: &str = "TEAMSTER_LOGS_SIZE";
/// The folder of the locks of sessions.
const SESSIONS: &str = "teamster/sessions";

/// The user's detached runs.
pub(crate) fn runs() -> anyhow::Result<Runs> {
    let root = store::state_file(RUNS).context(
        "detached runs have no place to keep their logs: neither XDG_STATE_HOME nor HOME is set to an absolute \
         path",
    )?;
    Ok(Runs::at(root))
}

/// How long the logs of ended runs are kept: 90 days and 8 GiB, or what the environment sets.
pub(crate) fn retention() -> anyhow::Result<Retention> {
    let mut retention = Retention::default();
    let set = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    let wrong = |name: &str, error: String| anyhow!("{name}: {error}; `off` keeps all");
    if let Some(age) = set(LOGS_AGE) {
        retention.age = match &*age {
            "off" => None,
            age => Some(args::age(age).map_err(|error| wrong(LOGS_AGE, error))?),
        };
    }
    if let Some(size) = set(LOGS_SIZE) {
        retention.bytes = match &*size {
            "off" => None,
            size => Some(args::size(size).map_err(|error| wrong(LOGS_SIZE, error))?),
        };
    }
    Ok(retention)
}

/// The locks of providers' sessions, for this detached run if it is one; `None` where there is no place for them.
pub(crate) fn session_locks(run_id: Option<&str>) -> Option<SessionLocks> {
    let folder = store::state_file(SESSIONS)?;
    Some(SessionLocks::at(folder).held_by_run(run_id.map(str::to_owned)))
}

/// The run of this id, or of the one that begins so; of a turn's id, its session; or the current tick of the agent
/// in this directory or of this name, else its last one.
fn find(id: &str) -> anyhow::Result<RunFolder> {
    let runs = runs()?;
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
        format!(
            "the agent in {name} has played no tick with a log: `teamster loop {name}` plays them"
        )
    })?;
    let run = runs.find(&tick.run_id).with_context(|| {
        format!(
            "tick {} of the agent in {name} has no log any more",
            tick.tick
        )
    })?;
    if !tick.is_current {
        crate::warn(&[format!(
            "the agent in {name} plays no tick now; this is its last, tick {}",
            tick.tick
        )]);
    }
    Ok(run)
}

/// The session and the number of a turn, by its id.
fn turn_of(id: &str) -> Option<(&str, u64)> {
    let (session, number) = id.rsplit_once('.')?;
    Some((session, number.parse().ok()?))
}

/// The directory of an agent that works in a loop, which this is, or whose name this is in the configuration of a
/// supervisor.
fn agent_directory(id: &str) -> Option<PathBuf> {
    let directory = Path::new(id);
    if directory.join(ORCHESTRATOR).is_dir() {
        return Some(directory.to_owned());
    }
    // One that cannot be used knows no agents.
    let file = env::var_os(FILE_VARIABLE).filter(|file| !file.is_empty());
    let config = Config::read(Path::new(&file.unwrap_or_else(|| FILE_NAME.into()))).ok()?;
    let agent = config.agents.into_iter().find(|agent| agent.id == id)?;
    Some(agent.working_dir)
}
