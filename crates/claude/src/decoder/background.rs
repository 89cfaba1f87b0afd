//! Background work: commands and agents.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use teamster_core::provider::Activity;
use teamster_core::provider::json_line::parse;

use super::wire::{Launched, Origin, SystemLine};

/// State of the CLI's turn, and the background work that it waits for before it exits.
#[derive(Debug, Default)]
pub(super) struct Background {
    /// Open tasks, by their id.
    tasks: HashMap<String, Task>,
    in_turn: bool,
    /// True if a task has ended since the last turn. The CLI then starts another turn to inform the model.
    reported: bool,
    /// Agents that the main agent started in the background.
    launched: HashSet<String>,
    /// Background agents that have ended and that the model does not know about yet, in order.
    unreported: Vec<Ended>,
}

/// An open task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    /// An agent, or a workflow of agents.
    Agent,
    /// A command, or anything else without a time limit.
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

    /// Ends a turn. `origin` is its trigger, if the CLI reports it.
    pub(super) fn turn_ends(&mut self, origin: Option<&Origin<'_>>) {
        self.in_turn = false;
        self.reported = false;
        if let Some(origin) = origin
            && origin.is_of_a_task()
            && !self.unreported.is_empty()
        {
            // Versions before 2.1.300 do not identify the task; they report in order.
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

    /// Returns whether a turn is active.
    pub(super) fn in_turn(&self) -> bool {
        self.in_turn
    }

    /// Returns whether agents are active, or one has ended and a later turn will inform the model.
    pub(super) fn agents_at_work(&self) -> bool {
        !self.unreported.is_empty() || self.tasks.values().any(|task| *task == Task::Agent)
    }

    /// Handles `idle`: the CLI waits for its next message and starts no turn by itself.
    pub(super) fn idle(&mut self) {
        self.unreported.clear();
    }

    /// Handles `task_started`.
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

    /// Records a background task from the result of the main agent's call.
    pub(super) fn launched(&mut self, result: &RawValue) {
        let launched: Option<Launched<'_>> = parse(result.get());
        let Some(launched) = launched.filter(|it| it.status.as_deref() == Some("async_launched"))
        else {
            return;
        };
        if let Some(task) = launched.agent_id.or(launched.task_id) {
            self.launched.insert(task.into_owned());
        }
    }

    /// Handles `task_notification`, the end of a task.
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

    /// Handles `task_updated`, which also reports killed tasks.
    pub(super) fn updated(&mut self, line: &SystemLine<'_>) {
        let status = line.patch.as_ref().and_then(|p| p.status.as_deref());
        if let (Some(task), Some("killed")) = (line.task_id.as_deref(), status) {
            self.removed(task, true);
            self.launched.remove(task);
        }
    }

    fn removed(&mut self, task: &str, stopped: bool) {
        let was_known = self.tasks.remove(task).is_some();
        // A task that is stopped because the CLI exits triggers no turn.
        self.reported |= was_known && !self.in_turn && !stopped;
    }

    /// Handles a user message of the CLI, which may inform the model of the end of a task.
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
