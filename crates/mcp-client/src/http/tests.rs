//! Tests against the SDK's own server, and against handwritten responses that it never sends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, json};
use teamster_core::{McpServer, McpTransport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::{Client, ClientError, ConnectOptions, Method, Protocol, probe};

const LIMIT: Duration = Duration::from_secs(20);

/// A server with one tool, which returns its arguments.
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = Tool::new("echo", "Returns its arguments", Map::new());
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = json!(request.arguments).to_string();
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// Serves [`Echo`]. Returns its address, and the method and authorization of each request.
async fn serve(config: StreamableHttpServerConfig) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let requests = Arc::new(Mutex::new(Vec::new()));
    let service =
        StreamableHttpService::new(|| Ok(Echo), Arc::<LocalSessionManager>::default(), config);
    let log = Arc::clone(&requests);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = TowerToHyperService::new(service.clone());
            let log = Arc::clone(&log);
            let logged = service_fn(move |request: Request<Incoming>| {
                let token = request.headers().get("authorization");
                let token = token.and_then(|it| it.to_str().ok()).unwrap_or("none");
                let line = format!("{} {token}", request.method());
                log.lock().unwrap().push(line);
                service.call(request)
            });
            let stream = TokioIo::new(stream);
            tokio::spawn(http1::Builder::new().serve_connection(stream, logged));
        }
    });
    (url, requests)
}

/// Starts a server that answers each request with this response.
async fn answers(response: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 64 << 10];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(response.as_bytes()).await;
                if response.is_empty() {
                    std::future::pending::<()>().await;
                }
            });
        }
    });
    url
}

fn server(url: &str) -> McpServer {
    let mut server = McpServer::http("s", url);
    if let McpTransport::Http { headers, .. } = &mut server.transport {
        headers.insert("Authorization".to_owned(), "Bearer sk-secret".to_owned());
    }
    server
}

async fn failed(url: &str, options: ConnectOptions) -> ClientError {
    let probed = probe(&server(url), &options).await;
    probed.answer.expect_err("it has failed")
}

#[tokio::test]
async fn tools_are_listed_and_called_in_each_protocol() {
    for (is_stateful, protocol, version) in [
        (true, Protocol::Initialize, "2025-11-25"),
        (false, Protocol::Initialize, "2025-11-25"),
        (true, Protocol::Newest, "2026-07-28"),
    ] {
        let mut config = StreamableHttpServerConfig::default();
        config.legacy_session_mode = is_stateful;
        let (url, requests) = serve(config).await;
        let options = ConnectOptions::default().protocol(protocol).limit(LIMIT);
        let client = Client::connect(&server(&url), &options).await.unwrap();
        assert_eq!(client.protocol_version().as_deref(), Some(version));
        let names: Vec<_> = client.tools().iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["echo"]);
        let arguments = json!({"a": 1}).as_object().cloned();
        let result = client.call("echo", arguments).await.unwrap();
        assert_eq!(result.content[0]["text"], r#"{"a":1}"#);
        client.end().await;
        let requests = requests.lock().unwrap();
        assert!(requests.iter().all(|it| it.ends_with(" Bearer sk-secret")));
        // A session is deleted at its end.
        let deleted = requests.iter().any(|it| it.starts_with("DELETE"));
        let has_session = is_stateful && protocol == Protocol::Initialize;
        assert_eq!(deleted, has_session, "{requests:?}");
    }
}

#[tokio::test]
async fn why_an_address_cannot_be_used_is_data() {
    let options = || ConnectOptions::default().limit(LIMIT);
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let refused = failed(&format!("http://{address}/mcp"), options()).await;
    let ClientError::Unreachable { message } = refused else {
        panic!("{refused:?}");
    };
    assert!(message.starts_with("Connection refused"), "{message}");

    let url = answers(
        "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let error = failed(&url, options()).await;
    assert_eq!(error, ClientError::Unauthorized { status: 401 });

    let url = answers("HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\n\r\nno sk-secret").await;
    let error = failed(&url, options()).await;
    let ClientError::Http { method, message } = &error else {
        panic!("{error:?}");
    };
    assert_eq!(*method, Method::Initialize);
    assert_eq!(
        message,
        "unexpected server response: HTTP 404 Not Found: no …"
    );

    let limit = Duration::from_millis(100);
    let error = failed(&answers("").await, options().limit(limit)).await;
    let method = Method::Initialize;
    assert_eq!(error, ClientError::TimedOut { method, limit });

    let sse = McpServer::sse("s", &url);
    let probed = probe(&sse, &options()).await;
    assert_eq!(
        probed.answer.unwrap_err(),
        ClientError::UnsupportedTransport
    );
}

#[tokio::test]
async fn a_redirect_gets_no_header() {
    let (url, requests) = serve(StreamableHttpServerConfig::default()).await;
    let redirect =
        format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {url}\r\nContent-Length: 0\r\n\r\n");
    let error = failed(&answers(redirect.leak()).await, ConnectOptions::default()).await;
    assert!(matches!(error, ClientError::Http { .. }), "{error:?}");
    assert!(requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_header_that_cannot_be_sent_is_named() {
    for (name, value) in [("A", "line\nbreak"), ("Accept", "text/html"), ("ä", "x")] {
        let mut server = McpServer::http("s", "http://127.0.0.1:1/mcp");
        if let McpTransport::Http { headers, .. } = &mut server.transport {
            headers.insert(name.to_owned(), value.to_owned());
        }
        let probed = probe(&server, &ConnectOptions::default()).await;
        let ClientError::InvalidHeader { name: named } = probed.answer.unwrap_err() else {
            panic!("{name}");
        };
        assert_eq!(named.to_lowercase(), name.to_lowercase());
    }
}
