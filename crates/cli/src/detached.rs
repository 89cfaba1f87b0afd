//! Commands for detached runs. Each run has its own process, the runner, and a log.

pub(crate) mod answer;
pub(crate) mod attach;
pub(crate) mod cancel;
mod handle;
mod prompt;
mod questions;
pub(crate) mod requests;
pub(crate) mod say;
mod screen;
pub(crate) mod wait;

use std::env;

use anyhow::{Context, anyhow, bail};
use teamster_api::{KeptSpec, KeptTexts, Spec};
use teamster_runner::{Retention, Runs, SessionLocks};

use crate::{args, store};
pub(crate) use handle::{Entries, RunHandle};

/// The folder of detached runs, beside the store.
const RUNS: &str = "teamster/runs";
/// Environment variables that limit the age and size of kept logs.
const LOGS_AGE: &str = "TEAMSTER_LOGS_AGE";
const LOGS_SIZE: &str = "TEAMSTER_LOGS_SIZE";
/// Environment variable that keeps prompts out of the folders of runs.
const KEEP_PROMPTS: &str = "TEAMSTER_KEEP_PROMPTS";
/// The folder of the locks of sessions.
const SESSIONS: &str = "teamster/sessions";

/// Returns the user's detached runs.
pub(crate) fn runs() -> anyhow::Result<Runs> {
    let root = store::state_file(RUNS).context(
        "no directory for the logs of detached runs: set XDG_STATE_HOME or HOME to an absolute path",
    )?;
    Ok(Runs::at(root))
}

/// Returns the retention of ended runs' logs: 90 days and 8 GiB, or the environment's values.
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

/// Returns what is kept of a run's spec: with its prompts, unless the environment has `off`.
pub(crate) fn kept(spec: impl Into<Spec>) -> anyhow::Result<KeptSpec> {
    let texts = match env::var(KEEP_PROMPTS).as_deref() {
        Err(_) | Ok("" | "on") => KeptTexts::All,
        Ok("off") => KeptTexts::WithoutPrompts,
        Ok(other) => bail!("{KEEP_PROMPTS}: `{other}` is neither `on` nor `off`"),
    };
    Ok(KeptSpec::new(spec.into(), texts))
}

/// Returns the locks of providers' sessions, held by this detached run if `run_id` is set. `None` without a state
/// directory.
pub(crate) fn session_locks(run_id: Option<&str>) -> Option<SessionLocks> {
    let folder = store::state_file(SESSIONS)?;
    Some(SessionLocks::at(folder).held_by_run(run_id.map(str::to_owned)))
}
