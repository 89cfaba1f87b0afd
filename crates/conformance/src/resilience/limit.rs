//! Limits of an agent that never ends.

use teamster::ErrorKind;
use teamster::RunStatus;
use teamster_mock_model::{Cli, Part, Script, SubAgent, Turn};
use teamster_orchestrator::RunRequest;

use super::answers::{ANSWER, EFFECTS, PROMPT, runs, text};
use super::case::Case;
use super::checks::{Findings, record};
use super::facts::NO_SUB_AGENTS;
use super::stage::{Ran, Stage, nothing, orchestrator, perform};
use crate::bench::Bench;

/// Usage of an answer, in tokens.
const INPUT: u64 = 500;
const OUTPUT: u64 = 20;

/// Budget of the run in tokens, which the fifth answer exceeds.
const LIMIT: u64 = 2500;

/// Number of scripted answers, far more than are possible until the run is stopped.
const ANSWERS: usize = 400;

/// Maximum number of answers in the run. The limit is detected a little later than it is reached.
const SOON: usize = 25;

pub(crate) async fn play(bench: &Bench, cli: Cli) -> anyhow::Result<Findings> {
    // Each command differs, because some CLIs stop a presumed loop.
    let command = |number: usize| format!("echo {number} >> {EFFECTS}");
    let mut turns: Vec<_> = (0..ANSWERS).map(|it| counted(runs(&command(it)))).collect();
    turns.push(counted(text(ANSWER)));
    let stage = Stage::new(bench, cli, Case::Limit.name(), turns, None).await?;
    let candidate = stage.candidate(PROMPT)?;
    let mut request = RunRequest::new(candidate.runtime, candidate.params);
    request.budget.tokens = Some(LIMIT);
    let ran = perform(&orchestrator()?, request, &[&stage], nothing()).await?;
    let mut findings = Findings::default();
    findings.lifecycle(&ran);
    record(&mut findings, &ran, &[&stage]);
    stopped(&mut findings, &ran, &stage, 4);
    Ok(findings)
}

/// Checks the end of a run whose agents have run at least so many commands before its budget stopped them.
fn stopped(findings: &mut Findings, ran: &Ran, stage: &Stage, least: usize) {
    let outcome = &ran.outcome;
    findings.same("the status", outcome.result.status, RunStatus::Failed);
    let error = outcome.error.as_ref().map(|error| error.kind);
    findings.same("the error", error, Some(ErrorKind::Budget));
    findings.same("attempts", outcome.attempts.len(), 1);
    let commands = stage.file(EFFECTS).lines().count();
    findings.must((least..SOON).contains(&commands), || {
        format!("the agents ran {commands} commands before they were stopped")
    });
    let usage = outcome.result.usage.unwrap_or_default();
    let used = usage.total_tokens().unwrap_or_default();
    findings.must(used > LIMIT, || format!("the result has {used} tokens"));
    // No usage counts twice, and all reported usage is in the result. That of the last request may be
    // missing.
    let most = ran.asked(0).len() as u64 * (INPUT + OUTPUT);
    findings.must(used <= most, || {
        format!("the result has {used} tokens, and the model reported {most}")
    });
}

/// Prompt of the sub-agent.
const HELPER: &str = "Count for me, helper.";

/// A model with sub-agent tools in Codex.
const CODEX_MODEL: &str = "gpt-6.1-sol";

/// Plays a run whose sub-agent uses up the budget.
pub(crate) async fn with_sub_agent(bench: &Bench, cli: Cli) -> anyhow::Result<Findings> {
    let mut findings = Findings::default();
    let case = Case::SubAgentLimit;
    let none = findings.knows(&NO_SUB_AGENTS, cli, case);
    let begin = Turn::new(vec![Part::Agent {
        prompt: HELPER.to_owned(),
        background: None,
    }]);
    // Keeps the main agent busy while its sub-agent works.
    let wait = || runs("sleep 20");
    let mut main = vec![counted(begin)];
    if cli == Cli::Codex {
        main.extend([wait(), wait(), wait()]);
    }
    main.push(counted(text(ANSWER)));
    let mut script = Script::new(main)?;
    let command = |number: usize| format!("echo {number} >> {EFFECTS}");
    let mut turns: Vec<_> = (0..ANSWERS).map(|it| counted(runs(&command(it)))).collect();
    turns.push(counted(text("I have counted.")));
    script.agents.push(SubAgent::new(HELPER, turns));
    let stage = Stage::of_script(bench, cli, case.name(), script, None).await?;
    let mut candidate = stage.candidate(PROMPT)?;
    if cli == Cli::Codex {
        // The model of the other cases has no tool for it.
        candidate.params.model = Some(CODEX_MODEL.to_owned());
    }
    let mut request = RunRequest::new(candidate.runtime, candidate.params);
    request.budget.tokens = Some(LIMIT);
    let ran = perform(&orchestrator()?, request, &[&stage], nothing()).await?;
    findings.lifecycle(&ran);
    record(&mut findings, &ran, &[&stage]);
    if none {
        // Its only call is denied.
        let result = &ran.outcome.result;
        findings.same("the status", result.status, RunStatus::Incomplete);
        findings.same("commands", stage.file(EFFECTS).lines().count(), 0);
        let used = result.usage.unwrap_or_default().total_tokens();
        findings.same("tokens", used, Some(2 * (INPUT + OUTPUT)));
        return Ok(findings);
    }
    stopped(&mut findings, &ran, &stage, 3);
    Ok(findings)
}

fn counted(mut turn: Turn) -> Turn {
    turn.usage.input = INPUT;
    turn.usage.output = OUTPUT;
    turn
}
