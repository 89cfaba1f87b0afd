//! `teamster mcp check`: starts MCP servers and lists their tools.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use anstyle::{AnsiColor, Style};
use anyhow::{Context, anyhow};
use serde::Serialize;
use teamster::McpServer;
use teamster::mcp::source::{Merged, merge};
use teamster::mcp_client::{self, ConnectOptions, Method, Protocol};
use teamster::mcp_client::{ServerReport, ServerState};
use teamster_core::time::millis;
use teamster_host::Guard;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::interval;

use super::args::McpCheckArgs;
use crate::args::STORE_VARIABLE;
use crate::mcp_servers::{own_variable, sources_or_default};
use crate::report::note;
use crate::runtime::tokio_runtime;
use crate::signals::Source;
use crate::{exit_code, words};

/// The interval of progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(5);

/// The output of `--json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    servers: Vec<ServerReport>,
    /// Settings without effect.
    ignored: Vec<String>,
}

pub(super) fn main(args: &McpCheckArgs) -> anyhow::Result<u8> {
    let given = selected_servers(args).map_err(exit_code::misuse)?;
    let warnings = given.ignored;
    if !args.json {
        crate::report::warn(&warnings);
    }
    let guard = Guard::start(crate::global::host(), None);
    teamster_host::adopt_orphans();
    let code = tokio_runtime().and_then(|runtime| {
        let code = runtime.block_on(check(args, given.servers, warnings));
        // A task that hangs must not delay the exit.
        runtime.shutdown_timeout(Duration::from_secs(2));
        code
    });
    teamster_host::end_orphans(guard.as_ref().map(Guard::pid));
    code
}

fn selected_servers(args: &McpCheckArgs) -> anyhow::Result<Merged> {
    let sources = sources_or_default(&args.servers)?;
    let mut given = merge(&sources, &own_variable)?;
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
) -> anyhow::Result<u8> {
    let mut signals = Source::new().context("cannot listen for signals")?;
    let mut done: Vec<Option<ServerReport>> = servers.iter().map(|_| None).collect();
    let mut printed = 0;
    let mut tasks = JoinSet::new();
    let mut waits = Vec::new();
    for (index, server) in servers.into_iter().enumerate() {
        let timeout = args.timeout;
        let (waiting, method) = watch::channel(Method::Discover);
        waits.push((words::one_line(&server.name), method));
        let options = (ConnectOptions::default().env_remove(STORE_VARIABLE))
            .protocol(Protocol::Newest)
            .waiting(waiting);
        tasks.spawn(async move { (index, mcp_client::check(&server, options, timeout).await) });
    }
    let start = Instant::now();
    let mut ticks = interval(PROGRESS_INTERVAL);
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
        let (index, checked) = next.context("a check was aborted")?;
        done[index] = Some(checked);
        while !args.json
            && let Some(Some(checked)) = done.get(printed)
        {
            if let Err(error) = print(checked, &mut out).and_then(|()| out.flush()) {
                return exit_code::of_printed(Err(error));
            }
            printed += 1;
        }
    }
    let report = Report {
        servers: done.into_iter().flatten().collect(),
        ignored,
    };
    let printed = if args.json {
        exit_code::of_json(&report)
    } else {
        Ok(exit_code::SUCCESS)
    };
    let is_failed = |it: &ServerReport| it.state == ServerState::Failed;
    let problem = report
        .servers
        .iter()
        .any(is_failed)
        .then_some(exit_code::AGENT_ERROR);
    exit_code::of_findings(printed, problem)
}

/// Reports the servers that have not answered yet, each with its pending request.
fn report_waits(
    waits: &[(String, watch::Receiver<Method>)],
    done: &[Option<ServerReport>],
    elapsed: Duration,
) {
    let elapsed = words::duration_ms(millis(elapsed));
    for ((name, method), _) in waits.iter().zip(done).filter(|(_, done)| done.is_none()) {
        let method = *method.borrow();
        note(&format!(
            "{name}: waiting for the answer to `{method}`, {elapsed} so far"
        ));
    }
}

fn print(checked: &ServerReport, out: &mut impl Write) -> io::Result<()> {
    let (bold, dim) = (Style::new().bold(), Style::new().dimmed());
    let warn = AnsiColor::Yellow.on_default();
    let (mark, style) = match checked.state {
        ServerState::Ok => ("✓", AnsiColor::Green.on_default()),
        ServerState::Failed => ("✗", AnsiColor::Red.on_default()),
        _ => ("-", warn),
    };
    write!(out, "{style}{mark}{style:#} {bold}{}{bold:#}", checked.name)?;
    if let Some(name) = &checked.server_name {
        let version = checked.server_version.as_deref().unwrap_or_default();
        write!(out, "  {}", format!("{name} {version}").trim_end())?;
    }
    if checked.state == ServerState::Ok {
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
