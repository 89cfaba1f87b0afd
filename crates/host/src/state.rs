//! The user's state directory: logs of runs, locks of sessions.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest, Sha256};
use teamster_api::{KeptSpec, KeptTexts, Spec, either};
use teamster_core::AgentError;
use teamster_core::provider::base_directory;
use teamster_runner::{Retention, Runs, SessionLocks};

use crate::uploads::Uploads;
use crate::{environment, value};

/// The folder of detached runs, beside the store.
const RUNS: &str = "teamster/runs";
pub(crate) const WORKTREES: &str = "teamster/worktrees";
/// The folder of what is known of workspaces, with the files of runs that have no folder of their own.
pub(crate) const RESULTS: &str = "teamster/worktrees.results";
/// The folder of the locks of sessions.
const SESSIONS: &str = "teamster/sessions";
/// The folder of files that runs take along.
const UPLOADS: &str = "teamster/uploads";
/// The folder of mirrors of repositories.
const MIRRORS: &str = "teamster/repositories";
/// Variables that limit the age and size of kept logs.
const LOGS_AGE: &str = "TEAMSTER_LOGS_AGE";
const LOGS_SIZE: &str = "TEAMSTER_LOGS_SIZE";
/// Variable for the time for which git may print nothing while it uses a network.
const GIT_SILENCE: &str = "TEAMSTER_GIT_SILENCE";
/// Variable that keeps prompts out of the folders of runs.
const KEEP_PROMPTS: &str = "TEAMSTER_KEEP_PROMPTS";

/// Returns a path in the user's state directory; `None` if there is no such directory.
pub fn file(name: &str) -> Option<PathBuf> {
    file_in(name, environment::variable)
}

/// Returns a path in the state directory of the XDG base directory specification.
fn file_in(name: &str, variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let state = base_directory(variable, "XDG_STATE_HOME", ".local/state")?;
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

/// Returns the files that runs take along. Fails without a state directory.
pub(crate) fn uploads() -> Result<Uploads, AgentError> {
    file(UPLOADS).map(Uploads::at).ok_or_else(no_directory)
}

/// Returns the folder of mirrors of repositories. Fails without a state directory.
pub(crate) fn mirrors() -> Result<PathBuf, AgentError> {
    file(MIRRORS).ok_or_else(no_directory)
}

fn no_directory() -> AgentError {
    AgentError::invalid_params(
        "no directory for repositories: set XDG_STATE_HOME or HOME to an absolute path",
    )
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

/// Returns the time for which git may print nothing while it uses a network: 5 minutes, or the value of
/// `TEAMSTER_GIT_SILENCE`. Fails if that value is not valid.
pub(crate) fn git_silence() -> Result<Duration, AgentError> {
    match environment::text(GIT_SILENCE) {
        None => Ok(teamster_workspace::SILENCE),
        Some(text) => value::limit(&text)
            .map_err(|error| AgentError::invalid_params(format!("{GIT_SILENCE}: {error}"))),
    }
}

/// Returns what is kept of the spec of the run with this id: with its prompts, unless `TEAMSTER_KEEP_PROMPTS` is `off`.
pub(crate) fn kept(id: &str, spec: impl Into<Spec>) -> Result<KeptSpec, AgentError> {
    Ok(kept_with(id, spec.into(), kept_texts()?))
}

/// Returns what is kept of prompts, also as titles: all of it, unless `TEAMSTER_KEEP_PROMPTS` is `off`. Fails if that
/// value is not valid.
pub(crate) fn kept_texts() -> Result<KeptTexts, AgentError> {
    match environment::text(KEEP_PROMPTS).as_deref() {
        None | Some("on") => Ok(KeptTexts::All),
        Some("off") => Ok(KeptTexts::WithoutPrompts),
        Some(other) => Err(AgentError::invalid_params(format!(
            "{KEEP_PROMPTS}: \"{other}\" is neither `on` nor `off`"
        ))),
    }
}

fn kept_with(id: &str, spec: Spec, texts: KeptTexts) -> KeptSpec {
    let digest = (texts == KeptTexts::WithoutPrompts).then(|| prompts_digest(id, &spec));
    let mut kept = KeptSpec::new(spec, texts);
    kept.prompts_digest = digest;
    kept
}

/// Returns `true` if `kept` is what is kept of this spec of the run with this id, with its prompts or without.
pub(crate) fn is_kept(id: &str, spec: &Spec, kept: &KeptSpec) -> bool {
    [KeptTexts::All, KeptTexts::WithoutPrompts]
        .into_iter()
        .any(|texts| {
            let mut same = kept_with(id, spec.clone(), texts);
            same.warnings.clone_from(&kept.warnings);
            same.important.clone_from(&kept.important);
            same == *kept
        })
}

/// Returns the digest of the prompts of a spec. The id makes those of the same prompts differ.
fn prompts_digest(id: &str, spec: &Spec) -> String {
    let prompt = match spec {
        Spec::Run(spec) => Some(&spec.prompt),
        Spec::Session(_) => None,
    };
    let (replaced, appended) =
        either!(spec, spec => (&spec.system_prompt, &spec.append_system_prompt));
    let mut digest = Sha256::new_with_prefix(id);
    for text in [prompt, replaced.as_ref(), appended.as_ref()] {
        let text = text.map_or("", String::as_str);
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    format!("{:x}", digest.finalize())
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
            "XDG_STATE_HOME" => state.map(OsString::from),
            "HOME" => home.map(OsString::from),
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
