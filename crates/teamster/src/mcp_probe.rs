//! Tries an MCP server: starts it, asks it what it is, and ends it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use derive_setters::Setters;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams, Tool};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::{RoleClient, ServiceExt};
use teamster_core::provider::Secrets;
use teamster_core::sync::lock;
use teamster_core::text::{excerpt, one_line};
use teamster_core::{McpServer, McpTransport};
use teamster_process::{ProcessGroup, find_program};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long a server may take to end after the end of its input, and again after SIGTERM.
const GRACE: Duration = Duration::from_millis(1500);
/// How long the rest of what it wrote may take to arrive once it has ended.
const DRAIN: Duration = Duration::from_millis(300);
/// A line that is longer is no message.
const LONGEST_LINE: u64 = 16 * 1024 * 1024;
/// How much of the end of stderr is kept, and how many lines of it are shown.
const STDERR_BYTES: usize = 16 * 1024;
const STDERR_LINES: usize = 5;
/// A server that lists more tools than this does not come to an end.
const MOST_TOOLS: usize = 10_000;
/// The same for texts of the server's in a message.
const LONGEST_TEXT: usize = 300;

/// How a server is tried.
#[derive(Debug, Clone, Setters)]
#[non_exhaustive]
pub struct ProbeOptions {
    /// How long it may take to answer all. 30 s.
    pub limit: Duration,
    /// Variables that its processes get beside those of the server.
    #[setters(skip)]
    pub env: Vec<(String, String)>,
    /// Variables of ours that it does not get.
    #[setters(skip)]
    pub env_remove: Vec<String>,
}

impl ProbeOptions {
    /// Adds a variable that its processes get beside those of the server.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Adds a variable of ours that it does not get.
    #[must_use]
    pub fn env_remove(mut self, name: impl Into<String>) -> Self {
        self.env_remove.push(name.into());
        self
    }
}

impl Default for ProbeOptions {
    fn default() -> Self {
        Self {
            limit: Duration::from_secs(30),
            env: Vec::new(),
            env_remove: Vec::new(),
        }
    }
}

/// What a server says of itself. No text in it holds a secret of the server's.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ProbeAnswer {
    /// Its name and version, if it says them.
    pub server: Option<(String, String)>,
    /// Its tools.
    pub tools: Vec<ProbedTool>,
}

impl ProbeAnswer {
    /// The answer of a server that says no name.
    pub fn new(tools: Vec<ProbedTool>) -> Self {
        Self {
            server: None,
            tools,
        }
    }
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProbedTool {
    /// Its name, without the server's.
    pub name: String,
    /// What it is for, if that is said.
    pub description: Option<String>,
}

impl ProbedTool {
    /// A tool of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: None,
        }
    }
}

/// Why a server cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProbeError {
    /// It did not answer in time.
    TimedOut {
        /// What it was asked: `initialize` or `tools/list`.
        method: &'static str,
        /// The limit that was over.
        limit: Duration,
    },
    /// Anything else, in a sentence.
    Other(String),
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut { method, limit } => {
                write!(f, "it did not answer `{method}` within {limit:?}")
            }
            Self::Other(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for ProbeError {}

impl From<String> for ProbeError {
    fn from(what: String) -> Self {
        Self::Other(what)
    }
}

/// How it went.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Probed {
    /// What it said, or what is wrong.
    pub answer: Result<ProbeAnswer, ProbeError>,
    /// The first line on stdout that was no message.
    pub garbage: Option<String>,
    /// The last lines on stderr, if it failed.
    pub stderr: Vec<String>,
}

impl From<String> for Probed {
    fn from(problem: String) -> Self {
        Self {
            answer: Err(problem.into()),
            garbage: None,
            stderr: Vec::new(),
        }
    }
}

