//! `/v1/requests`: permission requests and questions of agents.

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::Serialize;
use teamster_runner::client;
use teamster_runner::protocol::{Answer as Decision, PendingRequest};

use super::{Answer, App, empty, json};
use crate::extract::{Json, Path};
use crate::index::runner_reply;
use crate::operation::Operation;
use crate::server::Shared;
use crate::view::ViewState;
use crate::{Problem, ProblemCode, Scope};

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
            409.",
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
    for folder in shared.index.folders().await? {
        let Ok(run) = shared.index.summary(folder).await else {
            continue;
        };
        if run.state == ViewState::Waiting {
            requests.extend(run.requests.iter().cloned());
        }
    }
    json(StatusCode::OK, &RequestList { requests })
}

async fn answer(
    State(shared): App,
    Path((run, number)): Path<(String, String)>,
    body: Json<Decision>,
) -> Answer {
    send_answer(&shared, &run, &number, body.value).await
}

async fn answer_by_id(State(shared): App, Path(id): Path<String>, body: Json<Decision>) -> Answer {
    let Some((run, number)) = id.rsplit_once('/') else {
        let detail = "the id of a request is its run's id, a slash and a number";
        return Err(Problem::new(ProblemCode::RequestNotFound, detail));
    };
    send_answer(&shared, run, number, body.value).await
}

async fn send_answer(shared: &Shared, run: &str, number: &str, decision: Decision) -> Answer {
    let run = shared.index.find(run).await?;
    let id = format!("{}/{number}", run.id());
    runner_reply(&run, client::answer(&run, &id, decision)).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}
