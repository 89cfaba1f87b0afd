//! The user's state directory: logs of runs, locks of sessions.

use std::path::PathBuf;

use teamster_api::{KeptSpec, KeptTexts, Spec};
use teamster_core::AgentError;
use teamster_runner::{Retention, Runs, SessionLocks};

use crate::{environment, value};

/// The folder of detached runs, beside the store.
const RUNS: &str = "teamster/runs";
/// The folder of the locks of sessions.
const SESSIONS: &str = "teamster/sessions";
/// Variables that limit the age and size of kept logs.
const LOGS_AGE: &str = "TEAMSTER_LOGS_AGE";
const LOGS_SIZE: &str = "TEAMSTER_LOGS_SIZE";
/// Variable that keeps prompts out of the folders of runs.
const KEEP_PROMPTS: &str = "TEAMSTER_KEEP_PROMPTS";

/// Returns a path in the user's state directory; `None` if there is no such directory.
pub fn file(name: &str) -> Option<PathBuf> {
    file_in(name, |name| environment::variable(name).map(PathBuf::from))
}

/// Returns a path in the state directory of the XDG base directory specification.
fn file_in(name: &str, variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let state = variable("XDG_STATE_HOME").filter(absolute).or_else(|| {
        let home = variable("HOME").filter(absolute)?;
        Some(home.join(".local/state"))
    })?;
    Some(state.join(name))
}

/// Returns the user's detached runs.
///
/// # Errors
///
/// Fails without a state directory.
pub fn runs() -> Result<Runs, AgentError> {
    let root = file(RUNS).ok_or_else(|| {
        AgentError::invalid_params(
            "no directory for the logs of detached runs: set XDG_STATE_HOME or HOME to an absolute path",
        )
    })?;
    Ok(Runs::at(root))
}

/// Returns the retention of ended runs' logs: 90 days and 8 GiB, or the values of `TEAMSTER_LOGS_AGE` and
/// `TEAMSTER_LOGS_SIZE`.
///
/// # Errors
///
/// Fails if such a value is not valid.
pub fn retention() -> Result<Retention, AgentError> {
    let mut retention = Retention::default();
    let wrong = |name: &str, error: String| {
        AgentError::invalid_params(format!("{name}: {error}; `off` keeps all"))
    };
    if let Some(age) = environment::text(LOGS_AGE) {
        retention.age = match &*age {
            "off" => None,
            age => Some(value::age(age).map_err(|error| wrong(LOGS_AGE, error))?),
        };
    }
    if let Some(size) = environment::text(LOGS_SIZE) {
        retention.bytes = match &*size {
            "off" => None,
            size => Some(value::size(size).map_err(|error| wrong(LOGS_SIZE, error))?),
        };
    }
    Ok(retention)
}

/// Returns what is kept of a run's spec: with its prompts, unless `TEAMSTER_KEEP_PROMPTS` is `off`.
pub(crate) fn kept(spec: impl Into<Spec>) -> Result<KeptSpec, AgentError> {
    let texts = match environment::text(KEEP_PROMPTS).as_deref() {
        None | Some("on") => KeptTexts::All,
        Some("off") => KeptTexts::WithoutPrompts,
        Some(other) => {
            return Err(AgentError::invalid_params(format!(
                "{KEEP_PROMPTS}: `{other}` is neither `on` nor `off`"
            )));
        }
    };
    Ok(KeptSpec::new(spec.into(), texts))
}

/// Returns the locks of providers' sessions, held by this detached run if `run_id` is set. `None` without a state
/// directory.
pub fn session_locks(run_id: Option<&str>) -> Option<SessionLocks> {
    let folder = file(SESSIONS)?;
    Some(SessionLocks::at(folder).held_by_run(run_id.map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(state: Option<&str>, home: Option<&str>) -> Option<String> {
        let file = file_in("teamster/store.db", |name| match name {
            "XDG_STATE_HOME" => state.map(PathBuf::from),
            "HOME" => home.map(PathBuf::from),
            _ => None,
        })?;
        file.to_str().map(str::to_owned)
    }

    #[test]
    fn the_users_own_store() {
        assert_eq!(
            store(Some("/s"), Some("/h")).unwrap(),
            "/s/teamster/store.db"
        );
        assert_eq!(
            store(Some("relative"), Some("/h")).unwrap(),
            "/h/.local/state/teamster/store.db"
        );
        assert_eq!(store(None, Some("relative")), None);
        assert_eq!(store(None, None), None);
    }
}
