//! Recorded parameters and numbers of runs.

use teamster_core::{
    AgentRuntime, Capabilities, ErrorCode, ErrorKind, McpDelivery, McpServer, PermissionMode,
    RunStatus, SubAgent, SystemPrompt,
};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use super::{drain, params, result, types};

#[tokio::test]
async fn without_a_script_a_run_fails() {
    let mock = MockRuntime::new("claude").run(Script::new());
    mock.execute(params()).result().await;
    let events = drain(mock.execute(params())).await;
    assert_eq!(types(&events), ["error", "done"]);
    let result = result(&events);
    assert_eq!(result.status, RunStatus::Failed);
    let error = &result.errors[0];
    assert_eq!(
        (error.code, error.kind),
        (ErrorCode::Io, ErrorKind::Internal)
    );
    assert!(!error.retryable);
    for part in ["\"claude\"", "number 2", "repeat_last"] {
        assert!(error.message.contains(part), "{}", error.message);
    }
    assert_eq!((mock.runs().len(), mock.active()), (2, 0));

    mock.add(Script::new().text("late"));
    assert_eq!(mock.execute(params()).result().await.text, "late");

    // There is no script to repeat either.
    let empty = MockRuntime::new("claude").repeat_last();
    let result = empty.execute(params()).result().await;
    assert_eq!(result.status, RunStatus::Failed);
}

#[tokio::test]
async fn the_last_script_is_repeated_or_a_function_is_asked() {
    let mock = MockRuntime::new("claude")
        .run(Script::new().text("a"))
        .run(Script::new().text("b"))
        .repeat_last();
    for expected in ["a", "b", "b", "b"] {
        assert_eq!(mock.execute(params()).result().await.text, expected);
    }
    let inner = MockRuntime::new("claude").run(Script::new().text("queued"));
    let asks = inner.clone();
    // The function may query the runtime that calls it.
    let mock = inner.run_by(move |params| {
        Script::new().text(format!("{} {}", params.prompt, asks.runs().len()))
    });
    for expected in ["queued", "do it 2", "do it 3"] {
        assert_eq!(mock.execute(params()).result().await.text, expected);
    }
}

#[tokio::test]
async fn missing_capabilities_are_refused_before_the_start() {
    let mut mock = MockRuntime::new("gemini").run(Script::new());
    mock.capabilities_mut().model = false;
    assert!(!mock.capabilities().model);
    let mut with_model = params();
    with_model.model = Some("opus".into());
    let result = mock.execute(with_model).result().await;
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].code, ErrorCode::InvalidParams);
    assert!(result.errors[0].message.starts_with("model:"));
    assert_eq!((mock.runs().len(), mock.scripts_left()), (0, 1));

    let mock = mock.supporting(Capabilities::none());
    let mut resumed = params();
    resumed.session_id = Some("s1".into());
    let result = mock.execute(resumed).result().await;
    assert!(result.errors[0].message.starts_with("session_id:"));
}

#[tokio::test]
async fn all_that_can_be_asked_is_honoured_by_default() {
    let mut params = params();
    params.session_id = Some("s1".into());
    params.fork = true;
    params.new_session_id = Some("s2".into());
    params.slash_commands = true;
    params.add_dirs = vec!["/".into()];
    params.skills = vec!["/skill".into()];
    params.sub_agents = vec![SubAgent::new("a", "b", "c")];
    params.model = Some("m".into());
    params.effort = Some("high".into());
    params.system_prompt = Some(SystemPrompt::Replace("x".into()));
    params.allowed_tools = vec!["a".into()];
    params.denied_tools = vec!["b".into()];
    params.max_turns = Some(1);
    params.max_budget_usd = Some(1.0);
    params.output_schema = Some(serde_json::json!({}));
    params.cli_retries = Some(1);
    params.mcp_strict = true;
    let mut server = McpServer::stdio("db", "db-mcp", ["x"]);
    server.tools.only = Some(vec!["q".into()]);
    params.mcp_servers = vec![server, McpServer::http("docs", "https://mcp.example.com")];
    for delivery in [
        McpDelivery::Private,
        McpDelivery::ProjectConfig,
        McpDelivery::UserConfig,
    ] {
        for permission in [
            PermissionMode::Default,
            PermissionMode::ReadOnly,
            PermissionMode::AcceptEdits,
            PermissionMode::Bypass,
        ] {
            let mut params = params.clone();
            params.mcp_delivery = delivery;
            params.permission = permission;
            // With `strict` a provider may only accept private deliveries.
            params.mcp_strict = delivery == McpDelivery::Private;
            let mock = MockRuntime::new("claude").run(Script::new());
            let result = mock.execute(params).result().await;
            assert_eq!(result.errors, []);
        }
    }
}
