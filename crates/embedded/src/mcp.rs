//! MCP servers of a run: programs that this process starts, and their tools.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::ServiceExt;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams,
};
use rmcp::service::RunningService;
use serde_json::{Map, Value};
use teamster_core::provider::{Secrets, mcp_content};
use teamster_core::sync::lock;
use teamster_core::text::{excerpt, one_line};
use teamster_core::{McpServer, McpServerStatus, McpTool, McpTransport};
use teamster_process::{EnvPolicy, ProcessGroup, find_program, run_mark};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::conversation::Input;
use crate::tools::{Output, ToolContext, shortened};
use crate::wire::ToolSpec;

/// How long a server may take to start, unless the caller says otherwise.
const STARTUP: Duration = Duration::from_secs(30);
/// How long a server may take to end after the end of its input, and again after SIGTERM.
const GRACE: Duration = Duration::from_millis(1500);
/// A line that is longer is no message.
const LONGEST_LINE: u64 = 16 << 20;
/// A server that lists more tools than this does not come to an end.
const MOST_TOOLS: usize = 2_000;
/// The longest name of a tool that all services take.
const LONGEST_NAME: usize = 64;
/// How much of the end of stderr is kept, in bytes.
const STDERR: usize = 4 << 10;

/// The servers of a run or session.
#[derive(Default)]
pub(crate) struct Servers {
    running: Vec<Server>,
    pub(crate) statuses: Vec<McpServerStatus>,
    pub(crate) tools: Vec<ServerTool>,
}

/// A tool of a server.
#[derive(Debug, Clone)]
pub(crate) struct ServerTool {
    pub(crate) spec: ToolSpec,
    pub(crate) mcp: McpTool,
    server: usize,
    timeout: Option<Duration>,
}

struct Server {
    client: RunningService<RoleClient, ClientConfig>,
    child: Child,
    group: ProcessGroup,
    secrets: Secrets,
}

impl Servers {
    /// Starts all servers, at the same time. What is wrong with one is a notice, and the run goes without it.
    pub(crate) async fn start(context: &ToolContext) -> (Self, Vec<String>) {
        let wanted = &context.params.mcp_servers;
        let started = wanted.iter().map(|server| {
            let (context, server) = (context.clone(), server.clone());
            tokio::spawn(async move { start(&context, &server).await })
        });
        let started: Vec<_> = started.collect();
        let (mut servers, mut notices) = (Self::default(), Vec::new());
        for (server, started) in wanted.iter().zip(started) {
            let started = started
                .await
                .unwrap_or_else(|_| Err("its task failed".to_owned()));
            let status = match started {
                Ok((running, tools)) => {
                    servers.add(server, running, tools);
                    "connected"
                }
                Err(problem) => {
                    let problem = Secrets::of([server]).hide(problem);
                    notices.push(format!(
                        "the MCP server {} cannot be used: {problem}",
                        server.name
                    ));
                    "failed"
                }
            };
            let status = McpServerStatus::new(server.name.clone(), status);
            servers.statuses.push(status);
        }
        (servers, notices)
    }

    fn add(&mut self, server: &McpServer, running: Server, tools: Vec<rmcp::model::Tool>) {
        let only = &server.tools.only;
        let is_wanted = |name: &str| {
            only.as_ref()
                .is_none_or(|only| only.iter().any(|it| it == name))
                && !server.tools.except.iter().any(|it| it == name)
        };
        for tool in tools {
            if !is_wanted(&tool.name) {
                continue;
            }
            let spec = ToolSpec {
                name: whole_name(&server.name, &tool.name),
                description: tool.description.map(Cow::into_owned).unwrap_or_default(),
                schema: Value::Object((*tool.input_schema).clone()),
            };
            self.tools.push(ServerTool {
                spec,
                mcp: McpTool::new(server.name.clone(), tool.name.into_owned()),
                server: self.running.len(),
                timeout: server.tool_timeout,
            });
        }
        self.running.push(running);
    }

