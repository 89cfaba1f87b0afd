//! Failures of a run.

use crate::named::named;

named! {
    /// A failure to simulate.
    Case {
        NoDoubleSideEffects "no_double_side_effects"
            "The service fails after a command was run: the session continues, and the command is not run again",
        KilledInATool "killed_in_a_tool"
            "The CLI is killed while a command runs: the session continues, and the command is not run again",
        CutAfterACall "cut_after_a_call"
            "The connection breaks after an answer has called a command: the run continues, and the command is run once",
        SentAgain "sent_again"
            "The service fails before anything was done: the prompt is sent again",
        Failover "failover"
            "The service throttles: the run waits, is throttled again, and falls back to another CLI",
        FailoverToEmbedded "failover_to_embedded"
            "The service throttles: the run waits, is throttled again, and falls back to the embedded agent",
        ReadOnlyRetry "read_only_retry"
            "The service fails after a file was read: the prompt is sent again",
        Abort "abort"
            "The run is aborted while a command runs",
        Limit "limit"
            "The agent runs one command after another: a limit of tokens ends the run soon after it is met",
        SubAgentLimit "sub_agent_limit"
            "A sub-agent runs one command after another: a limit of tokens ends the run soon after it is met",
    }
}

pub(crate) fn by_name(name: &str) -> Result<Case, String> {
    Case::ALL
        .into_iter()
        .find(|case| case.name() == name)
        .ok_or_else(|| {
            let known: Vec<_> = Case::ALL.iter().map(|case| case.name()).collect();
            format!("there is: {}", known.join(", "))
        })
}
