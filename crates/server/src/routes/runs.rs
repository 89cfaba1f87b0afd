//! `/v1/runs`: detached runs and their logs.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use axum::routing::{get, post};
use futures_core::future::BoxFuture;
use ring::digest;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use teamster_api::{ProblemCode, RunList, RunSpec, RunView, ViewState};
use teamster_runner::RunFolder;
use teamster_runner::client::{self, Follow};
use tokio::sync::Mutex;
use tokio::time::timeout;
use uuid::Uuid;

use super::{Answer, App, json};
use crate::auth::Caller;
use crate::events::{self, EventsQuery};
use crate::extract::{Json, Optional, Path, Query};
use crate::fields::{Cursor, RunId};
use crate::index::{AT_ONCE, not_ended, order, runner_reply};
use crate::openapi::{Entry, event};
use crate::operation::{Header, Operation};
use crate::server::Shared;
use crate::start::check_run;
use crate::{ApiError, Backend, BackendError, Scope, rights};

/// The default number of runs in a page.
const PAGE: usize = 50;
/// The maximum number of runs in a page.
const LARGEST_PAGE: usize = 1000;
/// The longest wait of `Prefer: wait=N`.
const LONGEST_WAIT: Duration = Duration::from_mins(5);
/// The maximum length of `Idempotency-Key`, in bytes.
const LONGEST_KEY: usize = 256;

/// The headers of a stream of entries.
pub(super) const EVENTS_HEADERS: &[Header] = &[Header {
    name: "Last-Event-ID",
    description: "The number of the last entry received; takes precedence over `after`.",
    pattern: "^[0-9]{0,19}$",
    max_length: 0,
}];

/// Makes the start of something happen once.
pub(super) const fn idempotency_key(description: &'static str) -> Header {
    Header {
        name: "Idempotency-Key",
        description,
        pattern: r"^[!-~]([\t -~]*[!-~])?$",
        max_length: LONGEST_KEY,
    }
}

/// Makes the response wait for the end of what was started.
pub(super) const fn prefer_wait(description: &'static str) -> Header {
    Header {
        name: "Prefer",
        description,
        pattern: "",
        max_length: 0,
    }
}

/// The id of a run or session, or a unique beginning of it.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes the parameter")]
pub(super) struct RunPath {
    id: RunId,
}

/// Serializes starts that have the same `Idempotency-Key`.
#[derive(Debug, Default)]
pub(crate) struct StartLocks {
    locks: [Mutex<()>; 16],
    hasher: RandomState,
}

impl StartLocks {
    pub(super) fn lock_of(&self, key: &str) -> &Mutex<()> {
        #[expect(clippy::cast_possible_truncation, reason = "less than 16")]
        let index = (self.hasher.hash_one(key) % self.locks.len() as u64) as usize;
        &self.locks[index]
    }
}

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(Method::POST, "/v1/runs", "startRun", post(start))
            .scope(Some(Scope::Run))
            .about(
                "Start a run",
                "The run has its own process, so it continues when the client or the server ends.",
            )
            .headers(const {
                &[
                    idempotency_key(
                        "A key of the client's choice. Repeating a request with the same key returns the existing run \
                        instead of starting another one.",
                    ),
                    prefer_wait("`wait=N`: respond when the run has ended, or after N seconds, at most 300."),
                ]
            })
            .body::<RunSpec>(true)
            .json::<RunView>(StatusCode::CREATED, "The run.")
            .with_header("Location", "The path of the run.")
            .json::<RunView>(StatusCode::OK, "The run that an earlier request with this key started.")
            .with_header("Location", "The path of the run.")
            .problems(&[
                ProblemCode::BypassNotAllowed,
                ProblemCode::CommandNotAllowed,
                ProblemCode::IdempotencyKeyReused,
                ProblemCode::RunExists,
                ProblemCode::SessionInUse,
            ]),
        Operation::new(Method::GET, "/v1/runs", "listRuns", get(list))
            .about("List runs", "Newest first.")
            .query::<ListQuery>()
            .json::<RunList>(StatusCode::OK, "A page of runs."),
        Operation::new(Method::GET, "/v1/runs/{id}", "getRun", get(show))
            .path::<RunPath>()
            .about(
                "Show a run",
                "The id may be a unique prefix.",
            )
            .json::<RunView>(StatusCode::OK, "The run.")
            .problems(&[
                ProblemCode::RunNotFound,
                ProblemCode::RunIdAmbiguous,
                ProblemCode::RunnerNotResponding,
            ]),
        Operation::new(Method::GET, "/v1/runs/{id}/events", "getRunEvents", get(log))
            .path::<RunPath>()
            .about(
                "Follow the log of a run",
                "The entries from the beginning or after `after`, then new ones, up to `done`. The `data` of an \
                event and each line are the bytes of the log; `id` is the entry's `seq`. At the end, a stream of \
                events sends `event: end` and closes. If the log was pruned, an entry of the type `reset` replaces \
                the removed ones.",
            )
            .query::<EventsQuery>()
            .headers(EVENTS_HEADERS)
            .reply(
                StatusCode::OK,
                "The entries, in the format of `Accept`; with `wait`, a page of them.",
                vec![
                    ("application/x-ndjson", SchemaGenerator::subschema_for::<Entry>),
                    ("text/event-stream", event::<Entry>),
                    ("application/json", SchemaGenerator::subschema_for::<LogPage>),
                ],
            )
            .reply(StatusCode::NO_CONTENT, "The run has ended, and there are no more entries.", vec![])
            .problems(&[ProblemCode::RunNotFound, ProblemCode::RunIdAmbiguous]),
        Operation::new(Method::POST, "/v1/runs/{id}/cancel", "cancelRun", post(cancel))
            .path::<RunPath>()
            .scope(Some(Scope::Run))
            .about(
                "Stop a run",
                "Responds as soon as the runner has the command; the run ends a little later.",
            )
            .body::<Cancel>(false)
            .json::<RunView>(StatusCode::ACCEPTED, "The run.")
            .problems(&[
                ProblemCode::RunNotFound,
                ProblemCode::RunIdAmbiguous,
                ProblemCode::RunEnded,
                ProblemCode::RunnerNotResponding,
            ]),
    ]
}

