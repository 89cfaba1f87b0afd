//! Failover to another agent while a service throttles.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use teamster::ErrorKind;
use teamster::RunStatus;
use teamster_api::RunEvent;
use teamster_core::time::millis;
use teamster_mock_model::{Cli, Turn};
use teamster_orchestrator::{Clock, Orchestrator, OrchestratorConfig, RunPhase, RunRequest};

use super::answers::{ANSWER, EFFECTS, PROMPT, runs, text};
use super::case::Case;
use super::checks::{Findings, record};
use super::facts;
use super::failures::{rate_limit, reported_wait};
use super::stage::{Ran, Stage, is_retry, nothing, perform, phase};
use crate::bench::Bench;

/// The delay before a retry if the error has none.
const OWN_DELAY: Duration = Duration::from_millis(150);

/// The hold of a provider whose error has no delay. It is longer than everything else here, and not longer
/// than a run waits with the default policy.
const HOLD: Duration = Duration::from_mins(4);

/// Fails over to another CLI.
pub(crate) async fn to_another(bench: &Bench, cli: Cli) -> anyhow::Result<Findings> {
    let other = if cli == Cli::Codex {
        Cli::Claude
    } else {
        Cli::Codex
    };
    play(bench, cli, other, Case::Failover).await
}

/// Fails over to the embedded agent.
pub(crate) async fn to_embedded(bench: &Bench, cli: Cli) -> anyhow::Result<Findings> {
    play(bench, cli, Cli::Embedded, Case::FailoverToEmbedded).await
}

async fn play(bench: &Bench, cli: Cli, other: Cli, case: Case) -> anyhow::Result<Findings> {
    let name = case.name();
    // Throttled for the two requests of this run; later requests succeed.
    let throttled = vec![rate_limit(cli), lasting_rate_limit(cli), text("I am back.")];
    let first = Stage::new(bench, cli, name, throttled, None).await?;
    let name = format!("{name}-of-{cli}");
    let works = vec![runs("echo x >> effects.txt"), text(ANSWER)];
    let directory = Some(first.directory.clone());
    let second = Stage::new(bench, other, &name, works, directory).await?;
    let mut config = OrchestratorConfig::default();
    config.rate_limit_hold = HOLD;
    let shift = Arc::new(AtomicI64::new(0));
    config.clock = shifted(config.clock, shift.clone());
    let orchestrator = Orchestrator::new(config)?;
    let stages = [&first, &second];
    let mut findings = Findings::default();

    let ran = perform(&orchestrator, request(&first, &second)?, &stages, nothing()).await?;
    findings.lifecycle(&ran);
    record(&mut findings, &ran, &stages);
    waited_and_fell_back(&mut findings, &ran, cli, other);
    findings.same("the file", first.file(EFFECTS), "x\n".to_owned());
    let asked = ran.asked_after(0, |event| matches!(event, RunEvent::Fallback { .. }));
    findings.must(asked.is_empty(), || {
        "the first model was asked after the fallback".to_owned()
    });

    // A delay from the error is over by now.
    if findings.knows(&facts::WAIT_UNKNOWN, cli, case) {
        let holds = orchestrator.holds().await;
        let held: Vec<_> = holds.iter().map(|held| held.provider.as_str()).collect();
        findings.same("on hold", held, vec![cli.id()]);
        while_on_hold(&mut findings, &orchestrator, &stages).await?;
        after_the_hold(&mut findings, &orchestrator, &first, &shift).await?;
    }
    Ok(findings)
}

/// Returns the error after which the provider is on hold. The words of Copilot's have the time of that: as long as the hold
/// of the others.
fn lasting_rate_limit(cli: Cli) -> Turn {
    let mut turn = rate_limit(cli);
    if let (Cli::Copilot, Some(error)) = (cli, &mut turn.error) {
        let seconds = HOLD.as_secs();
        error.message = Some(format!(
            "Rate limit reached. Please try again in {seconds}s."
        ));
    }
    turn
}

/// Returns a run of the first stage with one retry and the second stage as its fallback.
fn request(first: &Stage, second: &Stage) -> anyhow::Result<RunRequest> {
    let candidate = first.candidate(PROMPT)?;
    let mut request = RunRequest::new(candidate.runtime, candidate.params);
    request.retry.retries = 1;
    request.retry.base_delay = OWN_DELAY;
    request.retry.jitter = false;
    Ok(request.fallback(second.candidate(PROMPT)?))
}

/// Returns the wait before the first retry, in milliseconds.
fn first_wait(ran: &Ran) -> Option<u64> {
    ran.events.iter().find_map(|event| match event {
        RunEvent::Retry { delay_ms, .. } => Some(*delay_ms),
        _ => None,
    })
}

