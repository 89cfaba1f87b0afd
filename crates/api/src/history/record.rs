//! The record of a run, and the filter of records.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use teamster_core::{AgentError, CostSource, Usage, WorkspaceResult};

use super::RunState;
use crate::{Attempt, has_words};

/// A run in the history. A figure that no CLI reported is absent, never 0.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunRecord {
    /// Id of the run.
    pub run_id: String,
    /// Title of the run, if it has one.
    pub title: Option<String>,
    /// State of the run.
    pub status: RunState,
    /// The current or last provider of the run.
    pub provider: String,
    /// The model as reported by the agent, else as requested.
    pub model: Option<String>,
    /// The session of the run, or the one to resume.
    pub session_id: Option<String>,
    /// The conversation that it belongs to, as text.
    pub conversation: Option<String>,
    /// Working directory of the agent.
    #[serde(serialize_with = "crate::path::optional_shown")]
    #[schemars(with = "Option<String>")]
    pub working_directory: Option<PathBuf>,
    /// The prompt, at most its first 64 KiB: in the record of one run, where the history keeps it. Absent in lists, for
    /// detached runs, whose folder keeps it, and where prompts are not kept.
    pub prompt: Option<String>,
    /// SHA-256 of the prompt, in hexadecimal.
    pub prompt_hash: String,
    /// Start time, in milliseconds since the Unix epoch.
    pub started_at: u64,
    /// End time, in milliseconds since the Unix epoch. For an interrupted run it is the last heartbeat, once that was
    /// recorded.
    pub ended_at: Option<u64>,
    /// Duration of the run, in milliseconds.
    pub duration_ms: Option<u64>,
    /// Usage of all attempts together.
    pub usage: Option<Usage>,
    /// Cost of all attempts together, in USD.
    pub cost_usd: Option<f64>,
    /// The source of the cost. Absent in a record of an earlier version, which kept reported costs only.
    pub cost_source: Option<CostSource>,
    /// Turns of all attempts, as the CLIs count them.
    pub num_turns: Option<u32>,
    /// The error of a run that failed. Its code and details are known if it is the error of the last attempt.
    pub error: Option<AgentError>,
    /// What the run has left in its workspace. Absent if it had none of its own.
    pub workspace: Option<WorkspaceResult>,
    /// Number of attempts; 0 while the run is running.
    pub attempts: u32,
    /// The attempts, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempt_log: Vec<Attempt>,
    /// Name of the machine that the run is on.
    pub host: String,
    /// Id of the process that owns the run.
    pub pid: u32,
    /// Time of the last heartbeat, in milliseconds since the Unix epoch.
    pub heartbeat_at: u64,
}

impl RunRecord {
    /// Creates a record with these fields, and without the optional ones. `started_at` is in milliseconds since the
    /// Unix epoch.
    pub fn new(
        run_id: impl Into<String>,
        provider: impl Into<String>,
        status: RunState,
        started_at: u64,
    ) -> Self {
        Self {
            run_id: run_id.into(),
            status,
            provider: provider.into(),
            started_at,
            heartbeat_at: started_at,
            ..Self::default()
        }
    }

    /// Returns the run's position in the order of the history, newest first, for the next page.
    pub fn cursor(&self) -> RunCursor {
        RunCursor {
            started_at: self.started_at,
            run_id: self.run_id.clone(),
        }
    }
}

/// A position in a list of runs, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunCursor {
    /// Start time of the run, in milliseconds since the Unix epoch.
    pub started_at: u64,
    /// Id of the run.
    pub run_id: String,
}

/// The text that a page of runs has as its `next`.
impl fmt::Display for RunCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.started_at, self.run_id)
    }
}

impl FromStr for RunCursor {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = text.split_once('.').and_then(|(at, run_id)| {
            // 19 digits fit 64 bits.
            let is_number = at.len() <= 19 && at.bytes().all(|byte| byte.is_ascii_digit());
            let at = at.parse().ok().filter(|_| is_number)?;
            Some(Self::new(at, run_id))
        });
        read.ok_or_else(|| "expected the `next` of another page".to_owned())
    }
}

impl RunCursor {
    /// Creates the position of the run with this id and start time, in milliseconds since the Unix epoch.
    pub fn new(started_at: u64, run_id: impl Into<String>) -> Self {
        Self {
            started_at,
            run_id: run_id.into(),
        }
    }
}

