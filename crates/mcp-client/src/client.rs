use std::collections::BTreeMap;
use std::error::Error;

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, ProtocolVersion,
};
use rmcp::service::RunningService;
use rmcp::transport::IntoTransport;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Map, Value};
use teamster_core::provider::Secrets;
use teamster_core::{McpServer, McpTransport};
use tokio::time::timeout;

use crate::error::{ClientError, Method};
use crate::http;
use crate::options::{ConnectOptions, Protocol};
use crate::output;
use crate::process::{EXIT_GRACE, Process};
use crate::tool_list::{ServerTool, ToolList, list_tools};

type Service = RunningService<RoleClient, ClientConfig>;

/// A connection to a server.
pub struct Client {
    service: Service,
    /// The process of the server, or `None` over HTTP.
    process: Option<Process>,
    secrets: Secrets,
    list: ToolList,
}

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CallResult {
    /// The content blocks, as in the protocol.
    pub content: Vec<Value>,
    /// The content as data, if the tool has an output schema.
    pub structured: Option<Value>,
    /// True if the tool failed.
    pub is_error: bool,
}

impl CallResult {
    /// Creates the result of a tool that succeeded.
    pub fn new(content: Vec<Value>) -> Self {
        Self {
            content,
            structured: None,
            is_error: false,
        }
    }
}

/// Error of connecting to a server. Its process, if it had one, has ended.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FailedConnection {
    /// The error.
    pub error: ClientError,
    /// The first line on stdout that was not a message.
    pub garbage: Option<String>,
    /// The last lines on stderr.
    pub stderr: Vec<String>,
}

impl From<ClientError> for FailedConnection {
    fn from(error: ClientError) -> Self {
        Self {
            error,
            garbage: None,
            stderr: Vec::new(),
        }
    }
}

// Omits the server's environment variables.
teamster_core::debug_fields!(Client { list });

impl Client {
    /// Starts a server, or connects to its address, and lists its tools.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be started or reached, if it does not answer within [`ConnectOptions::limit`], or if
    /// its transport is not supported.
    pub async fn connect(
        server: &McpServer,
        options: &ConnectOptions,
    ) -> Result<Self, Box<FailedConnection>> {
        let connected = match &server.transport {
            McpTransport::Stdio { .. } => return Self::start(server, options).await,
            McpTransport::Http { url, headers } => Self::open(server, url, headers, options).await,
            // `sse`.
            _ => Err(ClientError::UnsupportedTransport),
        };
        connected.map_err(|error| Box::new(error.into()))
    }

    /// Connects to a server on stdio.
    async fn start(
        server: &McpServer,
        options: &ConnectOptions,
    ) -> Result<Self, Box<FailedConnection>> {
        let secrets = Secrets::of([server]);
        let (mut process, messages, stdin) =
            Process::start(server, options).map_err(|error| Box::new(error.into()))?;
        let mut error = match begin((messages, stdin), options).await {
            Ok((service, list)) => {
                return Ok(Self {
                    service,
                    process: Some(process),
                    secrets,
                    list,
                });
            }
            Err(error) => error,
        };
        // Its stdin is closed now, which asks it to end. Do not wait for one that did not answer in time.
        let answered = !matches!(error, ClientError::TimedOut { .. });
        let ended = process.end(answered).await;
        if let ClientError::Ended { status, .. } = &mut error {
            *status = ended;
        }
        let hide = |text: &str| secrets.hide(text.to_owned());
        let stderr = process.output.last_lines().await;
        Err(Box::new(FailedConnection {
            error: error.hidden(hide),
            garbage: process.output.garbage().as_deref().map(hide),
            stderr: stderr.iter().map(|line| hide(line)).collect(),
        }))
    }

    /// Connects to a server at an address.
    async fn open(
        server: &McpServer,
        url: &str,
        headers: &BTreeMap<String, String>,
        options: &ConnectOptions,
    ) -> Result<Self, ClientError> {
        let secrets = Secrets::of([server]);
        let transport = http::transport(url, headers, options.limit)?;
        let (service, list) = (begin(transport, options).await)
            .map_err(|error| error.hidden(|text| secrets.hide(text.to_owned())))?;
        Ok(Self {
            service,
            process: None,
            secrets,
            list,
        })
    }

