//! Work beside the main agent: the agents that it started, which have threads of their own, and the
//! commands that run.

use std::collections::BTreeMap;

use teamster_core::Id;

use crate::wire::Object;

/// Turns of other threads and running commands. Threads are in the order in which they began, because the
/// CLI's ids grow with time.
#[derive(Debug, Default)]
pub(super) struct Agents {
    /// By their threads.
    turns: BTreeMap<String, AgentTurn>,
    /// By their threads.
    origins: BTreeMap<String, Origin>,
    /// By thread and item.
    commands: BTreeMap<(String, String), Command>,
    /// The session's turn that was interrupted last.
    interrupted: Option<String>,
}

#[derive(Debug)]
struct AgentTurn {
    id: String,
    /// The session's turn that it works for, if the CLI reports it.
    root: Option<String>,
}

/// Origin of an agent.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// The call that started it, or that last gave it something to do.
    pub(super) call: Id,
    /// The CLI's name of the agent.
    pub(super) name: String,
    /// The session's turn that the call was made for.
    root: Option<String>,
}

#[derive(Debug)]
struct Command {
    process: String,
    /// The session's turn that it belongs to.
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

    /// An agent's turn is over.
    pub(super) fn completed(&mut self, thread: &str, turn: &str) {
        if self.turns.get(thread).is_some_and(|known| known.id == turn) {
            self.turns.remove(thread);
        }
    }

    /// The CLI has let go of an agent.
    pub(super) fn gone(&mut self, thread: &str) {
        self.turns.remove(thread);
    }

    /// The turn that this agent plays, and the session's turn that it works for.
    pub(super) fn turn_of(&self, thread: &str) -> Option<(&str, &str)> {
        let turn = self.turns.get(thread)?;
        Some((&turn.id, self.root_of(thread)?))
    }

    /// The session's turn that this agent works for. 0.159.3 does not report it: it is then that
    /// of the call.
    fn root_of(&self, thread: &str) -> Option<&str> {
        let reported = self.turns.get(thread)?.root.as_deref();
        reported.or_else(|| self.origins.get(thread)?.root.as_deref())
    }

    /// The agents that work for such a turn of the session: their threads and turns.
    pub(super) fn working_for(&self, is_root: impl Fn(&str) -> bool) -> Vec<(String, String)> {
        let working = self.turns.iter();
        working
            .filter(|(thread, _)| self.root_of(thread).is_some_and(&is_root))
            .map(|(thread, turn)| (thread.clone(), turn.id.clone()))
            .collect()
    }

    /// A call, made for this turn of the session, started the agents that its item names, or gave them
    /// something to do.
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

    /// How this agent came to its work. Where no call is known, its thread stands for it.
    pub(super) fn origin(&self, thread: &str) -> Origin {
        self.origins.get(thread).cloned().unwrap_or_else(|| Origin {
            call: Id::from(thread),
            name: thread.to_owned(),
            root: None,
        })
    }

    /// A command begins, in the session's thread as part of this turn, or in that of an agent.
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

    /// A command has ended.
    pub(super) fn command_ended(&mut self, thread: &str, item: &str) {
        self.commands.remove(&(thread.to_owned(), item.to_owned()));
    }

    /// Takes the running commands of such a turn of the session: their threads and processes.
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

    /// This turn of the session was interrupted: what agents still begin for it is to be ended.
    pub(super) fn interrupted(&mut self, turn: String) {
        self.interrupted = Some(turn);
    }

    /// Whether what agents do for this turn of the session is to be ended.
    pub(super) fn is_interrupted(&self, turn: &str) -> bool {
        self.interrupted.as_deref() == Some(turn)
    }

    /// The session that it all belongs to is closed.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
