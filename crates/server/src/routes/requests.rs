//! `/v1/requests`: permission requests and questions of agents.

use axum::Extension;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::Serialize;
use teamster_api::{
    Answer as Decision, Command, PendingRequest, ProblemCode, Reply, RunHandle, RunLogEntry,
    RunQuery, ViewState,
};
use teamster_core::AgentEvent;

use super::runs::{all, send, unexpected};
use super::{Answer, App, empty, json};
use crate::extract::{Json, Path};
use crate::fields::{RequestId, RunId};
use crate::keys::Caller;
use crate::operation::Operation;
use crate::rights::AnswerTo;
use crate::state::Shared;
use crate::{ApiError, Scope, rights};

pub(super) fn operations() -> Vec<Operation> {
    let answers = |operation: Operation| {
        operation
            .scope(Some(Scope::Answer))
            .body::<Decision>(true)
            .reply(StatusCode::NO_CONTENT, "The agent has the answer.", vec![])
            .problems(&[
                ProblemCode::RequestNotFound,
                ProblemCode::RunNotFound,
                ProblemCode::AlreadyAnswered,
                ProblemCode::RunEnded,
                ProblemCode::InvalidAnswer,
                ProblemCode::RunnerNotResponding,
            ])
    };
    vec![
        Operation::new(Method::GET, "/v1/requests", "listRequests", get(list))
            .about(
                "List pending requests",
                "Permissions for tools and questions of MCP servers, of all runs.",
            )
            .json::<RequestList>(StatusCode::OK, "The requests."),
        answers(Operation::new(
            Method::POST,
            "/v1/requests/{run}/{number}",
            "answerRequest",
            post(answer),
        ))
        .path::<RequestPath>()
        .about(
            "Answer a request",
            "The id of a request is its run's id, a slash and a number. The first answer counts; later ones get \
            409. `allow_with` in answer to anything but a question needs a token with the scopes `run` and `answer`, \
            or `admin`.",
        ),
        answers(Operation::new(
            Method::POST,
            "/v1/requests/{id}",
            "answerRequestById",
            post(answer_by_id),
        ))
        .path::<RequestIdPath>()
        .about("Answer a request", "As above, with the slash in the id encoded as `%2F`."),
    ]
}

/// The parts of a request's id.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes the parameters")]
struct RequestPath {
    run: RunId,
    /// The number of the request.
    #[schemars(range(min = 1))]
    number: u64,
}

/// A request's id.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes the parameter")]
struct RequestIdPath {
    id: RequestId,
}

/// The pending requests of all runs.
#[derive(Debug, Serialize, JsonSchema)]
struct RequestList {
    /// The requests, those of the newest run first.
    requests: Vec<PendingRequest>,
}

async fn list(State(shared): App) -> Answer {
    let mut waiting = RunQuery::default();
    waiting.state = Some(ViewState::Waiting);
    let runs = all(&shared, waiting).await?.runs;
    let requests = runs.iter().flat_map(|run| run.requests.iter().cloned());
    let requests = requests.collect();
    json(StatusCode::OK, &RequestList { requests })
}

async fn answer(
    State(shared): App,
    Extension(caller): Extension<Caller>,
    Path((run, number)): Path<(String, String)>,
    body: Json<Decision>,
) -> Answer {
    send_answer(&shared, &caller, &run, &number, body.value).await
}

async fn answer_by_id(
    State(shared): App,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Json<Decision>,
) -> Answer {
    let Some((run, number)) = id.rsplit_once('/') else {
        let detail = "the id of a request is its run's id, a slash and a number";
        return Err(ApiError::new(ProblemCode::RequestNotFound, detail));
    };
    send_answer(&shared, &caller, run, number, body.value).await
}

async fn send_answer(
    shared: &Shared,
    caller: &Caller,
    run: &str,
    number: &str,
    decision: Decision,
) -> Answer {
    let run = shared.run(&shared.find(run).await?.run_id);
    let id = format!("{}/{number}", run.id());
    let allowed = |request: Option<&PendingRequest>| {
        let answer = &decision;
        rights::check(&AnswerTo { answer, request }, &shared.config, caller)
    };
    // Whether it is allowed may depend on the request, which not every caller needs to wait for.
    if allowed(None).is_err() {
        allowed(Some(&pending(&run, &id).await?))?;
    }
    let command = Command::Answer {
        request_id: id,
        answer: decision,
    };
    send(shared, run.id(), command).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

async fn pending(run: &RunHandle, id: &str) -> Result<PendingRequest, ApiError> {
    let find = async || match run.send(Command::Requests).await? {
        Reply::Requests { requests } => Ok(requests.into_iter().find(|it| it.request_id == id)),
        reply => Err(unexpected(&reply)),
    };
    if let Some(request) = find().await? {
        return Ok(request);
    }
    let exists = was_requested(run, id).await?;
    // It may have been requested meanwhile.
    if let Some(request) = find().await? {
        return Ok(request);
    }
    Err(if exists {
        let detail = format!("request {id} is already settled: it was answered or withdrawn");
        ApiError::new(ProblemCode::AlreadyAnswered, detail)
    } else {
        ApiError::new(
            ProblemCode::RequestNotFound,
            format!("no pending request {id}"),
        )
    })
}

/// Returns `true` if the log has a request with this id.
async fn was_requested(run: &RunHandle, id: &str) -> Result<bool, ApiError> {
    let newest = run.outline().await?.summary.seq;
    let mut log = run.follow(0);
    let mut seq = 0;
    while seq < newest
        && let Some(line) = log.next().await
    {
        let line = line?;
        seq = line.seq();
        if line.type_name() == "permission"
            && let Ok(RunLogEntry::Agent(entry)) = line.entry()
            && let AgentEvent::Permission(permission) = entry.event
            && permission.request_id.as_deref() == Some(id)
        {
            return Ok(true);
        }
    }
    Ok(false)
}
