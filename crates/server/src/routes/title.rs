//! Titles of runs and the specs that are kept of them: what a person sees or changes beside the log.

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::routing::{get, patch};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use teamster_api::{KeptSpec, ProblemCode, ServiceError, check_title};

use super::{Answer, App, empty, json, runs};
use crate::Scope;
use crate::extract::{Json, Path};
use crate::operation::Operation;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(Method::PATCH, "/v1/runs/{id}", "renameRun", patch(rename))
            .path::<runs::RunPath>()
            .scope(Some(Scope::Run))
            .about(
                "Give a run another title",
                "A run or session, whether it has ended or not, also one of the history alone. `null` gives it the title \
                again that it had at its start.",
            )
            .body::<RenameRun>(true)
            .reply(StatusCode::NO_CONTENT, "The run has the title.", vec![])
            .problems(&[ProblemCode::RunNotFound, ProblemCode::RunIdAmbiguous]),
        Operation::new(Method::GET, "/v1/runs/{id}/spec", "getRunSpec", get(spec))
            .path::<runs::RunPath>()
            .scope(Some(Scope::Run))
            .about(
                "Show the spec of a run",
                "The body with which a run or session was started, as it is kept. What may be secret is not in it, and \
                neither is what no client may choose; both are named in `withheld`.",
            )
            .json::<KeptSpec>(StatusCode::OK, "The spec.")
            .problems(&[
                ProblemCode::RunNotFound,
                ProblemCode::RunIdAmbiguous,
                ProblemCode::Unsupported,
            ]),
    ]
}

/// Another title of a run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RenameRun {
    /// The title, of at most 200 characters; `null` for the first one.
    #[serde(deserialize_with = "required")]
    #[schemars(schema_with = "title_schema")]
    title: Option<String>,
}

/// Pattern of a character that is seen: no white space, no control character and none that changes the order of others.
const VISIBLE: &str =
    r"[^\s\u0000-\u001F\u007F-\u009F\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]";

/// Returns the schema of a title that may be `null`, but not absent.
fn title_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["string", "null"],
        "minLength": 1,
        "maxLength": 200,
        "pattern": VISIBLE
    })
}

/// Reads a field that may be `null`, but not absent.
fn required<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)
}

async fn rename(State(shared): App, Path(id): Path<String>, body: Json<RenameRun>) -> Answer {
    let title = body.value.title;
    let title = title.as_deref().map(check_title).transpose();
    let title = title.map_err(ServiceError::from)?;
    let id = match shared.find(&id).await {
        Ok(run) => run.run_id,
        // An attached run has no log.
        Err(problem) if problem.0.code == ProblemCode::RunNotFound => {
            match shared.machine.history_of(&id).await {
                Ok(record) => record.run_id,
                // As a fleet, which has no history beside its runs.
                Err(error) if error.code == Some(ProblemCode::Unsupported) => return Err(problem),
                Err(error) => return Err(error.into()),
            }
        }
        Err(problem) => return Err(problem),
    };
    shared.runs.rename(&id, title).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

async fn spec(State(shared): App, Path(id): Path<String>) -> Answer {
    let run = shared.find(&id).await?;
    let kept = shared.runs.spec(&run.run_id).await?;
    json(StatusCode::OK, &kept.for_strangers())
}
