//! Tests with servers that are shell scripts. The program's tests use the servers of the test kit.

use std::time::Duration;

use super::*;

const INITIALIZED: &str = r#"read -r _
echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"half","version":"1"}}}'
read -r _; read -r _
"#;
const ONE_TOOL: &str = r#"echo '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}}'
read -r _
"#;

fn server(script: &str) -> McpServer {
    let mut server = McpServer::stdio("s", "sh", ["-c", script]);
    if let McpTransport::Stdio { env, .. } = &mut server.transport {
        env.insert("TOKEN".to_owned(), "sk-secret".to_owned());
    }
    server
}

async fn failed(server: &McpServer, limit: Duration) -> FailedConnection {
    let options = ConnectOptions::default().limit(limit);
    let connected = Client::connect(server, &options).await;
    *connected.expect_err("it has failed")
}

const LIMIT: Duration = Duration::from_secs(20);

#[tokio::test]
async fn why_a_server_cannot_be_used_is_data() {
    let exits = failed(&server("echo \"dying of $TOKEN\" >&2; exit 3"), LIMIT).await;
    let ClientError::Ended { method, status } = exits.error else {
        panic!("{exits:?}");
    };
    assert_eq!(method, Method::Initialize);
    assert_eq!(status.and_then(|status| status.code()), Some(3));
    assert_eq!(exits.stderr, ["dying of …"]);

    let script = format!("echo 12; {INITIALIZED} exit 7");
    let half = failed(&server(&script), LIMIT).await;
    assert!(
        matches!(
            half.error,
            ClientError::Ended {
                method: Method::ListTools,
                status: Some(_)
            }
        ),
        "{half:?}"
    );
    assert_eq!(half.garbage.as_deref(), Some("12"));

    let refuses = r#"read -r _; echo '{"jsonrpc":"2.0","id":0,"error":{"code":-32000,"message":"no sk-secret"}}'; cat"#;
    let refused = ClientError::Refused {
        method: Method::Initialize,
        code: -32000,
        message: "no …".to_owned(),
    };
    assert_eq!(failed(&server(refuses), LIMIT).await.error, refused);

    let limit = Duration::from_millis(100);
    let mute = failed(&server("cat > /dev/null"), limit).await;
    let method = Method::Initialize;
    assert_eq!(mute.error, ClientError::TimedOut { method, limit });
}

#[tokio::test]
async fn a_failed_start_is_data() {
    let missing = McpServer::stdio("s", "no-such-server", [""; 0]);
    let missing = failed(&missing, LIMIT).await;
    assert!(
        matches!(missing.error, ClientError::NoProgram(_)),
        "{missing:?}"
    );

    let mut nowhere = server("cat");
    if let McpTransport::Stdio { cwd, .. } = &mut nowhere.transport {
        *cwd = Some("/nowhere".into());
    }
    let path = "/nowhere".into();
    let error = failed(&nowhere, LIMIT).await.error;
    assert_eq!(error, ClientError::NoDirectory { path });
}

// Made by hand: definitions that generators of servers get wrong, on two pages.
const MALFORMED_TOOLS: &str = r#"echo '{"jsonrpc":"2.0","id":1,"result":{"nextCursor":"2","tools":[
{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":"none"},{"name":"c"},
{"inputSchema":{"type":"object"}},{"name":"sk-secret","inputSchema":[]}]}}' | tr -d '\n'; echo
read -r _
echo '{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"d","description":"D","annotations":7,"inputSchema":{}}]}}'
cat > /dev/null
"#;

#[tokio::test]
async fn malformed_tool_leaves_the_others_usable() {
    let server = server(&format!("{INITIALIZED}{MALFORMED_TOOLS}"));
    let options = ConnectOptions::default().limit(LIMIT);
    let client = Client::connect(&server, &options).await.unwrap();
    let mut last = ServerTool::new("d");
    last.description = Some("D".to_owned());
    last.input_schema = serde_json::json!({});
    assert_eq!(client.tools(), [ServerTool::new("a"), last]);
    let left_out = "b (its `inputSchema` is not an object), c (it has no `inputSchema`), number 4 (it has no `name`), \
                    … (its `inputSchema` is not an object)";
    assert_eq!(client.left_out().as_deref(), Some(left_out));
    client.end().await;

    let report = crate::check(&server, options, None).await;
    assert_eq!(report.problem, None);
    assert_eq!(
        report.warnings,
        [format!("malformed tools are left out: {left_out}")]
    );
}

#[tokio::test]
async fn list_without_tools_is_malformed() {
    let script = format!(
        "{INITIALIZED}echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"tools\":7}}}}'; cat"
    );
    let method = Method::ListTools;
    assert_eq!(
        failed(&server(&script), LIMIT).await.error,
        ClientError::Malformed { method }
    );
}

#[tokio::test]
async fn a_server_that_ends_in_a_call_is_no_hang() {
    let script = format!("{INITIALIZED}{ONE_TOOL}");
    let options = ConnectOptions::default().limit(LIMIT);
    let client = Client::connect(&server(&script), &options).await.unwrap();
    let info = ("half".to_owned(), "1".to_owned());
    assert_eq!(client.server_info(), Some(info));
    assert_eq!(client.tools(), [ServerTool::new("a")]);
    assert_eq!(client.left_out(), None);
    let called = timeout(LIMIT, client.call("a", None)).await.unwrap();
    let ended = ClientError::Ended {
        method: Method::CallTool,
        status: None,
    };
    assert_eq!(called, Err(ended));
    client.end().await;
}
