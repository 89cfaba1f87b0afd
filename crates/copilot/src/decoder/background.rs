//! Work after the CLI's end of a turn. The process does not exit before this work ends.

use std::collections::BTreeSet;

use teamster_core::provider::Activity;

use super::tools::shell_end;
use super::wire::NotificationKind;

/// Background work that the lines show. Detached commands are not part of it: the CLI does not wait for them.
#[derive(Debug, Default)]
pub(super) struct Background {
    shells: BTreeSet<String>,
    agents: BTreeSet<String>,
    /// True if the main agent waits for some of the work.
    waiting: bool,
}

impl Background {
    pub(super) fn shell_starts(&mut self, shell: &str) {
        self.shells.insert(shell.to_owned());
    }

    /// Handles the result of a call, which may report the end of a shell.
    pub(super) fn output(&mut self, content: &str) {
        let stopped = content
            .split_once("<command with id: ")
            .and_then(|(_, rest)| rest.split_once(" stopped>"))
            .map(|(shell, _)| shell);
        if let Some(shell) = shell_end(content).map(|(shell, _)| shell).or(stopped) {
            self.shells.remove(shell);
        }
    }

    pub(super) fn agent_starts(&mut self, agent: &str) {
        self.agents.insert(agent.to_owned());
    }

    pub(super) fn agent_ends(&mut self, agent: &str) {
        self.agents.remove(agent);
    }

    pub(super) fn notified(&mut self, kind: &NotificationKind<'_>) {
        self.shells.remove(kind.shell_id.text());
        self.agents.remove(kind.agent_id.text());
    }

    /// Marks the main agent as idle. Returns `true` if it waits for background work.
    pub(super) fn idle(&mut self) -> bool {
        self.waiting = !self.shells.is_empty() || !self.agents.is_empty();
        self.waiting
    }

    /// Marks the main agent as working, or the run as over.
    pub(super) fn wakes(&mut self) {
        self.waiting = false;
    }

    pub(super) fn activity(&self) -> Activity {
        if self.waiting {
            Activity::Background
        } else {
            Activity::None
        }
    }
}
