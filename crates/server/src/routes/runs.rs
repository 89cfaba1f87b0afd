//! `/v1/runs`: detached runs and their logs.

mod once;

use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use axum::routing::{get, post, put};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use teamster_api::{
    Command, ProblemCode, Reply, RunHandle, RunList, RunQuery, RunSpec, RunView, StartedRun,
    ViewState, list_all,
};
use tokio::time::timeout;

use super::{Answer, App, json};
use crate::events::{self, EventsQuery};
use crate::extract::{Json, Optional, Path, Query};
use crate::fields::{NewRunId, RunId, split_unquoted};
use crate::keys::Caller;
use crate::operation::{Header, Operation, SchemaOf};
use crate::schema::{Entry, event};
use crate::start::checked;
use crate::state::Shared;
use crate::{ApiError, Scope};

pub(super) use once::{LONGEST_KEY, Started, key, key_reused, start_once, start_with_id};

/// The longest wait of `Prefer: wait=N`.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// The headers of a stream of entries.
const EVENTS_HEADERS: &[Header] = &[Header {
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

/// The id of a new run or session.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes the parameter")]
pub(super) struct NewRunPath {
    id: NewRunId,
}

impl Operation {
    /// Adds the replies of the start of a run or session.
    pub(super) fn starts(self, new: &'static str, known: &'static str, path: &'static str) -> Self {
        self.json::<StartedRun>(StatusCode::CREATED, new)
            .with_header("Location", path)
            .json::<StartedRun>(StatusCode::OK, known)
            .with_header("Location", path)
            .problems(&[
                ProblemCode::BypassNotAllowed,
                ProblemCode::CommandNotAllowed,
                ProblemCode::RunExists,
                ProblemCode::SessionInUse,
            ])
    }

    /// Adds the parameters and the replies of a log.
    pub(super) fn shows_log(self, ended: &'static str) -> Self {
        let content: Vec<(&'static str, SchemaOf)> = vec![
            (
                "application/x-ndjson",
                SchemaGenerator::subschema_for::<Entry>,
            ),
            ("text/event-stream", event::<Entry>),
            (
                "application/json",
                SchemaGenerator::subschema_for::<LogPage>,
            ),
        ];
        self.query::<EventsQuery>()
            .headers(EVENTS_HEADERS)
            .reply(
                StatusCode::OK,
                "The entries, in the format of `Accept`; with `wait`, a page of them.",
                content,
            )
            .reply(StatusCode::NO_CONTENT, ended, vec![])
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
            .starts("The run.", "The run that an earlier request with this key started.", "The path of the run.")
            .problems(&[ProblemCode::IdempotencyKeyReused]),
        Operation::new(Method::GET, "/v1/runs", "listRuns", get(list))
            .about("List runs", "Newest first.")
            .query::<RunQuery>()
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
        Operation::new(Method::PUT, "/v1/runs/{id}", "startRunWithId", put(start_as))
            .path::<NewRunPath>()
            .scope(Some(Scope::Run))
            .about(
                "Start a run with an id",
                "The client makes the id. Repeating a request with the same id and the same run starts nothing.",
            )
            .body::<RunSpec>(true)
            .starts("The run.", "The run, which an earlier request has started.", "The path of the run."),
        Operation::new(Method::GET, "/v1/runs/{id}/events", "getRunEvents", get(log))
            .path::<RunPath>()
            .about(
                "Follow the log of a run",
                "The entries from the beginning or after `after`, then new ones, up to `done`. The `data` of an \
                event and each line are the bytes of the log; `id` is the entry's `seq`. At the end, a stream of \
                events sends `event: end` and closes. If the log was pruned, an entry of the type `reset` replaces \
                the removed ones.",
            )
            .shows_log("The run has ended, and there are no more entries.")
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
struct LogPage {
    /// The entries.
    entries: Vec<Entry>,
    /// The `after` of the next page.
    next: u64,
    /// True if the log ends with this page.
    ended: bool,
}

async fn list(State(shared): App, Query(query): Query<RunQuery>) -> Answer {
    json(StatusCode::OK, &shared.runs.list(query).await?)
}

async fn show(State(shared): App, Path(id): Path<String>) -> Answer {
    let run = shared.find(&id).await?;
    json(StatusCode::OK, &shared.run(&run.run_id).view().await?)
}

/// Returns all runs of a query, page by page.
pub(super) async fn all(shared: &Shared, query: RunQuery) -> Result<RunList, ApiError> {
    Ok(RunList::new(list_all(&*shared.runs, query).await?))
}

/// Returns a run without its live status, which was not requested: a runner that does not answer delays nothing.
async fn view(run: &RunHandle) -> Result<RunView, ApiError> {
    let view = run.outline().await?;
    Ok(match view.summary.state {
        ViewState::Ended => run.view().await?,
        _ => view,
    })
}

/// Sends a command that is only done, or refused.
pub(super) async fn send(shared: &Shared, id: &str, command: Command) -> Result<(), ApiError> {
    shared.run(id).send(command).await?;
    Ok(())
}

/// Returns the error for a reply that does not fit the command.
pub(super) fn unexpected(reply: &Reply) -> ApiError {
    let detail = format!("the runner is of another version: it replied {reply:?}");
    ApiError::new(ProblemCode::Unsupported, detail)
}

async fn log(
    State(shared): App,
    Path(id): Path<String>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Answer {
    let run = shared.find(&id).await?;
    events::respond(shared, &run.run_id, &headers, query).await
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
    let run = shared.find(&id).await?;
    let kill = body.kill;
    send(&shared, &run.run_id, Command::Cancel { kill }).await?;
    json(StatusCode::ACCEPTED, &view(&shared.run(&run.run_id)).await?)
}

async fn start(
    State(shared): App,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Json<RunSpec>,
) -> Answer {
    let spec = checked(body.value.into(), &headers, &shared.config, &caller).await?;
    let wait = preferred_wait(&headers);
    let Started {
        run,
        status,
        warnings,
        important,
    } = start_once(&shared, key(&headers)?, &body.bytes, spec).await?;
    let mut shown = view(&run).await?;
    if let Some(wait) = wait
        && shown.summary.state != ViewState::Ended
    {
        tokio::select! {
            ended = timeout(wait, run.result()) => {
                // The view has the state, also without a log that can be read.
                if ended.is_ok() {
                    shown = view(&run).await?;
                }
            }
            () = shared.ending.cancelled() => {}
        }
    }
    let started = StartedRun::new(shown, warnings, important);
    let mut response = at_path("runs", run.id(), json(status, &started)?);
    preference_applied(&mut response, wait);
    Ok(response)
}

async fn start_as(
    State(shared): App,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Json<RunSpec>,
) -> Answer {
    let spec = checked(body.value.into(), &headers, &shared.config, &caller).await?;
    let started = start_with_id(&shared, &id, spec).await?;
    let shown = StartedRun::new(
        view(&started.run).await?,
        started.warnings,
        started.important,
    );
    Ok(at_path("runs", &id, json(started.status, &shown)?))
}

/// Adds the path of what was started.
pub(super) fn at_path(folder: &str, id: &str, mut response: Response<Body>) -> Response<Body> {
    if let Ok(path) = HeaderValue::from_str(&format!("/v1/{folder}/{id}")) {
        response.headers_mut().insert(LOCATION, path);
    }
    response
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

#[cfg(test)]
mod tests {
    use super::*;

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