/// A page of the history, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct HistoryList {
    /// The runs.
    pub runs: Vec<RunRecord>,
    /// The `cursor` of the next page; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl HistoryList {
    /// Creates a page with these runs. `next` is the cursor of the next page.
    pub fn new(runs: Vec<RunRecord>, next: Option<String>) -> Self {
        Self { runs, next }
    }
}

/// Filter of runs. Default: all.
///
/// ```
/// use teamster_api::history::{RunFilter, RunState};
///
/// let filter = RunFilter::default().provider("claude").status(RunState::Error).limit(20);
/// assert_eq!(filter.limit, Some(20));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunFilter {
    /// Maximum number of runs. Default: no limit.
    pub limit: Option<u32>,
    /// Only runs of this provider.
    pub provider: Option<String>,
    /// Only runs in this state.
    pub status: Option<RunState>,
    /// Only runs of this conversation.
    pub conversation: Option<String>,
    /// Only runs of this session.
    pub session_id: Option<String>,
    /// Only runs in this directory or below it, as recorded with the run.
    pub working_directory: Option<PathBuf>,
    /// Only runs whose title has these words, in any order and case.
    pub text: Option<String>,
    /// Only runs that started at this time or later, in milliseconds since the Unix epoch.
    pub since_ms: Option<u64>,
    /// Only runs that started before this time, in milliseconds since the Unix epoch.
    pub until_ms: Option<u64>,
    /// Only runs after this position, as the next page.
    pub after: Option<RunCursor>,
}

teamster_core::setters! {
    RunFilter {
        some limit: u32,
        some_into provider: String,
        some status: RunState,
        some_into conversation: String,
        some_into session_id: String,
        some working_directory: PathBuf,
        some_into text: String,
        some since_ms: u64,
        some until_ms: u64,
        some after: RunCursor,
    }
}

impl RunFilter {
    /// Returns whether the run matches everything but the limit.
    pub fn selects(&self, run: &RunRecord) -> bool {
        // Exhaustive: a new field counts everywhere from its first day.
        let Self {
            limit: _,
            provider,
            status,
            conversation,
            session_id,
            working_directory,
            text,
            since_ms,
            until_ms,
            after,
        } = self;
        let is = |wanted: &Option<String>, found: Option<&String>| {
            wanted.is_none() || wanted.as_ref() == found
        };
        let is_below = |wanted: &PathBuf| {
            let directory = run.working_directory.as_ref();
            directory.is_some_and(|directory| directory.starts_with(wanted))
        };
        let title = run.title.as_deref().unwrap_or_default();
        is(provider, Some(&run.provider))
            && is(conversation, run.conversation.as_ref())
            && is(session_id, run.session_id.as_ref())
            && status.is_none_or(|status| status == run.status)
            && working_directory.as_ref().is_none_or(is_below)
            && text.as_ref().is_none_or(|text| has_words(title, text))
            && since_ms.is_none_or(|since| run.started_at >= since)
            && until_ms.is_none_or(|until| run.started_at < until)
            && after.as_ref().is_none_or(|after| {
                (run.started_at, &run.run_id) < (after.started_at, &after.run_id)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_selects_by_each_of_its_fields() {
        let mut run = RunRecord::new("r", "claude", RunState::Running, 10);
        run.title = Some("Fix the Login".to_owned());
        run.session_id = Some("s".to_owned());
        run.working_directory = Some("/w/site/api".into());
        let filter = RunFilter::default;
        for (filter, selects) in [
            (filter(), true),
            (filter().provider("claude"), true),
            (filter().provider("codex"), false),
            (filter().status(RunState::Running), true),
            (filter().status(RunState::Error), false),
            (filter().conversation("c"), false),
            (filter().session_id("s"), true),
            (filter().session_id("t"), false),
            (filter().working_directory("/w/site/api".into()), true),
            (filter().working_directory("/w/site/".into()), true),
            (filter().working_directory("/w/si".into()), false),
            (filter().text("login fix"), true),
            (filter().text("logout"), false),
            (filter().since_ms(10), true),
            (filter().since_ms(11), false),
            (filter().until_ms(11), true),
            (filter().until_ms(10), false),
            (filter().after(RunCursor::new(10, "s")), true),
            (filter().after(RunCursor::new(10, "r")), false),
        ] {
            assert_eq!(filter.selects(&run), selects, "{filter:?}");
        }
        run.title = None;
        assert!(!filter().text("fix").selects(&run));
    }
}
