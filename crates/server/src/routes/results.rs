//! Results of runs and sessions: changes of their workspaces, and files.

use std::pin::Pin;
use std::sync::Arc;

use async_stream::try_stream;
use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, Method, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use bytes::Bytes;
use futures_core::Stream;
use percent_encoding::percent_decode_str;
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use teamster_api::{
    BUNDLE, DiffQuery, FileList, FileManifest, PATCH, ProblemCode, ServiceError, WorkspaceDiff,
};

use super::{Answer, App, json, runs, sessions};
use crate::extract::{Path, Query};
use crate::fields::RunId;
use crate::operation::Operation;
use crate::state::Shared;
use crate::{ApiError, events};

/// The media type of a patch.
const DIFF: &str = "text/x-diff";
const BYTES: &str = "application/octet-stream";

const FILE_PROBLEMS: [ProblemCode; 3] = [
    ProblemCode::RunIdAmbiguous,
    ProblemCode::RunLive,
    ProblemCode::FileNotFound,
];

/// Resource with an id of its own: its paths and the names of its operations.
struct Kind {
    diff: [&'static str; 2],
    bundle: [&'static str; 2],
    files: [&'static str; 2],
    file: [&'static str; 2],
    missing: ProblemCode,
}

const RUN: Kind = Kind {
    diff: ["/v1/runs/{id}/diff", "getRunDiff"],
    bundle: ["/v1/runs/{id}/bundle", "getRunBundle"],
    files: ["/v1/runs/{id}/files", "listRunFiles"],
    file: ["/v1/runs/{id}/files/{*name}", "getRunFile"],
    missing: ProblemCode::RunNotFound,
};

const SESSION: Kind = Kind {
    diff: ["/v1/sessions/{id}/diff", "getSessionDiff"],
    bundle: ["/v1/sessions/{id}/bundle", "getSessionBundle"],
    files: ["/v1/sessions/{id}/files", "listSessionFiles"],
    file: ["/v1/sessions/{id}/files/{*name}", "getSessionFile"],
    missing: ProblemCode::SessionNotFound,
};

/// A file of a run or session.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes the parameters")]
struct FilePath {
    id: RunId,
    /// The name of the file, as in the list: its slashes are those of the path.
    #[schemars(length(min = 1))]
    name: String,
}

/// A selection of changes.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes the parameters")]
struct DiffSelection {
    /// Only files at this path of the repository, and below it. The parameter can be repeated.
    #[schemars(inner(length(min = 1)))]
    path: Vec<String>,
    /// Only figures, without hunks.
    stat: bool,
}

/// Request for a part of a file.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// The number of a part, from 0: 512 KiB of the file but for the last one.
    part: Option<u32>,
    /// The file's manifest: its size, and the hashes of it and of its parts.
    #[serde(default)]
    manifest: bool,
}

pub(super) fn operations() -> Vec<Operation> {
    let of_all = [of::<false>(&RUN), of::<true>(&SESSION)];
    of_all.into_iter().flatten().collect()
}

/// Returns the operations of runs, or of sessions.
fn of<const SESSIONS: bool>(kind: &Kind) -> [Operation; 4] {
    let new =
        |[path, id]: [&'static str; 2], handler| Operation::new(Method::GET, path, id, handler);
    let diff = new(kind.diff, get(diff::<SESSIONS>));
    let bundle = new(kind.bundle, get(bundle::<SESSIONS>));
    let files = new(kind.files, get(files::<SESSIONS>));
    let file = new(kind.file, get(file::<SESSIONS>));
    [
        diff.path::<runs::RunPath>()
            .about(
                "Show the changes",
                "What was changed in the workspace since it was made, committed or not: so far while the run is \
                live. `Accept: text/x-diff` asks for a patch that `git apply` takes, once the run has ended.",
            )
            .query::<DiffSelection>()
            .reply(
                StatusCode::OK,
                "The changes.",
                vec![
                    ("application/json", SchemaGenerator::subschema_for::<WorkspaceDiff>),
                    (DIFF, SchemaGenerator::subschema_for::<String>),
                ],
            )
            .problems(&[
                kind.missing,
                ProblemCode::RunIdAmbiguous,
                ProblemCode::RunLive,
                ProblemCode::NoWorkspace,
            ]),
        bundle
            .path::<runs::RunPath>()
            .about(
                "Read the commits",
                "A git bundle of the commits since the workspace was made, and of what was not committed: the refs \
                `refs/teamster/ID/head` and `refs/teamster/ID/wip`.",
            )
            .query::<Wanted>()
            .reply(StatusCode::OK, "The bundle, or what is wanted of it.", file_content())
            .problems(&[kind.missing])
            .problems(&FILE_PROBLEMS),
        files
            .path::<runs::RunPath>()
            .about(
                "List the files",
                "What an ended run brings back: `bundle`, `patch`, and as `files/PATH` the files of its `artifacts`.",
            )
            .json::<FileList>(StatusCode::OK, "The files.")
            .problems(&[kind.missing, ProblemCode::RunIdAmbiguous, ProblemCode::RunLive]),
        file.path::<FilePath>()
            .about(
                "Read a file",
                "The whole file; or one part of it, which can be checked by the manifest, so that a transfer can \
                continue where it broke.",
            )
            .query::<Wanted>()
            .reply(StatusCode::OK, "The file, or what is wanted of it.", file_content())
            .problems(&[kind.missing])
            .problems(&FILE_PROBLEMS),
    ]
}

/// A media type, and the schema of its content.
type Content = (&'static str, fn(&mut SchemaGenerator) -> schemars::Schema);

fn file_content() -> Vec<Content> {
    vec![
        (BYTES, SchemaGenerator::subschema_for::<String>),
        (
            "application/json",
            SchemaGenerator::subschema_for::<FileManifest>,
        ),
    ]
}

/// Returns the whole id of a run. One without a log may have left something, too.
pub(super) async fn id_of(shared: &Shared, id: String) -> Result<String, ApiError> {
    match shared.find(&id).await {
        Ok(run) => Ok(run.run_id),
        Err(problem) if problem.0.code == ProblemCode::RunNotFound => Ok(id),
        Err(problem) => Err(problem),
    }
}

/// Returns the whole id of a run or session.
async fn whole_id<const SESSION: bool>(shared: &Shared, id: String) -> Result<String, ApiError> {
    if SESSION {
        Ok(sessions::find(shared, &id).await?.run_id)
    } else {
        id_of(shared, id).await
    }
}

async fn files<const SESSION: bool>(State(shared): App, Path(id): Path<String>) -> Answer {
    let id = whole_id::<SESSION>(&shared, id).await?;
    json(StatusCode::OK, &shared.runs.files(&id).await?)
}

async fn bundle<const SESSION: bool>(
    State(shared): App,
    Path(id): Path<String>,
    Query(wanted): Query<Wanted>,
) -> Answer {
    let id = whole_id::<SESSION>(&shared, id).await?;
    content(shared, id, BUNDLE.to_owned(), &wanted).await
}

async fn file<const SESSION: bool>(
    State(shared): App,
    Path((id, name)): Path<(String, String)>,
    Query(wanted): Query<Wanted>,
) -> Answer {
    let id = whole_id::<SESSION>(&shared, id).await?;
    content(shared, id, name, &wanted).await
}

async fn diff<const SESSION: bool>(
    State(shared): App,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> Answer {
    let id = whole_id::<SESSION>(&shared, id).await?;
    let mut query = selection(query.as_deref().unwrap_or_default())?;
    let weight = |kind, name| events::quality(&headers, kind, name);
    if weight("text", "x-diff") <= weight("application", "json") {
        return json(StatusCode::OK, &shared.runs.diff(&id, query).await?);
    }
    if !query.paths.is_empty() || query.stat {
        let detail = "`path` and `stat` are for JSON: a patch has all changes";
        return Err(ApiError::new(ProblemCode::InvalidParams, detail));
    }
    query.stat = true;
    let changes = shared.runs.diff(&id, query).await?;
    if changes.files.is_empty() {
        return Ok(bytes(DIFF, Body::empty()));
    }
    whole(shared, id, PATCH.to_owned(), DIFF).await
}

/// Reads the query of a diff, in which `path` can be repeated.
fn selection(query: &str) -> Result<DiffQuery, ApiError> {
    let refuse = |detail: String| ApiError::new(ProblemCode::InvalidParams, detail);
    let mut selection = DiffQuery::default();
    for field in query.split('&').filter(|field| !field.is_empty()) {
        let (name, value) = field.split_once('=').unwrap_or((field, ""));
        let value = value.replace('+', " ");
        let value = percent_decode_str(&value).decode_utf8();
        let value = value.map_err(|_| refuse(format!("`{name}` is not UTF-8")))?;
        match (name, &*value) {
            ("path", path) if !path.is_empty() => selection.paths.push(path.to_owned()),
            ("path", _) => return Err(refuse("`path` is empty".to_owned())),
            ("stat", "true") => selection.stat = true,
            ("stat", "false") => selection.stat = false,
            ("stat", _) => return Err(refuse("`stat` is `true` or `false`".to_owned())),
            _ => return Err(refuse("expected `path` and `stat` only".to_owned())),
        }
    }
    Ok(selection)
}

async fn content(shared: Arc<Shared>, id: String, name: String, wanted: &Wanted) -> Answer {
    if wanted.manifest {
        return json(StatusCode::OK, &shared.runs.manifest(&id, &name).await?);
    }
    if let Some(number) = wanted.part {
        let part = shared.runs.read_part(&id, &name, number).await?;
        return Ok(bytes(BYTES, Body::from(part)));
    }
    whole(shared, id, name, BYTES).await
}

/// Responds with a whole file, part by part.
async fn whole(shared: Arc<Shared>, id: String, name: String, media: &'static str) -> Answer {
    let manifest = shared.runs.manifest(&id, &name).await?;
    let size = manifest.bytes;
    let parts = try_stream! {
        for number in 0..u32::try_from(manifest.parts.len()).unwrap_or(u32::MAX) {
            let part = shared.runs.read_part(&id, &name, number).await?;
            yield Bytes::from(part);
        }
    };
    let parts: Pin<Box<dyn Stream<Item = Result<Bytes, ServiceError>> + Send>> = Box::pin(parts);
    let mut response = bytes(media, Body::from_stream(parts));
    response.headers_mut().insert(CONTENT_LENGTH, size.into());
    Ok(response)
}

/// Creates a response that no browser shows: content of an agent must not become a page.
fn bytes(media: &'static str, body: Body) -> Response<Body> {
    let headers = [(CONTENT_TYPE, media), (CONTENT_DISPOSITION, "attachment")];
    (headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_can_be_repeated_and_other_fields_are_refused() {
        let query = selection("path=a%20b%26c&path=d+e&stat=true").unwrap();
        assert_eq!(
            (query.paths, query.stat),
            (vec!["a b&c".to_owned(), "d e".to_owned()], true)
        );
        assert_eq!(selection("").unwrap(), DiffQuery::default());
        for query in ["path=", "paths=a", "stat=1", "path=%FF"] {
            assert!(selection(query).is_err(), "{query}");
        }
    }
}