/// A page of a log.
#[derive(JsonSchema)]
#[schemars(rename = "LogPage")]
#[expect(
    dead_code,
    reason = "it is written by hand, so that the entries are the bytes of the log"
)]
pub(super) struct LogPage {
    /// The entries.
    entries: Vec<Entry>,
    /// The `after` of the next page.
    next: u64,
    /// True if the log ends with this page.
    ended: bool,
}

/// A filter of runs.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only runs in this state.
    state: Option<ViewState>,
    /// Only runs that have not ended, each with its live status (`live`).
    #[serde(default)]
    live: bool,
    /// Only runs that were accepted at this time or later, in milliseconds since the Unix epoch.
    since: Option<u64>,
    /// The maximum number of runs in the page. 0 counts as 1, and more than 1000 as 1000. Default: 50.
    limit: Option<usize>,
    /// The `next` of the previous page.
    cursor: Option<Cursor>,
}

async fn list(State(shared): App, Query(query): Query<ListQuery>) -> Answer {
    let before = query.cursor;
    let limit = query.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let mut folders = shared.index.folders().await?;
    let mut page = RunList::new(Vec::new());
    folders.retain(|folder| {
        let (at, id) = order(folder);
        (before.as_ref()).is_none_or(|before| (at, id) < (before.at, &before.run_id))
            && query.since.is_none_or(|since| at >= since)
    });
    'pages: for folders in folders.chunks(AT_ONCE) {
        for summary in shared.index.summaries(folders, query.live).await {
            if query.live && summary.state == ViewState::Ended {
                continue;
            }
            if query.state.is_some_and(|state| state != summary.state) {
                continue;
            }
            if page.runs.len() == limit {
                let last = page.runs.last();
                page.next =
                    last.map(|run| Cursor::new(run.info.accepted_at, &run.info.run_id).to_string());
                break 'pages;
            }
            page.runs.push(summary);
        }
    }
    json(StatusCode::OK, &page)
}

async fn show(State(shared): App, Path(id): Path<String>) -> Answer {
    let run = shared.index.find(&id).await?;
    json(StatusCode::OK, &shared.index.live_view(run).await?)
}

async fn log(
    State(shared): App,
    Path(id): Path<String>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Answer {
    let run = shared.index.find(&id).await?;
    events::respond(shared, run, &headers, query).await
}

/// Options for stopping a run.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Cancel {
    /// Kill the run at once instead of stopping it cleanly.
    #[serde(default)]
    kill: bool,
}

async fn cancel(
    State(shared): App,
    Path(id): Path<String>,
    Optional(body): Optional<Cancel>,
) -> Answer {
    let run = shared.index.find(&id).await?;
    not_ended(&run).await?;
    runner_reply(&run, client::cancel(&run, body.kill)).await?;
    json(StatusCode::ACCEPTED, &shared.index.view(run).await?)
}

async fn start(
    State(shared): App,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Json<RunSpec>,
) -> Answer {
    let request = body.value;
    rights::check(&request, &shared.config, &caller)?;
    check_run(&request, &shared.config).await?;
    let wait = preferred_wait(&headers);
    let callback = request.callback.clone();
    let (run, status) = start_once(&shared, key(&headers)?, &body.bytes, async |id| {
        begin(&shared, &id, callback.as_deref(), |backend| {
            backend.start(id.clone(), request)
        })
        .await
    })
    .await?;
    if let Some(wait) = wait {
        let ended = timeout(wait, Follow::end(run.clone()));
        tokio::select! {
            ended = ended => {
                if let Ok(ended) = ended {
                    ended?;
                }
            }
            () = shared.ending.cancelled() => {}
        }
    }
    let view = shared.index.view(run).await?;
    let mut response = json(status, &view)?;
    let headers = response.headers_mut();
    let path = format!("/v1/runs/{}", view.summary.info.run_id);
    if let Ok(path) = HeaderValue::from_str(&path) {
        headers.insert(LOCATION, path);
    }
    preference_applied(&mut response, wait);
    Ok(response)
}

