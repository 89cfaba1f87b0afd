//! `teamster mcp check`: starts MCP servers and lists their tools.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, anyhow};
use serde::Serialize;
use teamster::mcp_client::{ClientError, ConnectOptions, Method, Protocol, ServerTool, probe};
use teamster::{McpServer, McpTools, McpTransport};
use teamster_core::text::excerpt;
use teamster_core::time::millis;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::interval;

use super::Failure;
use super::list::reached_by;
use crate::mcp_servers::{ParsedServers, parse_servers};
use crate::mcp_servers::{own_variable, sources_or_default};
use teamster_host::Guard;

use super::args::McpCheckArgs;
use crate::args::STORE_VARIABLE;
use crate::runtime::tokio_runtime;
use crate::signals::Source;
use crate::{exit_code, words};

/// The maximum length of a server's text in a line, in bytes.
const LONGEST_TEXT: usize = 300;
/// The interval of progress reports.
const PATIENCE: Duration = Duration::from_secs(5);

/// The output of `--json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    servers: Vec<Checked>,
    /// Settings without effect.
    ignored: Vec<String>,
}

/// The result of checking a server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Checked {
    name: String,
    transport: &'static str,
    state: State,
    /// The protocol version.
    #[serde(skip_serializing_if = "Option::is_none")]
    protocol: Option<String>,
    /// The name that the server reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    server_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    tools: Vec<Tool>,
    /// Problems that are not failures.
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    /// The last lines of the server's stderr, if it failed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stderr: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    Failed,
    /// Its transport, HTTP with server-sent events, is not supported.
    NotContacted,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tool {
    name: String,
    /// The first line of the tool's description.
    description: String,
    /// True if the configuration offers the tool to agents.
    offered: bool,
}

pub(super) fn main(args: &McpCheckArgs) -> Result<u8, Failure> {
    let given = selected_servers(args).map_err(Failure::Usage)?;
    let warnings = given.ignored;
    if !args.json {
        crate::report::warn(&warnings);
    }
    let guard = Guard::start(crate::global::host(), None);
    teamster_host::adopt_orphans();
    let code = tokio_runtime().map_err(Failure::Other).and_then(|runtime| {
        let code = runtime.block_on(check(args, given.servers, warnings));
        // A task that hangs must not delay the exit.
        runtime.shutdown_timeout(Duration::from_secs(2));
        code
    });
    teamster_host::end_orphans(guard.as_ref().map(Guard::pid));
    code
}

/// Returns the servers to check.
fn selected_servers(args: &McpCheckArgs) -> anyhow::Result<ParsedServers> {
    let sources = sources_or_default(&args.servers)?;
    let mut given = parse_servers(&sources, &own_variable)?;
    for name in &args.names {
        if !given.servers.iter().any(|it| it.name == *name) {
            let names: Vec<_> = given.servers.iter().map(|it| &*it.name).collect();
            return Err(anyhow!(
                "no MCP server `{name}`; configured: {}",
                names.join(", ")
            ));
        }
    }
    if !args.names.is_empty() {
        given.servers.retain(|it| args.names.contains(&it.name));
    }
    Ok(given)
}

/// Checks all servers concurrently and prints the results in order.
async fn check(
    args: &McpCheckArgs,
    servers: Vec<McpServer>,
    ignored: Vec<String>,
) -> Result<u8, Failure> {
    let mut signals = Source::new()
        .context("cannot listen for signals")
        .map_err(Failure::Other)?;
    let mut done: Vec<Option<Checked>> = servers.iter().map(|_| None).collect();
    let mut printed = 0;
    let mut tasks = JoinSet::new();
    let mut waits = Vec::new();
    for (index, server) in servers.into_iter().enumerate() {
        let timeout = args.timeout;
        let (waiting, method) = watch::channel(Method::Discover);
        waits.push((words::one_line(&server.name), method));
        tasks.spawn(async move { (index, checked(server, timeout, waiting).await) });
    }
    let start = Instant::now();
    let mut ticks = interval(PATIENCE);
    ticks.tick().await;
    if done.is_empty() && !args.json {
        let _ = writeln!(io::stdout(), "No MCP servers.");
    }
    let mut out = anstream::stdout();
    loop {
        let next = tokio::select! {
            biased;
            () = signals.next() => return Ok(exit_code::ABORTED),
            next = tasks.join_next() => next,
            _ = ticks.tick() => {
                if !args.json {
                    report_waits(&waits, &done, start.elapsed());
                }
                continue;
            }
        };
        let Some(next) = next else { break };
        let (index, checked) = next
            .context("a check was aborted")
            .map_err(Failure::Other)?;
        done[index] = Some(checked);
        while !args.json
            && let Some(Some(checked)) = done.get(printed)
        {
            if let Err(error) = print(checked, &mut out).and_then(|()| out.flush()) {
                return exit_code::of_printed(Err(error)).map_err(Failure::Other);
            }
            printed += 1;
        }
    }
    let report = Report {
        servers: done.into_iter().flatten().collect(),
        ignored,
    };
    if args.json {
        let text = serde_json::to_string_pretty(&report).map_err(io::Error::from);
        if let Err(error) = text.and_then(|text| writeln!(io::stdout(), "{text}")) {
            return exit_code::of_printed(Err(error)).map_err(Failure::Other);
        }
    }
    let failed = report.servers.iter().any(|it| it.state == State::Failed);
    Ok(if failed {
        exit_code::AGENT_ERROR
    } else {
        exit_code::SUCCESS
    })
}

