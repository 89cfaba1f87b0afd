//! Claude Code.

use teamster_claude::Claude;

use super::Recorded;

const COMMAND_RUNS: Recorded = Recorded {
    fixture: "claude/2.1.197/tool_shell_ok",
    until: &[r#""type":"assistant""#, r#""type":"tool_use""#],
};

fn resume(session: &str) -> Vec<String> {
    assert_eq!(session, "e0055845-b0c9-4b38-b105-63bff329352d");
    vec![format!("--resume={session}")]
}

#[tokio::test]
async fn a_command_that_runs_is_not_run_again() {
    COMMAND_RUNS.is_resumed(Claude, resume).await;
    COMMAND_RUNS.ends(Claude, "`Bash`").await;
}

#[tokio::test]
async fn a_command_that_was_run_is_not_run_again() {
    let run = Recorded {
        until: &[r#""type":"tool_result""#],
        ..COMMAND_RUNS
    };
    run.is_resumed(Claude, resume).await;
    run.ends(Claude, "`Bash`").await;
}

#[tokio::test]
async fn words_and_reading_change_nothing() {
    let words = Recorded {
        until: &[r#""text":"list it.""#],
        ..COMMAND_RUNS
    };
    words.is_sent_again(Claude).await;
    let read = Recorded {
        fixture: "claude/2.1.197/conformance_missing_file",
        until: &[r#""type":"tool_result""#],
    };
    read.is_sent_again(Claude).await;
}
