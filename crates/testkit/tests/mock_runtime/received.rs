//! Recorded parameters and numbers of runs.

use std::sync::Arc;

use teamster_core::{
    AgentRuntime, Capabilities, ErrorCode, ErrorKind, ExecuteParams, McpDelivery, McpServer,
    PermissionMode, RunStatus, SharedRuntime, SubAgent, SystemPrompt,
};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use super::{drain, params, result, types};

#[tokio::test]
async fn scripts_are_taken_in_the_order_of_the_first_polls() {
    let mock = MockRuntime::new("claude")
        .run(Script::new().text("first"))
        .run(Script::new().text("second"));
    let (a, b) = (
        mock.execute(ExecuteParams::new("a")),
        mock.execute(ExecuteParams::new("b")),
    );
    assert_eq!((mock.runs().len(), mock.scripts_left()), (0, 2));
    assert_eq!(b.result().await.text, "first");
    assert_eq!(a.result().await.text, "second");
    let asked: Vec<_> = mock
        .runs()
        .into_iter()
        .map(|run| run.params.prompt)
        .collect();
    assert_eq!(asked, ["b", "a"]);
    assert_eq!(mock.scripts_left(), 0);
}

#[tokio::test]
async fn parameters_are_kept_completely() {
    let mock = MockRuntime::new("codex").run(Script::new());
    let runtime: SharedRuntime = Arc::new(mock.clone());
    assert_eq!(runtime.id(), "codex");
    let mut params = params();
    params.session_id = Some("s1".into());
    params.env.insert("K".into(), "V".into());
    params.permission = PermissionMode::Bypass;
    runtime.execute(params).result().await;
    let runs = mock.runs();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].params.session_id.as_deref(), Some("s1"));
    assert_eq!(runs[0].params.env["K"], "V");
    assert_eq!(runs[0].params.permission, PermissionMode::Bypass);
}

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
async fn runs_at_once_are_counted() {
    let mock = MockRuntime::new("claude")
        .run(Script::new().wait_for_abort())
        .repeat_last();
    assert_eq!((mock.active(), mock.max_active()), (0, 0));
    let mut readers = Vec::new();
    for _ in 0..5 {
        let stream = mock.execute(params());
        readers.push((stream.abort_handle(), tokio::spawn(drain(stream))));
    }
    mock.wait_for_runs(5).await;
    assert_eq!((mock.active(), mock.max_active()), (5, 5));
    for (ended, (abort, reader)) in readers.into_iter().enumerate() {
        abort.abort();
        reader.await.unwrap();
        assert_eq!(mock.active(), 4 - ended);
    }
    mock.wait_until_idle().await;
    // The maximum does not decrease.
    mock.add(Script::new().text("a").wait_for_abort());
    let mut sixth = mock.execute(params());
    sixth.next().await.unwrap();
    assert_eq!((mock.active(), mock.max_active()), (1, 5));
    assert_eq!(mock.runs().len(), 6);
}

#[tokio::test]
async fn a_run_is_over_when_done_is_read_and_when_it_is_dropped() {
    let mock = MockRuntime::new("claude")
        .run(Script::new().text("a"))
        .run(Script::new().breaks_off())
        .run(Script::new().text("a").wait_for_abort());
    let mut stream = mock.execute(params());
    stream.next().await.unwrap();
    assert_eq!(mock.active(), 1);
    assert_eq!(stream.next().await.unwrap().type_name(), "done");
    assert_eq!(mock.active(), 0);

    let mut stream = mock.execute(params());
    assert_eq!(stream.next().await, None);
    assert_eq!(mock.active(), 0);

    let mut stream = mock.execute(params());
    stream.next().await.unwrap();
    assert_eq!(mock.active(), 1);
    drop(stream);
    assert_eq!((mock.active(), mock.max_active()), (0, 1));
}

#[tokio::test]
async fn a_run_that_panicked_is_over() {
    let mock = MockRuntime::new("claude").run(Script::new().panic("boo"));
    let run = tokio::spawn(mock.execute(params()).result());
    let panic = run.await.unwrap_err().into_panic();
    assert_eq!(panic.downcast_ref::<String>().unwrap(), "boo");
    assert_eq!(mock.active(), 0);
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
