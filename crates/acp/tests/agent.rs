//! Runs and sessions of an agent that is started by a command.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use teamster_acp::AcpAgent;
use teamster_core::{
    AgentError, AgentEvent, AgentRuntime, AgentSession, ErrorCode, ExecuteParams, McpServer,
    PermissionMode, PermissionPolicy, RunResult, RunStatus, SessionOptions, SessionRuntime, Turn,
};
use teamster_process::{CliRuntime, OneTurn, RuntimeConfig};
use teamster_testkit::fixture::Fixture;
use teamster_testkit::proc::is_alive;
use teamster_testkit::replay::{ReplayOptions, replay};

fn runtime() -> CliRuntime<AcpAgent> {
    CliRuntime::new(script())
}

fn script() -> AcpAgent {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/agent.sh");
    let command = format!("acp:sh '{}' 'two words'", script.display());
    AcpAgent::named(&command).unwrap().unwrap()
}

/// A runtime that records its run in this folder.
fn recording(dir: &Path) -> CliRuntime<AcpAgent> {
    let config = RuntimeConfig::default().record_to(dir);
    CliRuntime::with_config(script(), config)
}

async fn play(session: &dyn AgentSession, prompt: &str) -> RunResult {
    let result = session.send(Turn::new(prompt)).result().await;
    assert_eq!(result.errors, [], "{prompt}");
    result
}

#[tokio::test]
async fn process_serves_many_turns() {
    let session = runtime().open(SessionOptions::default()).unwrap();
    assert!(session.provider().starts_with("acp:sh "));
    let first = play(&*session, "where").await;
    let id = session.id().unwrap();
    assert_eq!(*id, *format!("s-{}", first.text.trim_start_matches("in ")));
    assert!(session.is_live());
    assert_eq!(play(&*session, "where").await.text, first.text);
    assert_eq!(play(&*session, "args").await.text, "two words");
    session.close().await;
    assert!(!session.is_live());

    // Another process resumes the session, and earlier turns are not reported again.
    let again = play(&*session, "where").await;
    assert_ne!(again.text, first.text);
    assert_eq!(session.id().unwrap(), id);
    session.close().await;
}

#[tokio::test]
async fn text_after_the_answer_is_part_of_it() {
    let result = OneTurn::new(runtime())
        .execute(ExecuteParams::new("late"))
        .result()
        .await;
    assert_eq!(result.text, "just in time");
    let session = runtime().open(SessionOptions::default()).unwrap();
    assert_eq!(play(&*session, "late").await.text, "just in time");
    assert_eq!(play(&*session, "args").await.text, "two words");
    session.close().await;
}

/// The agent reports the total cost of the session.
#[tokio::test]
async fn the_cost_of_a_turn_is_known_after_a_restart_of_the_process() {
    let session = runtime().open(SessionOptions::default()).unwrap();
    let cost = async |prompt: &str| play(&*session, prompt).await.total_cost_usd;
    assert_eq!(cost("pay 1").await, Some(1.0));
    session.close().await;
    // Neither the turn nor its process reports a cost.
    assert_eq!(cost("where").await, None);
    session.close().await;
    assert_eq!(cost("pay 1.5").await, Some(0.5));
    session.clear().await.unwrap();
    assert_eq!(cost("pay 2").await, Some(2.0));
    session.close().await;

    // The cost of a session from elsewhere is unknown.
    let mut options = SessionOptions::default();
    options.params.session_id = Some("s-1".into());
    let session = runtime().open(options).unwrap();
    assert_eq!(play(&*session, "pay 1").await.total_cost_usd, None);
    assert_eq!(play(&*session, "pay 3").await.total_cost_usd, Some(2.0));
    session.close().await;
}

