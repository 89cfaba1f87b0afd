//! Tests of the exact events of runs.

use serde_json::{Value, json};
use teamster_core::{
    AgentEvent, ErrorKind, Outcome, RunEvent, RunLogEntry, RunResult, RunStatus, ToolKind,
};
use teamster_orchestrator::{Orchestrator, RunRequest};
use teamster_testkit::mock_runtime::Script;

use crate::common::*;

async fn wire(orchestrator: &Orchestrator, request: RunRequest) -> Vec<Value> {
    let events = events(orchestrator.start(request)).await;
    let mut lines = Vec::new();
    for event in events {
        let line = serde_json::to_value(&event).unwrap();
        let back: RunEvent = serde_json::from_value(line.clone()).unwrap();
        assert_eq!(serde_json::to_value(&back).unwrap(), line);
        if !matches!(event, RunEvent::End(_)) {
            assert_eq!(back, event);
        }
        assert_eq!(line["type"], event.type_name());
        lines.push(line);
    }
    lines
}

#[tokio::test(start_paused = true)]
async fn a_run_with_a_tool_word_for_word() {
    let claude = mock(
        "claude",
        [Script::new()
            .session("s1")
            .model("opus")
            .text("let me ")
            .text("look")
            .tool_use("Read", "t1", ToolKind::Read, json!({"path": "x"}))
            .delay(ms(70))
            .tool_result("t1", "y")
            .delay(ms(5))
            .text("it is y")
            .num_turns(2)
            .cost_usd(0.25)
            .completed()],
    );
    let lines = wire(&orchestrator(), request(&[&claude])).await;
    assert_eq!(
        lines,
        [
            json!({"type": "run:start", "runId": "r", "sessionId": "s1", "provider": "claude", "model": "opus"}),
            json!({"type": "run:attempt", "runId": "r", "attempt": 1, "provider": "claude"}),
            json!({"type": "assistant:chunk", "runId": "r", "content": "let me "}),
            json!({"type": "assistant:chunk", "runId": "r", "content": "look"}),
            json!({"type": "assistant:message", "runId": "r", "content": "let me look"}),
            json!({"type": "tool:start", "runId": "r", "toolName": "Read", "toolId": "t1"}),
            json!({"type": "tool:end", "runId": "r", "toolName": "Read", "toolId": "t1", "durationMs": 70, "isError": false}),
            json!({"type": "assistant:chunk", "runId": "r", "content": "it is y"}),
            json!({"type": "assistant:message", "runId": "r", "content": "it is y"}),
            json!({"type": "run:end", "runId": "r", "status": "success", "runStatus": "completed", "durationMs": 75, "result": {
                "payloads": [{"text": "let me look"}, {"text": "it is y"}],
                "meta": {
                    "runId": "r", "status": "success", "sessionId": "s1", "provider": "claude", "model": "opus",
                    "durationMs": 75, "attempts": 1, "costUsd": 0.25,
                    "costSource": "reported", "numTurns": 2,
                    "attemptLog": [{"provider": "claude", "model": "opus", "sessionId": "s1", "resumed": false,
                                    "durationMs": 75, "costUsd": 0.25,
                                    "costSource": "reported"}],
                },
            }}),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn unknown_figures_are_absent() {
    let codex = mock("codex", [Script::new()]);
    let lines = wire(&orchestrator(), request(&[&codex])).await;
    assert_eq!(
        lines,
        [
            json!({"type": "run:start", "runId": "r", "provider": "codex"}),
            json!({"type": "run:attempt", "runId": "r", "attempt": 1, "provider": "codex"}),
            json!({"type": "run:end", "runId": "r", "status": "success", "runStatus": "completed", "durationMs": 0, "result": {
                "payloads": [],
                "meta": {"runId": "r", "status": "success", "provider": "codex", "durationMs": 0, "attempts": 1,
                         "attemptLog": [{"provider": "codex", "resumed": false, "durationMs": 0}]},
            }}),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn retry_fallback_and_error_word_for_word() {
    let claude = mock(
        "claude",
        [
            Script::new()
                .session("a")
                .tool_use("Bash", "t", ToolKind::Execute, json!({}))
                .tool_error("t", "no")
                .failed(error(ErrorKind::Overloaded)),
            fails(ErrorKind::ContextWindow),
        ],
    );
    let second = mock("claude", [fails(ErrorKind::Invalid)]);
    let mut request = request(&[&claude, &second]);
    request.candidates[1].params.model = Some("haiku".into());
    let lines = wire(&orchestrator(), request).await;
    let reason = |kind: &str, message: &str, retryable: bool| json!({"code": "CLI_ERROR", "kind": kind, "message": message, "retryable": retryable});
    assert_eq!(
        lines[4],
        json!({"type": "run:retry", "runId": "r", "delayMs": 1000,
               "reason": reason("overloaded", "Overloaded", true),
               "next": {"attempt": 2, "provider": "claude", "resumes": "a"}})
    );
    assert_eq!(
        lines[5],
        json!({"type": "run:attempt", "runId": "r", "attempt": 2, "provider": "claude", "resumes": "a"})
    );
    assert_eq!(
        lines[6],
        json!({"type": "run:fallback", "runId": "r", "delayMs": 0,
               "reason": reason("context_window", "ContextWindow", false),
               "next": {"attempt": 3, "provider": "claude", "model": "haiku", "resumes": "a"}})
    );
    assert_eq!(
        lines[7],
        json!({"type": "run:attempt", "runId": "r", "attempt": 3, "provider": "claude", "model": "haiku",
               "resumes": "a"})
    );
    assert_eq!(
        lines[8],
        json!({"type": "run:error", "runId": "r", "error": reason("invalid", "Invalid", false)})
    );
    let end = &lines[9];
    assert_eq!(end["status"], "error");
    assert_eq!(
        end["result"]["meta"]["error"],
        reason("invalid", "Invalid", false)
    );
    assert_eq!(end["result"]["meta"]["sessionId"], "a");
    let log = &end["result"]["meta"]["attemptLog"];
    assert_eq!(
        log[1],
        json!({"provider": "claude", "sessionId": "a", "resumed": true, "durationMs": 0,
               "error": reason("context_window", "ContextWindow", false)})
    );
    assert_eq!(lines.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn an_aborted_run_is_aborted_on_the_wire() {
    let claude = mock("claude", [Script::new().wait_for_abort()]);
    let request = request(&[&claude]);
    let cancel = request.candidates[0].params.cancel.clone();
    cancel.cancel();
    let lines = wire(&orchestrator(), request).await;
    let error = json!({"code": "ABORTED", "kind": "aborted", "message": "the run was aborted", "retryable": false});
    assert_eq!(
        lines[1],
        json!({"type": "run:end", "runId": "r", "status": "aborted", "runStatus": "aborted", "durationMs": 0, "result": {
            "payloads": [],
            "meta": {"runId": "r", "status": "aborted", "provider": "claude", "durationMs": 0, "attempts": 0,
                     "error": error},
        }})
    );
    assert_eq!(lines.len(), 2);
    assert_eq!(claude.runs().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn ids_are_the_callers_or_new_and_in_order() {
    let claude = std::sync::Arc::new(
        teamster_testkit::mock_runtime::MockRuntime::new("claude").run_by(|_| Script::new()),
    );
    let orchestrator = orchestrator();
    assert_eq!(&**orchestrator.start(request(&[&claude])).id(), "r");
    let mut ids = Vec::new();
    for _ in 0..3 {
        let mut request = request(&[&claude]);
        request.id = None;
        ids.push(orchestrator.start(request).id().to_string());
    }
    for id in &ids {
        assert_eq!(id.len(), 36);
        assert_eq!(id.as_bytes()[14], b'7', "{id}");
    }
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test(start_paused = true)]
async fn callback_and_stream_get_the_same_events() {
    let claude = mock(
        "claude",
        [fails(ErrorKind::Network), Script::new().text("x")],
    );
    let (send, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let request = request(&[&claude]).on_event(move |event| send.send(event.clone()).unwrap());
    let read = events(orchestrator().start(request)).await;
    let mut called = Vec::new();
    while let Ok(event) = heard.try_recv() {
        called.push(event);
    }
    assert_eq!(called, read);
}

#[tokio::test(start_paused = true)]
async fn every_entry_of_a_log_is_read_again() {
    let claude = mock(
        "claude",
        [
            fails(ErrorKind::Overloaded),
            Script::new()
                .session("s1")
                .text("let me look")
                .tool_use("Read", "t1", ToolKind::Read, json!({"path": "x"}))
                .tool_result("t1", "y")
                .failed(error(ErrorKind::ContextWindow)),
        ],
    );
    let codex = mock("codex", [fails(ErrorKind::Auth)]);
    let mut log = orchestrator().start_log(request(&[&claude, &codex]));
    let mut names = Vec::new();
    while let Some(entry) = log.next().await {
        let line = serde_json::to_string(&entry).unwrap();
        let back: RunLogEntry = serde_json::from_str(&line).unwrap();
        assert_eq!(serde_json::to_string(&back).unwrap(), line);
        if let RunLogEntry::Run(entry) = &entry {
            names.push(entry.event.type_name());
            if let RunEvent::End(_) = entry.event {
                // The wire form has less data than the outcome.
                continue;
            }
        }
        assert_eq!(back, entry, "{line}");
    }
    for name in [
        "run:start",
        "run:retry",
        "run:fallback",
        "run:error",
        "run:end",
    ] {
        assert!(names.contains(&name), "{name} is not in {names:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_view_of_a_run_has_the_numbers_of_its_log() {
    let request = || {
        let claude = mock(
            "claude",
            [
                Script::new()
                    .session("s0")
                    .text("half")
                    .failed(error(ErrorKind::Overloaded)),
                Script::new()
                    .session("s1")
                    .text("let me look")
                    .tool_use("Read", "t1", ToolKind::Read, json!({"path": "x"}))
                    .tool_result("t1", "y")
                    .text("that is it")
                    .completed(),
            ],
        );
        request(&[&claude])
    };
    let orchestrator = orchestrator();
    let mut log = orchestrator.start_log(request());
    let (mut of_agents, mut of_run, mut count) = (Vec::new(), Vec::new(), 0);
    while let Some(entry) = log.next().await {
        count += 1;
        assert_eq!(entry.seq(), count);
        match entry {
            RunLogEntry::Agent(e) => of_agents.push((e.seq, e.attempt, e.event.type_name())),
            RunLogEntry::Run(e) => of_run.push((e.seq, e.attempt, e.event.type_name())),
            other => panic!("{other:?}"),
        }
    }

    let mut seen = Vec::new();
    let mut stream = orchestrator.execute(request());
    while let Some(e) = stream.next_entry().await {
        seen.push((e.seq, e.attempt, e.event.type_name()));
    }
    assert_eq!(seen, of_agents);

    let (mut seen, mut derived) = (Vec::new(), Vec::new());
    let mut run = orchestrator.start(request());
    while let Some(e) = run.next_entry().await {
        let entry = (e.seq, e.attempt, e.event.type_name());
        if e.event.is_derived() {
            derived.push(entry);
        } else {
            seen.push(entry);
        }
    }
    assert_eq!(seen, of_run);
    // Each derived event has the number of the entry that it follows from.
    let tool_use = of_agents.iter().find(|e| e.2 == "tool_use").unwrap();
    let tool_result = of_agents.iter().find(|e| e.2 == "tool_result").unwrap();
    let of_tool: Vec<_> = derived
        .iter()
        .filter(|e| e.2 != "assistant:chunk")
        .collect();
    assert_eq!(
        of_tool[..3],
        [
            &(tool_use.0, 2, "assistant:message"),
            &(tool_use.0, 2, "tool:start"),
            &(tool_result.0, 2, "tool:end"),
        ]
    );
}

#[test]
fn an_entry_of_a_newer_version_is_read_all_the_same() {
    let entry = |name: &str| {
        let line = json!({"seq": 3, "atMs": 5, "attempt": 2, "type": name, "of": ["it", 1]});
        let entry = serde_json::from_value::<RunLogEntry>(line.clone()).unwrap();
        // The entry is serialized as it was received.
        assert_eq!(serde_json::to_value(&entry).unwrap(), line);
        entry
    };
    let RunLogEntry::Run(of_run) = entry("run:paused") else {
        panic!("it is one of the run");
    };
    assert_eq!((of_run.seq, of_run.at_ms, of_run.attempt), (3, 5, 2));
    assert!(matches!(&of_run.event, RunEvent::Newer(newer) if newer.type_name() == "run:paused"));
    let RunLogEntry::Agent(of_agent) = entry("hologram") else {
        panic!("it is one of an agent");
    };
    assert_eq!((of_agent.seq, of_agent.attempt), (3, 2));
    assert!(matches!(&of_agent.event, AgentEvent::Newer(newer) if newer.type_name() == "hologram"));
}

#[test]
fn the_end_of_a_run_keeps_its_status() {
    let mut result = RunResult::default();
    result.status = RunStatus::TimedOut;
    let end = RunEvent::End(Box::new(Outcome::new("r", "claude", result)));
    let mut line = serde_json::to_value(&end).unwrap();
    assert_eq!(
        (&line["status"], &line["runStatus"]),
        (&json!("error"), &json!("timed_out"))
    );
    let status = |line: &Value| match serde_json::from_value(line.clone()).unwrap() {
        RunEvent::End(outcome) => outcome.result.status,
        other => panic!("{other:?}"),
    };
    assert_eq!(status(&line), RunStatus::TimedOut);
    line.as_object_mut().unwrap().remove("runStatus");
    assert_eq!(status(&line), RunStatus::Failed);
}
