//! Routes for those who look after the server: the state of its fleet, and figures.

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use teamster_api::FleetStatus;

use super::{Answer, App, empty, json};
use crate::operation::Operation;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(Method::GET, "/v1/fleet", "getFleet", get(fleet))
            .about(
                "Get the state of the fleet",
                "The workers that are present, the pools in which runs wait, and limits because of which agents take no \
                runs. The runs of the fleet are listed as others are.",
            )
            .json::<FleetStatus>(StatusCode::OK, "The fleet.")
            .reply(
                StatusCode::NO_CONTENT,
                "The server's own machine carries out the runs.",
                Vec::new(),
            ),
        Operation::new(Method::GET, "/metrics", "getMetrics", get(metrics))
            .about(
                "Get figures for Prometheus",
                "Runs by state, tokens, cost, requests, and the queues of a fleet. Counting begins with the first request.",
            )
            .reply(
                StatusCode::OK,
                "The figures, in the text format of Prometheus.",
                vec![("text/plain", |_| schemars::json_schema!({"type": "string"}))],
            ),
    ]
}

async fn fleet(State(shared): App) -> Answer {
    match shared.machine.fleet().await? {
        Some(status) => json(StatusCode::OK, &status),
        None => Ok(empty(StatusCode::NO_CONTENT)),
    }
}

async fn metrics(State(shared): App) -> Answer {
    let media = HeaderValue::from_static(teamster_metrics::CONTENT_TYPE);
    Ok(([(CONTENT_TYPE, media)], shared.figures.text().await).into_response())
}
