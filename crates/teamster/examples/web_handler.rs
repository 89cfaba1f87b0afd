//! A web handler that streams a run to the browser as server-sent events. A client that disconnects stops its
//! run.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::channel::Channel;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use teamster::{AgentRuntime, ExecuteParams, PermissionMode, SharedRuntime};
use teamster_testkit::mock_runtime::{MockRuntime, Script};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Stands in for `teamster::create_cli_runtime("claude", RuntimeConfig::default())?`.
fn runtime() -> SharedRuntime {
    let script = Script::new()
        .session("s-1")
        .text("It is")
        .text(" a library.")
        .completed();
    Arc::new(MockRuntime::new("claude").run(script).repeat_last())
}

/// Responds with the events of a run. In an application the prompt comes from the request.
fn handle(runtime: &SharedRuntime) -> Response<Channel<Bytes, Infallible>> {
    let params = ExecuteParams::new("What is this?").permission(PermissionMode::ReadOnly);
    let mut events = runtime.execute(params);
    let (mut sender, body) = Channel::new(16);
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            let name = event.type_name();
            let json = serde_json::to_string(&event).unwrap_or_default();
            let frame = format!("event: {name}\ndata: {json}\n\n");
            if sender.send_data(frame.into()).await.is_err() {
                // The client has disconnected: dropping the stream stops the run.
                return;
            }
        }
    });
    let mut response = Response::new(body);
    let kind = hyper::header::HeaderValue::from_static("text/event-stream");
    response
        .headers_mut()
        .insert(hyper::header::CONTENT_TYPE, kind);
    response
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let runtime = runtime();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let runtime = runtime.clone();
            let service = service_fn(move |_: Request<hyper::body::Incoming>| {
                let response = handle(&runtime);
                async move { Ok::<_, Infallible>(response) }
            });
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::spawn(connection);
        }
    });

    // A browser would use `EventSource`.
    let mut client = TcpStream::connect(address).await?;
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    client.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    client.read_to_string(&mut answer).await?;
    server.abort();
    println!("{answer}");
    for part in ["text/event-stream", "event: text", "It is", "event: done"] {
        assert!(answer.contains(part), "{part}");
    }
    Ok(())
}

#[cfg(test)]
#[test]
fn the_example_runs() {
    main().unwrap();
}
