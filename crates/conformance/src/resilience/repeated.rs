//! Repeated prompts of runs without side effects.

use teamster::RunStatus;
use teamster_api::RunEvent;
use teamster_mock_model::{Cli, Part, Turn};
use teamster_orchestrator::RetryPolicy;

use super::answers::{ANSWER, PROMPT, text};
use super::case::Case;
use super::checks::{Findings, record};
use super::failures;
use super::stage::{Ran, Stage, is_retry, nothing, orchestrator, perform, tried_again};
use crate::bench::Bench;
use crate::conversation::{of_the_conversation, texts, times};

/// An existing file and its content.
const NOTES: (&str, &str) = ("notes.txt", "The list is in the second drawer.\n");

/// The model's text before it reads the file.
const READING: &str = "I look at the notes.";

/// Fails the first answer.
pub(crate) async fn before_any_tool(bench: &Bench, cli: Cli) -> anyhow::Result<Findings> {
    let turns = vec![failures::passing(cli), text(ANSWER)];
    let stage = Stage::new(bench, cli, Case::SentAgain.name(), turns, None).await?;
    let ran = perform(&orchestrator()?, tried_again(&stage)?, &[&stage], nothing()).await?;
    let mut findings = Findings::default();
    began_again(&mut findings, &ran, &stage, &[ANSWER]);
    findings.must(
        !ran.events
            .iter()
            .any(|event| matches!(event, RunEvent::ToolStart { .. })),
        || "a tool was used".to_owned(),
    );
    Ok(findings)
}

/// Fails the service after a file was read.
pub(crate) async fn after_reading(bench: &Bench, cli: Cli) -> anyhow::Result<Findings> {
    let read = Turn::new(vec![
        Part::Text(READING.into()),
        Part::ReadFile(NOTES.0.to_owned()),
    ]);
    let turns = vec![read, failures::passing(cli), text(ANSWER)];
    let stage = Stage::new(bench, cli, Case::ReadOnlyRetry.name(), turns, None).await?;
    std::fs::write(stage.directory.join(NOTES.0), NOTES.1)?;
    let ran = perform(&orchestrator()?, tried_again(&stage)?, &[&stage], nothing()).await?;
    let mut findings = Findings::default();
    began_again(&mut findings, &ran, &stage, &[READING, ANSWER]);
    let reads = ran
        .events
        .iter()
        .filter(|event| {
            matches!(
                event,
                RunEvent::ToolEnd {
                    is_error: false,
                    ..
                }
            )
        })
        .count();
    findings.same("files that were read", reads, 2);
    Ok(findings)
}

/// Checks that the run was retried from the start in another session, and that the earlier text is retracted.
fn began_again(findings: &mut Findings, ran: &Ran, stage: &Stage, expected: &[&str]) {
    findings.lifecycle(ran);
    record(findings, ran, &[stage]);
    let outcome = &ran.outcome;
    findings.same("the status", outcome.result.status, RunStatus::Completed);
    findings.same("attempts", outcome.attempts.len(), 2);
    let messages = outcome.result.messages();
    let messages: Vec<_> = messages.iter().map(|message| &*message.text).collect();
    findings.same("the messages", messages, expected.to_vec());
    findings.must(
        outcome.attempts.iter().all(|attempt| !attempt.resumed),
        || "an attempt was resumed".to_owned(),
    );
    let sessions: Vec<_> = outcome
        .attempts
        .iter()
        .filter_map(|attempt| attempt.session_id.as_deref())
        .collect();
    findings.must(
        matches!(sessions[..], [first, second] if first != second),
        || format!("not two sessions: {sessions:?}"),
    );
    findings.same("run:retry", ran.retries(), vec![(2, None)]);
    let asked = of_the_conversation(ran.asked_after(0, is_retry));
    findings.must(!asked.is_empty(), || {
        "attempt 2 did not ask the model".to_owned()
    });
    let continuation = RetryPolicy::default().side_effects.continuation;
    for request in &asked {
        let all = texts(request);
        findings.same("the prompt in attempt 2, times", times(&all, PROMPT), 1);
        let continued = times(&all, &continuation);
        findings.same("the continuation in attempt 2, times", continued, 0);
    }
    let turn = asked.first().and_then(|request| request.turn);
    findings.same("the first turn of attempt 2", turn, Some(0));
}
