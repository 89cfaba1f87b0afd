//! Retries after side effects, which never repeat the prompt.

use teamster::ErrorKind;
use teamster::RunStatus;
use teamster_api::RunEvent;
use teamster_mock_model::{Cli, Part};
use teamster_orchestrator::{Action, RetryPolicy};

use super::answers::{ANSWER, EFFECTS, PROMPT, only, runs, text};
use super::case::Case;
use super::checks::{Findings, record};
use super::facts;
use super::failures;
use super::stage::{Ran, Stage, in_tool, is_retry, nothing, orchestrator, perform, tried_again};
use crate::bench::Bench;
use crate::conversation::{of_the_conversation, texts, times};

/// The command of the model.
const COMMAND: &str = "echo x >> effects.txt; wc -l effects.txt";

/// Output of the command, which the command itself does not contain.
const OUTPUT: &str = "1 effects.txt";

/// A command that is still running when the CLI is killed.
const LONG_COMMAND: &str = "echo x >> effects.txt; sleep 300";

/// Fails the service when it receives the output of the command.
pub(crate) async fn failed_after_a_tool(bench: &Bench, cli: Cli) -> anyhow::Result<Findings> {
    let turns = vec![runs(COMMAND), failures::passing(cli), text(ANSWER)];
    let case = Case::NoDoubleSideEffects;
    let stage = Stage::new(bench, cli, case.name(), turns, None).await?;
    let request = tried_again(&stage)?;
    let ran = perform(&orchestrator()?, request, &[&stage], nothing()).await?;
    let mut findings = Findings::default();
    went_on(&mut findings, &ran, &stage, case, Some(OUTPUT));
    findings.must(
        ran.events.iter().any(|event| {
            matches!(
                event,
                RunEvent::ToolEnd {
                    is_error: false,
                    ..
                }
            )
        }),
        || "no tool:end of a command that went well".to_owned(),
    );
    Ok(findings)
}

/// Kills the CLI while its command runs.
pub(crate) async fn killed_in_a_tool(bench: &Bench, cli: Cli) -> anyhow::Result<Findings> {
    // The turn depends on how much the CLI had written. The command is used once, independent of later
    // requests.
    let turns = vec![
        only(1, runs(LONG_COMMAND)),
        text(ANSWER),
        text(ANSWER),
        text(ANSWER),
    ];
    let case = Case::KilledInATool;
    let stage = Stage::new(bench, cli, case.name(), turns, None).await?;
    let mut request = tried_again(&stage)?;
    request.id = Some("killed".to_owned());
    // A kill has no known reason. The decision table would try another candidate, but there is none.
    request
        .retry
        .actions
        .insert(ErrorKind::Internal, Action::Retry);
    let orchestrator = orchestrator()?;
    let killing = async {
        let announced = !facts::TOOLS_AT_THEIR_END.is_of(cli, case);
        in_tool(&orchestrator, "killed", &stage, EFFECTS, announced).await?;
        stage.kill()
    };
    let ran = perform(&orchestrator, request, &[&stage], killing).await?;
    let mut findings = Findings::default();
    went_on(&mut findings, &ran, &stage, case, None);
    let cut_off = ran
        .events
        .iter()
        .any(|event| matches!(event, RunEvent::ToolEnd { is_error: true, .. }));
    let untold = findings.knows(&facts::TOOLS_AT_THEIR_END, cli, case);
    findings.same("a tool:end of what was cut off", cut_off, !untold);
    Ok(findings)
}

/// Breaks the connection in an answer with a call of a command.
pub(crate) async fn cut_after_a_call(bench: &Bench, cli: Cli) -> anyhow::Result<Findings> {
    let mut cut = runs(COMMAND);
    cut.parts.push(Part::Cut);
    let turns = vec![only(1, cut), runs(COMMAND), text(ANSWER)];
    let case = Case::CutAfterACall;
    let stage = Stage::new(bench, cli, case.name(), turns, None).await?;
    let ran = perform(&orchestrator()?, tried_again(&stage)?, &[&stage], nothing()).await?;
    let mut findings = Findings::default();
    findings.lifecycle(&ran);
    record(&mut findings, &ran, &[&stage]);
    findings.same("the file", stage.file(EFFECTS), "x\n".to_owned());
    let outcome = &ran.outcome;
    findings.same("the status", outcome.result.status, RunStatus::Completed);
    findings.same("the answer", ran.outcome.answer(), Some(ANSWER));
    let log = outcome.attempts.iter().map(|attempt| attempt.resumed);
    let resumed: Vec<_> = log.collect();
    let one = findings.knows(&facts::GOES_ON_ITSELF, cli, case);
    let attempts = if one { 1 } else { 2 };
    findings.same("attempts that resume", resumed, vec![false; attempts]);
    Ok(findings)
}

/// Checks that the run was retried in the same session, and that the work was done once.
fn went_on(findings: &mut Findings, ran: &Ran, stage: &Stage, case: Case, output: Option<&str>) {
    findings.lifecycle(ran);
    record(findings, ran, &[stage]);
    findings.same("the file", stage.file(EFFECTS), "x\n".to_owned());
    let outcome = &ran.outcome;
    findings.same("the status", outcome.result.status, RunStatus::Completed);
    findings.same("the answer", ran.outcome.answer(), Some(ANSWER));
    findings.same("attempts", outcome.attempts.len(), 2);
    let log: Vec<_> = outcome
        .attempts
        .iter()
        .map(|attempt| (attempt.resumed, attempt.session_id.clone()))
        .collect();
    if let [(first, session), (second, same)] = &log[..] {
        findings.same("attempt 1 resumes", *first, false);
        findings.same("attempt 2 resumes", *second, true);
        findings.must(session.is_some(), || "attempt 1 has no session".to_owned());
        findings.same("the session of attempt 2", same, session);
        findings.same("run:retry", ran.retries(), vec![(2, session.clone())]);
    }
    let asked = of_the_conversation(ran.asked_after(0, is_retry));
    findings.must(!asked.is_empty(), || {
        "attempt 2 did not ask the model".to_owned()
    });
    let continuation = RetryPolicy::default().side_effects.continuation;
    for request in asked {
        let all = texts(request);
        findings.same("the prompt in attempt 2, times", times(&all, PROMPT), 1);
        let count = times(&all, &continuation);
        findings.same("the continuation in attempt 2, times", count, 1);
        let (before, after) = all.split_once(&continuation).unwrap_or((&all, ""));
        let call = before.find("effects.txt;");
        let locations = [
            before.find(PROMPT),
            call,
            output.and_then(|output| before.find(output)),
        ];
        let forgotten = findings.knows(&facts::CALL_FORGOTTEN, stage.cli, case);
        findings.same("the call in attempt 2", call.is_some(), !forgotten);
        // The continuation names the call that was cut off, if it was announced before its end.
        let untold = findings.knows(&facts::TOOLS_AT_THEIR_END, stage.cli, case);
        let cut_off = case == Case::KilledInATool && !untold;
        let named = after.contains("effects.txt;");
        findings.same("the call after the continuation", named, cut_off);
        if let Some(output) = output {
            let there = all.contains(output);
            findings.same("the result in attempt 2", there, true);
        }
        findings.must(locations.iter().flatten().is_sorted(), || {
            format!("prompt, call and result stand in another order: {locations:?}")
        });
        if !findings.wrong.is_empty() {
            findings.details.push(format!("body: {}", request.body));
        }
    }
}
