//! `/v1/login`: exchanges the page's token for a cookie.

use axum::Extension;
use axum::extract::State;
use axum::http::header::{ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::routing::{delete, post};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Answer, App, empty};
use crate::auth::{cookie_name, unauthorized};
use crate::extract::Json;
use crate::listen::Transport;
use crate::operation::Operation;
use crate::{Problem, ProblemCode};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(Method::POST, "/v1/login", "login", post(login))
            .scope(None)
            .about(
                "Exchange a token for a cookie",
                "For web pages: scripts cannot read the cookie, only this origin sends it, and it is valid for 30 days \
                or until the token is revoked.",
            )
            .body::<Login>(true)
            .reply(StatusCode::NO_CONTENT, "`Set-Cookie` has the cookie.", vec![])
            .problems(&[ProblemCode::Unauthorized]),
        Operation::new(Method::DELETE, "/v1/login", "logout", delete(logout))
            .scope(None)
            .about("Remove the cookie", "")
            .reply(StatusCode::NO_CONTENT, "`Set-Cookie` removes the cookie.", vec![]),
    ]
}

/// A token.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Login {
    /// The token.
    token: String,
}

async fn login(
    State(shared): App,
    Extension(transport): Extension<Transport>,
    headers: HeaderMap,
    body: Json<Login>,
) -> Answer {
    let login = shared.keys.login(body.value.token.trim());
    let login = login.map_err(|error| Problem::new(ProblemCode::Internal, error.to_string()))?;
    let Some((login, valid)) = login else {
        return Err(unauthorized("this token is not valid, or was revoked"));
    };
    set_cookie(transport, &headers, &login, valid.as_secs())
}

async fn logout(Extension(transport): Extension<Transport>, headers: HeaderMap) -> Answer {
    set_cookie(transport, &headers, "", 0)
}

fn set_cookie(transport: Transport, headers: &HeaderMap, value: &str, seconds: u64) -> Answer {
    // An https origin means that a TLS proxy is in front.
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let secure = match origin {
        Some(origin) if origin.starts_with("https://") => "; Secure",
        _ => "",
    };
    let name = cookie_name(Some(&transport));
    let cookie =
        format!("{name}={value}; HttpOnly; SameSite=Strict; Path=/; Max-Age={seconds}{secure}");
    let cookie = HeaderValue::try_from(cookie)
        .map_err(|error| Problem::new(ProblemCode::Internal, error.to_string()))?;
    let mut response = empty(StatusCode::NO_CONTENT);
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}