fn waited_and_fell_back(findings: &mut Findings, ran: &Ran, cli: Cli, other: Cli) {
    let outcome = &ran.outcome;
    findings.same("the status", outcome.result.status, RunStatus::Completed);
    findings.same("attempts", outcome.attempts.len(), 3);
    findings.same("the provider", outcome.provider.as_str(), other.id());
    findings.same("the answer", ran.outcome.answer(), Some(ANSWER));
    findings.same("messages", ran.outcome.result.messages().len(), 1);
    let delay = reported_wait(cli).unwrap_or(millis(OWN_DELAY));
    // Only the words of Copilot's error have the delay, so it counts from the time at which they were read.
    let delay = match (cli, first_wait(ran)) {
        (Cli::Copilot, Some(wait)) if (1..=1000).contains(&wait) => wait,
        _ => delay,
    };
    let mut course = Vec::new();
    for event in &ran.events {
        match event {
            RunEvent::Retry {
                reason,
                delay_ms,
                next,
                ..
            } => course.push((
                "retry",
                next.attempt,
                reason.kind,
                *delay_ms,
                next.provider.clone(),
            )),
            RunEvent::Fallback {
                reason,
                delay_ms,
                next,
                ..
            } => course.push((
                "fallback",
                next.attempt,
                reason.kind,
                *delay_ms,
                next.provider.clone(),
            )),
            _ => {}
        }
    }
    let limit = ErrorKind::RateLimit;
    let wanted = vec![
        ("retry", 2, limit, delay, cli.id().to_owned()),
        ("fallback", 3, limit, 0, other.id().to_owned()),
    ];
    findings.same("the course", course, wanted);
    let log = &outcome.attempts;
    if let [one, two, _] = &log[..] {
        // The time of the run includes all attempts and the wait between them.
        let least = one.duration_ms + two.duration_ms + delay;
        findings.must(outcome.duration_ms >= least, || {
            format!(
                "{} ms, and at least {least} ms were waited for",
                outcome.duration_ms
            )
        });
    }
    let tools = |name: &str| {
        ran.events
            .iter()
            .filter(|event| event.type_name() == name)
            .count()
    };
    findings.same("tools", (tools("tool:start"), tools("tool:end")), (1, 1));
    findings.must(!ran.asked_after(0, is_retry).is_empty(), || {
        "the second attempt did not ask the model".to_owned()
    });
}

/// Checks that a run with less patience than the hold uses the other CLI without an attempt.
async fn while_on_hold(
    findings: &mut Findings,
    orchestrator: &Orchestrator,
    stages: &[&Stage; 2],
) -> anyhow::Result<()> {
    let mut request = request(stages[0], stages[1])?;
    request.retry.max_wait = Duration::from_millis(200);
    let ran = perform(orchestrator, request, stages, nothing()).await?;
    findings.lifecycle(&ran);
    record(findings, &ran, stages);
    let outcome = &ran.outcome;
    findings.same(
        "status while on hold",
        outcome.result.status,
        RunStatus::Completed,
    );
    findings.same("attempts while on hold", outcome.attempts.len(), 1);
    let by = outcome.provider.as_str();
    findings.same("provider while on hold", by, stages[1].cli.id());
    let fallbacks: Vec<_> = ran
        .events
        .iter()
        .filter_map(|event| match event {
            RunEvent::Fallback { next, reason, .. } => Some((next.attempt, reason.kind)),
            _ => None,
        })
        .collect();
    let wanted = vec![(1, ErrorKind::RateLimit)];
    findings.same("run:fallback while on hold", fallbacks, wanted);
    findings.must(ran.asked(0).is_empty(), || {
        "the model of a provider on hold was asked".to_owned()
    });
    Ok(())
}

/// Checks that a run with enough patience waits for the end of the hold and succeeds.
async fn after_the_hold(
    findings: &mut Findings,
    orchestrator: &Orchestrator,
    stage: &Stage,
    shift: &AtomicI64,
) -> anyhow::Result<()> {
    let candidate = stage.candidate(PROMPT)?;
    let mut request = RunRequest::new(candidate.runtime, candidate.params);
    request.id = Some("patient".to_owned());
    let until = orchestrator.holds().await.first().map(|held| held.until_ms);
    let waits = phase(orchestrator, "patient", RunPhase::OnHold);
    let ran = perform(orchestrator, request, &[stage], async {
        let run = waits.await?;
        findings.same("until when it waits", run.until_ms, until);
        shift.store(signed(HOLD), Ordering::SeqCst);
        Ok(())
    })
    .await?;
    findings.lifecycle(&ran);
    record(findings, &ran, &[stage]);
    let outcome = &ran.outcome;
    findings.must(until.is_some(), || "the hold is over too soon".to_owned());
    findings.same(
        "status after the hold",
        outcome.result.status,
        RunStatus::Completed,
    );
    findings.same("attempts after the hold", outcome.attempts.len(), 1);
    let answer = ran.outcome.answer();
    findings.same("answer after the hold", answer, Some("I am back."));
    Ok(())
}

/// Returns the clock with a variable offset in milliseconds.
fn shifted(clock: Clock, shift: Arc<AtomicI64>) -> Clock {
    Arc::new(move || clock().saturating_add_signed(shift.load(Ordering::SeqCst)))
}

fn signed(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
