//! Starts of runs and sessions: checks of their bodies, and locks.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::PathBuf;

use teamster_api::{
    ProblemCode, RunSpec, ServiceError, SessionSpec, Trusted, Workspace, json_name,
};
use tokio::sync::Mutex;

use crate::callbacks::check_target;
use crate::rights::{self, Demand, Right};
use crate::{ApiError, ServerConfig};

impl Demand for RunSpec {
    fn rights(&self) -> Vec<Right> {
        let agents = self.fallback.iter().chain([&self.provider]);
        rights::of_agent(Some(self.permission), agents, &self.allowed_tools)
    }
}

impl Demand for SessionSpec {
    fn rights(&self) -> Vec<Right> {
        let agents = self.fallback.iter().chain([&self.provider]);
        rights::of_agent(Some(self.permission), agents, &self.allowed_tools)
    }
}

/// Checks the body of a run before it is started.
pub(crate) async fn check_run(spec: &RunSpec, config: &ServerConfig) -> Result<(), ApiError> {
    spec.check().map_err(ServiceError::from)?;
    check(
        &directory(spec.place().as_ref(), spec.workspace.as_ref()),
        spec.callback.as_deref(),
        &spec.trusted,
        config,
    )
    .await
}

/// Checks the body of a session before it is started.
pub(crate) async fn check_session(
    spec: &SessionSpec,
    config: &ServerConfig,
) -> Result<(), ApiError> {
    spec.check().map_err(ServiceError::from)?;
    check(
        &directory(spec.place().as_ref(), spec.workspace.as_ref()),
        spec.callback.as_deref(),
        &spec.trusted,
        config,
    )
    .await
}

/// Returns the directory of the machine that the body names, and the field that has it.
fn directory(
    place: Option<&Workspace>,
    long: Option<&Workspace>,
) -> (&'static str, Option<PathBuf>) {
    let field = long.map_or("workingDirectory", |_| "workspace");
    (field, place.and_then(Workspace::path).cloned())
}

async fn check(
    (field, directory): &(&str, Option<PathBuf>),
    callback: Option<&str>,
    trusted: &Trusted,
    config: &ServerConfig,
) -> Result<(), ApiError> {
    let invalid = |detail: String| Err(ApiError::new(ProblemCode::InvalidParams, detail));
    if let Some(name) = trusted.names().first() {
        return invalid(format!(
            "trusted.{}: not over HTTP: start the run on the server's machine",
            json_name(name)
        ));
    }
    if directory.as_ref().is_some_and(|path| !path.is_absolute()) {
        return invalid(format!("{field}: expected an absolute path"));
    }
    if let Some(url) = callback
        && let Err(error) = check_target(url, config.allow_private_callbacks).await
    {
        return invalid(format!("callback: {error}"));
    }
    Ok(())
}

/// Serializes starts that have the same `Idempotency-Key`.
#[derive(Debug, Default)]
pub(crate) struct StartLocks {
    locks: [Mutex<()>; 16],
    hasher: RandomState,
}

impl StartLocks {
    pub(crate) fn lock_of(&self, key: &str) -> &Mutex<()> {
        #[expect(clippy::cast_possible_truncation, reason = "less than 16")]
        let index = (self.hasher.hash_one(key) % self.locks.len() as u64) as usize;
        &self.locks[index]
    }
}
