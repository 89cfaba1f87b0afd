//! What goes on beside the turn: the agents that it started, which are threads of their own, and the
//! commands that run.

use std::collections::HashMap;

use crate::decoder::wire::Object;

/// Turns of other threads and running commands.
#[derive(Debug, Default)]
pub(super) struct Agents {
    /// By their threads.
    turns: HashMap<String, AgentTurn>,
    /// By thread and item.
    commands: HashMap<(String, String), Command>,
}

#[derive(Debug)]
struct AgentTurn {
    id: String,
    /// The turn of ours that all began with.
    root: Option<String>,
}

#[derive(Debug)]
struct Command {
    process: String,
    /// The turn of ours that it belongs to.
    root: Option<String>,
}

impl Agents {
    /// An agent begins a turn.
    pub(super) fn started(&mut self, thread: &str, turn: &Object<'_>) -> Option<()> {
        let text = |name| turn.text(name).map(std::borrow::Cow::into_owned);
        let id = text("id")?;
        let root = text("root_turn_id");
        self.turns.insert(thread.to_owned(), AgentTurn { id, root });
        Some(())
    }

    /// An agent has ended its turn.
    pub(super) fn completed(&mut self, thread: &str) {
        self.turns.remove(thread);
    }

    /// Whether this thread is that of an agent which works for this turn.
    pub(super) fn works_for(&self, thread: &str, turn: &str) -> bool {
        let agent = self.turns.get(thread);
        agent.is_some_and(|agent| agent.root.as_deref() == Some(turn))
    }

    /// The agents that work for this turn: their threads and turns.
    pub(super) fn of_turn(&self, turn: &str) -> Vec<(String, String)> {
        (self.turns.iter())
            .filter(|(_, agent)| agent.root.as_deref() == Some(turn))
            .map(|(thread, agent)| (thread.clone(), agent.id.clone()))
            .collect()
    }

    /// A command begins, in our thread as part of this turn, or in that of an agent.
    pub(super) fn command(&mut self, thread: &str, item: &Object<'_>, turn: Option<&str>) {
        let text = |name| item.text(name).map(std::borrow::Cow::into_owned);
        let (Some(id), Some(process)) = (text("id"), text("process_id")) else {
            return;
        };
        let root = match self.turns.get(thread) {
            Some(agent) => agent.root.clone(),
            None => turn.map(str::to_owned),
        };
        let command = Command { process, root };
        self.commands.insert((thread.to_owned(), id), command);
    }

    /// A command has ended.
    pub(super) fn command_ended(&mut self, thread: &str, item: &str) {
        self.commands.remove(&(thread.to_owned(), item.to_owned()));
    }

    /// Takes the commands of this turn that run: their threads and processes.
    pub(super) fn take_commands(&mut self, turn: &str) -> Vec<(String, String)> {
        let mut taken = Vec::new();
        self.commands.retain(|(thread, _), command| {
            let is_its = command.root.as_deref() == Some(turn);
            if is_its {
                taken.push((thread.clone(), command.process.clone()));
            }
            !is_its
        });
        taken
    }

    /// All of it belongs to a session that is no more.
    pub(super) fn clear(&mut self) {
        self.turns.clear();
        self.commands.clear();
    }
}
