//! `/v1/login`: exchanges the page's token for a cookie.

use axum::Extension;
use axum::extract::State;
use axum::http::header::{ORIGIN, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::routing::{delete, post};
use schemars::JsonSchema;
use serde::Deserialize;
use teamster_api::ProblemCode;

use super::{Answer, App, empty};
use crate::ApiError;
use crate::auth::{cookie_name, unauthorized};
use crate::extract::{Json, Query};
use crate::operation::Operation;
use crate::transport::Transport;

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
            .reply(StatusCode::NO_CONTENT, "The cookie is set.", vec![])
            .with_header("Set-Cookie", "The cookie.")
            .problems(&[ProblemCode::Unauthorized]),
        Operation::new(Method::DELETE, "/v1/login", "logout", delete(logout))
            .scope(None)
            .about("Remove the cookie", "")
            .query::<LogoutQuery>()
            .reply(StatusCode::NO_CONTENT, "The cookie is removed.", vec![])
            .with_header("Set-Cookie", "The cookie, without a value and a lifetime."),
    ]
}

/// A token.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Login {
    /// The token.
    token: String,
    /// The path of the page, if a proxy serves it below one: the cookie is sent to no other path. Default: `/`.
    #[serde(default)]
    #[schemars(regex(pattern = "^/[A-Za-z0-9._~/%-]*$"))]
    path: Option<String>,
}

/// Options for removing the cookie.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogoutQuery {
    /// The `path` of the login.
    #[schemars(regex(pattern = "^/[A-Za-z0-9._~/%-]*$"))]
    path: Option<String>,
}

async fn login(
    State(shared): App,
    Extension(transport): Extension<Transport>,
    headers: HeaderMap,
    body: Json<Login>,
) -> Answer {
    let login = shared.keys.login(body.value.token.trim());
    let login = login.map_err(|error| ApiError::new(ProblemCode::Internal, error.to_string()))?;
    let Some((login, valid)) = login else {
        return Err(unauthorized("this token is not valid, or was revoked"));
    };
    let path = body.value.path.as_deref();
    set_cookie(transport, &headers, &login, path, valid.as_secs())
}

async fn logout(
    Extension(transport): Extension<Transport>,
    Query(query): Query<LogoutQuery>,
    headers: HeaderMap,
) -> Answer {
    set_cookie(transport, &headers, "", query.path.as_deref(), 0)
}

fn set_cookie(
    transport: Transport,
    headers: &HeaderMap,
    value: &str,
    path: Option<&str>,
    seconds: u64,
) -> Answer {
    let path = path.unwrap_or("/");
    let fits = |c: char| c.is_ascii_alphanumeric() || "._~/%-".contains(c);
    if !path.starts_with('/') || !path.chars().all(fits) {
        let problem = "expected the path of an address, such as `/teamster/`";
        return Err(ApiError::refused("path", problem));
    }
    // An https origin means that a TLS proxy is in front.
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let secure = match origin {
        Some(origin) if origin.starts_with("https://") => "; Secure",
        _ => "",
    };
    let name = cookie_name(Some(&transport));
    let cookie = format!(
        "{name}={value}; HttpOnly; SameSite=Strict; Path={path}; Max-Age={seconds}{secure}"
    );
    let cookie = HeaderValue::try_from(cookie)
        .map_err(|error| ApiError::new(ProblemCode::Internal, error.to_string()))?;
    let mut response = empty(StatusCode::NO_CONTENT);
    response.headers_mut().insert(SET_COOKIE, cookie);
    Ok(response)
}
