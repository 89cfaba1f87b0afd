//! The routes of the API.
//!
//! Each module has a part of the table of operations. A test lists every operation with its scope
//! (`tests/it/scopes.rs`).

mod agents;
mod feed;
mod fleet;
mod history;
mod login;
mod meta;
mod requests;
mod results;
mod runs;
mod sessions;
mod settled;
mod title;
mod triggers;
mod uploads;
mod web_push;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use serde::Serialize;
use serde_json::Value;
use teamster_api::ProblemCode;

use crate::ApiError;
use crate::openapi::document_of;
use crate::operation::Operation;
use crate::state::Shared;

type App = axum::extract::State<Arc<Shared>>;
type Answer = Result<Response<Body>, ApiError>;

/// Returns all operations, in the order of the `OpenAPI` document.
pub(crate) fn operations() -> Vec<Operation> {
    let parts = [
        runs::operations(),
        sessions::operations(),
        results::operations(),
        settled::operations(),
        title::operations(),
        triggers::operations(),
        uploads::operations(),
        requests::operations(),
        feed::operations(),
        history::operations(),
        agents::operations(),
        fleet::operations(),
        meta::operations(),
        web_push::operations(),
        login::operations(),
    ];
    parts.into_iter().flatten().collect()
}

/// Returns the `OpenAPI` 3.1 document of the API.
pub fn openapi() -> Value {
    document_of(&operations())
}

/// Creates the router for all operations and the page.
pub(crate) fn router(shared: &Arc<Shared>) -> Router {
    let router = operations()
        .into_iter()
        .fold(Router::new(), |router, operation| {
            operation.mount(router, shared)
        });
    crate::page::mount(router).with_state(shared.clone())
}

/// Creates a JSON response.
fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(value)
        .map_err(|error| ApiError::new(ProblemCode::Internal, error.to_string()))?;
    Ok((status, [(CONTENT_TYPE, "application/json")], body).into_response())
}

/// Creates a response without a body.
fn empty(status: StatusCode) -> Response<Body> {
    status.into_response()
}