    /// The tool of this name as the model knows it.
    pub(crate) fn tool(&self, name: &str) -> Option<&ServerTool> {
        self.tools.iter().find(|tool| tool.spec.name == name)
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, tool: &ServerTool, input: &Value) -> Output {
        let Some(server) = self.running.get(tool.server) else {
            return Output::error("its server is gone");
        };
        let mut request = CallToolRequestParams::new(tool.mcp.tool.clone());
        request.arguments = input.as_object().cloned();
        let limit = tool.timeout.unwrap_or(Duration::MAX);
        let answer = tokio::select! {
            answer = server.client.call_tool(request) => answer,
            () = crate::request::sleep(limit) => {
                let server = &tool.mcp.server;
                return Output::error(format!("the MCP server {server} did not answer within {limit:?}"));
            }
        };
        match answer {
            Ok(result) => output(&result),
            Err(error) => {
                let said = server.secrets.hide(one_line(&error.to_string()));
                Output::error(excerpt(&said, 2000))
            }
        }
    }

    /// Ends all servers: the end of their input, SIGTERM, SIGKILL.
    pub(crate) async fn end(&mut self) {
        let servers = std::mem::take(&mut self.running);
        let ends = servers.into_iter().map(|server| tokio::spawn(server.end()));
        for end in ends.collect::<Vec<_>>() {
            let _ = end.await;
        }
        self.tools.clear();
    }
}

impl Server {
    async fn end(mut self) {
        // Its stdin is closed with the client.
        let _ = self.client.close().await;
        if timeout(GRACE, self.child.wait()).await.is_ok() {
            self.group.kill();
        } else {
            self.group.end(&mut self.child, GRACE).await;
        }
    }
}

/// The name of a server's tool for the model.
fn whole_name(server: &str, tool: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || "_-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = format!("mcp__{server}__{tool}")
        .chars()
        .map(plain)
        .collect();
    name[..name.len().min(LONGEST_NAME)].to_owned()
}

fn output(result: &rmcp::model::CallToolResult) -> Output {
    let mut blocks: Vec<Value> = (result.content.iter())
        .filter_map(|block| serde_json::to_value(block).ok())
        .collect();
    if blocks.is_empty()
        && let Some(structured) = &result.structured_content
    {
        blocks.push(serde_json::json!({"type": "text", "text": structured.to_string()}));
    }
    let text = mcp_content(&blocks);
    let image = |block: &Value| {
        let field = |name: &str| block.get(name)?.as_str().map(str::to_owned);
        (field("type")? == "image").then_some(())?;
        Some(Input::Image {
            media_type: field("mimeType")?,
            data: field("data")?,
        })
    };
    let images: Vec<_> = blocks.iter().filter_map(image).collect();
    let for_model = (!images.is_empty()).then(|| {
        let text = Input::Text {
            text: shortened(&text),
        };
        std::iter::once(text).chain(images).collect()
    });
    Output {
        for_model,
        is_error: result.is_error.unwrap_or_default(),
        ..Output::text(text)
    }
}

