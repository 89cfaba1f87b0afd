//! `/v1/history`: the runs recorded in the store.

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::Deserialize;
use teamster_api::ProblemCode;
use teamster_api::history::{ForgetRuns, Forgotten, HistoryList, RunFilter, RunRecord, RunState};

use super::{Answer, App, json};
use crate::extract::{Json, Path, Query};
use crate::fields::{Cursor, SessionKey};
use crate::operation::Operation;
use crate::{ApiError, Scope};

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
            .json::<Forgotten>(StatusCode::OK, "The number of deleted runs and logs.")
            .problems(&[
                ProblemCode::RunNotFound,
                ProblemCode::RunIdAmbiguous,
                ProblemCode::RunLive,
            ]),
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
    /// Only runs in this state.
    status: Option<Status>,
    /// Only runs of this agent, such as `claude`.
    agent: Option<String>,
    /// Only runs of the conversation with this key (`--session-key`).
    key: Option<SessionKey>,
    /// Only runs in this directory or below it, an absolute path.
    directory: Option<std::path::PathBuf>,
    /// Only runs whose title has all of these words, in any order and case.
    text: Option<String>,
    /// The maximum number of runs in the page. 0 counts as 1, and more than 1000 as 1000. Default: 50.
    limit: Option<u32>,
    /// The `next` of the previous page.
    cursor: Option<Cursor>,
}

/// The state of a run of the history.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Status {
    Running,
    Success,
    Error,
    Aborted,
    Interrupted,
}

impl From<Status> for RunState {
    fn from(status: Status) -> Self {
        match status {
            Status::Running => Self::Running,
            Status::Success => Self::Success,
            Status::Error => Self::Error,
            Status::Aborted => Self::Aborted,
            Status::Interrupted => Self::Interrupted,
        }
    }
}

async fn list(State(shared): App, Query(query): Query<HistoryQuery>) -> Answer {
    let limit = query.limit.unwrap_or(PAGE).clamp(1, LARGEST_PAGE);
    let mut filter = RunFilter::default().limit(limit + 1);
    filter.since_ms = query.since;
    filter.until_ms = query.until;
    filter.provider = query.agent;
    filter.conversation = query.key.map(|key| key.0);
    filter.working_directory = query.directory;
    filter.text = query.text;
    filter.status = query.status.map(Into::into);
    filter.after = query.cursor.map(|cursor| cursor.0);
    let mut runs = shared.machine.history(filter).await?;
    let has_next = runs.len() > limit as usize;
    runs.truncate(limit as usize);
    let last = runs.last().filter(|_| has_next);
    let next = last.map(|run| run.cursor().to_string());
    json(StatusCode::OK, &HistoryList::new(runs, next))
}

async fn forget(State(shared): App, body: Json<ForgetRuns>) -> Answer {
    if body.value == ForgetRuns::default() {
        let detail = "expected `ids`, `olderThanMs` or `logsOver`";
        return Err(ApiError::new(ProblemCode::InvalidParams, detail));
    }
    json(StatusCode::OK, &shared.runs.forget(body.value).await?)
}

async fn show(State(shared): App, Path(id): Path<String>) -> Answer {
    json(StatusCode::OK, &shared.machine.history_of(&id).await?)
}
