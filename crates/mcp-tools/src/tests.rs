//! Tools by the SDK's macros, called by the workspace's client.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use teamster_core::{McpServer, McpTransport};
use teamster_mcp_client::{Client, ClientError, ConnectOptions, probe};
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::*;

/// A counter of this process.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicU32>);

#[derive(Deserialize, JsonSchema)]
struct Step {
    /// Number to add, at most 9.
    by: u32,
}

#[tool_router(server_handler)]
impl Counter {
    /// Adds to the counter and returns its value.
    #[tool]
    fn add(&self, Parameters(step): Parameters<Step>) -> Result<String, String> {
        if step.by > 9 {
            return Err(format!("{} is too much", step.by));
        }
        let before = self.0.fetch_add(step.by, Ordering::SeqCst);
        Ok((before + step.by).to_string())
    }
}

fn options() -> ConnectOptions {
    ConnectOptions::default().limit(Duration::from_secs(20))
}

#[tokio::test]
async fn agent_calls_a_function_of_this_process() {
    let counter = Counter::default();
    let tools = ToolServer::start("counter", counter.clone()).await.unwrap();
    let server = tools.server();
    assert_eq!(server.name, "counter");
    let client = Client::connect(&server, &options()).await.unwrap();
    let tool = &client.tools()[0];
    assert_eq!(tool.name, "add");
    let description = "Adds to the counter and returns its value.";
    assert_eq!(tool.description.as_deref(), Some(description));
    assert_eq!(tool.input_schema["required"], json!(["by"]));

    let by = |number: u32| json!({"by": number}).as_object().cloned();
    let result = client.call("add", by(3)).await.unwrap();
    assert_eq!(
        (&result.content[0]["text"], result.is_error),
        (&json!("3"), false)
    );
    let refused = client.call("add", by(10)).await.unwrap();
    assert_eq!(
        (&refused.content[0]["text"], refused.is_error),
        (&json!("10 is too much"), true)
    );
    client.end().await;
    assert_eq!(counter.0.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn request_without_the_token_is_refused() {
    let tools = ToolServer::start("counter", Counter::default())
        .await
        .unwrap();
    let McpTransport::Http { url, headers } = tools.server().transport else {
        panic!("not over HTTP");
    };
    let token = headers["Authorization"].clone();
    assert_eq!(token.len(), "Bearer ".len() + 64);
    let without = McpServer::http("counter", &url);
    let shorter = without.clone().header("Authorization", &token[..70]);
    for server in [without, shorter] {
        let probed = probe(&server, &options()).await;
        let error = probed.answer.unwrap_err();
        assert_eq!(error, ClientError::Unauthorized { status: 401 });
    }
}

#[tokio::test(start_paused = true)]
async fn connection_without_a_request_is_closed() {
    let tools = ToolServer::start("counter", Counter::default())
        .await
        .unwrap();
    let McpTransport::Http { url, .. } = tools.server().transport else {
        panic!("not over HTTP");
    };
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mut sent = Vec::new();
    let closed = timeout(HEAD_LIMIT * 2, stream.read_to_end(&mut sent)).await;
    assert!(closed.is_ok(), "it is still open");
}

#[tokio::test]
async fn dropped_server_takes_no_more_requests() {
    let tools = ToolServer::start("counter", Counter::default())
        .await
        .unwrap();
    let server = tools.server();
    drop(tools);
    // The listener is closed when its task ends.
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    loop {
        let answer = probe(&server, &options()).await.answer;
        if matches!(answer, Err(ClientError::Unreachable { .. })) {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "{answer:?}");
        tokio::task::yield_now().await;
    }
}