async fn start(
    context: &ToolContext,
    server: &McpServer,
) -> Result<(Server, Vec<rmcp::model::Tool>), String> {
    let McpTransport::Stdio {
        command,
        args,
        env,
        cwd,
    } = &server.transport
    else {
        return Err("it is no program".to_owned());
    };
    let directory = match cwd {
        Some(cwd) => context.directory().join(cwd),
        None => context.directory(),
    };
    if !directory.is_dir() {
        return Err(format!(
            "cwd: there is no directory {}",
            directory.display()
        ));
    }
    let set = environment(context, env);
    let named = if command.contains('/') {
        directory.join(command).display().to_string()
    } else {
        command.clone()
    };
    let path = set.get("PATH").map(OsString::from);
    let program = find_program(&named, path.as_deref()).map_err(|error| error.message)?;
    let mut command = Command::new(program);
    command
        .args(args)
        .env_clear()
        .envs(&set)
        .current_dir(&directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let (mut child, group) = ProcessGroup::spawn(&mut command)
        .map_err(|error| format!("it cannot be started: {error}"))?;
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Err("its pipes are not there".to_owned());
    };
    let said = Arc::new(Mutex::new(Vec::new()));
    tokio::spawn(keep_end(stderr, said.clone()));
    let (messages, to_client) = tokio::io::duplex(64 << 10);
    tokio::spawn(messages_only(stdout, to_client));
    let us = Implementation::new("teamster", env!("CARGO_PKG_VERSION"));
    let client = ClientConfig::new(ClientCapabilities::default(), us);
    let limit = server.startup_timeout.unwrap_or(STARTUP);
    let connected = timeout(limit, async {
        let client = client
            .serve((messages, stdin))
            .await
            .map_err(|error| one_line(&error.to_string()))?;
        let tools = tools(&client).await?;
        Ok::<_, String>((client, tools))
    });
    let problem = match connected.await {
        Ok(Ok((client, tools))) => {
            let server = Server {
                client,
                child,
                group,
                secrets: Secrets::of([server]),
            };
            return Ok((server, tools));
        }
        Ok(Err(problem)) => problem,
        Err(_) => format!("it did not answer within {limit:?}"),
    };
    group.end(&mut child, GRACE).await;
    let said = one_line(&String::from_utf8_lossy(&lock(&said)));
    Err(if said.is_empty() {
        problem
    } else {
        format!("{problem}; it said on stderr: {}", excerpt(&said, 500))
    })
}

/// The environment of a server: that of commands, with its own variables.
fn environment(context: &ToolContext, own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let process = &context.config.process;
    let is_let_through = |name: &str| {
        let by_policy = match &process.env_policy {
            EnvPolicy::Clean { allow } => allow.iter().any(|it| it == name),
            _ => !process.env_remove.iter().any(|it| it == name),
        };
        by_policy && !context.hidden.contains(&name)
    };
    let ours = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let mut set: BTreeMap<_, _> = ours.filter(|(name, _)| is_let_through(name)).collect();
    let of_run = context.params.env.iter();
    let of_run = of_run.filter(|(name, _)| !context.hidden.contains(&name.as_str()));
    set.extend(of_run.map(|(name, value)| (name.clone(), value.clone())));
    set.extend(
        own.iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    let (name, value) = run_mark();
    set.insert(name.to_owned(), value);
    set
}

async fn tools(client: &rmcp::service::Peer<RoleClient>) -> Result<Vec<rmcp::model::Tool>, String> {
    let has_tools = client
        .peer_info()
        .is_some_and(|info| info.capabilities.tools.is_some());
    let mut tools = Vec::new();
    if !has_tools {
        return Ok(tools);
    }
    let mut cursor = None;
    loop {
        let page = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let page = client
            .list_tools(Some(page))
            .await
            .map_err(|error| one_line(&error.to_string()))?;
        tools.extend(page.tools);
        if page.next_cursor.is_none() {
            return Ok(tools);
        }
        if tools.len() > MOST_TOOLS || page.next_cursor == cursor {
            return Err("its list of tools has no end".to_owned());
        }
        cursor = page.next_cursor;
    }
}

/// Passes on the lines that can be messages.
async fn messages_only(stdout: impl AsyncRead + Unpin, mut to_client: DuplexStream) {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut stdout)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
            .await;
        if !read.is_ok_and(|bytes| bytes > 0) {
            return;
        }
        if serde_json::from_slice::<Map<String, Value>>(&line).is_ok()
            && to_client.write_all(&line).await.is_err()
        {
            return;
        }
    }
}

async fn keep_end(mut stderr: impl AsyncRead + Unpin, said: Arc<Mutex<Vec<u8>>>) {
    let mut piece = [0; 4096];
    while let Ok(bytes @ 1..) = stderr.read(&mut piece).await {
        let mut said = lock(&said);
        said.extend_from_slice(&piece[..bytes]);
        let too_much = said.len().saturating_sub(STDERR);
        said.drain(..too_much);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_such_that_every_service_takes_them() {
        assert_eq!(whole_name("tiny", "echo"), "mcp__tiny__echo");
        assert_eq!(whole_name("a", "x.y/z é"), "mcp__a__x_y_z__");
        assert_eq!(whole_name("a", &"t".repeat(99)).len(), LONGEST_NAME);
    }
}
