//! Fifty runs, eight at a time, which are all stopped when one finds the bug.
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use teamster::orchestrator::{Limits, Orchestrator, OrchestratorConfig, RunRequest};
use teamster::{AgentError, ExecuteParams, PermissionMode, RunStatus, SharedRuntime};
use teamster_testkit::mock_runtime::{MockRuntime, Script};
use tokio::task::JoinSet;

/// Stands in for `teamster::create_cli_runtime("claude", RuntimeConfig::default())?`.
fn runtime() -> SharedRuntime {
    Arc::new(MockRuntime::new("claude").run_by(|params| {
        let found = params.prompt.ends_with("module 20");
        let script = Script::new();
        // Seven runs work until they are stopped. They are fewer than the slots, so module 20 gets a slot in
        // any order of the runs.
        let script = match params.prompt.rsplit(' ').next() {
            Some(number) if number.parse().is_ok_and(|number: u32| number > 43) => {
                script.wait_for_abort()
            }
            _ => script,
        };
        script
            .text(if found { "FOUND" } else { "nothing" })
            .completed()
    }))
}

#[tokio::main]
async fn main() -> Result<(), AgentError> {
    let limits = Limits::default().overall(8);
    let orchestrator = Orchestrator::new(OrchestratorConfig::default().limits(limits))?;
    let runtime = runtime();
    let mut runs = JoinSet::new();
    let mut handles = Vec::new();
    for module in 1..=50 {
        let params = ExecuteParams::new(format!("Is the bug in module {module}"))
            .permission(PermissionMode::ReadOnly);
        let run = orchestrator.start(RunRequest::new(runtime.clone(), params));
        handles.push(run.abort_handle());
        runs.spawn(async move { (module, run.await) });
    }

    let (mut done, mut aborted) = (0, 0);
    while let Some(Ok((module, outcome))) = runs.join_next().await {
        match outcome.result.status {
            RunStatus::Aborted => aborted += 1,
            _ => done += 1,
        }
        if outcome.answer() == Some("FOUND") {
            println!("it is in module {module}");
            // Waiting runs never begin; working runs are stopped.
            for handle in &handles {
                handle.abort();
            }
        }
    }
    println!("{done} ended by themselves, {aborted} were stopped");
    assert!(orchestrator.active_runs().await.is_empty());
    assert_eq!(done + aborted, 50);
    assert!(aborted > 0);
    Ok(())
}

#[cfg(test)]
#[test]
fn the_example_runs() {
    main().unwrap();
}
