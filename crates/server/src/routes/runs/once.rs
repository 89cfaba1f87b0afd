//! Starts that happen once for each `Idempotency-Key`.

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use ring::digest;
use teamster_api::{Accepted, ProblemCode, RunHandle, ServiceError, Spec, either, with_json_names};
use uuid::Uuid;

use crate::ApiError;
use crate::fields::NewRunId;
use crate::state::Shared;

/// The maximum length of `Idempotency-Key`, in bytes.
pub(in crate::routes) const LONGEST_KEY: usize = 256;

/// A run or session that a request has started, or that an earlier one has.
pub(in crate::routes) struct Started {
    pub(in crate::routes) run: RunHandle,
    /// 200 if it was started before.
    pub(in crate::routes) status: StatusCode,
    /// Warnings of this start, with the names of fields in JSON.
    pub(in crate::routes) warnings: Vec<String>,
    /// The important ones of them.
    pub(in crate::routes) important: Vec<String>,
}

impl Started {
    fn new(run: RunHandle, accepted: &Accepted) -> Self {
        let texts =
            |warnings: &[String]| warnings.iter().map(|text| with_json_names(text)).collect();
        Self {
            run,
            status: if accepted.existed {
                StatusCode::OK
            } else {
                StatusCode::CREATED
            },
            warnings: texts(&accepted.warnings),
            important: texts(&accepted.important),
        }
    }

    /// Returns the answer for a run that exists: the service repeats that of its start.
    async fn before(shared: &Shared, id: &str, spec: Spec) -> Self {
        let accepted = shared.runs.started(id, spec).await;
        // Another version may have kept the spec in another way, or it was deleted just now: it was started all the same.
        let accepted = accepted.unwrap_or_else(|_| Accepted::existed());
        Self::new(shared.run(id), &accepted)
    }
}

/// Starts a run or session: once for each key and body.
pub(in crate::routes) async fn start_once(
    shared: &Arc<Shared>,
    key: Option<String>,
    body: &[u8],
    spec: impl Into<Spec>,
) -> Result<Started, ApiError> {
    let (shared, spec) = (shared.clone(), spec.into());
    let Some(key) = key else {
        return decided(async move {
            let id = Uuid::now_v7().to_string();
            let accepted = begin(&shared, &id, spec).await?;
            Ok(Started::new(shared.run(&id), &accepted))
        })
        .await;
    };
    let ids = id_of(&key, body);
    let others = shared.starts.of(&key).lock_owned().await;
    decided(async move {
        let _others = others;
        start_with_key(&shared, ids, spec).await
    })
    .await
}

/// Starts a run or session with an id that was made of a key, whose beginning depends on the key alone.
async fn start_with_key(
    shared: &Shared,
    (beginning, id): (String, String),
    spec: Spec,
) -> Result<Started, ApiError> {
    // Two servers may have started one run each with this key: the one of this body counts.
    for known in [&id, &beginning] {
        match shared.runs.resolve(known).await {
            Ok(run) if run.run_id == id => return Ok(Started::before(shared, &id, spec).await),
            Err(error) if error.code == Some(ProblemCode::RunNotFound) => {}
            Err(error) if error.code != Some(ProblemCode::RunIdAmbiguous) => {
                return Err(error.into());
            }
            _ => return Err(key_reused()),
        }
    }
    match begin(shared, &id, spec.clone()).await {
        Ok(accepted) => Ok(Started::new(shared.run(&id), &accepted)),
        // Another server with the same runs started it first.
        Err(error) if error.0.code == ProblemCode::RunExists => {
            Ok(Started::before(shared, &id, spec).await)
        }
        Err(error) => Err(error),
    }
}

/// Starts a run or session with the id that the client has made: once for each spec.
pub(in crate::routes) async fn start_with_id(
    shared: &Arc<Shared>,
    id: &str,
    spec: impl Into<Spec>,
) -> Result<Started, ApiError> {
    NewRunId::check(id)?;
    let others = shared.starts.of(id).lock_owned().await;
    let (shared, id, spec) = (shared.clone(), id.to_owned(), spec.into());
    decided(async move {
        let _others = others;
        start_alone(&shared, &id, spec).await
    })
    .await
}

