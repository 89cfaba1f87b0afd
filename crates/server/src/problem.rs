//! Errors of the routes.

use std::fmt::Display;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Response, StatusCode};
use axum::response::IntoResponse;
use teamster_api::{Problem, ProblemCode, ServiceError, json_name};

/// An error of a route, which becomes the response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError(pub(crate) Problem);

impl ApiError {
    /// Creates an error with the status and title of its code.
    pub(crate) fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        Self(Problem::new(code, detail))
    }

    /// Creates the error of a refused field, by its name in JSON.
    pub(crate) fn refused(field: impl Into<String>, problem: impl Display) -> Self {
        let field = field.into();
        let mut error = Self::new(ProblemCode::InvalidParams, format!("{field}: {problem}"));
        error.0.parameter = Some(field);
        error
    }
}

/// Returns the HTTP status of the code.
pub(crate) fn status_of(code: ProblemCode) -> StatusCode {
    StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response<Body> {
        let Self(problem) = self;
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let media = [(CONTENT_TYPE, "application/problem+json")];
        let mut response = (status_of(problem.code), media, body).into_response();
        if problem.code == ProblemCode::Unauthorized {
            let headers = response.headers_mut();
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// An error without a code is that of a service that was not reached: the same request can succeed later.
impl From<ServiceError> for ApiError {
    fn from(error: ServiceError) -> Self {
        let code = error.code.unwrap_or(ProblemCode::RunnerNotResponding);
        let detail = match &error.parameter {
            Some(name) => refusal(name, &error.message),
            None => error.message,
        };
        let mut api = Self::new(code, detail);
        api.0.parameter = error.parameter.as_deref().map(json_name);
        api
    }
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
fn refusal(parameter: &str, message: &str) -> String {
    let (name, problem) = match message.strip_prefix(parameter) {
        Some(problem) => (json_name(parameter), problem),
        None => (format!("{}: ", json_name(parameter)), message),
    };
    let parts = problem.split('`').enumerate();
    let parts: Vec<String> = parts
        .map(|(index, part)| match index % 2 {
            1 if FIELDS.contains(&part) => json_name(part),
            _ => part.to_owned(),
        })
        .collect();
    format!("{name}{}", parts.join("`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openapi::problems;

    #[test]
    fn a_service_that_was_not_reached_can_be_tried_again() {
        let ApiError(problem) = ServiceError::unreachable("no connection").into();
        assert_eq!((problem.status, &*problem.detail), (503, "no connection"));
        assert!(problem.code.is_retryable());
    }

    #[test]
    fn a_problem_has_the_status_and_title_of_its_code() {
        let mut statuses = Vec::new();
        for operation in crate::routes::operations() {
            let codes = problems(&operation)
                .into_iter()
                .flat_map(|(_, codes)| codes);
            for code in codes {
                let problem = Problem::new(code, "");
                let status = status_of(code);
                assert_eq!(problem.status, status.as_u16());
                assert_eq!(Some(&*problem.title), status.canonical_reason());
                statuses.push(problem.status);
            }
        }
        assert!(
            statuses.contains(&404) && statuses.contains(&409),
            "{statuses:?}"
        );
    }
}
