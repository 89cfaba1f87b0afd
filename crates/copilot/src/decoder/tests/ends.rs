//! Sessions, interruptions and ends of runs.

use serde_json::{Value, json};
use teamster_core::provider::Exit;
use teamster_core::{
    AgentEvent, ErrorCode, ErrorKind, ExecuteParams, Notice, NoticeLevel, RunStatus, SessionStarted,
};
use teamster_testkit::events::payloads;

use super::super::CopilotDecoder;
use super::{SESSION, assert_types, decode, line, message, names, of_agent, result, run, run_for};

fn sessions(events: &[AgentEvent]) -> Vec<&SessionStarted> {
    payloads(events).collect()
}

fn new_session() -> ExecuteParams {
    let mut params = ExecuteParams::new("hi");
    params.new_session_id = Some(SESSION.into());
    params
}

fn ready() -> String {
    line("session.tools_updated", &json!({"model": "gpt"}))
}

#[test]
fn session_named_by_the_last_line_is_known_from_the_first() {
    let skills = line("session.skills_loaded", &json!({"skills": []}));
    let (events, done) = run_for(
        &new_session(),
        &[skills.clone(), ready(), message("a", "x"), result(0)],
    );
    assert_types(&events, "session session text turn_end done");
    let reported = sessions(&events);
    assert_eq!(
        (&*reported[0].session_id, reported[0].model.as_deref()),
        (SESSION, None)
    );
    assert_eq!(reported[1].model.as_deref(), Some("gpt"));
    assert_eq!(done.session_id.as_deref(), Some(SESSION));
    // The same for a resumed session.
    let mut params = ExecuteParams::new("hi");
    params.session_id = Some(SESSION.into());
    let (events, _) = run_for(&params, &[skills]);
    assert_eq!(&*sessions(&events)[0].session_id, SESSION);
    // A session without a requested id is known at the end.
    let (events, done) = run(&[ready(), message("a", "x"), result(0)]);
    assert_types(&events, "text session turn_end done");
    assert_eq!(done.session_id.as_deref(), Some(SESSION));
}

#[test]
fn a_run_in_another_session_than_requested_is_noticed() {
    let mut params = ExecuteParams::new("hi");
    params.session_id = Some("00000000-0000-4000-8000-00000000000a".into());
    let (events, done) = run_for(&params, &[ready(), message("a", "x"), result(0)]);
    assert_types(&events, "session session text notice session turn_end done");
    let AgentEvent::Notice(notice) = &events[3] else {
        panic!("{events:?}")
    };
    assert_eq!(notice.level, NoticeLevel::Warning);
    assert!(notice.message.contains(SESSION), "{}", notice.message);
    assert_eq!(done.session_id.as_deref(), Some(SESSION));
}

#[test]
fn an_id_in_capitals_is_the_same_session() {
    let mut params = new_session();
    params.new_session_id = Some(SESSION.to_uppercase());
    let (events, _) = run_for(&params, &[message("a", "x"), result(0)]);
    assert_types(&events, "session text turn_end done");
}

