//! Checks of the agent loop.

use std::collections::BTreeSet;

use crate::named::named;

named! {
    /// A check of the agent loop.
    Check {
        Prompts "prompts"
            "the model is asked the full prompt after a start and after a clear, and the light one else",
        Clear "clear"
            "the model sets `clear-session` by a command: nothing of the conversation so far is in the next request, and a live process stays the same",
        Reset "reset"
            "the model sets `reset-session`: another process, and nothing of the conversation so far",
        Killed "killed"
            "the CLI is killed between two ticks: another process resumes the conversation, and gets the full prompt",
        KilledInTurn "killed_in_turn"
            "the CLI is killed while a command of its shell tool runs: the command ends too, the next tick resumes the session, and `did-work` of the broken turn counts for it",
        LoopKilled "loop_killed"
            "the same when the loop itself is killed: no process is left, and the next loop in the directory continues in the same way",
        Sleep "sleep"
            "the sleep is short after `did-work` and longer after each other tick; `SIGUSR1` ends it",
        Files "files"
            "`MEMORY.md`, `status.json`, `sleep.json`, no flag is left; with Claude the hooks have written to the log",
        Usage "usage"
            "`usage.jsonl` has the figures of the model's script for each tick",
        Mcp "mcp"
            "a tool of the server in `.mcp.json` answers the model",
        Skills "skills"
            "the agent's own skill can be used, and one of the user's cannot",
        End "end"
            "`SIGTERM`: exit code 0, and no process is left",
    }
}

#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Checks that were made.
    pub(crate) looked: BTreeSet<Check>,
    pub(crate) wrong: Vec<(Check, String)>,
    /// Details of everything that happened.
    pub(crate) details: Vec<String>,
}

impl Findings {
    /// Returns whether no check failed.
    pub(crate) fn holds(&self) -> bool {
        self.wrong.is_empty()
    }

    /// Adds a failure unless this holds.
    pub(crate) fn must(&mut self, check: Check, holds: bool, what: impl FnOnce() -> String) {
        self.looked.insert(check);
        if !holds {
            self.wrong.push((check, what()));
        }
    }

    /// Adds a failure unless these are equal.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "what is compared is often made for it"
    )]
    pub(crate) fn same<T: PartialEq + std::fmt::Debug>(
        &mut self,
        check: Check,
        what: &str,
        is: T,
        wanted: T,
    ) {
        self.must(check, is == wanted, || {
            format!("{what}: {is:?}, wanted was {wanted:?}")
        });
    }
}
