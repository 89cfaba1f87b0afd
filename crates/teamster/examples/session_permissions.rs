//! A session in which the application answers permission requests.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use serde_json::json;
use teamster::{
    AgentError, ExecuteParams, PermissionAnswer, PermissionPolicy, PermissionRequest, RunStatus,
    SessionOptions, SessionRuntime, ToolKind, Turn,
};
use teamster_testkit::mock_runtime::{MockSessions, Script};

/// Stands in for `teamster::create_session_runtime("claude", RuntimeConfig::default())?`.
fn runtime() -> MockSessions {
    let command = |id, command| {
        let input = json!({"command": command});
        Script::new()
            .session("s-1")
            .ask_tool("Bash", id, ToolKind::Execute, input, "ok")
    };
    MockSessions::new("claude")
        .turn(
            command("t1", "cargo test")
                .text("All tests pass.")
                .completed(),
        )
        .turn(
            command("t2", "git push")
                .text("I may not push.")
                .completed(),
        )
}

/// Allows read-only tools, runs tests offline, and denies all else.
fn decide(request: &PermissionRequest) -> PermissionAnswer {
    match request.input["command"].as_str() {
        _ if !request.kind.has_side_effects() => PermissionAnswer::Allow,
        Some(command) if command.starts_with("cargo test") => {
            PermissionAnswer::AllowWith(json!({"command": format!("{command} --offline")}))
        }
        _ => PermissionAnswer::deny("only tests may run here"),
    }
}

#[tokio::main]
async fn main() -> Result<(), AgentError> {
    let runtime = runtime();
    let options = SessionOptions::new(ExecuteParams::new("").working_directory("."))
        .permissions(PermissionPolicy::decide(decide));
    let session = runtime.open(options)?;

    let first = session
        .send(Turn::new("Do the tests pass?"))
        .await
        .into_result()?;
    // Its only call is denied, so this turn is incomplete: `into_result` would be an error.
    let second = session.send(Turn::new("Then push")).await;
    session.close().await;

    println!("{:?}\n{:?}", first.answer(), second.answer());
    assert_eq!(first.answer(), Some("All tests pass."));
    assert_eq!(second.status, RunStatus::Incomplete);
    assert_eq!(second.permission_denials.len(), 1);
    let answers: Vec<_> = runtime
        .answers()
        .into_iter()
        .map(|(_, answer)| answer)
        .collect();
    assert_eq!(
        answers[0],
        PermissionAnswer::AllowWith(json!({"command": "cargo test --offline"}))
    );
    assert!(matches!(answers[1], PermissionAnswer::Deny(_)));
    Ok(())
}

#[cfg(test)]
#[test]
fn the_example_runs() {
    main().unwrap();
}
