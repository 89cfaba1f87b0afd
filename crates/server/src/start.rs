//! Checks of the bodies that start a run or a session.

use teamster_api::{ProblemCode, RunSpec, ServiceError, SessionSpec, Trusted};

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
        spec.working_directory.as_deref(),
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
        spec.working_directory.as_deref(),
        spec.callback.as_deref(),
        &spec.trusted,
        config,
    )
    .await
}

async fn check(
    working_directory: Option<&std::path::Path>,
    callback: Option<&str>,
    trusted: &Trusted,
    config: &ServerConfig,
) -> Result<(), ApiError> {
    let invalid = |detail: String| Err(ApiError::new(ProblemCode::InvalidParams, detail));
    if let Some(name) = trusted.names().first() {
        return invalid(format!(
            "trusted.{}: not over HTTP: start the run on the server's machine",
            in_json(name)
        ));
    }
    if working_directory.is_some_and(|path| !path.is_absolute()) {
        return invalid("workingDirectory: expected an absolute path".to_owned());
    }
    if let Some(url) = callback
        && let Err(error) = check_target(url, config.allow_private_callbacks).await
    {
        return invalid(format!("callback: {error}"));
    }
    Ok(())
}

/// Fields whose names may be between backticks in a refusal. Other words there are values.
const FIELDS: [&str; 7] = [
    "session_id",
    "new_session_id",
    "session_key",
    "working_directory",
    "append_system_prompt",
    "max_wait_ms",
    "clean_env",
];

/// Returns the text of a parameter's refusal. Fields have their names in JSON, also between backticks in the text.
pub(crate) fn refusal(parameter: &str, message: &str) -> String {
    let (name, problem) = match message.strip_prefix(parameter) {
        Some(problem) => (in_json(parameter), problem),
        None => (format!("{}: ", in_json(parameter)), message),
    };
    let parts = problem.split('`').enumerate();
    let parts: Vec<String> = parts
        .map(|(index, part)| match index % 2 {
            1 if FIELDS.contains(&part) => in_json(part),
            _ => part.to_owned(),
        })
        .collect();
    format!("{name}{}", parts.join("`"))
}

/// Returns a parameter's name in camelCase.
fn in_json(name: &str) -> String {
    let mut words = name.split('_');
    let mut json = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(word.len().min(1));
        json.push_str(&first.to_ascii_uppercase());
        json.push_str(rest);
    }
    json
}
