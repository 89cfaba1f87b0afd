//! One task, two agents: retry, fallback, and reactions to errors.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;
use std::time::Duration;

use teamster::orchestrator::{
    Action, Budget, Candidate, Orchestrator, OrchestratorConfig, RetryPolicy, RunEvent, RunRequest,
};
use teamster::{AgentError, BudgetKind, ErrorCode, ErrorKind, ExecuteParams, SharedRuntime};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

/// Stands in for `teamster::create_cli_runtime("claude", RuntimeConfig::default())?`.
fn claude() -> SharedRuntime {
    let overloaded = AgentError::new(ErrorCode::CliError, ErrorKind::Overloaded, "529");
    let no_login = AgentError::new(ErrorCode::CliError, ErrorKind::Auth, "log in again");
    let mock = MockRuntime::new("claude");
    Arc::new(
        mock.run(Script::new().failed(overloaded))
            .run(Script::new().failed(no_login)),
    )
}

/// Stands in for `teamster::create_cli_runtime("codex", RuntimeConfig::default())?`.
fn codex() -> SharedRuntime {
    let script = Script::new().text("Three tests are flaky.").completed();
    Arc::new(MockRuntime::new("codex").run(script))
}

/// Returns an application's reaction to an error, by its fields and never by its message.
fn advice(error: &AgentError) -> String {
    match (error.parameter(), error.budget(), error.kind) {
        (Some(parameter), _, _) => format!("change `{parameter}`"),
        (_, Some(BudgetKind::Time), _) => "allow more time".to_owned(),
        (_, Some(budget), _) => format!("raise the budget of {budget}"),
        (_, _, ErrorKind::Auth) => "log in".to_owned(),
        _ if error.retryable => "try again later".to_owned(),
        _ => "give up".to_owned(),
    }
}

#[tokio::main]
async fn main() -> Result<(), AgentError> {
    let orchestrator = Orchestrator::new(OrchestratorConfig::default())?;
    let params = ExecuteParams::new("Which tests are flaky?").model("sonnet");
    // The other agent does not know the model's name, so it is left out.
    let other = Candidate::for_other_provider(codex(), &params)?.model("gpt-5");
    let policy = RetryPolicy::default()
        .retries(1)
        .base_delay(Duration::from_millis(1))
        .on(ErrorKind::ContextWindow, Action::End);
    let request = RunRequest::new(claude(), params)
        .fallback(other)
        .retry(policy)
        .budget(Budget::default().usd(0.5));

    let mut run = orchestrator.start(request);
    let mut log = Vec::new();
    while let Some(event) = run.next().await {
        match event {
            RunEvent::Retry { reason, .. } => log.push(format!("retry: {}", reason.kind)),
            RunEvent::Fallback { reason, next, .. } => {
                log.push(format!(
                    "{}: {}, so {}",
                    reason.kind,
                    advice(&reason),
                    next.provider
                ));
            }
            RunEvent::End(outcome) => {
                log.push(outcome.answer().unwrap_or("no answer").to_owned());
            }
            _ => {}
        }
    }
    println!("{}", log.join("\n"));
    assert_eq!(
        log,
        [
            "retry: overloaded",
            "auth: log in, so codex",
            "Three tests are flaky."
        ]
    );
    Ok(())
}

#[cfg(test)]
#[test]
fn the_example_runs() {
    main().unwrap();
}
