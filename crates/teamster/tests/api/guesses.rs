//! Code that an experienced Rust developer writes before reading the documentation. All of it must compile.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use teamster::orchestrator::{
    Action, Budget, Candidate, Orchestrator, OrchestratorConfig, RetryPolicy, RunEvent, RunRequest,
};
use teamster::{
    AgentError, AgentRuntime, ErrorCode, ErrorKind, ExecuteParams, Id, McpDelivery, PermissionMode,
    Providers, RunResult, RunStatus, RuntimeConfig, SharedRuntime, Text, Timeouts, ToolKind,
    ToolUse, Usage,
};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use crate::own_provider::MyProvider;

fn mock(name: &str, script: Script) -> Arc<MockRuntime> {
    Arc::new(MockRuntime::new(name).run(script))
}

fn no_login() -> AgentError {
    AgentError::new(ErrorCode::CliError, ErrorKind::Auth, "not logged in")
}

#[test]
fn inputs_are_built_by_value() {
    let d = Duration::from_secs(90);
    let id = String::from("0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f");

    let config = RuntimeConfig::default()
        .program("claude")
        .die_with_parent(true);
    assert_eq!(config.program.as_deref(), Some("claude".as_ref()));
    assert!(config.die_with_parent);

    let params = ExecuteParams::new("hi")
        .model("sonnet")
        .permission(PermissionMode::ReadOnly)
        .working_directory("x")
        .env("A", "b")
        .timeouts(Timeouts::default().idle(d))
        .resume(id);
    assert_eq!(params.model.as_deref(), Some("sonnet"));
    assert_eq!(params.permission, PermissionMode::ReadOnly);
    assert_eq!(params.working_directory.as_deref(), Some("x".as_ref()));
    assert_eq!(params.env["A"], "b");
    assert_eq!(params.timeouts.idle, Some(d));
    assert_eq!(params.timeouts.startup, None);
    assert_eq!(
        params.session_id.as_deref(),
        Some("0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f")
    );
    let params = params
        .allowed_tools(["Bash(git *)"])
        .add_dirs(["/a", "/b"])
        .max_turns(3);
    assert_eq!(params.allowed_tools, ["Bash(git *)"]);
    assert_eq!(params.add_dirs.len(), 2);
    assert_eq!(params.max_turns, Some(3));

    let policy = RetryPolicy::default()
        .retries(1)
        .on(ErrorKind::Auth, Action::End);
    assert_eq!(policy.retries, 1);
    assert_eq!(policy.action(&no_login()), Action::End);

    let text = Text::new("hi");
    assert_eq!(text.text, "hi");
    let text = text.message_id("m1").parent_tool_id(None::<Id>);
    assert_eq!(text.message_id.as_deref(), Some("m1"));
    assert_eq!(text.parent_tool_id, None);
    let result = RunResult::default()
        .status(RunStatus::Completed)
        .text("Done.")
        .usage(Usage::default().input_tokens(3))
        .duration_ms(1_500);
    assert_eq!(result.usage.and_then(|usage| usage.total_tokens()), Some(3));
    assert_eq!(no_login().retry_after_ms(250).retry_after_ms, Some(250));
    let tool = ToolUse::new("Bash", "id", ToolKind::Execute, json!({}));
    assert_eq!((&*tool.tool_name, &*tool.tool_id), ("Bash", "id"));
}

#[test]
fn a_setting_has_one_spelling() -> Result<(), AgentError> {
    let mode = "read-only".parse::<PermissionMode>()?;
    assert_eq!(mode, PermissionMode::ReadOnly);
    assert_eq!(mode.to_string(), "read-only");
    assert_eq!(serde_json::to_value(mode).unwrap(), "read-only");
    for written in ["read-only", "read_only"] {
        assert_eq!(
            serde_json::from_value::<PermissionMode>(json!(written)).unwrap(),
            mode
        );
    }
    assert_eq!(
        "user-config".parse::<McpDelivery>()?,
        McpDelivery::UserConfig
    );
    assert_eq!("rate_limit".parse::<ErrorKind>()?, ErrorKind::RateLimit);
    Ok(())
}

