//! A handler of axum that streams a run to the browser as server-sent events. A client that disconnects stops its
//! run.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use async_stream::stream;
use axum::Router;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::response::sse::{Event, Sse};
use axum::routing::get;
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
async fn run(State(runtime): State<SharedRuntime>) -> impl IntoResponse {
    let params = ExecuteParams::new("What is this?").permission(PermissionMode::ReadOnly);
    let mut events = runtime.execute(params);
    // It is dropped if the client disconnects, which stops the run.
    Sse::new(stream! {
        while let Some(event) = events.next().await {
            yield Event::default().event(event.type_name()).json_data(&event);
        }
    })
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let app = Router::new().route("/run", get(run)).with_state(runtime());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    // A browser would use `EventSource`.
    let mut client = TcpStream::connect(address).await?;
    let request = format!("GET /run HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
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
