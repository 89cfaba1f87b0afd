//! Codex.

use jiff::{ToSpan, Zoned};
use serde_json::json;
use teamster_codex::Codex;
use teamster_core::ErrorKind;
use teamster_orchestrator::AfterSideEffects;

use super::{Crash, Recorded, play};

const COMMAND_RUNS: Recorded = Recorded {
    fixture: "codex/0.169.0/tool_shell_ok",
    until: &[r#""type":"item.started""#, "command_execution"],
};

fn resume(session: &str) -> Vec<String> {
    assert_eq!(session, "01a1ffe8-eb7b-7523-afa9-5cca709e2801");
    vec!["resume".to_owned(), session.to_owned()]
}

#[tokio::test]
async fn a_command_that_runs_is_not_run_again() {
    COMMAND_RUNS.is_resumed(Codex, resume).await;
    COMMAND_RUNS.ends(Codex, "`command_execution`").await;
}

#[tokio::test]
async fn a_command_that_was_run_is_not_run_again() {
    let run = Recorded {
        until: &[r#""type":"item.completed""#, "command_execution"],
        ..COMMAND_RUNS
    };
    run.is_resumed(Codex, resume).await;
    run.ends(Codex, "`command_execution`").await;
}

/// Not every tool is announced, so a run that breaks off may have had side effects.
#[tokio::test]
async fn a_run_without_reports_is_not_restarted() {
    let words = Recorded {
        until: &["agent_message"],
        ..COMMAND_RUNS
    };
    words.is_resumed(Codex, resume).await;
    words.ends(Codex, "may have been running").await;
}

/// The CLI prints its message shortly before the limit resets, and ends after it.
#[tokio::test]
async fn a_limit_that_has_just_reset_is_tried_again() {
    let reset = Zoned::now().checked_sub(1.minute()).unwrap();
    let message = format!(
        "You've hit your usage limit. Visit https://x.test/a or try again at {}.",
        reset.strftime("%-I:%M %p")
    );
    // Made by hand: lines of Codex, with a time of today.
    let lines = [
        json!({"type": "thread.started", "thread_id": "01a1ffe8-eb7b-7523-afa9-5cca709e2801"}),
        json!({"type": "turn.started"}),
        json!({"type": "turn.failed", "error": {"message": message}}),
    ];
    let lines = lines.map(|line| line.to_string()).join("\n") + "\n";
    let played = play(&lines, Codex, Crash::Exits, AfterSideEffects::Resume).await;
    let log = &played.outcome.attempts;
    assert_eq!(log.len(), 2, "{:?}", played.outcome.error);
    assert_eq!(log[0].error.as_ref().unwrap().kind, ErrorKind::Quota);
}
