use std::borrow::Cow;
use std::ffi::OsString;
use std::fmt;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation,
    PaginatedRequestParams, ProtocolVersion,
};
use rmcp::service::RunningService;
use rmcp::{ClientLifecycleMode, ClientServiceExt, RoleClient};
use serde_json::{Map, Value};
use teamster_core::provider::Secrets;
use teamster_core::{McpServer, McpTransport};
use teamster_process::{ProcessGroup, find_program, run_mark};
use tokio::io::DuplexStream;
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use crate::error::{ClientError, Method};
use crate::options::{ConnectOptions, Protocol};
use crate::output::Output;

/// How long a server may take to end after the end of its input, and again after SIGTERM.
const GRACE: Duration = Duration::from_millis(1500);
/// A server that lists more tools than this does not come to an end.
const MOST_TOOLS: usize = 10_000;

/// A running server.
pub struct Client {
    service: RunningService<RoleClient, ClientConfig>,
    process: Process,
    secrets: Secrets,
    tools: Vec<ServerTool>,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerTool {
    /// Its name, without the server's.
    pub name: String,
    /// Its description, if the server has one.
    pub description: Option<String>,
    /// The JSON Schema of its input.
    pub input_schema: Value,
}

impl ServerTool {
    /// A tool of this name, whose input is any object.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: None,
            input_schema: serde_json::json!({"type": "object"}),
        }
    }
}

impl From<rmcp::model::Tool> for ServerTool {
    fn from(tool: rmcp::model::Tool) -> Self {
        Self {
            name: tool.name.into_owned(),
            description: tool.description.map(Cow::into_owned),
            input_schema: Value::Object((*tool.input_schema).clone()),
        }
    }
}

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CallResult {
    /// The content blocks, as the protocol has them.
    pub content: Vec<Value>,
    /// The same as data, if the tool has an output schema.
    pub structured: Option<Value>,
    /// Whether the tool failed.
    pub is_error: bool,
}

impl CallResult {
    /// The content blocks of a tool that succeeded.
    pub fn new(content: Vec<Value>) -> Self {
        Self {
            content,
            structured: None,
            is_error: false,
        }
    }
}

/// A server that cannot be used. Its process is gone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FailedConnection {
    /// The error.
    pub error: ClientError,
    /// The first line on stdout that was no message.
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

/// Without the server's variables.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// Starts a server and asks it for its tools.
    pub async fn connect(
        server: &McpServer,
        options: &ConnectOptions,
    ) -> Result<Self, Box<FailedConnection>> {
        let secrets = Secrets::of([server]);
        let failed = |error| Box::new(FailedConnection::from(error));
        let (mut process, messages, stdin) = Process::start(server, options).map_err(failed)?;
        let mut method = match options.protocol {
            Protocol::Initialize => Method::Initialize,
            Protocol::Newest => Method::Discover,
        };
        let talking = talk(messages, stdin, &mut method, options);
        let talked = timeout(options.limit, talking).await;
        let mut error = match talked {
            Ok(Ok((service, tools))) => {
                return Ok(Self {
                    service,
                    process,
                    secrets,
                    tools,
                });
            }
            Ok(Err(error)) => error,
            Err(_) => ClientError::TimedOut {
                method,
                limit: options.limit,
            },
        };
        // By now its stdin is closed, which asks it to end. One that did not answer in time is not waited for.
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

    /// The name and version that the server gives itself, without its secrets.
    pub fn server_info(&self) -> Option<(String, String)> {
        let info = self.service.peer_info()?;
        let server = info.server_info.clone()?;
        let hide = |text| self.secrets.hide(text);
        Some((hide(server.name), hide(server.version)))
    }

    /// The version of the protocol that is spoken with it.
    pub fn protocol_version(&self) -> Option<String> {
        let info = self.service.peer_info()?;
        Some(self.secrets.hide(info.protocol_version.to_string()))
    }

    /// Its tools, as it lists them.
    pub fn tools(&self) -> &[ServerTool] {
        &self.tools
    }

    /// The first line on stdout that was no message, without the server's secrets.
    pub fn garbage(&self) -> Option<String> {
        let garbage = self.process.output.garbage()?;
        Some(self.secrets.hide(garbage))
    }

    /// Calls a tool, and waits for its answer as long as it takes.
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

    /// Ends the server: the end of its input, SIGTERM, SIGKILL.
    pub async fn end(mut self) {
        // Its stdin is closed with the service.
        let _ = self.service.close().await;
        self.process.end(true).await;
    }
}