/// Starts a stdio server, asks it who it is and which tools it has, and ends it. A server that is reached by
/// HTTP is not contacted: that is an error here.
///
/// When this returns, nothing of its process group is left; when it is dropped before, nothing either.
///
/// ```no_run
/// use teamster::McpServer;
/// use teamster::mcp_probe::{ProbeOptions, probe};
///
/// # async fn example() -> Result<(), teamster::mcp_probe::ProbeError> {
/// let server = McpServer::stdio("tracker", "tracker-mcp", ["--read-only"]);
/// let probed = probe(&server, &ProbeOptions::default()).await;
/// for tool in probed.answer?.tools {
///     println!("{}", tool.name);
/// }
/// # Ok(())
/// # }
/// ```
pub async fn probe(server: &McpServer, options: &ProbeOptions) -> Probed {
    let McpTransport::Stdio {
        command,
        args,
        env,
        cwd,
    } = &server.transport
    else {
        return "it is no program".to_owned().into();
    };
    let (mut child, group) = match start(command, args, env, cwd.as_deref(), options) {
        Ok(started) => started,
        Err(problem) => return problem.into(),
    };
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return "its pipes are not there".to_owned().into();
    };
    let said = Arc::new(Mutex::new(Vec::new()));
    let mut stderr = tokio::spawn(keep_end(stderr, Arc::clone(&said)));
    let garbage = Arc::new(Mutex::new(None));
    // Lines that are no message are filtered before the client, which would drop them silently.
    let (messages, to_client) = tokio::io::duplex(64 * 1024);
    let reading = tokio::spawn(sort_out(stdout, to_client, Arc::clone(&garbage)));

    let mut phase = Phase::Initialize;
    let talked = timeout(options.limit, talk(messages, stdin, &mut phase)).await;
    // By now its stdin is closed, which is the order to end.
    let status = end(&mut child, &group, talked.is_ok()).await;
    let _ = timeout(DRAIN, &mut stderr).await;
    stderr.abort();
    reading.abort();

    let answer = match talked {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(Wrong::Said(what))) => Err(what.into()),
        Ok(Err(Wrong::Closed)) => Err(closed(phase, status).into()),
        Err(_) => Err(ProbeError::TimedOut {
            method: phase.method(),
            limit: options.limit,
        }),
    };
    // A server may print its own secrets.
    let secrets = Secrets::of([server]);
    let hide = |text: &str| secrets.hide(text.to_owned());
    let stderr = if answer.is_err() {
        last_lines(&lock(&said))
    } else {
        Vec::new()
    };
    Probed {
        answer: match answer {
            Ok(answer) => Ok(hidden(answer, hide)),
            Err(ProbeError::Other(what)) => Err(hide(&what).into()),
            Err(error) => Err(error),
        },
        garbage: lock(&garbage).take().map(|line: String| hide(&line)),
        stderr: stderr.iter().map(|line| hide(line)).collect(),
    }
}

/// The same without what `hide` takes out of its texts.
fn hidden(mut answer: ProbeAnswer, hide: impl Fn(&str) -> String) -> ProbeAnswer {
    answer.server = (answer.server).map(|(name, version)| (hide(&name), hide(&version)));
    for tool in &mut answer.tools {
        tool.name = hide(&tool.name);
        tool.description = tool.description.as_deref().map(&hide);
    }
    answer
}

fn start(
    command: &str,
    args: &[String],
    env: &BTreeMap<String, String>,
    cwd: Option<&Path>,
    options: &ProbeOptions,
) -> Result<(Child, ProcessGroup), String> {
    let named = match cwd {
        // Such a path is meant from where the server works.
        Some(cwd) if command.contains('/') => cwd.join(command),
        _ => command.into(),
    };
    let path = env
        .get("PATH")
        .map(Into::into)
        .or_else(|| env::var_os("PATH"));
    let path: Option<&OsStr> = path.as_deref();
    let program = find_program(&named.to_string_lossy(), path).map_err(|error| error.message)?;
    let mut command = Command::new(program);
    for name in &options.env_remove {
        command.env_remove(name);
    }
    command
        .args(args)
        .envs(options.env.iter().map(|(name, value)| (name, value)))
        .envs(env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(cwd) = cwd {
        if !cwd.is_dir() {
            return Err(format!("cwd: there is no directory {}", cwd.display()));
        }
        command.current_dir(cwd);
    }
    ProcessGroup::spawn(&mut command).map_err(|error| format!("it cannot be started: {error}"))
}

/// Ends a server whose input has ended; how it ended by itself. One that did not answer in time is not
/// waited for.
async fn end(child: &mut Child, group: &ProcessGroup, answered: bool) -> Option<ExitStatus> {
    if answered && let Ok(Ok(status)) = timeout(GRACE, child.wait()).await {
        group.kill();
        return Some(status);
    }
    group.end(child, GRACE).await;
    None
}

#[derive(Clone, Copy)]
enum Phase {
    Initialize,
    Tools,
}

impl Phase {
    fn method(self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::Tools => "tools/list",
        }
    }
}

enum Wrong {
    /// The connection ended.
    Closed,
    Said(String),
}