#[test]
fn mcp_servers_are_reported_with_the_model_and_after_changes() {
    let status = |status: &str, error: Value| {
        line(
            "session.mcp_server_status_changed",
            &json!({"serverName": "tiny", "status": status, "error": error}),
        )
    };
    let loaded = line(
        "session.mcp_servers_loaded",
        &json!({"servers": [{"name": "tiny", "status": "pending"}]}),
    );
    let (events, _) = run_for(
        &new_session(),
        &[
            status("pending", Value::Null),
            loaded.clone(),
            ready(),
            ready(),
            loaded,
            status("connected", Value::Null),
            status("failed", json!("it exited")),
            status("failed", json!("it exited")),
        ],
    );
    let reported: Vec<_> = sessions(&events)
        .iter()
        .map(|s| {
            let servers = s.mcp_servers.iter().flatten();
            servers.map(|s| s.status.clone()).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(
        reported,
        [vec![], vec!["pending"], vec!["connected"], vec!["failed"]]
    );
    let notices = payloads::<Notice>(&events).map(|n| n.message.as_str());
    assert_eq!(
        notices.collect::<Vec<_>>(),
        ["the MCP server tiny failed: it exited"]
    );
}

fn abort() -> String {
    line("abort", &json!({"reason": "user_initiated"}))
}

#[test]
fn exit_code_0_of_an_interrupted_run_is_no_success() {
    let idle = line("assistant.idle", &json!({"aborted": true}));
    for lines in [
        vec![message("a", "half"), abort(), result(0)],
        vec![message("a", "half"), idle.clone(), result(0)],
        vec![message("a", "half"), abort(), idle, result(0)],
    ] {
        let (events, done) = run(&lines);
        assert_types(&events, "text session error turn_end done");
        assert_eq!(done.status, RunStatus::Failed);
        assert_eq!(done.errors[0].kind, ErrorKind::Aborted);
        assert_eq!(done.text, "half");
    }
}

#[test]
fn an_interrupted_run_without_its_last_line_is_no_success() {
    let exit = Exit {
        code: Some(0),
        stderr: "Error executing prompt: Error: Cannot invoke native session after disposal has \
                 started"
            .into(),
        ..Exit::default()
    };
    let lines = [message("a", "half"), abort()];
    let (_, done) = decode(CopilotDecoder::new(), &lines, exit.clone());
    assert_eq!(done.status, RunStatus::Failed);
    assert_eq!(done.errors.len(), 1);
    assert_eq!(done.errors[0].kind, ErrorKind::Aborted);
    // Even that line is missing.
    let (_, done) = decode(CopilotDecoder::new(), &lines[..1], exit);
    assert_eq!(done.errors[0].code, ErrorCode::CliStderr);
    assert_eq!(done.errors[0].kind, ErrorKind::Aborted);
}

#[test]
fn an_ordered_stop_is_no_error_of_the_cli() {
    let reported = line(
        "session.info",
        &json!({"infoType": "cancellation", "message": "Operation cancelled by user"}),
    );
    let (events, _) = run(&[reported, abort(), result(0)]);
    assert_types(&events, "session error turn_end done");
}

#[test]
fn a_limit_of_credits_is_a_budget() {
    let (_, done) = run(&[
        line("abort", &json!({"reason": "autopilot_credit_limit"})),
        result(0),
    ]);
    assert_eq!(done.errors[0].kind, ErrorKind::Budget);
}

#[test]
fn stopping_a_sub_agent_interrupts_no_other() {
    let aborted = of_agent("A", "abort", &json!({"reason": "user_abort"}));
    let (_, done) = run(&[aborted, message("a", "x"), result(0)]);
    assert_eq!(done.status, RunStatus::Completed);
}

#[test]
fn a_last_line_with_another_code_and_no_reason_is_a_failure() {
    let (_, done) = run(&[message("a", "x"), result(1)]);
    assert_eq!(done.status, RunStatus::Failed);
    assert_eq!(
        done.errors[0].message,
        "the CLI ended the run with code 1 and said nothing about why"
    );
}

#[test]
fn session_time_is_the_run_time_only_for_a_new_session() {
    let lines = [message("a", "x"), result(0)];
    assert_eq!(run_for(&new_session(), &lines).1.api_duration_ms, Some(291));
    let mut resumed = ExecuteParams::new("hi");
    resumed.session_id = Some(SESSION.into());
    assert_eq!(run_for(&resumed, &lines).1.api_duration_ms, None);
    assert_eq!(run(&lines).1.api_duration_ms, None);
    // A session may exist under a chosen id: then it is resumed, not new.
    let home = tempfile::tempdir().unwrap();
    let mut chosen = new_session();
    let path = home.path().display().to_string();
    chosen.env.insert("COPILOT_HOME".into(), path);
    assert_eq!(run_for(&chosen, &lines).1.api_duration_ms, Some(291));
    let folder = home.path().join("session-state").join(SESSION);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("events.jsonl"), "").unwrap();
    assert_eq!(run_for(&chosen, &lines).1.api_duration_ms, None);
    // Failed requests are not counted.
    let none = json!({"type": "result", "sessionId": SESSION, "exitCode": 1,
        "usage": {"totalApiDurationMs": 0}});
    let (_, done) = run_for(&new_session(), &[none.to_string()]);
    assert_eq!(done.api_duration_ms, None);
}

#[test]
fn the_model_that_answers_may_change() {
    let (events, done) = run_for(
        &new_session(),
        &[
            ready(),
            line("session.model_change", &json!({"newModel": "other"})),
            message("a", "x"),
            result(0),
        ],
    );
    let models: Vec<_> = sessions(&events).iter().map(|s| s.model.clone()).collect();
    assert_eq!(models, [None, Some("gpt".into()), Some("other".into())]);
    // The answer itself names `m`.
    assert_eq!(done.model.as_deref(), Some("m"));
}

/// As Copilot 1.0.102 printed them, shortened.
#[test]
fn an_interrupted_call_of_an_earlier_process_is_a_warning() {
    let lost = line(
        "tool.execution_complete",
        &json!({"toolCallId": "c0", "model": "resumed", "interactionId": "resume", "success": false,
                "error": {"message": "Tool execution was interrupted before a result was recorded.", "code": "interrupted"}}),
    );
    let warning = line(
        "session.warning",
        &json!({"warningType": "interrupted_tools", "message": "1 tool call(s) had no recorded result at resume."}),
    );
    let (events, done) = run(&[lost, warning, result(0)]);
    assert_eq!(done.diagnostics.unknown, 0);
    assert!(names(&events).contains(&"notice"), "{:?}", names(&events));
}

#[test]
fn unknown_lines_are_shown_and_noise_is_not() {
    let (events, done) = run(&[
        line("session.something_new", &json!({"x": 1})),
        line("session.background_tasks_changed", &json!({})),
        line("user.message", &json!({"content": "hi"})),
        line(
            "tool.execution_partial_result",
            &json!({"partialOutput": "x"}),
        ),
        r#"{"type":"session.background_tasks_changed","data":{"#.to_owned(),
        "plain text".to_owned(),
        result(0),
    ]);
    assert_types(&events, "unknown notice notice session turn_end done");
    assert_eq!(done.diagnostics.unknown, 1);
    assert_eq!(done.diagnostics.malformed, 2);
}

#[test]
fn information_for_users_is_a_notice() {
    let event = |kind: &str, data: Value| {
        let (events, _) = run(&[line(kind, &data)]);
        match &events[0] {
            AgentEvent::Notice(notice) => (notice.level, notice.message.clone()),
            other => panic!("{other:?}"),
        }
    };
    let info = event(
        "session.info",
        json!({"infoType": "configuration", "message": "m"}),
    );
    assert_eq!(info, (NoticeLevel::Info, "m".into()));
    let warning = event(
        "session.warning",
        json!({"warningType": "interrupted_tools", "message": "w"}),
    );
    assert_eq!(warning, (NoticeLevel::Warning, "w".into()));
    let stopped = event(
        "session.autopilot_stopped",
        json!({"reason": "cap_reached"}),
    );
    assert_eq!(stopped.1, "autopilot stopped: cap_reached");
    let unfinished = event(
        "session.task_complete",
        json!({"success": false, "reason": "it is blocked"}),
    );
    assert_eq!(unfinished.1, "the task was not completed: it is blocked");
    let failed = event(
        "subagent.failed",
        json!({"agentDisplayName": "helper", "error": "it broke"}),
    );
    assert_eq!(failed.1, "the sub-agent \"helper\" failed: it broke");
    // From the schema of 1.0.102.
    let login = event("mcp.oauth_required", json!({"serverName": "tracker"}));
    let expected = "the MCP server tracker requires a login".to_owned();
    assert_eq!(login, (NoticeLevel::Warning, expected));
    let gone = event("session.model_deselected", json!({"previousModel": "m-1"}));
    assert_eq!(gone.1, "the model m-1 is no longer available");
    let asks = event("user_input.requested", json!({"question": "Which?"}));
    let expected = "the CLI waits for an answer to user_input.requested, which a run cannot give";
    assert_eq!(asks.1, expected);
}

#[test]
fn failure_of_a_sub_agent_is_reported_once_with_its_name() {
    let of = |kind: &str, data: &Value| of_agent("A", kind, data);
    let (events, _) = run(&[
        of(
            "subagent.started",
            &json!({"toolCallId": "1", "agentDisplayName": "helper"}),
        ),
        of(
            "session.error",
            &json!({"errorType": "query", "message": "400 No.", "statusCode": 400}),
        ),
        of(
            "subagent.failed",
            &json!({"toolCallId": "1", "agentDisplayName": "helper", "error": "400 No."}),
        ),
    ]);
    let notices = payloads::<Notice>(&events).map(|notice| notice.message.as_str());
    let expected = ["the sub-agent \"helper\" failed: 400 No."];
    assert_eq!(notices.collect::<Vec<_>>(), expected);
}

#[test]
fn bookkeeping_is_no_event() {
    for kind in ["model.turn_failed", "session.handoff", "command.completed"] {
        let (events, done) = run(&[line(kind, &json!({}))]);
        let event = |name: &&str| ["unknown", "notice"].contains(name);
        assert!(!names(&events).iter().any(event), "{kind}: {events:?}");
        assert_eq!(done.diagnostics.unknown, 0, "{kind}");
    }
}
