//! Applying and discarding the changes of a run or session whose repository is on the server's machine.

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::routing::post;
use teamster_api::{AppliedChanges, DiscardedChanges, ProblemCode};

use super::results::id_of;
use super::{Answer, App, json, runs};
use crate::Scope;
use crate::extract::Path;
use crate::operation::Operation;

/// Problem codes of both operations.
const PROBLEMS: [ProblemCode; 6] = [
    ProblemCode::RunNotFound,
    ProblemCode::RunIdAmbiguous,
    ProblemCode::RunLive,
    ProblemCode::NoWorkspace,
    ProblemCode::ChangesConflict,
    ProblemCode::Unsupported,
];

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(Method::POST, "/v1/runs/{id}/apply", "applyRunChanges", post(apply))
            .path::<runs::RunPath>()
            .scope(Some(Scope::Run))
            .about(
                "Apply the changes",
                "Takes the changes that an ended run or session has left, committed or not, into the files of the \
                repository that its worktree was made from, on the server's machine: all of them, or nothing. The index and \
                the branches stay as they are.",
            )
            .json::<AppliedChanges>(StatusCode::OK, "The files have the changes.")
            .problems(&PROBLEMS),
        Operation::new(Method::POST, "/v1/runs/{id}/discard", "discardRunChanges", post(discard))
            .path::<runs::RunPath>()
            .scope(Some(Scope::Admin))
            .about(
                "Discard the changes",
                "Deletes what an ended run or session has left: its worktree, its branch and its commits, for good. A \
                worktree that was changed since the end of the run is kept, with 409. The log and collected files stay.",
            )
            .json::<DiscardedChanges>(StatusCode::OK, "The changes are gone.")
            .problems(&PROBLEMS),
    ]
}

async fn apply(State(shared): App, Path(id): Path<String>) -> Answer {
    let id = id_of(&shared, id).await?;
    json(StatusCode::OK, &shared.runs.apply(&id).await?)
}

async fn discard(State(shared): App, Path(id): Path<String>) -> Answer {
    let id = id_of(&shared, id).await?;
    json(StatusCode::OK, &shared.runs.discard(&id).await?)
}