/// Adds `Preference-Applied` to a response that honoured `Prefer: wait`.
pub(super) fn preference_applied(response: &mut Response<Body>, wait: Option<Duration>) {
    if let Some(wait) = wait
        && let Ok(applied) = HeaderValue::from_str(&format!("wait={}", wait.as_secs()))
    {
        let name = HeaderName::from_static("preference-applied");
        response.headers_mut().insert(name, applied);
    }
}

/// Starts what `begin` starts, with the id that it is given: once for each key and body. Returns 200 if it was started
/// before.
pub(super) async fn start_once(
    shared: &Shared,
    key: Option<String>,
    body: &[u8],
    begin: impl AsyncFnOnce(String) -> Result<(), ApiError>,
) -> Result<(RunFolder, StatusCode), ApiError> {
    let Some(key) = key else {
        let id = Uuid::now_v7().to_string();
        begin(id.clone()).await?;
        return Ok((shared.index.find(&id).await?, StatusCode::CREATED));
    };
    let _others = shared.starts.lock_of(&key).lock().await;
    let (beginning, id) = id_of(&key, body);
    // Two servers may have started one run each with this key: the one of this body counts.
    if let Some(own) = shared.index.get(&id).await? {
        return Ok((own, StatusCode::OK));
    }
    match shared.index.find(&beginning).await {
        Err(problem) if problem.0.code == ProblemCode::RunNotFound => {}
        Err(problem) if problem.0.code != ProblemCode::RunIdAmbiguous => return Err(problem),
        _ => return Err(key_reused()),
    }
    let status = match begin(id.clone()).await {
        Ok(()) => StatusCode::CREATED,
        // Another server with the same runs started it first.
        Err(problem) if problem.0.code == ProblemCode::RunExists => StatusCode::OK,
        Err(problem) => return Err(problem),
    };
    Ok((shared.index.find(&id).await?, status))
}

/// Starts a run or session. Registers its callback first, so that a killed server does not lose it.
pub(super) async fn begin(
    shared: &Shared,
    id: &str,
    callback: Option<&str>,
    start: impl FnOnce(&dyn Backend) -> BoxFuture<'static, Result<(), BackendError>>,
) -> Result<(), ApiError> {
    if let Some(url) = callback {
        shared.callbacks.register(id, url)?;
    }
    Ok(start(&*shared.backend).await?)
}

/// Returns the value of `Idempotency-Key`.
pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
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

pub(super) fn key_reused() -> ApiError {
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

/// Returns the duration of the preference `wait` (RFC 7240), at most [`LONGEST_WAIT`]. A value that is no number of
/// seconds is ignored, and so are repetitions.
pub(super) fn preferred_wait(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all("prefer").iter();
    let mut preferences = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| split_unquoted(value, ','));
    let value = preferences.find_map(|preference| {
        // Parameters of the preference follow a semicolon.
        let preference = split_unquoted(preference, ';').next()?;
        let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
        name.trim()
            .eq_ignore_ascii_case("wait")
            .then(|| value.trim())
    })?;
    let quoted = value
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let seconds = quoted.unwrap_or(value);
    if seconds.is_empty() || !seconds.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // A number that is too large is a long wait.
    let seconds = seconds.parse().unwrap_or(u64::MAX);
    Some(Duration::from_secs(seconds).min(LONGEST_WAIT))
}

/// Splits at a character outside of quoted strings.
pub(crate) fn split_unquoted(text: &str, at: char) -> impl Iterator<Item = &str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |c: char| {
        if is_escaped {
            is_escaped = false;
        } else if is_quoted && c == '\\' {
            is_escaped = true;
        } else if c == '"' {
            is_quoted = !is_quoted;
        }
        c == at && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_key_is_a_uuid_that_begins_with_the_key_and_ends_with_the_body() {
        let (beginning, id) = id_of("k", b"a");
        assert!(id.starts_with(&beginning), "{beginning} {id}");
        assert_eq!(Uuid::parse_str(&id).unwrap().get_version_num(), 8);
        let (same, other) = id_of("k", b"b");
        assert_eq!(same, beginning);
        assert_ne!(other, id);
        assert_ne!(id_of("l", b"a").0, beginning);
    }

    #[test]
    fn the_preferred_wait_is_read_as_rfc_7240_writes_it() {
        let wait = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("prefer", HeaderValue::from_str(value).unwrap());
            }
            preferred_wait(&headers).map(|wait| wait.as_secs())
        };
        for (values, seconds) in [
            (&["wait=10"][..], Some(10)),
            (&["respond-async, WAIT = \"20\""], Some(20)),
            (&["handling=lenient; wait=9", "wait=30;x=1"], Some(30)),
            (&["foo=\"a, wait=5\", wait=6"], Some(6)),
            (&["wait=7, wait=8"], Some(7)),
            (&["wait=99999999999999999999999"], Some(300)),
            (&["wait=-1"], None),
            (&["wait"], None),
            (&["wait=1.5"], None),
            (&["await=5"], None),
            (&[], None),
        ] {
            assert_eq!(wait(values), seconds, "{values:?}");
        }
    }
}
