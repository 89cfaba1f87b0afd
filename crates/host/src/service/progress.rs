//! Progress of a run, read from its log entry by entry.

use std::sync::Arc;

use memchr::memmem;
use teamster_api::{LogLine, RunEvent, RunLogEntry, RunSummary};
use teamster_core::{AgentEvent, Decision, RunResult, RunStatus, UsageLedger};

use super::results::workspace_of;

/// Substrings of the entries that need to be parsed.
const PARSED_ENTRIES: [&str; 4] = [
    r#""type":"session""#,
    r#""type":"usage""#,
    r#""type":"permission""#,
    r#""type":"run:start""#,
];

/// The data read from a log so far.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The number of the last entry read.
    pub(super) seq: u64,
    pub(super) session_id: Option<String>,
    pub(super) used: UsageLedger,
    /// Requests without a decision in the log. An agent can withdraw one without an entry.
    pub(super) open_requests: Vec<String>,
    /// The final summary of an ended run.
    pub(super) ended: Option<Arc<RunSummary>>,
}

/// Returns the number of the last entry's attempt, if it is not the first.
pub(super) fn attempts(last: &LogLine) -> Option<u32> {
    let attempt = match last.entry().ok()? {
        RunLogEntry::Agent(entry) => entry.attempt,
        RunLogEntry::Run(entry) => entry.attempt,
        _ => return None,
    };
    (attempt > 1).then_some(attempt)
}

pub(super) fn apply_result(summary: &mut RunSummary, result: &RunResult) {
    summary.status = Some(result.status);
    let session = result.session_id.as_ref().map(ToString::to_string);
    summary.session_id = session.or(summary.session_id.take());
    summary.usage = result.usage.or(summary.usage);
    if result.total_cost_usd.is_some() {
        summary.cost_usd = result.total_cost_usd;
        summary.cost_source = result.cost_source;
    }
    summary.duration_ms = Some(result.duration_ms);
    summary.error = result.failure();
    summary.workspace.clone_from(&result.workspace);
    if summary.workspace.is_none() && result.status != RunStatus::Completed {
        // The end of a run whose process was killed does not have it.
        summary.workspace = workspace_of(&summary.info.run_id);
    }
}

impl Progress {
    pub(super) fn apply(&mut self, line: &LogLine) {
        self.seq = line.seq();
        // Skip most entries without parsing them.
        let has = |mark: &&str| memmem::find(line.json(), mark.as_bytes()).is_some();
        if !PARSED_ENTRIES.iter().any(has) {
            return;
        }
        match line.entry() {
            Ok(RunLogEntry::Agent(entry)) => self.event(entry.event),
            Ok(RunLogEntry::Run(entry)) => {
                if let RunEvent::Start { session_id, .. } = entry.event {
                    let session = session_id.map(|id| id.to_string());
                    self.session_id = session.or(self.session_id.take());
                }
            }
            // An entry of a newer version.
            _ => {}
        }
    }

    fn event(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::SessionStarted(session) => {
                self.session_id = Some(session.session_id.to_string());
            }
            event @ AgentEvent::Usage(_) => self.used.event(&event),
            AgentEvent::Permission(permission) => {
                let Some(id) = permission.request_id else {
                    return;
                };
                if permission.decision == Decision::Requested {
                    self.open_requests.push(id);
                } else {
                    self.open_requests.retain(|open| *open != *id);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ended_run_has_the_number_of_its_attempts_if_several() {
        for (attempt, expected) in [(1, None), (3, Some(3))] {
            let mut done = teamster_core::LogEntry::new(
                9,
                1,
                AgentEvent::Done(teamster_core::Done::new(Box::default())),
            );
            done.attempt = attempt;
            let json = serde_json::to_vec(&RunLogEntry::Agent(done)).unwrap();
            assert_eq!(attempts(&LogLine::from_json(json, "r").unwrap()), expected);
        }
    }
}
