//! Permission policies.

use std::sync::{Arc, Mutex};

use serde_json::json;
use teamster_core::{
    AgentEvent, Decision, PermissionAnswer, PermissionMode, PermissionPolicy, RunStatus,
    SessionOptions, SessionRuntime, Turn,
};

use crate::stage::{MODELS, Stage, read, results};

const SCRIPT: &str = r#"
[[turn]]
parts = [{ shell = "touch by-shell" }, { write_file = { path = "by-write", content = "x" } }, { tool = { name = "glob", input = { pattern = "*" } } }]

[[turn]]
parts = [{ text = "Done." }]
"#;

fn decisions(events: &[AgentEvent]) -> Vec<(String, Decision)> {
    let decision = |event: &AgentEvent| match event {
        AgentEvent::Permission(event) => Some((event.tool_name.clone(), event.decision)),
        _ => None,
    };
    events.iter().filter_map(decision).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_requests_the_mode_decides() {
    for (mode, shell, write) in [
        (PermissionMode::Default, false, false),
        (PermissionMode::ReadOnly, false, false),
        (PermissionMode::AcceptEdits, false, true),
        (PermissionMode::Bypass, true, true),
    ] {
        let stage = Stage::new(SCRIPT).await;
        let (result, events) = stage
            .play(stage.params(MODELS[1], "Go.").permission(mode))
            .await;
        assert_eq!(result.status, RunStatus::Completed, "{mode}");
        assert_eq!(stage.file("by-shell").is_some(), shell, "{mode}");
        assert_eq!(stage.file("by-write").is_some(), write, "{mode}");
        let denied = usize::from(!shell) + usize::from(!write);
        assert_eq!(result.permission_denials.len(), denied, "{mode}");
        let failed = results(&events)
            .iter()
            .filter(|(failed, _)| *failed)
            .count();
        assert_eq!(failed, denied, "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_allow_and_deny_tools_of_a_run() {
    let stage = Stage::new(SCRIPT).await;
    let params = stage
        .params(MODELS[1], "Go.")
        .permission(PermissionMode::Default)
        .allowed_tools(["bash(touch *)"])
        .denied_tools(["glob"]);
    let (result, events) = stage.play(params).await;
    assert!(stage.file("by-shell").is_some() && stage.file("by-write").is_none());
    let denied: Vec<_> = result
        .permission_denials
        .iter()
        .map(|it| it.tool_name.as_str())
        .collect();
    assert_eq!(denied, ["write", "glob"]);
    assert_eq!(results(&events)[2].1, "denied: glob is denied in this run");
    let offered = stage.request(0)["tools"].to_string();
    assert!(
        offered.contains("\"name\":\"grep\"") && !offered.contains("\"name\":\"glob\""),
        "{offered}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_session_the_policy_answers() {
    let stage = Stage::new(SCRIPT).await;
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = asked.clone();
    let policy = PermissionPolicy::decide(move |request| {
        kept.lock()
            .unwrap()
            .push((request.tool_name.clone(), request.input.clone()));
        match request.tool_name.as_str() {
            "write" => PermissionAnswer::AllowWith(json!({"path": "changed", "content": "y"})),
            _ => PermissionAnswer::Deny(Some("not today".into())),
        }
    });
    let mut params = stage.params(MODELS[1], "");
    params.permission = PermissionMode::Default;
    let options = SessionOptions::new(params).permissions(policy);
    let session = stage.runtime.open(options).unwrap();
    let (result, events) = read(session.send(Turn::new("Go."))).await;
    assert_eq!(result.text, "Done.");
    assert_eq!(
        decisions(&events),
        [
            ("bash".to_owned(), Decision::Requested),
            ("bash".to_owned(), Decision::Denied),
            ("write".to_owned(), Decision::Requested),
            ("write".to_owned(), Decision::Allowed),
        ]
    );
    assert_eq!(
        result.permission_denials[0].reason.as_deref(),
        Some("not today")
    );
    assert_eq!(stage.file("changed").as_deref(), Some("y"));
    assert_eq!(asked.lock().unwrap().len(), 2);
    assert!(stage.request(1).to_string().contains("denied: not today"));
    session.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn panicking_policy_denies_and_a_waiting_one_is_interruptible() {
    let stage = Stage::new(SCRIPT).await;
    let mut params = stage.params(MODELS[1], "");
    params.permission = PermissionMode::AcceptEdits;
    let panics = PermissionPolicy::decide(|_| panic!("as the test wants it"));
    let options = SessionOptions::new(params.clone()).permissions(panics);
    let session = stage.runtime.open(options).unwrap();
    let (result, _) = read(session.send(Turn::new("Go."))).await;
    assert_eq!(result.permission_denials.len(), 1);

    let stage = Stage::new(SCRIPT).await;
    let mut params = stage.params(MODELS[1], "");
    params.permission = PermissionMode::AcceptEdits;
    let waits = PermissionPolicy::ask(|_| std::future::pending());
    let session = stage
        .runtime
        .open(SessionOptions::new(params).permissions(waits))
        .unwrap();
    let mut stream = session.send(Turn::new("Go."));
    loop {
        match stream.next().await.unwrap() {
            AgentEvent::Permission(event) if event.decision == Decision::Requested => break,
            _ => {}
        }
    }
    session.interrupt();
    assert_eq!(stream.result().await.status, RunStatus::Aborted);
}

#[tokio::test(flavor = "multi_thread")]
async fn path_and_command_rules_hold_for_every_spelling() {
    let script = r#"
[[turn]]
parts = [
    { tool = { name = "read", input = { path = "./.env" } } },
    { tool = { name = "grep", input = { pattern = "s3cret" } } },
    { tool = { name = "glob", input = { pattern = "*" } } },
    { tool = { name = "edit", input = { path = "sub/../.env", old_string = "s3", new_string = "x" } } },
    { shell = "true; cat .env" },
    { write_file = { path = "src/../.git/hooks/pre-commit", content = "x" } },
    { write_file = { path = "src/a.rs", content = "x" } },
]

[[turn]]
parts = [{ text = "Done." }]
"#;
    let stage = Stage::new(script).await;
    std::fs::write(stage.work().join(".env"), "KEY=s3cret").unwrap();
    std::fs::create_dir_all(stage.work().join("src")).unwrap();
    std::fs::create_dir_all(stage.work().join("sub")).unwrap();
    let params = stage
        .params(MODELS[1], "Go.")
        .permission(PermissionMode::AcceptEdits)
        .allowed_tools(["bash", "write(src/**)"])
        .denied_tools(["read(.env)", "bash(cat *)"]);
    let (result, events) = stage.play(params).await;
    let results = results(&events);
    let outputs: Vec<_> = results.iter().map(|(_, output)| output.as_str()).collect();
    let denied = "denied: read of this path is denied in this run (read(.env))";
    assert_eq!(
        outputs[..5],
        [
            denied,
            "No line matches.",
            "No file matches.",
            &denied.replacen("read", "edit", 1),
            "denied: `cat .env` is denied in this run (bash(cat *))",
        ]
    );
    assert!(
        outputs[5].contains("run or obey .git/hooks/pre-commit"),
        "{outputs:?}"
    );
    assert_eq!(stage.file("src/a.rs").as_deref(), Some("x"));
    assert_eq!(stage.file(".git/hooks/pre-commit"), None);
    assert_eq!(stage.file(".env").as_deref(), Some("KEY=s3cret"));
    assert!(!stage.request(1).to_string().contains("KEY="));
    let denials = result
        .permission_denials
        .iter()
        .map(|it| it.tool_name.as_str());
    assert_eq!(
        denials.collect::<Vec<_>>(),
        ["read", "edit", "bash", "write"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_a_policy_changes_is_held_to_the_rules() {
    let stage = Stage::new(SCRIPT).await;
    let policy = PermissionPolicy::decide(|request| match request.tool_name.as_str() {
        "write" => PermissionAnswer::AllowWith(json!({"path": "./no/../denied", "content": "y"})),
        _ => PermissionAnswer::AllowWith(json!({"command": "true; touch denied"})),
    });
    let mut params = stage.params(MODELS[1], "");
    params.permission = PermissionMode::Default;
    params.denied_tools = vec!["write(denied)".into(), "bash(touch *)".into()];
    std::fs::create_dir(stage.work().join("no")).unwrap();
    let options = SessionOptions::new(params).permissions(policy);
    let session = stage.runtime.open(options).unwrap();
    let (result, _) = read(session.send(Turn::new("Go."))).await;
    assert_eq!(
        result.permission_denials.len(),
        2,
        "{:?}",
        result.permission_denials
    );
    assert!(stage.file("denied").is_none());
    session.close().await;
}
