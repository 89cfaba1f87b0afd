//! `teamster doctor --try`, which checks whether a command is an ACP agent.

use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use serde_json::Value;
use teamster::RuntimeConfig;
use teamster::acp::AcpAgent;
use teamster::acp_probe::{AcpProbed, Verdict, probe};
use teamster_host::Guard;

use crate::args::STORE_VARIABLE;
use crate::runtime::tokio_runtime;
use crate::{exit_code, words};

/// Maximum number of stderr lines shown.
const STDERR_LINES: usize = 5;

/// Probes an agent, prints the result and returns the exit code.
pub(super) fn main(agent: &str, limit: Duration, json: bool) -> anyhow::Result<u8> {
    let guard = Guard::start(crate::global::host(), None);
    teamster_host::adopt_orphans();
    let mut config = RuntimeConfig::default();
    config.env_remove.push(STORE_VARIABLE.to_owned());
    config.die_with_parent = true;
    let probed = tokio_runtime()?.block_on(probe(agent, config, limit));
    teamster_host::end_orphans(guard.as_ref().map(Guard::pid));
    let probed = probed.map_err(exit_code::misuse)?;
    let printed = if json {
        exit_code::of_json(&probed)
    } else {
        exit_code::of_printed(print(&probed, &mut anstream::stdout()))
    };
    exit_code::of_findings(printed, Some(code_of(probed.verdict)))
}

fn code_of(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Ready => exit_code::SUCCESS,
        Verdict::NotStarted => exit_code::CLI_NOT_FOUND,
        Verdict::TimedOut => exit_code::TIMEOUT,
        _ => exit_code::AGENT_ERROR,
    }
}

fn print(probed: &AcpProbed, out: &mut impl Write) -> io::Result<()> {
    let bold = Style::new().bold();
    let dim = Style::new().dimmed();
    let [good, warn, bad] =
        [AnsiColor::Green, AnsiColor::Yellow, AnsiColor::Red].map(AnsiColor::on_default);
    let name = words::one_line(probed.name.as_deref().unwrap_or(&probed.agent));
    let version = words::one_line(probed.version.as_deref().unwrap_or_default());
    let (mark, style, state) = match probed.verdict {
        Verdict::Ready => ("✓", good, "works"),
        Verdict::LoginNeeded => ("!", warn, "needs a login"),
        Verdict::NoSession => ("✗", bad, "did not open a session"),
        Verdict::OtherVersion => ("✗", bad, "speaks an unsupported version of the protocol"),
        Verdict::TimedOut => ("✗", bad, "did not answer in time"),
        Verdict::NotStarted => ("✗", bad, "cannot be started"),
        _ => ("✗", bad, "is not an ACP agent"),
    };
    writeln!(
        out,
        "{style}{mark}{style:#} {bold}{}{bold:#}  {state} ({:.1} s)",
        format!("{name} {version}").trim(),
        Duration::from_millis(probed.duration_ms).as_secs_f64()
    )?;
    let mut row = |title: &str, text: &str| {
        let text = words::one_line(text);
        if text.is_empty() {
            return Ok(());
        }
        writeln!(out, "    {dim}{title:<9}{dim:#}{text}")
    };
    row("command", probed.agent.trim_start_matches(AcpAgent::PREFIX))?;
    row("problem", probed.problem.as_deref().unwrap_or_default())?;
    if !probed.capabilities.is_null() {
        let can = match &*abilities(&probed.capabilities) {
            [] => "text only".to_owned(),
            can => can.join(", "),
        };
        row("can", &can)?;
    }
    row("models", &first(&probed.models()))?;
    row("modes", &first(&probed.modes()))?;
    row("logins", &first(&probed.logins()))?;
    let stderr = probed.stderr.as_deref().unwrap_or_default();
    let lines: Vec<_> = stderr.lines().collect();
    for line in lines.iter().rev().take(STDERR_LINES).rev() {
        row("stderr", line)?;
    }
    row("next", &probed.next)
}

/// Returns what an agent can do besides text.
fn abilities(can: &Value) -> Vec<&'static str> {
    let session = &can["sessionCapabilities"];
    let mcp = &can["mcpCapabilities"];
    let all = [
        ("load sessions", can["loadSession"] == true),
        ("resume", session["resume"].is_object()),
        ("fork", session["fork"].is_object()),
        ("images", can["promptCapabilities"]["image"] == true),
        ("MCP by http", mcp["http"] == true),
        ("MCP by sse", mcp["sse"] == true),
        (
            "more directories",
            session["additionalDirectories"].is_object(),
        ),
    ];
    let can = all.into_iter().filter(|(_, can)| *can);
    can.map(|(name, _)| name).collect()
}

/// Returns the first ids of a list as text.
fn first(ids: &[&str]) -> String {
    const MOST: usize = 8;
    let more = ids.len().saturating_sub(MOST);
    let shown = ids[..ids.len() - more].join(", ");
    if more > 0 {
        format!("{shown} and {more} more")
    } else {
        shown
    }
}
