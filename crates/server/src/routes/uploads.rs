//! `/v1/uploads`: files that runs take along, before they are started.

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::routing::{delete, post, put};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use teamster_api::{FileManifest, ProblemCode};

use super::{Answer, App, empty, json};
use crate::extract::{Json, Part, Path};
use crate::fields::NewRunId;
use crate::operation::Operation;
use crate::{ApiError, Scope};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::POST,
            "/v1/repositories/{root}/known",
            "findCommits",
            post(known),
        )
        .path::<RepositoryPath>()
        .scope(Some(Scope::Run))
        .about(
            "Find commits",
            "Which of these commits the machine has, each with its whole history, so that an upload need not bring them.",
        )
        .body::<Commits>(true)
        .json::<Commits>(StatusCode::OK, "The commits that the machine has."),
        Operation::new(Method::PUT, "/v1/uploads/{id}/{name}", "offerFile", put(offer))
            .path::<FilePath>()
            .scope(Some(Scope::Run))
            .about(
                "Declare a file",
                "A file that the run with this id will take along, before the run is started. Repeating the request \
                returns the parts that are still missing; none once the file is complete. With another manifest, it \
                replaces the file. A file whose run is not started is removed after a day.",
            )
            .body::<FileManifest>(true)
            .json::<MissingParts>(StatusCode::OK, "The parts that are missing.")
            .problems(&[ProblemCode::RunExists, ProblemCode::OverQuota]),
        Operation::new(
            Method::PUT,
            "/v1/uploads/{id}/{name}/parts/{number}",
            "writeFilePart",
            put(write),
        )
        .path::<PartPath>()
        .scope(Some(Scope::Run))
        .about(
            "Upload a part",
            "A part of a file that was declared, of 512 KiB but for the last one. Repeating the request is safe.",
        )
        .bytes()
        .reply(StatusCode::NO_CONTENT, "The part is kept.", vec![])
        .problems(&[ProblemCode::FileNotFound, ProblemCode::FileDamaged]),
        Operation::new(Method::DELETE, "/v1/uploads/{id}", "withdrawFiles", delete(withdraw))
            .path::<UploadPath>()
            .scope(Some(Scope::Run))
            .about(
                "Withdraw the files",
                "Removes the files that were declared for a run which will not be started. Repeating the request is safe.",
            )
            .reply(StatusCode::NO_CONTENT, "The files are gone.", vec![])
            .problems(&[ProblemCode::InvalidParams, ProblemCode::RunExists]),
    ]
}

/// A repository, by the full id of its first commit.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes the parameter")]
struct RepositoryPath {
    #[schemars(regex(pattern = "^([0-9a-f]{40}|[0-9a-f]{64})$"))]
    root: String,
}

/// The files of a new run.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes the parameter")]
struct UploadPath {
    id: NewRunId,
}

/// A file of a new run.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes the parameters")]
struct FilePath {
    id: NewRunId,
    /// The name of the file, such as `bundle`.
    #[schemars(length(min = 1))]
    name: String,
}

/// A part of a file of a new run.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes the parameters")]
struct PartPath {
    id: NewRunId,
    /// The name of the file, such as `bundle`.
    #[schemars(length(min = 1))]
    name: String,
    /// The number of the part, from 0.
    number: u32,
}

/// Commits, by their full ids.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Commits {
    /// The full ids of commits.
    commits: Vec<String>,
}

/// Missing parts of a file.
#[derive(Debug, Serialize, JsonSchema)]
struct MissingParts {
    /// The numbers of the missing parts, in ascending order.
    missing: Vec<u32>,
}

async fn known(
    State(shared): App,
    Path(root): Path<String>,
    Json { value: offered, .. }: Json<Commits>,
) -> Answer {
    let is_commit = matches!(root.len(), 40 | 64)
        && (root.bytes()).all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if !is_commit {
        let detail = "root: expected the full hash of the repository's first commit";
        return Err(ApiError::new(ProblemCode::InvalidParams, detail));
    }
    let commits = shared.runs.known_commits(&root, offered.commits).await?;
    json(StatusCode::OK, &Commits { commits })
}

async fn offer(
    State(shared): App,
    Path((id, name)): Path<(String, String)>,
    Json {
        value: manifest, ..
    }: Json<FileManifest>,
) -> Answer {
    NewRunId::check(&id)?;
    if manifest.name != name {
        let detail = "`name` is not the one of the path";
        return Err(ApiError::new(ProblemCode::InvalidParams, detail));
    }
    let missing = shared.runs.offer(&id, manifest).await?;
    json(StatusCode::OK, &MissingParts { missing })
}

async fn write(
    State(shared): App,
    Path((id, name, number)): Path<(String, String, u32)>,
    Part(content): Part,
) -> Answer {
    NewRunId::check(&id)?;
    shared.runs.write_part(&id, &name, number, content).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

async fn withdraw(State(shared): App, Path(id): Path<String>) -> Answer {
    NewRunId::check(&id)?;
    shared.runs.withdraw(&id).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}
