//! Copilot CLI.

use teamster_copilot::Copilot;

use super::Recorded;

const COMMAND_RUNS: Recorded = Recorded {
    fixture: "copilot/1.0.102/tool_shell_ok",
    until: &["tool.execution_start"],
};

/// The session has the id that the first start gave it.
fn resume(session: &str) -> Vec<String> {
    vec![format!("--resume={session}")]
}

#[tokio::test]
async fn a_command_that_runs_is_not_run_again() {
    COMMAND_RUNS.is_resumed(Copilot, resume).await;
    COMMAND_RUNS.ends(Copilot, "`bash`").await;
}

#[tokio::test]
async fn a_command_that_was_run_is_not_run_again() {
    let run = Recorded {
        until: &["tool.execution_complete"],
        ..COMMAND_RUNS
    };
    run.is_resumed(Copilot, resume).await;
    run.ends(Copilot, "`bash`").await;
}

#[tokio::test]
async fn words_and_reading_change_nothing() {
    let words = Recorded {
        until: &[r#""deltaContent":"run a command.""#],
        ..COMMAND_RUNS
    };
    words.is_sent_again(Copilot).await;
    let read = Recorded {
        fixture: "copilot/1.0.102/tool_view",
        until: &["tool.execution_complete"],
    };
    read.is_sent_again(Copilot).await;
}
