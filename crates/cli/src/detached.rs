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

use std::path::Path;

use anyhow::Context;
use teamster::agent_loop::{ORCHESTRATOR, agent_run};
use teamster_runner::{RunFolder, Runs, RunsError, SessionLocks};

use crate::{store, words};

/// The folder of detached runs, beside the store.
const RUNS: &str = "teamster/runs";
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

/// The locks of providers' sessions, for this detached run if it is one; `None` where there is no place for them.
pub(crate) fn session_locks(run_id: Option<&str>) -> Option<SessionLocks> {
    let folder = store::state_file(SESSIONS)?;
    Some(SessionLocks::at(folder).held_by_run(run_id.map(str::to_owned)))
}

/// The run of this id, or of the one that begins so; or the current tick of the agent in this directory, else
/// its last one.
fn find(id: &str) -> anyhow::Result<RunFolder> {
    let runs = runs()?;
    let found = runs.find(id);
    let Err(RunsError::NotFound { .. }) = &found else {
        return Ok(found?);
    };
    let directory = Path::new(id);
    if !directory.join(ORCHESTRATOR).is_dir() {
        return Ok(found?);
    }
    let name = words::one_line(id);
    let tick = agent_run(directory).with_context(|| {
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