#[tokio::test]
async fn a_run_and_its_stream_are_awaited() -> Result<(), AgentError> {
    let runtime: SharedRuntime = mock("claude", Script::new().failed(no_login()));
    let other = mock("codex", Script::new().text("Done.").completed());
    let params = ExecuteParams::new("hi");
    let candidate = Candidate::new(other, params.clone());
    let policy = RetryPolicy::default().retries(1);
    let budget = Budget::default().usd(0.5);
    let orchestrator = Orchestrator::new(OrchestratorConfig::default())?;

    let request = RunRequest::new(runtime, params)
        .fallback(candidate)
        .retry(policy)
        .budget(budget);
    let outcome = orchestrator.start(request).await; // Run: IntoFuture
    assert_eq!(outcome.answer(), Some("Done."));
    assert!(outcome.is_success());
    assert_eq!(outcome.error(), None);
    assert_eq!(outcome.into_result()?.attempts.len(), 2);

    let runtime = mock("claude", Script::new().text("It is done.").completed());
    let params = ExecuteParams::new("hi");
    let result: RunResult = runtime.execute(params).await; // EventStream: IntoFuture
    assert!(result.is_success());
    assert_eq!(result.error(), None);
    assert_eq!(result.answer(), Some("It is done."));
    assert_eq!(result.into_result()?.status, RunStatus::Completed);
    Ok(())
}

#[tokio::test]
async fn a_run_that_is_awaited_is_a_stream_too() -> Result<(), AgentError> {
    let orchestrator = Orchestrator::new(OrchestratorConfig::default())?;
    let runtime = mock("claude", Script::new().failed(no_login()));
    let mut run = orchestrator.start(RunRequest::new(runtime, ExecuteParams::new("hi")));
    let mut last = None;
    while let Some(event) = run.next().await {
        last = Some(event);
    }
    let Some(RunEvent::End(outcome)) = last else {
        panic!("{last:?}");
    };
    assert_eq!(outcome.result.status, RunStatus::Failed);
    assert_eq!(
        outcome.error().map(|error| error.code),
        Some(ErrorCode::CliError)
    );
    assert_eq!(outcome.into_result().unwrap_err(), no_login());

    let runtime = mock("claude", Script::new().failed(no_login()));
    let params = ExecuteParams::new("hi");
    let result = runtime.execute(params).await;
    assert_eq!(result.error(), Some(&no_login()));
    assert_eq!(result.into_result().unwrap_err(), no_login());
    Ok(())
}

#[test]
fn a_provider_of_ones_own_has_a_name() -> Result<(), AgentError> {
    let providers = Providers::builtin().with(Arc::new(MyProvider));
    let runtime = providers.runtime("my-agent", RuntimeConfig::default())?;
    assert_eq!(runtime.id(), "my-agent");
    assert_eq!(providers.get("My Agent").unwrap().info().id, "my-agent");
    assert_eq!(providers.all().len(), Providers::builtin().all().len() + 1);

    let params = ExecuteParams::new("hi");
    let candidate = providers.candidate("my-agent", RuntimeConfig::default(), params)?;
    assert_eq!(candidate.provider(), "my-agent");

    let error = providers
        .session_runtime("my-agent", RuntimeConfig::default())
        .err()
        .unwrap();
    assert_eq!(error.code, ErrorCode::InvalidParams);
    let error = providers
        .runtime("no-such", RuntimeConfig::default())
        .err()
        .unwrap();
    assert!(error.message.ends_with(", my-agent"), "{error}");
    Ok(())
}

#[tokio::test]
async fn single_call_runs_an_agent_with_fallbacks() {
    let first = mock("claude", Script::new().failed(no_login()));
    let second = mock("codex", Script::new().text("Done.").completed());
    let params = ExecuteParams::new("hi");
    let fallback = Candidate::for_other_provider(second, &params).unwrap();
    let mut run = teamster::execute_agent_run(first, params, [fallback]).unwrap();
    let mut names = Vec::new();
    let mut last = None;
    while let Some(event) = run.next().await {
        names.push(serde_json::to_value(&event).unwrap()["type"].clone());
        last = Some(event);
    }
    assert_eq!(
        names,
        [
            "run:start",
            "run:attempt",
            "run:fallback",
            "run:attempt",
            "assistant:chunk",
            "assistant:message",
            "run:end"
        ]
    );
    let Some(RunEvent::End(outcome)) = last else {
        panic!("{last:?}");
    };
    assert_eq!(outcome.answer(), Some("Done."));
}
