//! Starts one server, asks it what it is, and ends it.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, PaginatedRequestParams, Tool};
use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::{RoleClient, ServiceExt};
use teamster::process::find_program;
use teamster::{McpServer, McpTransport};
use teamster_core::Secrets;
use teamster_core::sync::lock;
use teamster_core::time::millis;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::{params, words};

/// How long a server may take to end after the end of its input, and again after SIGTERM.
const GRACE: Duration = Duration::from_millis(1500);
/// How long the rest of what it wrote may take to arrive once it has ended.
const DRAIN: Duration = Duration::from_millis(300);
/// A line that is longer is no message.
const LONGEST_LINE: u64 = 16 * 1024 * 1024;
/// How much of the end of stderr is kept, and how many lines of it are told.
const STDERR_BYTES: usize = 16 * 1024;
const STDERR_LINES: usize = 5;
/// A server that lists more tools than this does not come to an end.
const MOST_TOOLS: usize = 10_000;
/// The same for texts of the server's in a message.
const LONGEST_TEXT: usize = 300;

/// What a server says of itself.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Name and version.
    pub(super) server: Option<(String, String)>,
    pub(super) tools: Vec<Tool>,
}

impl Answer {
    /// The same without what `hide` takes out of its texts.
    fn hidden(mut self, hide: impl Fn(&str) -> String) -> Self {
        self.server = self
            .server
            .map(|(name, version)| (hide(&name), hide(&version)));
        for tool in &mut self.tools {
            tool.name = hide(&tool.name).into();
            tool.description = tool.description.take().map(|it| hide(&it).into());
        }
        self
    }
}

/// How it went.
#[derive(Debug)]
pub(super) struct Probed {
    /// What it said, or what is wrong.
    pub(super) answer: Result<Answer, String>,
    /// The first line on stdout that was no message.
    pub(super) garbage: Option<String>,
    /// The last lines on stderr, if it failed.
    pub(super) stderr: Vec<String>,
}

impl From<String> for Probed {
    fn from(problem: String) -> Self {
        Self {
            answer: Err(problem),
            garbage: None,
            stderr: Vec::new(),
        }
    }
}

/// Tries a stdio server. When this returns, nothing of its process group is left; when it is dropped
/// before, nothing either. `mark` is an environment variable that its processes shall carry.
pub(super) async fn probe(server: &McpServer, limit: Duration, mark: (&str, &str)) -> Probed {
    let McpTransport::Stdio {
        command,
        args,
        env,
        cwd,
    } = &server.transport
    else {
        return "it is no program".to_owned().into();
    };
    let (mut child, group) = match start(command, args, env, cwd.as_deref(), mark) {
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
    // What is no message is sorted out before the client sees it: that tells nobody of it.
    let (messages, to_client) = tokio::io::duplex(64 * 1024);
    let reading = tokio::spawn(sort_out(stdout, to_client, Arc::clone(&garbage)));

    let mut phase = Phase::Initialize;
    let talked = timeout(limit, talk(messages, stdin, &mut phase)).await;
    // By now its stdin is closed, which is the order to end.
    let status = end(&mut child, &group, talked.is_ok()).await;
    let _ = timeout(DRAIN, &mut stderr).await;
    stderr.abort();
    reading.abort();

    let answer = match talked {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(Wrong::Said(what))) => Err(what),
        Ok(Err(Wrong::Closed)) => Err(closed(phase, status)),
        Err(_) => Err(format!(
            "it did not answer `{}` within {}",
            phase.method(),
            words::duration_ms(millis(limit))
        )),
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
        answer: answer
            .map(|answer| answer.hidden(hide))
            .map_err(|what| hide(&what)),
        garbage: lock(&garbage).take().map(|line: String| hide(&line)),
        stderr: stderr.iter().map(|line| hide(line)).collect(),
    }
}

fn start(
    command: &str,
    args: &[String],
    env: &BTreeMap<String, String>,
    cwd: Option<&Path>,
    mark: (&str, &str),
) -> Result<(Child, Group), String> {
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
    command
        .args(args)
        .env_remove(params::STORE_VARIABLE)
        .env(mark.0, mark.1)
        .envs(env)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if let Some(cwd) = cwd {
        if !cwd.is_dir() {
            return Err(format!("cwd: there is no directory {}", cwd.display()));
        }
        command.current_dir(cwd);
    }
    // A group of its own, so that it can be ended with what it started.
    command.process_group(0);
    let child = command
        .spawn()
        .map_err(|error| format!("it cannot be started: {error}"))?;
    let group = Group(child.id().and_then(|pid| i32::try_from(pid).ok()));
    Ok((child, group))
}

/// A process group, which is killed when this is dropped.
struct Group(Option<i32>);

impl Group {
    fn send(&self, signal: Signal) {
        if let Some(id) = self.0 {
            // As long as anything is left of the group its id is its own. Gone already is no error.
            let _ = killpg(Pid::from_raw(id), signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.send(Signal::SIGKILL);
    }
}

/// Ends a server whose input has ended; how it ended by itself. One that did not answer in time is not
/// waited for.
async fn end(child: &mut Child, group: &Group, answered: bool) -> Option<ExitStatus> {
    if answered && let Ok(Ok(status)) = timeout(GRACE, child.wait()).await {
        group.send(Signal::SIGKILL);
        return Some(status);
    }
    group.send(Signal::SIGTERM);
    let _ = timeout(GRACE, child.wait()).await;
    group.send(Signal::SIGKILL);
    // It is gone at once, unless it hangs in the kernel.
    let _ = timeout(GRACE, child.wait()).await;
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
) -> Result<Answer, Wrong> {
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
    Ok(Answer {
        server,
        tools: tools?,
    })
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
pub(super) fn text(text: &str) -> String {
    teamster_core::excerpt(&words::one_line(text), LONGEST_TEXT)
}
