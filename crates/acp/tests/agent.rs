//! An agent by its command, as a process.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use teamster_acp::{AcpAgent, OneTurn};
use teamster_core::{
    AgentEvent, AgentRuntime, AgentSession, ErrorCode, ExecuteParams, PermissionMode,
    PermissionPolicy, RunResult, RunStatus, SessionOptions, SessionRuntime, Turn,
};
use teamster_process::CliRuntime;
use teamster_testkit::proc::is_alive;

fn runtime() -> CliRuntime<AcpAgent> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent.sh");
    let command = format!("acp:sh '{}' 'two words'", script.display());
    CliRuntime::new(AcpAgent::named(&command).unwrap().unwrap())
}

async fn play(session: &dyn AgentSession, prompt: &str) -> RunResult {
    let result = session.send(Turn::new(prompt)).result().await;
    assert_eq!(result.errors, [], "{prompt}");
    result
}

#[tokio::test]
async fn one_process_for_many_turns() {
    let session = runtime().open(SessionOptions::default()).unwrap();
    assert!(session.provider().starts_with("acp:sh "));
    let first = play(&*session, "where").await;
    let id = session.id().unwrap();
    assert_eq!(*id, *format!("s-{}", first.text.trim_start_matches("in ")));
    assert!(session.is_hot());
    assert_eq!(play(&*session, "where").await.text, first.text);
    assert_eq!(play(&*session, "args").await.text, "two words");
    session.close().await;
    assert!(!session.is_hot());

    // Another process goes on with it, and what was said is not reported again.
    let again = play(&*session, "where").await;
    assert_ne!(again.text, first.text);
    assert_eq!(session.id().unwrap(), id);
    session.close().await;
}

#[tokio::test]
async fn permissions_are_as_they_were_asked_for() {
    for (mode, policy, outcome) in [
        (PermissionMode::Default, PermissionPolicy::Deny, "failed"),
        (
            PermissionMode::Default,
            PermissionPolicy::Allow,
            "completed",
        ),
        (
            PermissionMode::AcceptEdits,
            PermissionPolicy::Deny,
            "failed",
        ),
        (PermissionMode::Bypass, PermissionPolicy::Deny, "completed"),
    ] {
        let mut options = SessionOptions::default();
        options.params.permission = mode;
        options.permissions = policy;
        let session = runtime().open(options).unwrap();
        let result = session.send(Turn::new("tool")).result().await;
        assert_eq!(result.text, outcome, "{mode:?}");
        session.close().await;
    }

    let session = runtime().open(SessionOptions::default()).unwrap();
    session
        .set_permission(PermissionMode::Bypass)
        .await
        .unwrap();
    assert_eq!(play(&*session, "tool").await.text, "completed");
    session
        .set_permission(PermissionMode::ReadOnly)
        .await
        .unwrap_err();
    session.close().await;
}

#[tokio::test]
async fn a_turn_is_interrupted_and_the_process_stays() {
    let session = runtime().open(SessionOptions::default()).unwrap();
    let before = play(&*session, "where").await.text;
    let mut events = session.send(Turn::new("wait"));
    let mut last = None;
    while let Some(event) = events.next().await {
        if matches!(event, AgentEvent::Text(_)) {
            session.interrupt();
        }
        last = Some(event);
    }
    let Some(AgentEvent::Done(done)) = last else {
        panic!("{last:?}");
    };
    assert_eq!(done.result.status, RunStatus::Aborted);
    assert_eq!(done.result.text, "I wait");
    assert_eq!(play(&*session, "where").await.text, before);
    session.close().await;
}

#[tokio::test]
async fn a_run_is_a_session_of_one_turn() {
    let runtime = OneTurn::new(runtime());
    assert!(runtime.id().starts_with("acp:sh "));
    let mut events = runtime.execute(ExecuteParams::new("leave"));
    let mut pid = None;
    let mut last = None;
    while let Some(event) = events.next().await {
        if let AgentEvent::ToolUse(tool) = &event {
            pid = tool.input["pid"].as_u64();
        }
        last = Some(event);
    }
    // Nothing of it is alive, nor what it left in the background.
    let pid = u32::try_from(pid.unwrap()).unwrap();
    assert!(!is_alive(pid));
    let Some(AgentEvent::Done(done)) = last else {
        panic!("{last:?}");
    };
    assert_eq!(done.result.errors, []);

    // What it cannot honour is refused before, what fails is reported.
    let mut params = ExecuteParams::new("where");
    params.permission = PermissionMode::ReadOnly;
    assert!(runtime.check(&params).is_err());
    let result = runtime.execute(params).result().await;
    assert_eq!(result.errors[0].code, ErrorCode::InvalidParams);
    let result = runtime.execute(ExecuteParams::new("fall")).result().await;
    assert_eq!(result.status, RunStatus::Failed);
    assert!(
        result.errors[0].message.contains("no way"),
        "{:?}",
        result.errors
    );

    let mut params = ExecuteParams::new("where");
    params.session_id = Some("s-1".into());
    let result = runtime.execute(params).result().await;
    assert_eq!(result.session_id.as_deref(), Some("s-1"));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_an_error_of_the_turn() {
    let agent = AcpAgent::new("no-such-agent --acp").unwrap();
    let session = CliRuntime::new(agent)
        .open(SessionOptions::default())
        .unwrap();
    let result = session.send(Turn::new("hi")).result().await;
    assert_eq!(result.errors[0].code, ErrorCode::CliNotFound);
}

/// One prints a text and ends, one repeats its prompt, one prints nothing.
#[tokio::test]
async fn a_program_that_is_no_acp_agent_is_an_error_of_the_run() {
    for (command, code) in [
        ("echo Welcome!", ErrorCode::StreamEndedEarly),
        ("cat", ErrorCode::CliError),
        ("sleep 987", ErrorCode::StartupTimeout),
    ] {
        let agent = AcpAgent::new(command).unwrap();
        let mut params = ExecuteParams::new("hi");
        params.timeouts.startup = Some(std::time::Duration::from_secs(2));
        let result = OneTurn::new(CliRuntime::new(agent))
            .execute(params)
            .result()
            .await;
        let errors = &result.errors;
        assert_eq!(result.text, "", "{command}");
        assert_eq!(errors[0].code, code, "{command}: {errors:?}");
    }
}