    /// Returns the name and version that the server reports, with its secrets hidden.
    pub fn server_info(&self) -> Option<(String, String)> {
        let info = self.service.peer_info()?;
        let server = info.server_info.clone()?;
        let hide = |text| self.secrets.hide(text);
        Some((hide(server.name), hide(server.version)))
    }

    /// Returns the protocol version that was agreed on.
    pub fn protocol_version(&self) -> Option<String> {
        let info = self.service.peer_info()?;
        Some(self.secrets.hide(info.protocol_version.to_string()))
    }

    /// Returns the tools in the server's order.
    pub fn tools(&self) -> &[ServerTool] {
        &self.list.tools
    }

    /// Returns the tools that were left out because their definition is malformed, each with the reason, in one line
    /// with the server's secrets hidden.
    pub fn left_out(&self) -> Option<String> {
        let left_out = &self.list.left_out;
        let line = || output::text(&self.secrets.hide(left_out.join(", ")));
        (!left_out.is_empty()).then(line)
    }

    /// Returns the first line on stdout that was not a message, with the server's secrets hidden.
    pub fn garbage(&self) -> Option<String> {
        let garbage = self.process.as_ref()?.output.garbage()?;
        Some(self.secrets.hide(garbage))
    }

    /// Calls a tool and waits for its answer without a time limit.
    ///
    /// # Errors
    ///
    /// Fails if the connection ends or the server refuses the request. A failing tool is not an error: see
    /// [`CallResult::is_error`].
    pub async fn call(
        &self,
        tool: &str,
        arguments: Option<Map<String, Value>>,
    ) -> Result<CallResult, ClientError> {
        let mut request = CallToolRequestParams::new(tool.to_owned());
        request.arguments = arguments;
        let result = self.service.call_tool(request).await.map_err(|error| {
            let error = ClientError::of(Method::CallTool, &error);
            error.hidden(|text| self.secrets.hide(text.to_owned()))
        })?;
        let content = result.content.iter();
        Ok(CallResult {
            content: content
                .filter_map(|block| serde_json::to_value(block).ok())
                .collect(),
            structured: result.structured_content,
            is_error: result.is_error.unwrap_or_default(),
        })
    }

    /// Ends the session, and a server on stdio: closes its stdin, then sends SIGTERM, then SIGKILL.
    pub async fn end(mut self) {
        // Closes the stdin of a process. An HTTP session is deleted by a request, which may hang.
        let _ = timeout(EXIT_GRACE, self.service.close()).await;
        if let Some(process) = &mut self.process {
            process.end(true).await;
        }
    }
}

/// Begins the session within the time limit. On failure the transport is closed, and with it the server's stdin.
async fn begin<E, A>(
    transport: impl IntoTransport<RoleClient, E, A>,
    options: &ConnectOptions,
) -> Result<(Service, ToolList), ClientError>
where
    E: Error + Send + Sync + 'static,
{
    let mut method = match options.protocol {
        Protocol::Initialize => Method::Initialize,
        Protocol::Newest => Method::Discover,
    };
    let limit = options.limit;
    let talked = timeout(limit, talk(transport, &mut method, options)).await;
    talked.unwrap_or(Err(ClientError::TimedOut { method, limit }))
}

/// Begins the session and lists the tools. `method` is set to the current request.
async fn talk<E, A>(
    transport: impl IntoTransport<RoleClient, E, A>,
    method: &mut Method,
    options: &ConnectOptions,
) -> Result<(Service, ToolList), ClientError>
where
    E: Error + Send + Sync + 'static,
{
    let us = Implementation::new("teamster", env!("CARGO_PKG_VERSION"));
    let client = ClientConfig::new(ClientCapabilities::default(), us);
    let lifecycle = match options.protocol {
        Protocol::Initialize => ClientLifecycleMode::Initialize,
        Protocol::Newest => ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::LATEST],
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
    };
    let waits_for = |method: Method| {
        if let Some(waiting) = &options.waiting {
            waiting.send_replace(method);
        }
    };
    waits_for(*method);
    let mut service = (client.serve_with_lifecycle(transport, lifecycle).await)
        .map_err(|error| ClientError::of_initialize(*method, error))?;
    *method = Method::ListTools;
    waits_for(*method);
    let about = service.peer_info();
    if about.is_none_or(|info| info.capabilities.tools.is_none()) {
        return Ok((service, ToolList::default()));
    }
    match list_tools(&service).await {
        Ok(list) => Ok((service, list)),
        Err(error) => {
            let _ = service.close().await;
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests;