/// Speaks with it. Its stdin is closed when this returns or is dropped.
async fn talk(
    messages: DuplexStream,
    stdin: tokio::process::ChildStdin,
    phase: &mut Phase,
) -> Result<ProbeAnswer, Wrong> {
    let us = Implementation::new("teamster", env!("CARGO_PKG_VERSION"));
    let client = ClientConfig::new(ClientCapabilities::default(), us);
    let mut client = client
        .serve((messages, stdin))
        .await
        .map_err(|error| match error {
            ClientInitializeError::ConnectionClosed(_)
            | ClientInitializeError::TransportError { .. } => Wrong::Closed,
            ClientInitializeError::JsonRpcError(error) => refused("initialize", &error),
            _ => Wrong::Said("its answer to `initialize` is not one".to_owned()),
        })?;
    *phase = Phase::Tools;
    let about = client.peer_info();
    let server = about.and_then(|info| {
        let server = info.server_info.clone()?;
        Some((server.name, server.version))
    });
    let has_tools = client
        .peer_info()
        .is_some_and(|info| info.capabilities.tools.is_some());
    let tools = if has_tools {
        tools(&client).await
    } else {
        Ok(Vec::new())
    };
    let _ = client.close().await;
    let tools = tools?.into_iter().map(|tool| ProbedTool {
        name: tool.name.into_owned(),
        description: tool.description.map(Cow::into_owned),
    });
    let tools = tools.collect();
    Ok(ProbeAnswer { server, tools })
}

async fn tools(client: &rmcp::service::Peer<RoleClient>) -> Result<Vec<Tool>, Wrong> {
    let mut tools = Vec::new();
    let mut cursor = None;
    loop {
        let page = PaginatedRequestParams::default().with_cursor(cursor.clone());
        let page = client
            .list_tools(Some(page))
            .await
            .map_err(|error| match error {
                ServiceError::McpError(error) => refused("tools/list", &error),
                ServiceError::TransportClosed | ServiceError::TransportSend(_) => Wrong::Closed,
                _ => Wrong::Said("its answer to `tools/list` is not one".to_owned()),
            })?;
        tools.extend(page.tools);
        if page.next_cursor.is_none() {
            return Ok(tools);
        }
        if tools.len() > MOST_TOOLS || page.next_cursor == cursor {
            return Err(Wrong::Said("its list of tools has no end".to_owned()));
        }
        cursor = page.next_cursor;
    }
}

fn refused(method: &str, error: &rmcp::ErrorData) -> Wrong {
    let (message, code) = (text(&error.message), error.code.0);
    Wrong::Said(format!(
        "it answered `{method}` with the error {code}: {message}"
    ))
}

fn closed(phase: Phase, status: Option<ExitStatus>) -> String {
    let method = phase.method();
    match status {
        Some(status) => format!("it ended before it answered `{method}` ({status})"),
        None => format!("it closed its output before it answered `{method}`"),
    }
}

/// Passes on the lines that can be messages and keeps the first one that cannot.
async fn sort_out(
    stdout: impl AsyncRead + Unpin,
    mut to_client: DuplexStream,
    garbage: Arc<Mutex<Option<String>>>,
) {
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
        if serde_json::from_slice::<serde::de::IgnoredAny>(&line).is_ok() {
            if to_client.write_all(&line).await.is_err() {
                return;
            }
        } else if !line.trim_ascii().is_empty() {
            lock(&garbage).get_or_insert_with(|| text(&String::from_utf8_lossy(&line)));
        }
    }
}

async fn keep_end(mut stderr: impl AsyncRead + Unpin, said: Arc<Mutex<Vec<u8>>>) {
    let mut piece = [0; 4096];
    while let Ok(bytes @ 1..) = stderr.read(&mut piece).await {
        let mut said = lock(&said);
        said.extend_from_slice(&piece[..bytes]);
        let too_much = said.len().saturating_sub(STDERR_BYTES);
        said.drain(..too_much);
    }
}

fn last_lines(said: &[u8]) -> Vec<String> {
    let said = String::from_utf8_lossy(said);
    let lines = said.lines().map(text).filter(|line| !line.is_empty());
    let lines: Vec<String> = lines.collect();
    lines[lines.len().saturating_sub(STDERR_LINES)..].to_vec()
}

/// A text of the server's in one line that is not too long.
fn text(text: &str) -> String {
    excerpt(&one_line(text), LONGEST_TEXT)
}
