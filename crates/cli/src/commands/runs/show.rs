//! `teamster runs show`.

use std::io::{self, Write};

use anstyle::Style;
use teamster_api::history::{RunRecord, RunState};
use teamster_core::WorkspaceResult;
use teamster_core::text::excerpt;
use teamster_core::time::epoch_ms;

use super::args::RunsShowArgs;
use super::history::History;
use super::live::waits_for;
use super::{duration_ms, style};
use crate::zone::local_time;
use crate::{exit_code, hints, words};

/// The maximum length of a prompt in one line.
const PROMPT_BYTES: usize = 300;

pub(super) async fn main(args: &RunsShowArgs, history: &History) -> anyhow::Result<u8> {
    if history.is_missing() {
        return Ok(exit_code::AGENT_ERROR);
    }
    let mut run = history.find(&args.id).await?;
    let waits = waits_for(&history.look_up(&mut run).await);
    if args.json {
        return exit_code::of_json(&run);
    }
    let mut out = anstream::stdout();
    exit_code::of_printed(print(&run, waits, epoch_ms(), &mut out))
}

fn print(
    run: &RunRecord,
    waits: Option<String>,
    now_ms: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let dim = Style::new().dimmed();
    let mut line = |name: &str, value: Option<String>| match value {
        Some(value) => writeln!(out, "{dim}{name:<14}{dim:#}{value}"),
        None => Ok(()),
    };
    let state = style(run.status);
    let status = match run.status {
        RunState::Interrupted => "interrupted: its process was killed".to_owned(),
        status => match waits {
            Some(waits) => format!("{}, {waits}", words::run_status(status)),
            None => words::run_status(status),
        },
    };
    line("run", Some(words::one_line(&run.run_id)))?;
    line("title", run.title.as_deref().map(words::one_line))?;
    line("status", Some(format!("{state}{status}{state:#}")))?;
    line("agent", Some(words::one_line(&run.provider)))?;
    line("model", run.model.as_deref().map(words::one_line))?;
    let account = run.attempt_log.last().and_then(|it| it.account.as_deref());
    line("account", account.map(words::one_line))?;
    line("session", run.session_id.as_deref().map(words::one_line))?;
    line("key", run.conversation.as_deref().map(words::one_line))?;
    let directory = run.working_directory.as_ref();
    line(
        "directory",
        directory.map(|path| words::one_line(&path.display().to_string())),
    )?;
    line(
        "began",
        Some(local_time(run.started_at, "%Y-%m-%d %H:%M:%S %:z")),
    )?;
    line("time", duration_ms(run, now_ms).map(words::duration_ms))?;
    let tokens = run.usage.as_ref().and_then(words::tokens);
    let tokens = tokens.map(|text| text.trim_start_matches("tokens ").to_owned());
    line("tokens", tokens)?;
    line("cost", words::cost_of(run.cost_usd, run.cost_source))?;
    let workspace = run.workspace.as_ref();
    line("changes", workspace.map(changes))?;
    line(
        "branch",
        workspace
            .and_then(|it| it.branch.as_deref())
            .map(words::one_line),
    )?;
    line("turns", run.num_turns.map(|turns| turns.to_string()))?;
    let prompt = match &run.prompt {
        Some(prompt) => excerpt(&words::one_line(prompt), PROMPT_BYTES),
        None => format!("not kept (sha256 {})", words::one_line(&run.prompt_hash)),
    };
    line("prompt", Some(prompt))?;
    let host = words::one_line(&run.host);
    // A fleet knows the machine of a run only.
    match run.pid {
        0 => line("machine", Some(host).filter(|host| !host.is_empty()))?,
        pid => line("process", Some(format!("{pid} on {host}")))?,
    }
    let error = |error: &teamster::AgentError| {
        let message = hints::message(error);
        let message = words::printable(&message);
        format!("{message} ({})", error.kind)
    };
    line("error", run.error.as_ref().map(error))?;
    for (number, attempt) in (1..).zip(&run.attempt_log) {
        let mut text = words::one_line(&attempt.provider);
        if let Some(account) = &attempt.account {
            text = format!("{text}@{}", words::one_line(account));
        }
        if let Some(model) = &attempt.model {
            text = format!("{text} {}", words::one_line(model));
        }
        text = format!("{text}, {}", words::duration_ms(attempt.duration_ms));
        if attempt.resumed {
            text.push_str(", resumed the session");
        }
        text = match &attempt.error {
            Some(failure) => format!("{text}, failed: {}", error(failure)),
            None => format!("{text}, completed"),
        };
        if run.attempt_log.len() > 1 {
            line(&format!("attempt {number}"), Some(text))?;
        }
    }
    Ok(())
}

/// Describes what a run has left in its workspace.
fn changes(workspace: &WorkspaceResult) -> String {
    let (Some(commits), Some(files)) = (workspace.commits, workspace.files_changed) else {
        let error = workspace.error.as_deref().unwrap_or("unknown");
        return words::one_line(error);
    };
    if commits == 0 && files == 0 && workspace.dirty != Some(true) {
        return "none".to_owned();
    }
    let lines = [workspace.insertions, workspace.deletions].map(Option::unwrap_or_default);
    let mut text = format!(
        "{} in {}, +{} -{}",
        words::plural(files, "file"),
        words::plural(commits, "commit"),
        lines[0],
        lines[1]
    );
    if workspace.dirty == Some(true) {
        text.push_str(", not all committed");
    }
    if let Some(pushed) = &workspace.pushed {
        text = format!("{text}, pushed to {}", words::one_line(pushed));
    }
    text
}
