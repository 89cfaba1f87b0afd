//! OpenCode.

use teamster_opencode::OpenCode;

use super::Recorded;

const COMMAND_WAS_RUN: Recorded = Recorded {
    fixture: "opencode/1.18.33/tool_shell_ok",
    until: &[r#""type":"tool_use""#],
};

fn resume(session: &str) -> Vec<String> {
    assert!(session.starts_with("ses_"), "{session}");
    vec![format!("--session={session}")]
}

#[tokio::test]
async fn a_command_that_was_run_is_not_run_again() {
    COMMAND_WAS_RUN.is_resumed(OpenCode, resume).await;
    COMMAND_WAS_RUN.ends(OpenCode, "`bash`").await;
}

/// A command is reported after its end, so one may be running when a run breaks off.
#[tokio::test]
async fn a_command_that_was_not_reported_is_not_run_again() {
    let words = Recorded {
        until: &[r#""type":"text""#],
        ..COMMAND_WAS_RUN
    };
    words.is_resumed(OpenCode, resume).await;
    words.ends(OpenCode, "may have been running").await;
    let read = Recorded {
        fixture: "opencode/1.18.33/conformance_missing_file",
        until: &[r#""type":"tool_use""#],
    };
    read.is_resumed(OpenCode, resume).await;
}
