//! Failures of a run.

/// A failure to simulate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Case {
    NoDoubleSideEffects,
    KilledInATool,
    CutAfterACall,
    SentAgain,
    Failover,
    FailoverToEmbedded,
    ReadOnlyRetry,
    Abort,
    Limit,
    SubAgentLimit,
}

impl Case {
    pub(crate) const ALL: [Self; 10] = [
        Self::NoDoubleSideEffects,
        Self::KilledInATool,
        Self::CutAfterACall,
        Self::SentAgain,
        Self::Failover,
        Self::FailoverToEmbedded,
        Self::ReadOnlyRetry,
        Self::Abort,
        Self::Limit,
        Self::SubAgentLimit,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NoDoubleSideEffects => "no_double_side_effects",
            Self::KilledInATool => "killed_in_a_tool",
            Self::CutAfterACall => "cut_after_a_call",
            Self::SentAgain => "sent_again",
            Self::Failover => "failover",
            Self::FailoverToEmbedded => "failover_to_embedded",
            Self::ReadOnlyRetry => "read_only_retry",
            Self::Abort => "abort",
            Self::Limit => "limit",
            Self::SubAgentLimit => "sub_agent_limit",
        }
    }

    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::NoDoubleSideEffects => {
                "The service fails after a command was run: the session continues, and the command is not run again"
            }
            Self::KilledInATool => {
                "The CLI is killed while a command runs: the session continues, and the command is not run again"
            }
            Self::CutAfterACall => {
                "The connection breaks after an answer has called a command: the run continues, and the command is run once"
            }
            Self::SentAgain => {
                "The service fails before anything was done: the prompt is sent again"
            }
            Self::Failover => {
                "The service throttles: the run waits, is throttled again, and falls back to another CLI"
            }
            Self::FailoverToEmbedded => {
                "The service throttles: the run waits, is throttled again, and falls back to the embedded agent"
            }
            Self::ReadOnlyRetry => {
                "The service fails after a file was read: the prompt is sent again"
            }
            Self::Abort => "The run is aborted while a command runs",
            Self::Limit => {
                "The agent runs one command after another: a limit of tokens ends the run soon after it is met"
            }
            Self::SubAgentLimit => {
                "A sub-agent runs one command after another: a limit of tokens ends the run soon after it is met"
            }
        }
    }
}

/// Returns the case with this name.
pub(crate) fn by_name(name: &str) -> Result<Case, String> {
    Case::ALL
        .into_iter()
        .find(|case| case.name() == name)
        .ok_or_else(|| {
            let known: Vec<_> = Case::ALL.iter().map(|case| case.name()).collect();
            format!("there is: {}", known.join(", "))
        })
}