/// Carries out a start, also if its client is gone: another one with the same id or key must wait until it is decided.
async fn decided(
    start: impl Future<Output = Result<Started, ApiError>> + Send + 'static,
) -> Result<Started, ApiError> {
    match tokio::spawn(start).await {
        Ok(started) => started,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(ApiError::new(ProblemCode::Internal, "the server is ending")),
        },
    }
}

/// Starts a run or session while no other start has its id.
async fn start_alone(shared: &Shared, id: &str, spec: Spec) -> Result<Started, ApiError> {
    let known = match shared.runs.resolve(id).await {
        Ok(run) => run.run_id == id,
        Err(error)
            if matches!(
                error.code,
                Some(ProblemCode::RunNotFound | ProblemCode::RunIdAmbiguous)
            ) =>
        {
            false
        }
        // The run may be there, and so may its callback.
        Err(error) => return Err(error.into()),
    };
    let accepted = if known {
        // Its callback is registered. That of another spec gets nothing of this run.
        shared.runs.started(id, spec).await?
    } else {
        begin(shared, id, spec).await?
    };
    Ok(Started::new(shared.run(id), &accepted))
}

/// Starts a run or session. Registers its callback first, so that a killed server does not lose it.
async fn begin(shared: &Shared, id: &str, spec: Spec) -> Result<Accepted, ApiError> {
    let callback = either!(&spec, spec => spec.callback.clone());
    if let Some(url) = &callback {
        shared.callbacks.register(id, url)?;
    }
    let started = shared.runs.start(id, spec).await;
    if let Err(error) = &started
        && callback.is_some()
        && is_refused(error)
    {
        // A later run with this id is not the one of this callback.
        shared.callbacks.withdraw(id);
    }
    Ok(started?)
}

/// Returns whether an error means that the service has no run with the id of the start.
fn is_refused(error: &ServiceError) -> bool {
    error
        .code
        .is_some_and(|code| code.status() < 500 && code != ProblemCode::RunExists)
}

/// Returns the value of `Idempotency-Key`.
pub(in crate::routes) fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else {
        return Ok(None);
    };
    let key = value.to_str().ok().map(str::trim);
    match key {
        Some(key) if !key.is_empty() && key.len() <= LONGEST_KEY => Ok(Some(key.to_owned())),
        _ => Err(ApiError::new(
            ProblemCode::InvalidParams,
            format!("Idempotency-Key: expected 1 to {LONGEST_KEY} ASCII characters"),
        )),
    }
}

pub(in crate::routes) fn key_reused() -> ApiError {
    ApiError::new(
        ProblemCode::IdempotencyKeyReused,
        "this Idempotency-Key was used with another body: use a new key for another run",
    )
}

/// Derives a run's id from its idempotency key and body. Returns the id's prefix, which depends on the key alone,
/// and the id.
///
/// The id is a UUID of version 8: the first 60 bits come from the key's hash, the last 62 from the body's. So the
/// server stores no keys.
fn id_of(key: &str, body: &[u8]) -> (String, String) {
    let sha = |bytes: &[u8]| digest::digest(&digest::SHA256, bytes);
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&sha(key.as_bytes()).as_ref()[..8]);
    bytes[8..].copy_from_slice(&sha(body).as_ref()[..8]);
    let id = uuid::Builder::from_custom_bytes(bytes)
        .into_uuid()
        .to_string();
    // xxxxxxxx-xxxx-8xxx-
    (id[..19].to_owned(), id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_id_is_a_uuid_of_the_key_and_the_body() {
        let (beginning, id) = id_of("k", b"a");
        assert!(id.starts_with(&beginning), "{beginning} {id}");
        assert_eq!(Uuid::parse_str(&id).unwrap().get_version_num(), 8);
        let (same, other) = id_of("k", b"b");
        assert_eq!(same, beginning);
        assert_ne!(other, id);
        assert_ne!(id_of("l", b"a").0, beginning);
    }
}