struct Process {
    child: Child,
    group: ProcessGroup,
    output: Output,
}

impl Process {
    fn start(
        server: &McpServer,
        options: &ConnectOptions,
    ) -> Result<(Self, DuplexStream, ChildStdin), ClientError> {
        let McpTransport::Stdio {
            command,
            args,
            env,
            cwd,
        } = &server.transport
        else {
            return Err(ClientError::NotAProgram);
        };
        let directory = match (&options.directory, cwd) {
            (Some(directory), Some(cwd)) => Some(directory.join(cwd)),
            (directory, cwd) => directory.clone().or_else(|| cwd.clone()),
        };
        if let Some(path) = &directory
            && !path.is_dir()
        {
            return Err(ClientError::NoDirectory { path: path.clone() });
        }
        let named = match &directory {
            // Such a path is meant from where the server works.
            Some(directory) if command.contains('/') => directory.join(command),
            _ => command.into(),
        };
        let mut environment = options.environment.clone();
        let (name, mark) = run_mark();
        let own = env.iter().map(|(name, value)| (&**name, &**value));
        let own = own.chain([(name, &*mark)]);
        environment.extend(own.map(|(name, value)| (OsString::from(name), value.into())));
        let path = environment.get(&OsString::from("PATH"));
        let program = find_program(&named.to_string_lossy(), path.map(OsString::as_os_str))
            .map_err(|error| ClientError::NoProgram(Box::new(error)))?;
        let mut command = Command::new(program);
        command
            .args(args)
            .env_clear()
            .envs(&environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(directory) = directory {
            command.current_dir(directory);
        }
        let not_started = |error: std::io::Error| ClientError::NotStarted {
            kind: error.kind(),
            message: error.to_string(),
        };
        let (mut child, group) = ProcessGroup::spawn(&mut command).map_err(not_started)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(not_started(std::io::ErrorKind::BrokenPipe.into()));
        };
        let (output, messages) = Output::new(stdout, stderr);
        let process = Self {
            child,
            group,
            output,
        };
        Ok((process, messages, stdin))
    }

    /// Ends a server whose input has ended; how it ended by itself. It is only waited for if it `answered`.
    async fn end(&mut self, answered: bool) -> Option<ExitStatus> {
        if answered && let Ok(Ok(status)) = timeout(GRACE, self.child.wait()).await {
            self.group.kill();
            return Some(status);
        }
        self.group.end(&mut self.child, GRACE).await;
        None
    }
}

/// Begins the conversation; `method` is the request that is open. If it fails, or is dropped, the server's stdin
/// is closed.
async fn talk(
    messages: DuplexStream,
    stdin: ChildStdin,
    method: &mut Method,
    options: &ConnectOptions,
) -> Result<(RunningService<RoleClient, ClientConfig>, Vec<ServerTool>), ClientError> {
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
    let mut service = (client
        .serve_with_lifecycle((messages, stdin), lifecycle)
        .await)
        .map_err(|error| ClientError::of_initialize(*method, error))?;
    *method = Method::ListTools;
    waits_for(*method);
    let about = service.peer_info();
    if about.is_none_or(|info| info.capabilities.tools.is_none()) {
        return Ok((service, Vec::new()));
    }
    match tools(&service).await {
        Ok(tools) => Ok((service, tools)),
        Err(error) => {
            let _ = service.close().await;
            Err(error)
        }
    }
}

async fn tools(client: &rmcp::service::Peer<RoleClient>) -> Result<Vec<ServerTool>, ClientError> {
    let mut tools = Vec::new();
    let mut cursor = None;
    loop {
        let page = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let page = (client.list_tools(Some(page)).await)
            .map_err(|error| ClientError::of(Method::ListTools, &error))?;
        tools.extend(page.tools.into_iter().map(ServerTool::from));
        if page.next_cursor.is_none() {
            return Ok(tools);
        }
        if tools.len() > MOST_TOOLS || page.next_cursor == cursor {
            return Err(ClientError::EndlessTools);
        }
        cursor = page.next_cursor;
    }
}

#[cfg(test)]
mod tests;
