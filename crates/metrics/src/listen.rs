//! A listener of its own, for a program without a server.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// The number of connections at once. Further ones wait.
const CONNECTIONS: usize = 16;
/// Time within which a client must send a request.
const HEAD_LIMIT: Duration = Duration::from_secs(10);
/// Time within which a client must send its request and read the response.
const LIMIT: Duration = Duration::from_secs(30);
/// Pause after an error of the listener, such as of too many open files.
const PAUSE: Duration = Duration::from_millis(200);

/// Serves figures at `/metrics`, without a token, until the future is dropped. `text` makes them for each request.
pub async fn serve<F>(listener: TcpListener, text: impl Fn() -> F + Send + Sync + 'static)
where
    F: Future<Output = String> + Send + 'static,
{
    let text = Arc::new(text);
    let permits = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        // It is never closed.
        let Ok(permit) = permits.clone().acquire_owned().await else {
            return;
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else {
            sleep(PAUSE).await;
            continue;
        };
        let text = text.clone();
        connections.spawn(async move {
            let _permit = permit;
            let service = service_fn(|request| answer(request, &*text));
            let connection = http1::Builder::new()
                // An idle connection would keep its place.
                .keep_alive(false)
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_LIMIT)
                .serve_connection(TokioIo::new(stream), service);
            // Its errors are of the client or the network.
            let _ = timeout(LIMIT, connection).await;
        });
    }
}

async fn answer<F: Future<Output = String>>(
    request: Request<Incoming>,
    text: impl Fn() -> F,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, media, body) = if request.uri().path() != "/metrics" {
        (
            StatusCode::NOT_FOUND,
            "text/plain",
            "the figures are at /metrics\n".to_owned(),
        )
    } else if ![Method::GET, Method::HEAD].contains(request.method()) {
        (
            StatusCode::METHOD_NOT_ALLOWED,
            "text/plain",
            "only GET is supported\n".to_owned(),
        )
    } else {
        (StatusCode::OK, crate::CONTENT_TYPE, text().await)
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(media));
    Ok(response)
}
