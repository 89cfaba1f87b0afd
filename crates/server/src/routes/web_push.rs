//! Routes for the notifications of browsers.

use axum::Extension;
use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::routing::{delete, get, post};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use teamster_api::ProblemCode;

use super::{Answer, App, empty, json};
use crate::ApiError;
use crate::extract::{Json, Path};
use crate::keys::Caller;
use crate::operation::Operation;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(Method::GET, "/v1/web-push", "getWebPush", get(web_push))
            .about(
                "Get what a browser needs to subscribe to notifications",
                "A browser that has subscribed is notified of each request that waits, and of the end of each run.",
            )
            .json::<WebPush>(StatusCode::OK, "The server's key.")
            .reply(
                StatusCode::NO_CONTENT,
                "The server notifies no browsers: it was started without `--web-push`.",
                Vec::new(),
            ),
        Operation::new(
            Method::POST,
            "/v1/web-push/subscriptions",
            "subscribeToWebPush",
            post(subscribe),
        )
            .about(
                "Subscribe a browser",
                "The subscription is valid as long as its token. Another one of the same browser takes its place, and each \
                token has at most 16 of them.",
            )
            .body::<WebPushSubscription>(true)
            .json::<SubscribedBrowser>(StatusCode::CREATED, "The browser is notified from now on.")
            .problems(&[ProblemCode::Unsupported]),
        Operation::new(
            Method::DELETE,
            "/v1/web-push/subscriptions/{id}",
            "unsubscribeFromWebPush",
            delete(unsubscribe),
        )
            .about("Unsubscribe a browser", "")
            .reply(
                StatusCode::NO_CONTENT,
                "There is no subscription with this id any more.",
                Vec::new(),
            ),
    ]
}

/// What a browser needs to subscribe.
#[derive(Serialize, JsonSchema)]
struct WebPush {
    /// The server's public key (VAPID, RFC 8292), as URL-safe Base64: the `applicationServerKey` of the Push API.
    key: String,
}

/// A browser's subscription, as in the `PushSubscription` of the Push API.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebPushSubscription {
    /// The address at the browser's push service.
    #[schemars(length(max = 2048), regex(pattern = "^https://"))]
    endpoint: String,
    /// The browser's keys.
    keys: WebPushKeys,
}

/// The keys for which messages are encrypted (RFC 8291), as URL-safe Base64.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WebPushKeys {
    /// The public key.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{87}=?$"))]
    p256dh: String,
    /// The authentication secret.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{22}(==)?$"))]
    auth: String,
}

/// A subscription that was stored.
#[derive(Serialize, JsonSchema)]
struct SubscribedBrowser {
    /// The id, to unsubscribe.
    id: String,
}

async fn web_push(State(shared): App) -> Answer {
    match &shared.web_push {
        Some(web_push) => json(
            StatusCode::OK,
            &WebPush {
                key: web_push.key()?,
            },
        ),
        None => Ok(empty(StatusCode::NO_CONTENT)),
    }
}

async fn subscribe(
    State(shared): App,
    Extension(caller): Extension<Caller>,
    body: Json<WebPushSubscription>,
) -> Answer {
    let Some(web_push) = &shared.web_push else {
        let detail = "this server notifies no browsers: start it with `teamster serve --web-push`";
        return Err(ApiError::new(ProblemCode::Unsupported, detail));
    };
    let WebPushSubscription { endpoint, keys } = body.value;
    let id = web_push.subscribe(endpoint, &keys.p256dh, &keys.auth, caller.key);
    let id = id.await?;
    shared.callbacks.begin_to_notify();
    json(StatusCode::CREATED, &SubscribedBrowser { id })
}

async fn unsubscribe(State(shared): App, Path(id): Path<String>) -> Answer {
    if let Some(web_push) = &shared.web_push {
        web_push.unsubscribe(&id)?;
    }
    Ok(empty(StatusCode::NO_CONTENT))
}
