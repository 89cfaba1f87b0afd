//! Authentication and authorization of requests.

use std::future::poll_fn;
use std::sync::Arc;

use async_stream::stream;
use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{Extensions, HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use futures_core::future::BoxFuture;
use teamster_api::ProblemCode;

use crate::keys::{Caller, OWNER};
use crate::slots::Slot;
use crate::state::Shared;
use crate::transport::Transport;
use crate::{ApiError, Scope};

/// Middleware that rejects requests whose token lacks the scope.
pub(crate) async fn authorize(
    State((shared, scope)): State<(Arc<Shared>, Scope)>,
    mut request: Request,
    next: Next,
) -> Response {
    match permitted(&shared, &request, scope) {
        Ok(caller) => {
            let key = caller.key.clone();
            request.extensions_mut().insert(caller);
            match key {
                // What changes something is not cut off.
                Some(key) if request.method() == Method::GET => {
                    let revoked = async move { shared.keys.revoked(&key).await };
                    until(Box::pin(revoked), next.run(request)).await
                }
                _ => next.run(request).await,
            }
        }
        Err(problem) => problem.into_response(),
    }
}

/// Returns the sender of a request, whose token has the scope.
pub(crate) fn permitted(
    shared: &Shared,
    request: &Request,
    scope: Scope,
) -> Result<Caller, ApiError> {
    let caller = caller(shared, request)?;
    keep_connection(request.extensions())?;
    if caller.may(scope) {
        return Ok(caller);
    }
    Err(ApiError::new(
        ProblemCode::InsufficientScope,
        format!("this needs a token with the scope `{}`", scope.name()),
    ))
}

/// Keeps the slot of a connection whose sender is known.
pub(crate) fn keep_connection(extensions: &Extensions) -> Result<(), ApiError> {
    match extensions.get::<Arc<Slot>>() {
        Some(slot) if !slot.keep() => Err(ApiError::new(
            ProblemCode::TooManyConnections,
            "all connections are in use: close one, or try later",
        )),
        _ => Ok(()),
    }
}

/// Ends a response, and its stream, once the caller's token is revoked.
async fn until(
    mut revoked: BoxFuture<'static, ()>,
    response: impl Future<Output = Response>,
) -> Response {
    let response = tokio::select! {
        biased;
        response = response => response,
        () = &mut revoked => {
            return unauthorized("this token was revoked").into_response();
        }
    };
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let (head, body) = response.into_parts();
    let mut data = body.into_data_stream();
    let stream = stream! {
        loop {
            let piece = tokio::select! {
                biased;
                () = &mut revoked => return,
                piece = poll_fn(|context| std::pin::Pin::new(&mut data).poll_next(context)) => piece,
            };
            match piece {
                Some(piece) => yield piece,
                None => return,
            }
        }
    };
    Response::from_parts(head, Body::from_stream(stream))
}

fn caller(shared: &Shared, request: &Request) -> Result<Caller, ApiError> {
    let transport = request.extensions().get::<Transport>();
    if let Some(user) = transport.and_then(|transport| transport.user()) {
        return Ok(Caller {
            name: user.to_owned(),
            scopes: vec![Scope::Admin],
            key: None,
        });
    }
    let cookie = cookie_name(transport);
    let headers = request.headers();
    let key = match (bearer(headers), login(headers, &cookie)) {
        (Some(secret), _) => shared.keys.by_secret(secret),
        (None, Some(login)) => shared.keys.by_login(login),
        (None, None) => {
            return Err(unauthorized(
                "send the header `Authorization: Bearer TOKEN`; `teamster serve` prints where its token is",
            ));
        }
    };
    match key {
        Ok(Some(key)) => Ok(Caller {
            name: match &*key.name {
                OWNER => "HTTP".to_owned(),
                name => format!("HTTP, token {name}"),
            },
            scopes: key.scopes.clone(),
            key: Some(key),
        }),
        Ok(None) => Err(unauthorized("this token is not valid, or was revoked")),
        Err(error) => Err(ApiError::new(ProblemCode::Internal, error.to_string())),
    }
}

pub(crate) fn unauthorized(detail: &str) -> ApiError {
    ApiError::new(ProblemCode::Unauthorized, detail)
}

/// Returns the name of the page's cookie. Browsers send cookies to all ports of a host, so the name contains the port.
pub(crate) fn cookie_name(transport: Option<&Transport>) -> String {
    match transport {
        Some(Transport::Tcp { port, .. }) => format!("teamster_{port}"),
        _ => "teamster".to_owned(),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn login<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(COOKIE).iter();
    let mut pairs = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(key, _)| *key == name).map(|(_, value)| value)
}
