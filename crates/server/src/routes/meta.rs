//! Routes for the server itself, and for the agents of this machine and their usage.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::routing::get;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use teamster_api::usage::{LimitList, UsageQuery, UsageSummary};
use teamster_api::{ProblemCode, ProviderList};

use super::{Answer, App, json, openapi};
use crate::extract::Query;
use crate::guard;
use crate::operation::Operation;
use crate::transport::Transport;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(Method::GET, "/v1/providers", "listProviders", get(providers))
            .about(
                "List the agents of this machine",
                "For each agent: whether it can be used, its version, its login and its capabilities.",
            )
            .json::<ProviderList>(StatusCode::OK, "The agents."),
        Operation::new(Method::GET, "/v1/usage", "getUsage", get(usage))
            .about(
                "Get tokens and cost",
                "The usage of all agents of this machine, from their files and the history, as in `teamster usage \
                --json`.",
            )
            .query::<UsageQuery>()
            .json::<UsageSummary>(StatusCode::OK, "The usage.")
            .problems(&[ProblemCode::Unsupported]),
        Operation::new(Method::GET, "/v1/limits", "getLimits", get(limits))
            .about(
                "Get limits of subscriptions",
                "The used part of each limit, such as those of five hours and of a week, if the CLIs' files have it, \
                as in `teamster usage --limits --json`.",
            )
            .json::<LimitList>(StatusCode::OK, "The limits."),
        Operation::new(Method::GET, "/v1/client", "getClient", get(client))
            .about("Get where the client is", "What the server can know of it, such as for a page.")
            .json::<Client>(StatusCode::OK, "Where it is."),
        Operation::new(Method::GET, "/healthz", "getHealth", get(health))
            .scope(None)
            .about("Check whether the server is up", "")
            .json::<Health>(StatusCode::OK, "The server is up."),
        Operation::new(Method::GET, "/v1/openapi.json", "getOpenApi", get(document))
            .scope(None)
            .about("Get this document", "")
            .json::<Document>(StatusCode::OK, "An OpenAPI 3.1 document."),
    ]
}

/// An `OpenAPI` document.
#[derive(Serialize, JsonSchema)]
#[serde(transparent)]
struct Document(BTreeMap<String, Value>);

/// Location of a request's client.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Client {
    /// The client is on the server's machine, as far as the server can know: its connection is, and no proxy shows. A tunnel
    /// that ends on the server's machine, as of `ssh -L`, counts as that machine.
    is_on_machine: bool,
}

async fn client(
    Extension(transport): Extension<Transport>,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let is_on_machine = guard::is_near(transport, &uri, &headers);
    json(StatusCode::OK, &Client { is_on_machine })
}

/// The health of the server.
#[derive(Serialize, JsonSchema)]
struct Health {
    /// Always `ok`.
    status: &'static str,
}

async fn health() -> Answer {
    json(StatusCode::OK, &Health { status: "ok" })
}

async fn document() -> Answer {
    json(StatusCode::OK, &openapi())
}

async fn providers(State(shared): App) -> Answer {
    json(StatusCode::OK, &shared.machine.report().await?)
}

async fn limits(State(shared): App) -> Answer {
    json(StatusCode::OK, &shared.machine.limits().await?)
}

async fn usage(State(shared): App, Query(query): Query<UsageQuery>) -> Answer {
    json(StatusCode::OK, &shared.machine.usage(query).await?)
}
