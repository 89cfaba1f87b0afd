//! What was seen of a run, or of a turn of a session.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use serde_json::Value;
use teamster::{AgentEvent, LogEntry, RunResult, RunStatus, Usage};
use teamster_mock_model::Request;

/// The field with a CLI's own list of what it denied.
const DENIALS: &str = "permission_denials";

/// Number or purpose of a run or turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Run of the scenario, from 0.
    Run(usize),
    /// The turn that starts a session's process.
    Ready,
    /// The turn after one that broke off.
    Again,
}

/// A played run, or a played turn of a session.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) which: Which,
    /// Change of a session's process.
    pub(crate) process: Option<Process>,
    /// True if the turn was sent a second time, because it had been refused temporarily.
    pub(crate) sent_again: bool,
    /// Number of unasked turns that are reported as a part of this one.
    pub(crate) unasked: u32,
    /// True if a warning of an earlier turn of the session named the MCP server.
    pub(crate) warned_before: bool,
    pub(crate) events: Vec<AgentEvent>,
    pub(crate) result: RunResult,
    /// True if the script has text in pieces.
    pub(crate) in_pieces: bool,
    /// Number of texts in the script.
    pub(crate) messages: usize,
    pub(crate) has_mcp: bool,
    /// Working directory of the agent.
    pub(crate) directory: PathBuf,
    pub(crate) session_before: Option<String>,
    pub(crate) prompt_arrived: Option<bool>,
    /// True if the image of the run reached the model; `None` without an image.
    pub(crate) image_arrived: Option<bool>,
    /// True if the caller's answer to a question reached the model; `None` if the story does not ask for it.
    pub(crate) answered: Option<bool>,
    /// Number of times that the prompt of the run before is in the last request; `None` if the story does not ask for it.
    pub(crate) remembered: Option<usize>,
    pub(crate) processes_left: Vec<String>,
    /// All that the script lets the model write. `None` if the scenario expects text of the CLI itself.
    pub(crate) texts_of_model: Option<String>,
    /// True if the script has work in the background.
    pub(crate) is_in_background: bool,
    /// Ids of the calls that the CLI itself lists as denied.
    pub(crate) denials_by_cli: BTreeSet<String>,
    /// Usage of the session until the end of this run; of a live session, in its last turn.
    pub(crate) usage_of_session: Option<SessionUsage>,
    pub(crate) files: BTreeMap<String, String>,
    pub(crate) requests: Vec<Request>,
    pub(crate) time: Duration,
    /// Host and port of the service that the CLI uses.
    pub(crate) service: String,
    /// The lines that the agent printed, if recorded.
    pub(crate) printed: Vec<String>,
    /// True if the service's port had no listener.
    pub(crate) has_no_listener: bool,
}

/// Usage of a session from both sides.
#[derive(Debug)]
pub(crate) struct SessionUsage {
    /// By the CLI's files.
    pub(crate) files: Usage,
    /// By its runs or turns.
    pub(crate) runs: Usage,
    /// Number of requests by the CLI's files; 0 if they do not have it.
    pub(crate) requests: u64,
    /// Number of the model's answers: the least has those that count, the most all.
    pub(crate) answers: RangeInclusive<u64>,
}

/// The change of the process during a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Process {
    /// The process was started for the turn and keeps running.
    New,
    /// The process existed before and keeps running.
    Same,
    /// The process ended with the turn.
    Ended,
}

impl Process {
    /// Returns the word for a story.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Same => "same",
            Self::Ended => "ended",
        }
    }
}

/// Returns the result at the end of a stream.
pub(crate) fn result_of(events: &[AgentEvent]) -> anyhow::Result<RunResult> {
    match events.last() {
        Some(AgentEvent::Done(done)) => Ok((*done.result).clone()),
        _ => bail!("the stream has no end"),
    }
}

/// Returns the ids of the calls in the CLI's own list of what it denied (`permission_denials` at the end of a turn).
pub(crate) fn denials_in(entries: &[LogEntry]) -> BTreeSet<String> {
    let lists = entries.iter().filter_map(LogEntry::native);
    let lists = lists.filter(|line| line.get().contains(DENIALS));
    let mut ids = BTreeSet::new();
    for line in lists {
        let line: Value = serde_json::from_str(line.get()).unwrap_or_default();
        let listed = line[DENIALS].as_array().into_iter().flatten();
        ids.extend(listed.filter_map(|it| it["tool_use_id"].as_str().map(str::to_owned)));
    }
    ids
}

impl Played {
    /// Merges the result of an unasked turn that followed this one.
    pub(crate) fn go_on(&mut self, entries: Vec<LogEntry>) -> anyhow::Result<()> {
        self.denials_by_cli.extend(denials_in(&entries));
        let events: Vec<_> = entries.into_iter().map(|entry| entry.event).collect();
        let next = result_of(&events)?;
        self.unasked += 1;
        self.events.extend(events);
        let all = &mut self.result;
        if all.status == RunStatus::Completed {
            all.status = next.status;
        }
        all.text.push_str(&next.text);
        all.session_id = next.session_id.or(all.session_id.take());
        all.usage = match (all.usage, next.usage) {
            (Some(usage), Some(more)) => Some(usage.plus(more)),
            (one, other) => one.or(other),
        };
        // A story only has whether the cost is known.
        all.total_cost_usd = all.total_cost_usd.or(next.total_cost_usd);
        all.errors.extend(next.errors);
        all.permission_denials.extend(next.permission_denials);
        all.diagnostics.unknown += next.diagnostics.unknown;
        all.diagnostics.malformed += next.diagnostics.malformed;
        Ok(())
    }
}
