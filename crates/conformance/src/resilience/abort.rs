//! Aborts of a run while its tool runs.

use std::sync::atomic::{AtomicBool, Ordering};

use teamster::RunStatus;
use teamster_api::RunEvent;
use teamster_mock_model::Cli;

use super::answers::{ANSWER, EFFECTS, runs, text};
use super::case::Case;
use super::checks::{Findings, record};
use super::facts;
use super::stage::{Stage, in_tool, orchestrator, perform, tried_again};
use crate::bench::Bench;

pub(crate) async fn play(bench: &Bench, cli: Cli) -> anyhow::Result<Findings> {
    let turns = vec![runs("echo x >> effects.txt; sleep 300"), text(ANSWER)];
    let stage = Stage::new(bench, cli, Case::Abort.name(), turns, None).await?;
    let mut request = tried_again(&stage)?;
    request.id = Some("stopped".to_owned());
    let orchestrator = orchestrator()?;
    let mut findings = Findings::default();
    let known = AtomicBool::new(false);
    let aborting = async {
        let announced = !facts::TOOLS_AT_THEIR_END.is_of(cli, Case::Abort);
        in_tool(&orchestrator, "stopped", &stage, EFFECTS, announced).await?;
        known.store(orchestrator.abort("stopped").await, Ordering::SeqCst);
        Ok(())
    };
    let ran = perform(&orchestrator, request, &[&stage], aborting).await?;
    findings.lifecycle(&ran);
    record(&mut findings, &ran, &[&stage]);
    findings.same("abort found the run", known.load(Ordering::SeqCst), true);
    findings.same(
        "abort finds it afterwards",
        orchestrator.abort("stopped").await,
        false,
    );
    let outcome = &ran.outcome;
    findings.same("the status", outcome.result.status, RunStatus::Aborted);
    findings.same("attempts", outcome.attempts.len(), 1);
    let tools: Vec<_> = ran
        .events
        .iter()
        .filter_map(|event| match event {
            RunEvent::ToolEnd { is_error, .. } => Some(*is_error),
            _ => None,
        })
        .collect();
    let wanted = if findings.knows(&facts::TOOLS_AT_THEIR_END, cli, Case::Abort) {
        vec![]
    } else {
        vec![true]
    };
    findings.same("tool:end, with isError", tools, wanted);
    findings.same("the file", stage.file(EFFECTS), "x\n".to_owned());
    Ok(findings)
}
