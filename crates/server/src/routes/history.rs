//! `/v1/history`: the runs recorded in the store.

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use teamster_store::{Conversation, RunCursor, RunFilter, RunRecord, RunState};

use super::{Answer, App, json};
use crate::extract::{Json, Path, Query};
use crate::operation::Operation;
use crate::{ForgetRuns, Forgotten, Problem, ProblemCode, Scope};

/// The default number of runs in a page.
const PAGE: u32 = 50;
/// The maximum number of runs in a page.
const LARGEST_PAGE: u32 = 1000;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(Method::GET, "/v1/history", "listHistory", get(list))
            .about(
                "List the history of runs",
                "All recorded runs, including attached ones and ticks of agents, newest first, as in \
                `teamster runs list --json`.",
            )
            .query::<HistoryQuery>()
            .json::<HistoryList>(StatusCode::OK, "A page of the history."),
        Operation::new(Method::GET, "/v1/history/{id}", "getHistory", get(show))
            .about(
                "Show a run of the history",
                "The id may be a unique prefix. The fields are those of `teamster runs show --json`.",
            )
            .json::<RunRecord>(StatusCode::OK, "The run.")
            .problems(&[ProblemCode::RunNotFound, ProblemCode::RunIdAmbiguous]),
        Operation::new(Method::POST, "/v1/history/forget", "forgetRuns", post(forget))
            .scope(Some(Scope::Admin))
            .about(
                "Delete runs and logs",
                "Like `teamster runs forget`. Live runs are kept.",
            )
            .body::<ForgetRuns>(true)
            .json::<Forgotten>(StatusCode::OK, "The number of deleted runs and logs."),
    ]
}

/// A filter of the history.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct HistoryQuery {
    /// Only runs that began at this time or later, in milliseconds since the Unix epoch.
    since: Option<u64>,
    /// Only runs that began before this time, in milliseconds since the Unix epoch.
    until: Option<u64>,
    /// Only runs in this state: `running`, `success`, `error`, `aborted` or `interrupted`.
    status: Option<String>,
    /// Only runs of this agent, such as `claude`.
    agent: Option<String>,
    /// Only runs of the conversation with this key (`--session-key`).
    key: Option<String>,
    /// Only runs in this directory, an absolute path.
    directory: Option<std::path::PathBuf>,
    /// The maximum number of runs in the page, up to 1000. Default: 50.
    limit: Option<u32>,
    /// The `next` of the previous page.
    cursor: Option<String>,
}

/// A page of the history, newest first.
#[derive(Debug, Serialize, JsonSchema)]
struct HistoryList {
    /// The runs.
    runs: Vec<RunRecord>,
    /// The `cursor` of the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

fn invalid(detail: impl Into<String>) -> Problem {
    Problem::new(ProblemCode::InvalidParams, detail)
}

async fn list(State(shared): App, Query(query): Query<HistoryQuery>) -> Answer {
    let limit = query.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let mut filter = RunFilter::default().limit(limit + 1);
    filter.since_ms = query.since;
    filter.until_ms = query.until;
    filter.provider = query.agent;
    let key = query.key.as_deref().map(str::parse::<Conversation>);
    let key = key
        .transpose()
        .map_err(|error| invalid(error.to_string()))?;
    filter.conversation = key.map(|key| key.to_string());
    filter.working_directory = query.directory;
    let status = query.status.as_deref().map(str::parse::<RunState>);
    filter.status = status
        .transpose()
        .map_err(|error| invalid(error.to_string()))?;
    filter.after = query.cursor.as_deref().map(cursor).transpose()?;
    let mut runs = shared.backend.history(filter).await?;
    let has_next = runs.len() > limit as usize;
    runs.truncate(limit as usize);
    let last = runs.last().filter(|_| has_next);
    let next = last.map(|run| format!("{}.{}", run.started_at, run.run_id));
    json(StatusCode::OK, &HistoryList { runs, next })
}

fn cursor(text: &str) -> Result<RunCursor, Problem> {
    let parts = text.split_once('.');
    let read = parts.and_then(|(at, id)| Some(RunCursor::new(at.parse().ok()?, id)));
    read.ok_or_else(|| invalid("cursor: expected the `next` of another page"))
}

async fn forget(State(shared): App, body: Json<ForgetRuns>) -> Answer {
    if body.value == ForgetRuns::default() {
        return Err(invalid("expected `ids`, `olderThanMs` or `logsOver`"));
    }
    json(StatusCode::OK, &shared.backend.forget(body.value).await?)
}

async fn show(State(shared): App, Path(id): Path<String>) -> Answer {
    json(StatusCode::OK, &shared.backend.history_of(id).await?)
}
