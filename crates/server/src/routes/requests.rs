//! `/v1/requests`: permission requests and questions of agents.

use axum::Extension;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::Serialize;
use teamster_runner::client;
use teamster_runner::protocol::{Answer as Decision, PendingRequest};

use super::{Answer, App, empty, json};
use crate::auth::Caller;
use crate::extract::{Json, Path};
use crate::index::{AT_ONCE, runner_reply};
use crate::operation::Operation;
use crate::rights::AnswerTo;
use crate::server::Shared;
use crate::view::ViewState;
use crate::{Problem, ProblemCode, Scope, rights};

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
        .about("Answer a request", "As above, with the slash in the id encoded as `%2F`."),
    ]
}

/// The pending requests of all runs.
#[derive(Debug, Serialize, JsonSchema)]
struct RequestList {
    /// The requests, those of the newest run first.
    requests: Vec<PendingRequest>,
}

async fn list(State(shared): App) -> Answer {
    let mut requests = Vec::new();
    let folders = shared.index.folders().await?;
    for folders in folders.chunks(AT_ONCE) {
        for run in shared.index.summaries(folders, false).await {
            if run.state == ViewState::Waiting {
                requests.extend(run.requests.iter().cloned());
            }
        }
    }
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
        return Err(Problem::new(ProblemCode::RequestNotFound, detail));
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
    let run = shared.index.find(run).await?;
    let id = format!("{}/{number}", run.id());
    if matches!(decision, Decision::AllowWith { .. }) {
        let pending = runner_reply(&run, client::requests(&run)).await?;
        let request = pending.iter().find(|request| request.request_id == id);
        let answer = AnswerTo {
            answer: &decision,
            request,
        };
        // A request that is not pending yet may be a permission.
        rights::check(&answer, &shared.config, caller).map_err(|problem| match request {
            Some(_) => problem,
            None => Problem::new(
                ProblemCode::AlreadyAnswered,
                format!(
                    "request {id} is not pending: it was answered or withdrawn, or there is none"
                ),
            ),
        })?;
    }
    runner_reply(&run, client::answer(&run, &id, decision)).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}
