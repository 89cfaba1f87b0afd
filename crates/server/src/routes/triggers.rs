//! `/v1/triggers`: runs that requests of other programs start.

use axum::extract::{FromRequest, Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::routing::post;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use teamster_api::ProblemCode;

use super::runs::{at_path, key, start_once};
use super::{Answer, App, empty, json};
use crate::auth::{keep_connection, permitted, unauthorized};
use crate::extract::{Json, Path};
use crate::operation::{Header, Operation};
use crate::triggers::{NAME_PATTERN, Sender};
use crate::{ApiError, Scope};

/// The header with the id of a delivery by GitHub.
const GITHUB_DELIVERY: &str = "x-github-delivery";

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(
            Method::POST,
            "/v1/triggers/{name}",
            "fireTrigger",
            post(fire),
        )
        .path::<TriggerPath>()
        .scope(Some(Scope::Trigger))
        .with_own_authorization()
        .about(
            "Start the run of a trigger",
            "The server's configuration has the run; values of the body and of headers can be in its prompt only. A \
            trigger with a `sender` takes its signature or secret in place of a token.",
        )
        .headers(const {
            &[Header {
                name: "Idempotency-Key",
                description: "The id of the delivery: repeating it starts nothing. GitHub's `X-GitHub-Delivery` counts \
                    as one.",
                pattern: r"^[!-~]([\t -~]*[!-~])?$",
                max_length: super::runs::LONGEST_KEY,
            }]
        })
        .body::<Map<String, Value>>(true)
        .json::<Triggered>(StatusCode::CREATED, "The run.")
        .with_header("Location", "The path of the run.")
        .json::<Triggered>(StatusCode::OK, "The run that an earlier delivery has started.")
        .with_header("Location", "The path of the run.")
        .reply(
            StatusCode::NO_CONTENT,
            "The request does not meet the trigger's conditions: nothing was started.",
            vec![],
        )
        .problems(&[
            ProblemCode::NotFound,
            ProblemCode::IdempotencyKeyReused,
            ProblemCode::SessionInUse,
        ]),
    ]
}

/// The name of a trigger.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it only describes the parameter")]
struct TriggerPath {
    #[schemars(regex(pattern = NAME_PATTERN))]
    name: String,
}

/// The run of a trigger.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Triggered {
    /// The id of the run.
    run_id: String,
}

async fn fire(State(shared): App, Path(name): Path<String>, request: Request) -> Answer {
    let config = &shared.config;
    let trigger = config.triggers.find(&name, config.on_warning);
    let headers = request.headers().clone();
    let extensions = request.extensions().clone();
    let sender = (trigger.as_ref()).map_or(&Sender::Token, |trigger| &trigger.sender);
    if let Sender::Token = sender {
        permitted(&shared, &request, Scope::Trigger)?;
    }
    let Some(trigger) = &trigger else {
        let detail = format!("no trigger {name:?} is in the configuration of the server");
        return Err(ApiError::new(ProblemCode::NotFound, detail));
    };
    let body = match sender {
        Sender::Token => Json::<Map<String, Value>>::from_request(request, &shared).await?,
        // What is not signed is not read as JSON.
        _ => {
            let body = Json::signed(request, |bytes| sender.has_sent(&headers, bytes));
            let body = body.await?.ok_or_else(|| {
                unauthorized("this trigger needs the signature or the secret of its sender")
            })?;
            keep_connection(&extensions)?;
            body
        }
    };
    let values: Map<String, Value> = body.value;
    let run = trigger
        .run(&headers, &Value::Object(values))
        .map_err(|problem| {
            ApiError::new(ProblemCode::InvalidParams, format!("{name}: {problem}"))
        })?;
    let Some(run) = run else {
        return Ok(empty(StatusCode::NO_CONTENT));
    };
    let key = delivery(&headers)?.map(|key| format!("trigger {name} {key}"));
    let started = start_once(&shared, key, &body.bytes, run).await?;
    let run_id = started.run.id().to_owned();
    let answer = json(
        started.status,
        &Triggered {
            run_id: run_id.clone(),
        },
    )?;
    Ok(at_path("runs", &run_id, answer))
}

/// Returns the id of a delivery.
fn delivery(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    if let Some(key) = key(headers)? {
        return Ok(Some(key));
    }
    let delivery = headers.get(GITHUB_DELIVERY);
    Ok(delivery.and_then(|value| Some(value.to_str().ok()?.to_owned())))
}