/// Reports the servers that have not answered yet, each with its pending request.
fn report_waits(
    waits: &[(String, watch::Receiver<Method>)],
    done: &[Option<Checked>],
    elapsed: Duration,
) {
    let elapsed = words::duration_ms(millis(elapsed));
    for ((name, method), _) in waits.iter().zip(done).filter(|(_, done)| done.is_none()) {
        let method = *method.borrow();
        // Without stderr it cannot be shown.
        let _ = writeln!(
            anstream::stderr(),
            "{name}: waiting for the answer to `{method}`, {elapsed} so far"
        );
    }
}

/// Checks one server.
async fn checked(
    server: McpServer,
    timeout: Option<Duration>,
    waiting: watch::Sender<Method>,
) -> Checked {
    let mut checked = Checked {
        name: words::one_line(&server.name),
        transport: server.transport.as_str(),
        state: State::NotContacted,
        protocol: None,
        server_name: None,
        server_version: None,
        duration_ms: None,
        tools: Vec::new(),
        warnings: Vec::new(),
        problem: None,
        stderr: Vec::new(),
    };
    if matches!(server.transport, McpTransport::Sse { .. }) {
        let what = format!(
            "{} is not contacted: sse is not supported",
            reached_by(&server.transport)
        );
        checked.warnings.push(what);
        return checked;
    }
    let mut options = (ConnectOptions::default().env_remove(STORE_VARIABLE))
        .protocol(Protocol::Newest)
        .waiting(waiting);
    if let Some(limit) = timeout.or(server.startup_timeout) {
        options.limit = limit;
    }
    let start = Instant::now();
    let probed = probe(&server, &options).await;
    checked.duration_ms = Some(millis(start.elapsed()));
    if let Some(line) = probed.garbage {
        let what = format!("it prints lines on stdout that are not MCP messages, such as: {line}");
        checked.warnings.push(what);
    }
    checked.stderr = probed.stderr;
    match probed.answer {
        Err(problem) => {
            checked.state = State::Failed;
            checked.problem = Some(match problem {
                ClientError::TimedOut { method, limit } => format!(
                    "it did not answer `{method}` within {}",
                    words::duration_ms(millis(limit))
                ),
                other => other.to_string(),
            });
        }
        Ok(answer) => {
            checked.state = State::Ok;
            checked.protocol = answer.protocol.map(|it| text(&it));
            let (name, version) = answer.server.unzip();
            checked.server_name = name.map(|it| text(&it));
            checked.server_version = version.map(|it| text(&it));
            checked
                .warnings
                .extend(unknown_tools(&server.tools, &answer.tools));
            let tools = answer.tools.iter();
            checked.tools = tools.map(|tool| describe(tool, &server.tools)).collect();
        }
    }
    checked
}

fn describe(tool: &ServerTool, filter: &McpTools) -> Tool {
    let description = tool.description.as_deref().unwrap_or_default();
    let first = description.lines().map(text).find(|it| !it.is_empty());
    Tool {
        name: text(&tool.name),
        description: first.unwrap_or_default(),
        offered: is_offered(&tool.name, filter),
    }
}

/// Shortens a server's text to one line of at most [`LONGEST_TEXT`] bytes.
fn text(text: &str) -> String {
    excerpt(&words::one_line(text), LONGEST_TEXT)
}

fn is_offered(tool: &str, filter: &McpTools) -> bool {
    let is = |it: &String| it == tool;
    filter.only.as_ref().is_none_or(|only| only.iter().any(is)) && !filter.except.iter().any(is)
}

/// Returns a warning about names in the filter that are not tools of the server.
fn unknown_tools(filter: &McpTools, tools: &[ServerTool]) -> Option<String> {
    let named = filter.only.iter().flatten().chain(&filter.except);
    let missing: Vec<_> = named
        .filter(|name| !tools.iter().any(|tool| tool.name == **name))
        .map(|name| words::one_line(name))
        .collect();
    (!missing.is_empty()).then(|| format!("it has no tool {}", missing.join(", ")))
}

fn print(checked: &Checked, out: &mut impl Write) -> io::Result<()> {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    let colour = |colour: AnsiColor| Style::new().fg_color(Some(colour.into()));
    let warn = colour(AnsiColor::Yellow);
    let (mark, style) = match checked.state {
        State::Ok => ("✓", colour(AnsiColor::Green)),
        State::Failed => ("✗", colour(AnsiColor::Red)),
        State::NotContacted => ("-", warn),
    };
    write!(out, "{style}{mark}{style:#} {bold}{}{bold:#}", checked.name)?;
    if let Some(name) = &checked.server_name {
        let version = checked.server_version.as_deref().unwrap_or_default();
        write!(out, "  {}", format!("{name} {version}").trim_end())?;
    }
    if checked.state == State::Ok {
        let tools = u64::try_from(checked.tools.len()).unwrap_or(u64::MAX);
        write!(out, "  {}", words::plural(tools, "tool"))?;
    }
    if let Some(took) = checked.duration_ms {
        write!(out, "  {dim}{}{dim:#}", words::duration_ms(took))?;
    }
    writeln!(out)?;
    if let Some(problem) = &checked.problem {
        writeln!(out, "    {problem}")?;
    }
    for line in &checked.stderr {
        writeln!(out, "    {dim}stderr{dim:#}  {line}")?;
    }
    let width = checked
        .tools
        .iter()
        .map(|it| console::measure_text_width(&it.name));
    let width = width.max().unwrap_or_default();
    for tool in &checked.tools {
        let pad = " ".repeat(width - console::measure_text_width(&tool.name));
        let line = format!("{}{pad}  {dim}{}{dim:#}", tool.name, tool.description);
        if tool.offered {
            writeln!(out, "    {}", line.trim_end())?;
        } else {
            writeln!(out, "    {line} {warn}(left out){warn:#}")?;
        }
    }
    for warning in &checked.warnings {
        writeln!(out, "    {warn}warning{warn:#}  {warning}")?;
    }
    Ok(())
}
