//! The cases.

use teamster_mock_model::{Cli, Part, Turn};
use teamster_orchestrator::{Orchestrator, OrchestratorConfig, RunEvent, RunRequest};

use super::checks::Findings;
use super::stage::{Ran, Stage};
use super::{abort, anew, failover, limit, side_effects};
use crate::play::Bench;

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Case {
    NoDoubleSideEffects,
    KilledInATool,
    CutAfterACall,
    SentAnew,
    Failover,
    ReadOnlyRetry,
    Abort,
    Limit,
}

/// What the agent is asked.
pub(crate) const PROMPT: &str = "Please add the line to the list, task 7f3a.";

/// Where a command leaves its mark.
pub(crate) const EFFECTS: &str = "effects.txt";

/// What the model says when it goes well.
pub(crate) const ANSWER: &str = "All done.";

impl Case {
    pub(crate) const ALL: [Self; 8] = [
        Self::NoDoubleSideEffects,
        Self::KilledInATool,
        Self::CutAfterACall,
        Self::SentAnew,
        Self::Failover,
        Self::ReadOnlyRetry,
        Self::Abort,
        Self::Limit,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoDoubleSideEffects => "no_double_side_effects",
            Self::KilledInATool => "killed_in_a_tool",
            Self::CutAfterACall => "cut_after_a_call",
            Self::SentAnew => "sent_anew",
            Self::Failover => "failover",
            Self::ReadOnlyRetry => "read_only_retry",
            Self::Abort => "abort",
            Self::Limit => "limit",
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::NoDoubleSideEffects => {
                "The service fails after a command was run: the session goes on, and the command is not run again"
            }
            Self::KilledInATool => {
                "The CLI is killed while a command runs: the session goes on, and the command is not run again"
            }
            Self::CutAfterACall => {
                "The connection breaks after an answer has called a command: the run goes on, and the command is run once"
            }
            Self::SentAnew => "The service fails before anything was done: the prompt is sent anew",
            Self::Failover => {
                "The service throttles: the run waits, is throttled again, and falls back to another CLI"
            }
            Self::ReadOnlyRetry => {
                "The service fails after a file was read: the prompt is sent anew"
            }
            Self::Abort => "The run is aborted while a command runs",
            Self::Limit => {
                "The agent runs one command after another: a limit of tokens ends the run soon after it is met"
            }
        }
    }
}

/// The case of this name.
pub(crate) fn by_name(name: &str) -> Result<Case, String> {
    Case::ALL
        .into_iter()
        .find(|case| case.name() == name)
        .ok_or_else(|| {
            let known: Vec<_> = Case::ALL.iter().map(|case| case.name()).collect();
            format!("there is: {}", known.join(", "))
        })
}

/// Plays a case with a CLI.
pub(crate) async fn play(bench: &Bench, cli: Cli, case: Case) -> anyhow::Result<Findings> {
    match case {
        Case::NoDoubleSideEffects => side_effects::failed_after_a_tool(bench, cli).await,
        Case::KilledInATool => side_effects::killed_in_a_tool(bench, cli).await,
        Case::CutAfterACall => side_effects::cut_after_a_call(bench, cli).await,
        Case::SentAnew => anew::before_any_tool(bench, cli).await,
        Case::Failover => failover::play(bench, cli).await,
        Case::ReadOnlyRetry => anew::after_reading(bench, cli).await,
        Case::Abort => abort::play(bench, cli).await,
        Case::Limit => limit::play(bench, cli).await,
    }
}

/// An answer in which the model runs a command.
pub(crate) fn runs(command: &str) -> Turn {
    Turn::new(vec![Part::Shell(command.to_owned())])
}

/// An answer in words.
pub(crate) fn says(text: &str) -> Turn {
    Turn::new(vec![Part::Text(text.into())])
}

/// The same answer, so often only.
pub(crate) fn only(times: u32, mut turn: Turn) -> Turn {
    turn.times = Some(times);
    turn
}

/// An orchestrator as it comes.
pub(crate) fn orchestrator() -> anyhow::Result<Orchestrator> {
    Ok(Orchestrator::new(OrchestratorConfig::default())?)
}

/// A run that is tried once more when it fails, soon.
pub(crate) fn tried_again(stage: &Stage) -> anyhow::Result<RunRequest> {
    let candidate = stage.candidate(PROMPT)?;
    let mut request = RunRequest::new(candidate.runtime, candidate.params);
    request.retry.retries = 1;
    request.retry.base_delay = std::time::Duration::from_millis(50);
    request.retry.jitter = false;
    Ok(request)
}

/// Whether this says that the same is tried again.
pub(crate) fn is_retry(event: &RunEvent) -> bool {
    matches!(event, RunEvent::Retry { .. })
}

/// Tells what the models were asked, and with which errors the attempts ended.
pub(crate) fn tell(findings: &mut Findings, ran: &Ran, stages: &[&Stage]) {
    for (number, stage) in stages.iter().enumerate() {
        for request in ran.asked(number) {
            let line = super::asked::line(request);
            findings.told.push(format!("{} {line}", stage.cli));
        }
    }
    for attempt in &ran.outcome.meta.attempt_log {
        findings.told.push(format!("attempt: {attempt:?}"));
    }
}
