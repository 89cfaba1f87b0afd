//! Differences that a CLI forces, with the reason.

use teamster_mock_model::Cli;

use super::case::Case;

#[derive(Debug)]
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    pub(crate) clis: &'static [Cli],
    pub(crate) cases: &'static [Case],
    /// The consequence, as the rest of a sentence about each of these CLIs.
    pub(crate) why: &'static str,
}

pub(crate) static ALL: [&Fact; 8] = [
    &NO_READ_TOOL,
    &TOOLS_AT_THEIR_END,
    &CALL_FORGOTTEN,
    &GOES_ON_ITSELF,
    &CALL_MADE_TWICE,
    &WAIT_UNKNOWN,
    &NO_SUB_AGENTS,
    &HAS_NO_SUB_AGENTS,
];

static NO_READ_TOOL: Fact = Fact {
    name: "no-read-tool",
    clis: &[Cli::Codex],
    cases: &[Case::ReadOnlyRetry],
    why: "It has no tool that reads a file: its models run `cat`, which counts as any command.",
};

/// The CLI emits no event for a call that is cut off.
pub(crate) static TOOLS_AT_THEIR_END: Fact = Fact {
    name: "tools-at-their-end-only",
    clis: &[Cli::OpenCode],
    cases: &[Case::KilledInATool, Case::Abort],
    why: "It prints a call when the call has ended, so that one that is cut off is never reported; \
          whenever it breaks off, the run takes it that something may have been changed.",
};

/// The resumed session has no trace of a call that was cut off.
pub(crate) static CALL_FORGOTTEN: Fact = Fact {
    name: "calls-cut-off-are-forgotten",
    clis: &[Cli::Claude, Cli::Gemini],
    cases: &[Case::KilledInATool],
    why: "A call that had no result when it was killed is not in the session that it resumes: the \
          model has the prompt and, after it, the continuation, and knows of the call only because \
          the continuation names it.",
};

/// A broken answer does not fail the attempt.
pub(crate) static GOES_ON_ITSELF: Fact = Fact {
    name: "goes-on-after-a-cut",
    clis: &[Cli::Claude, Cli::Codex, Cli::Copilot],
    cases: &[Case::CutAfterACall],
    why: "It continues by itself when an answer breaks off: Claude Code and Codex run a call as soon as \
          it has arrived and go on with its result, GitHub Copilot CLI drops the call and asks again. So \
          one attempt is enough.",
};

static CALL_MADE_TWICE: Fact = Fact {
    name: "call-made-twice",
    clis: &[Cli::OpenCode],
    cases: &[Case::CutAfterACall],
    why: "It runs a call as soon as it has arrived, and when the answer then breaks off it asks again \
          without that call: the model calls the command once more. No caller can prevent that.",
};

/// The error has no delay for a retry.
pub(crate) static WAIT_UNKNOWN: Fact = Fact {
    name: "wait-unknown",
    clis: &[Cli::Claude, Cli::Codex, Cli::Copilot, Cli::Pi],
    cases: &[Case::Failover, Case::FailoverToEmbedded],
    why: "Its error does not have the delay that the service requests as a figure, so the run waits as \
          long as its words say, or else its own policy requires.",
};

/// No line and no file has the usage of sub-agents.
pub(crate) static NO_SUB_AGENTS: Fact = Fact {
    name: "no-sub-agents",
    clis: &[Cli::OpenCode],
    cases: &[Case::SubAgentLimit],
    why: "It reports nothing of what its sub-agents use, so a run with a limit has none: the call fails, and \
          the main agent continues.",
};

/// The CLI has no sub-agents to limit.
pub(crate) static HAS_NO_SUB_AGENTS: Fact = Fact {
    name: "has-no-sub-agents",
    clis: &[Cli::Pi],
    cases: &[Case::SubAgentLimit],
    why: "It has no tool for sub-agents.",
};

impl Fact {
    /// Returns whether the fact applies to this CLI in this case.
    pub(crate) fn is_of(&self, cli: Cli, case: Case) -> bool {
        self.clis.contains(&cli) && self.cases.contains(&case)
    }
}

/// Returns the reason why a CLI cannot play a case at all.
pub(crate) fn cannot(cli: Cli, case: Case) -> Option<&'static Fact> {
    [&NO_READ_TOOL, &CALL_MADE_TWICE, &HAS_NO_SUB_AGENTS]
        .into_iter()
        .find(|fact| fact.is_of(cli, case))
}
