//! Work besides the main agent's: the agents that it started, which have their own threads, and the running commands.

use std::collections::BTreeMap;

use teamster_core::Id;

use crate::wire::Object;

/// Turns of other threads, and running commands. Threads are in the order of their start, because the CLI's ids
/// increase with time.
#[derive(Debug, Default)]
pub(super) struct Agents {
    /// Current turns by thread.
    turns: BTreeMap<String, AgentTurn>,
    /// Origins by thread.
    origins: BTreeMap<String, Origin>,
    /// Running commands by thread and item.
    commands: BTreeMap<(String, String), Command>,
    /// The session's most recently interrupted turn.
    interrupted: Option<String>,
}

#[derive(Debug)]
struct AgentTurn {
    id: String,
    /// The session's turn that the agent works for, if the CLI reports it.
    root: Option<String>,
}

/// Origin of an agent.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// The call that started the agent or last sent it work.
    pub(super) call: Id,
    /// The CLI's name of the agent.
    pub(super) name: String,
    /// The session's turn of the call.
    root: Option<String>,
}

#[derive(Debug)]
struct Command {
    process: String,
    /// The session's turn that the command belongs to.
    root: Option<String>,
}

impl Agents {
    /// Records that an agent begins a turn.
    pub(super) fn started(&mut self, thread: &str, turn: &Object<'_>) -> Option<()> {
        let text = |name| turn.text(name).map(std::borrow::Cow::into_owned);
        let id = text("id")?;
        let root = text("root_turn_id");
        self.turns.insert(thread.to_owned(), AgentTurn { id, root });
        Some(())
    }

    /// Records that an agent's turn has ended.
    pub(super) fn completed(&mut self, thread: &str, turn: &str) {
        if self.turns.get(thread).is_some_and(|known| known.id == turn) {
            self.turns.remove(thread);
        }
    }

    /// Removes an agent that the CLI has closed.
    pub(super) fn gone(&mut self, thread: &str) {
        self.turns.remove(thread);
    }

    /// Returns this agent's turn, and the session's turn that it works for.
    pub(super) fn turn_of(&self, thread: &str) -> Option<(&str, &str)> {
        let turn = self.turns.get(thread)?;
        Some((&turn.id, self.root_of(thread)?))
    }

    /// Returns the session's turn that this agent works for. Version 0.159.3 does not report it: then it is the turn
    /// of the call.
    fn root_of(&self, thread: &str) -> Option<&str> {
        let reported = self.turns.get(thread)?.root.as_deref();
        reported.or_else(|| self.origins.get(thread)?.root.as_deref())
    }

    /// Returns the threads and turns of the agents that work for such a turn of the session.
    pub(super) fn working_for(&self, is_root: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let working = self.turns.iter();
        working
            .filter(|(thread, _)| self.root_of(thread).is_some_and(&is_root))
            .map(|(thread, turn)| (thread.clone(), turn.id.clone()))
            .collect()
    }

    /// Records a call of this turn of the session: it started the agents that its item names, or sent them work.
    pub(super) fn called(&mut self, kind: &str, item: &Object<'_>, call: &Id, root: Option<&str>) {
        let threads = match kind {
            "subAgentActivity" => item.text("agent_thread_id").map(|it| vec![it.into_owned()]),
            "collabAgentToolCall"
                if matches!(
                    item.text("tool").as_deref(),
                    Some("spawnAgent" | "sendInput" | "resumeAgent")
                ) =>
            {
                item.get::<Vec<String>>("receiver_thread_ids")
            }
            _ => None,
        };
        for thread in threads.unwrap_or_default() {
            let name = item.text("agent_path").map(std::borrow::Cow::into_owned);
            let origin = Origin {
                call: call.clone(),
                name: name.unwrap_or_else(|| thread.clone()),
                root: root.map(str::to_owned),
            };
            self.origins.insert(thread, origin);
        }
    }

    /// Returns the origin of an agent. Without a known call, the id of the agent's thread replaces it.
    pub(super) fn origin(&self, thread: &str) -> Origin {
        self.origins.get(thread).cloned().unwrap_or_else(|| Origin {
            call: Id::from(thread),
            name: thread.to_owned(),
            root: None,
        })
    }

    /// Records the start of a command in the session's thread, as part of this turn, or in an agent's thread.
    pub(super) fn command(&mut self, thread: &str, item: &Object<'_>, turn: Option<&str>) {
        let text = |name| item.text(name).map(std::borrow::Cow::into_owned);
        let (Some(id), Some(process)) = (text("id"), text("process_id")) else {
            return;
        };
        let root = match self.turns.get(thread) {
            Some(_) => self.root_of(thread),
            None => turn,
        };
        let root = root.map(str::to_owned);
        let command = Command { process, root };
        self.commands.insert((thread.to_owned(), id), command);
    }

    /// Records the end of a command.
    pub(super) fn command_ended(&mut self, thread: &str, item: &str) {
        self.commands.remove(&(thread.to_owned(), item.to_owned()));
    }

    /// Removes the running commands of such a turn of the session and returns their threads and processes.
    pub(super) fn take_commands(
        &mut self,
        is_root: impl Fn(&str) -> bool,
    ) -> Vec<(String, String)> {
        let mut taken = Vec::new();
        self.commands.retain(|(thread, _), command| {
            let is_its = command.root.as_deref().is_some_and(&is_root);
            if is_its {
                taken.push((thread.clone(), command.process.clone()));
            }
            !is_its
        });
        taken
    }

    /// Marks this turn of the session as interrupted: turns that agents still begin for it must be ended.
    pub(super) fn interrupted(&mut self, turn: String) {
        self.interrupted = Some(turn);
    }

    /// Returns whether work of agents for this turn of the session must be ended.
    pub(super) fn is_interrupted(&self, turn: &str) -> bool {
        self.interrupted.as_deref() == Some(turn)
    }

    /// Forgets all work, because the session is closed.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
