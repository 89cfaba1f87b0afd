//! Reports about runs, as tool results.

use serde_json::{Value, json};
use teamster_api::{PendingRequest, RunEvent, RunLogEntry, tool_input};
use teamster_core::text::{excerpt, one_line};
use teamster_core::{AgentEvent, RunResult, RunStatus};

/// The maximum length of a tool's input or output in an event, in bytes.
const EXCERPT: usize = 2000;
/// The maximum length of a progress line, in bytes.
const LINE: usize = 120;

/// Returns the report of a live run.
pub(crate) fn running(run_id: &str, agent: &str, requests: &[PendingRequest]) -> Value {
    let mut report = json!({
        "runId": run_id,
        "agent": agent,
        "state": if requests.is_empty() { "running" } else { "waiting" },
    });
    if !requests.is_empty() {
        let requests = requests.iter().map(|it| {
            let mut request =
                json!({"requestId": it.request_id, "tool": it.tool_name, "input": it.input});
            if let Some(message) = &it.message {
                request["message"] = json!(message);
            }
            if let Some(schema) = &it.schema {
                request["schema"] = schema.clone();
            }
            request
        });
        report["requests"] = requests.collect();
    }
    report
}

pub(crate) fn ended(run_id: &str, agent: &str, result: &RunResult) -> Value {
    let mut report = json!({
        "runId": run_id,
        "agent": agent,
        "state": "ended",
        "status": result.status,
        "text": result.answer().unwrap_or_default(),
        "durationMs": result.duration_ms,
    });
    let known = [
        ("sessionId", json!(result.session_id)),
        ("model", json!(result.model)),
        ("usage", json!(result.usage)),
        ("costUsd", json!(result.total_cost_usd)),
        ("costSource", json!(result.cost_source)),
        ("structuredOutput", json!(result.structured_output)),
        ("error", json!(result.failure())),
    ];
    for (name, value) in known {
        if !value.is_null() {
            report[name] = value;
        }
    }
    if !result.permission_denials.is_empty() {
        let denials = result.permission_denials.iter();
        report["denied"] = denials.map(|it| it.tool_name.clone()).collect();
    }
    report
}

/// Returns the report of a run that has ended with a result that cannot be read.
pub(crate) fn without_result(run_id: &str, agent: &str, status: Option<RunStatus>) -> Value {
    json!({
        "runId": run_id,
        "agent": agent,
        "state": "ended",
        "status": status.unwrap_or(RunStatus::Incomplete),
        "error": {"message": "the run has ended, and its result cannot be read"},
    })
}

/// Returns a report as text, for clients that show only text.
pub(crate) fn text_of(report: &Value) -> String {
    let text = report["text"].as_str().unwrap_or_default();
    let run = report["runId"].as_str().unwrap_or_default();
    match (
        report["state"].as_str(),
        report["error"]["message"].as_str(),
    ) {
        (Some("ended"), Some(problem)) => format!("{text}\n\n(run {run} failed: {problem})"),
        (Some("ended"), None) => text.to_owned(),
        _ => report.to_string(),
    }
}

/// Returns a short form of a log entry; `None` for entries of no interest.
pub(crate) fn event(entry: &RunLogEntry) -> Option<Value> {
    match entry {
        RunLogEntry::Agent(entry) => {
            let mut event = match &entry.event {
                AgentEvent::Text(text) => json!({"type": "text", "text": text.text}),
                AgentEvent::ToolUse(tool) => {
                    let input = excerpt(&tool.input.to_string(), EXCERPT);
                    json!({"type": "tool_use", "tool": tool.tool_name, "input": input})
                }
                AgentEvent::ToolResult(result) => {
                    let output = excerpt(&result.output, EXCERPT);
                    json!({"type": "tool_result", "output": output, "isError": result.is_error})
                }
                AgentEvent::FileChange(_)
                | AgentEvent::Plan(_)
                | AgentEvent::Permission(_)
                | AgentEvent::Error(_)
                | AgentEvent::Retract(_)
                | AgentEvent::Retry(_) => serde_json::to_value(&entry.event).ok()?,
                _ => return None,
            };
            event["seq"] = json!(entry.seq);
            Some(event)
        }
        RunLogEntry::Run(entry) => {
            let is_shown = matches!(
                entry.event,
                RunEvent::Hold { .. } | RunEvent::Retry { .. } | RunEvent::Fallback { .. }
            );
            is_shown.then(|| serde_json::to_value(entry).ok())?
        }
        _ => None,
    }
}

/// Returns a progress line for a log entry.
pub(crate) fn progress(agent: &str, entry: &RunLogEntry) -> Option<String> {
    let line = match entry {
        RunLogEntry::Agent(entry) => match &entry.event {
            AgentEvent::ToolUse(tool) => {
                let input = tool_input::summary(&tool.input, None);
                format!("{agent}: {} {input}", tool.tool_name)
            }
            AgentEvent::Permission(it) => {
                format!("{agent}: {} {}", it.tool_name, json!(it.decision))
            }
            AgentEvent::Text(text) => format!("{agent}: {}", text.text),
            _ => return None,
        },
        RunLogEntry::Run(entry) => match &entry.event {
            RunEvent::Retry { reason, .. } => format!("retrying {agent}: {}", reason.message),
            RunEvent::Fallback { next, .. } => format!("continues with {}", next.provider),
            RunEvent::Hold { .. } => format!("{agent} waits"),
            _ => return None,
        },
        _ => return None,
    };
    let line = one_line(&line);
    (!line.trim().is_empty()).then(|| excerpt(line.trim(), LINE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use teamster_core::{AgentError, ErrorCode, ErrorKind, RunStatus};

    #[test]
    fn a_failed_run_is_reported_in_data_and_text() {
        let mut result = RunResult::default().status(RunStatus::Failed).text("half");
        result.errors.push(AgentError::new(
            ErrorCode::CliError,
            ErrorKind::Quota,
            "nothing left",
        ));
        let report = ended("r1", "claude", &result);
        assert_eq!(report["status"], "failed");
        assert_eq!(report["error"]["kind"], "quota");
        assert_eq!(text_of(&report), "half\n\n(run r1 failed: nothing left)");
        let done = RunResult::default()
            .status(RunStatus::Completed)
            .text("done");
        let good = ended("r1", "claude", &done);
        assert_eq!(
            (text_of(&good), good["state"].clone()),
            ("done".to_owned(), json!("ended"))
        );
        assert!(good.get("costUsd").is_none());
    }

    #[test]
    fn a_live_run_reports_its_state() {
        assert_eq!(running("r1", "claude", &[])["state"], "running");
        let shown = text_of(&running("r1", "claude", &[]));
        assert!(shown.contains("r1"), "{shown}");
    }
}
