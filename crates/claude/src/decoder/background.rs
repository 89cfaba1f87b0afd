//! Work beside the main agent: commands and agents in the background.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use teamster_core::provider::Activity;

use super::wire::{Launched, Origin, SystemLine};

/// The turn of the CLI, and what it waits for before it exits.
#[derive(Debug, Default)]
pub(super) struct Background {
    /// Open tasks, by their id.
    tasks: HashMap<String, Task>,
    in_turn: bool,
    /// A task has reported since the last turn: the CLI begins another turn to inform the model.
    reported: bool,
    /// Agents that the main agent started in the background.
    launched: HashSet<String>,
    /// Those that have ended, and that the model does not know of yet. In order.
    unreported: Vec<Ended>,
}

/// An open task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    /// An agent, or a workflow of agents.
    Agent,
    /// A command, or anything else that may run for as long as it likes.
    Other,
}

/// An agent that has ended.
#[derive(Debug)]
struct Ended {
    task_id: String,
    run_id: Option<String>,
}

impl Background {
    pub(super) fn turn_begins(&mut self) {
        self.in_turn = true;
    }

    /// A turn is over. `origin`: its trigger, if the CLI reports it.
    pub(super) fn turn_ends(&mut self, origin: Option<&Origin<'_>>) {
        self.in_turn = false;
        self.reported = false;
        if let Some(origin) = origin
            && origin.is_of_a_task()
            && !self.unreported.is_empty()
        {
            // Versions before 2.1.300 do not say which; they report in order.
            let run = origin.run_id.as_deref();
            let same = |ended: &Ended| run.is_some() && ended.run_id.as_deref() == run;
            let at = self.unreported.iter().position(same).unwrap_or(0);
            self.unreported.remove(at);
        }
    }

    pub(super) fn activity(&self) -> Activity {
        if self.in_turn || self.reported {
            Activity::Turn
        } else if self.tasks.is_empty() {
            Activity::None
        } else {
            Activity::Background
        }
    }

    /// Whether a turn has begun whose end has not come.
    pub(super) fn in_turn(&self) -> bool {
        self.in_turn
    }

    /// Whether agents are at work, or one has ended and the model will learn of it in a turn to come.
    pub(super) fn agents_at_work(&self) -> bool {
        !self.unreported.is_empty() || self.tasks.values().any(|task| *task == Task::Agent)
    }

    /// The CLI waits for its next message: no turn is to come by itself.
    pub(super) fn idle(&mut self) {
        self.unreported.clear();
    }

    /// `task_started`.
    pub(super) fn started(&mut self, line: &SystemLine<'_>) {
        let Some(task) = line.task_id.as_deref() else {
            return;
        };
        let kind = match line.task_type.as_deref() {
            Some("local_agent" | "local_workflow") => Task::Agent,
            _ => Task::Other,
        };
        self.tasks.insert(task.to_owned(), kind);
    }

    /// The result of the main agent's call reports work in the background.
    pub(super) fn launched(&mut self, result: &RawValue) {
        let launched: Option<Launched<'_>> = serde_json::from_str(result.get()).ok();
        let Some(launched) = launched.filter(|it| it.status.as_deref() == Some("async_launched"))
        else {
            return;
        };
        if let Some(task) = launched.agent_id.or(launched.task_id) {
            self.launched.insert(task.into_owned());
        }
    }

    /// `task_notification`: a task has ended.
    pub(super) fn ended(&mut self, line: &SystemLine<'_>) {
        let Some(task) = line.task_id.as_deref() else {
            return;
        };
        let stopped = line.status.as_deref() == Some("stopped");
        self.removed(task, stopped);
        if self.launched.remove(task) && !stopped {
            self.unreported.push(Ended {
                task_id: task.to_owned(),
                run_id: line.run_id.as_deref().map(str::to_owned),
            });
        }
    }

    /// `task_updated`, which also reports that a task was killed.
    pub(super) fn updated(&mut self, line: &SystemLine<'_>) {
        let status = line.patch.as_ref().and_then(|p| p.status.as_deref());
        if let (Some(task), Some("killed")) = (line.task_id.as_deref(), status) {
            self.removed(task, true);
            self.launched.remove(task);
        }
    }

    fn removed(&mut self, task: &str, stopped: bool) {
        let was_known = self.tasks.remove(task).is_some();
        // One that was stopped for the CLI to exit gets no turn.
        self.reported |= was_known && !self.in_turn && !stopped;
    }

    /// A message in the user's name, which may inform the model of a task that has ended.
    pub(super) fn message(&mut self, text: &str) {
        if !text.starts_with("<task-notification>") {
            return;
        }
        let task = text.split_once("<task-id>");
        if let Some((task, _)) = task.and_then(|(_, rest)| rest.split_once("</task-id>")) {
            self.unreported.retain(|ended| ended.task_id != task);
        }
    }
}