#[tokio::test]
async fn permissions_are_as_requested() {
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
    // No process is alive, including those that it left in the background.
    let pid = u32::try_from(pid.unwrap()).unwrap();
    assert!(!is_alive(pid));
    let Some(AgentEvent::Done(done)) = last else {
        panic!("{last:?}");
    };
    assert_eq!(done.result.errors, []);

    // Unsupported parameters are rejected before the run; failures are reported.
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

/// Records and replays a run. Returns its result and the metadata of the recording.
async fn replayed(params: ExecuteParams, abort_at: Option<&str>) -> (RunResult, String) {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("recording");
    let mut stream = OneTurn::new(recording(&dir)).execute(params);
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        if abort_at == Some(event.type_name()) {
            stream.abort();
        }
        events.push(event);
    }
    let fixture = Fixture::load(&dir).unwrap();
    let replay = replay(&fixture, &script(), ReplayOptions::default());
    assert_eq!(replay.grammar, Ok(()));
    // The run does not know how the process exited after the turn.
    let without_process = |events: &[AgentEvent]| -> Vec<AgentEvent> {
        let mut events = events.to_vec();
        if let Some(AgentEvent::Done(done)) = events.last_mut() {
            done.result.exit_code = None;
            done.result.exit_signal = None;
            done.result.duration_ms = 0;
        }
        events
    };
    assert_eq!(without_process(&replay.events), without_process(&events));
    let Some(AgentEvent::Done(done)) = events.pop() else {
        panic!("{events:?}");
    };
    let meta = std::fs::read_to_string(dir.join("meta.json")).unwrap();
    (*done.result.clone(), meta)
}

#[tokio::test]
async fn a_replay_of_a_recorded_run_gives_its_events() {
    let (result, _) = replayed(ExecuteParams::new("args"), None).await;
    assert_eq!(result.text, "two words");

    // Denied without a handler, and allowed by the mode.
    let (result, _) = replayed(ExecuteParams::new("tool"), None).await;
    assert_eq!(result.permission_denials.len(), 1);
    let params = ExecuteParams::new("tool").permission(PermissionMode::Bypass);
    let (result, _) = replayed(params, None).await;
    assert_eq!(
        (&*result.text, result.permission_denials.len()),
        ("completed", 0)
    );

    // Aborted by the caller, and ended by a failure of the process.
    let (result, meta) = replayed(ExecuteParams::new("wait"), Some("text")).await;
    assert_eq!(result.status, RunStatus::Aborted);
    assert!(meta.contains(r#""why": "aborted""#), "{meta}");
    let (result, _) = replayed(ExecuteParams::new("fall"), None).await;
    assert_eq!(result.status, RunStatus::Failed);

    // An existing session.
    let mut params = ExecuteParams::new("args");
    params.session_id = Some("s-1".into());
    let (result, _) = replayed(params, None).await;
    assert_eq!(
        (&*result.text, result.session_id.as_deref()),
        ("two words", Some("s-1"))
    );
}

#[tokio::test]
async fn a_recording_has_no_secret_of_a_server() {
    let server = McpServer::stdio("tiny", "true", [""; 0]).env("TINY_NAME", "hush-123");
    let mut params = ExecuteParams::new("args and hush-123");
    params.env.insert("AGENT_KEY".into(), "hush-456".into());
    params.mcp_servers.push(server);
    let (_, meta) = replayed(params, None).await;
    assert!(meta.contains("\"tiny\""), "{meta}");
    assert!(!meta.contains("hush"), "{meta}");
}

#[tokio::test]
async fn a_run_is_recorded_only_if_it_denies() {
    let place = tempfile::tempdir().unwrap();
    let problem = |error: AgentError| error.message.clone();
    let asking = OneTurn::new(recording(place.path()));
    let run = asking
        .check(&ExecuteParams::new("args").permissions(PermissionPolicy::Allow))
        .err();
    assert_eq!(
        run.map(problem).as_deref(),
        Some("record_to: a run in which permission requests are answered cannot be recorded")
    );
    assert_eq!(place.path().read_dir().unwrap().count(), 0);
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

/// The programs: one prints text and exits, one echoes its input, one prints binary data, one prints nothing.
#[tokio::test]
async fn a_program_that_is_no_acp_agent_is_an_error_of_the_run() {
    for (command, code) in [
        ("echo Welcome!", ErrorCode::StreamEndedEarly),
        ("cat", ErrorCode::CliError),
        ("head -c 200000 /bin/sh", ErrorCode::StreamEndedEarly),
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
