//! Gemini CLI.

use teamster_gemini::Gemini;

use super::Recorded;

const COMMAND_RUNS: Recorded = Recorded {
    fixture: "gemini/0.61.0/conformance_tools_in_turns",
    until: &[r#""type":"tool_use""#, "run_shell_command"],
};

fn resume(session: &str) -> Vec<String> {
    assert_eq!(session, "79036af7-6edf-4a52-bc3d-82c31af3bbcc");
    vec![format!("--resume={session}")]
}

#[tokio::test]
async fn a_command_that_runs_is_not_run_again() {
    COMMAND_RUNS.is_resumed(Gemini, resume).await;
    COMMAND_RUNS.ends(Gemini, "`run_shell_command`").await;
}

#[tokio::test]
async fn a_command_that_was_run_is_not_run_again() {
    // A file was read since.
    let run = Recorded {
        until: &[r#""type":"tool_result""#, "read_file"],
        ..COMMAND_RUNS
    };
    run.is_resumed(Gemini, resume).await;
    run.ends(Gemini, "`run_shell_command`").await;
}

#[tokio::test]
async fn words_and_reading_change_nothing() {
    let words = Recorded {
        until: &["I look first."],
        ..COMMAND_RUNS
    };
    words.is_sent_again(Gemini).await;
    let read = Recorded {
        fixture: "gemini/0.61.0/conformance_missing_file",
        until: &[r#""type":"tool_result""#],
    };
    read.is_sent_again(Gemini).await;
}
