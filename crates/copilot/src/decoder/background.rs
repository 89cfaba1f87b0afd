//! Work after the CLI's own end of a turn. The process does not end before it.

use std::collections::BTreeSet;

use teamster_core::provider::Activity;

use super::tools::shell_end;
use super::wire::NotificationKind;

/// Work in the background, as far as the lines show it. Detached commands are no part of it: the CLI
/// does not wait for them.
#[derive(Debug, Default)]
pub(super) struct Background {
    shells: BTreeSet<String>,
    agents: BTreeSet<String>,
    /// The main agent has nothing to do until some of it is done.
    waiting: bool,
}

impl Background {
    pub(super) fn shell_starts(&mut self, shell: &str) {
        self.shells.insert(shell.to_owned());
    }

    /// The result of a call may say that a shell has ended.
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

    /// The main agent is idle. `true` if it waits for something.
    pub(super) fn idle(&mut self) -> bool {
        self.waiting = !self.shells.is_empty() || !self.agents.is_empty();
        self.waiting
    }

    /// The main agent works again, or the run is over.
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
