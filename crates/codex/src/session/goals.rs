//! Goals: objectives that the CLI pursues in turns that it begins by itself, until the model reports that it is reached.

use serde_json::{Value, json};
use teamster_core::provider::Events;
use teamster_core::{AgentError, NoticeLevel, NoticeSource, Text};

use super::calls::Call;
use super::state::CodexSession;
use super::turn::{Ended, Interrupt};
use crate::wire::{Object, with_underscores};

const ACTIVE: &str = "active";
const PAUSED: &str = "paused";

/// What `/goal` does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GoalCommand {
    Show,
    /// Sets this objective.
    Set(String),
    Pause,
    Resume,
    Clear,
}

impl GoalCommand {
    /// Returns the command of the text after `/goal`.
    pub(super) fn of(text: &str) -> Self {
        match &*text.to_ascii_lowercase() {
            "" => Self::Show,
            "pause" => Self::Pause,
            "resume" => Self::Resume,
            "clear" => Self::Clear,
            _ => Self::Set(text.to_owned()),
        }
    }

    /// Returns the method and the parameters of the request.
    pub(super) fn request(&self) -> (&'static str, Value) {
        const SET: &str = "thread/goal/set";
        match self {
            Self::Show => ("thread/goal/get", json!({})),
            Self::Set(objective) => {
                let params = json!({"objective": objective, "status": ACTIVE, "origin": "user"});
                (SET, params)
            }
            Self::Pause => (SET, json!({"status": PAUSED, "origin": "user"})),
            Self::Resume => (SET, json!({"status": ACTIVE, "origin": "user"})),
            Self::Clear => ("thread/goal/clear", json!({"origin": "user"})),
        }
    }
}

/// The goal of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Goal {
    objective: String,
    /// The CLI's word.
    status: String,
}

impl Goal {
    fn of(goal: &Object<'_>) -> Option<Self> {
        Some(Self {
            objective: goal.text("objective")?.into_owned(),
            status: goal.text("status")?.into_owned(),
        })
    }

    /// Returns the status in words.
    fn status(&self) -> String {
        with_underscores(&self.status).replace('_', " ")
    }

    /// Returns what the user can do about a goal that the CLI has given up.
    fn next_step(&self) -> Option<&'static str> {
        match &*self.status {
            ACTIVE | PAUSED | "complete" => None,
            // Neither another status nor another objective changes that.
            "budgetLimited" => Some(" (`/goal clear` removes it and its budget)"),
            _ => Some(" (`/goal resume` continues it)"),
        }
    }
}

impl CodexSession {
    /// Ends the turn of a command with what the CLI has done. A turn that the CLI has just begun is then the command's,
    /// unless the command ends the goal's turns.
    pub(super) fn goal_answered(
        &mut self,
        number: u64,
        command: &GoalCommand,
        result: Result<Object<'_>, AgentError>,
        out: &mut Events,
    ) {
        if (self.current.as_ref()).is_none_or(|it| it.number != number) {
            return;
        }
        let result = match result {
            Ok(result) => result,
            Err(error) => return self.fail(refused(error), out),
        };
        let goal = result.object("goal");
        self.goal = goal.as_ref().and_then(Goal::of);
        if let Some(thread) = &mut self.thread
            && self.goal.is_some()
        {
            // The goal is in its rollout.
            thread.can_be_resumed = true;
        }
        let mut text = self.done(command, goal.as_ref(), &result);
        let mut running = self.running.clone();
        if matches!(command, GoalCommand::Pause | GoalCommand::Clear)
            && let Some(turn) = running.take()
        {
            // It began after the command was given, when the turn before it ended.
            self.end_unreported(turn);
        }
        if running.is_some() {
            text.push_str(" The turn in progress continues to its end.");
        }
        out.push(Text::new(&*text));
        // For a model that was not used yet, too.
        self.request_offers();
        let begins_turn = matches!(command, GoalCommand::Set(_) | GoalCommand::Resume)
            && self.goal_is(ACTIVE)
            && !self.is_planning;
        let Some(current) = &mut self.current else {
            return;
        };
        if running.is_some() {
            current.id = running;
            self.turn_started();
        } else if current.interrupt == Interrupt::No || !begins_turn {
            let answer = Some(text);
            let ended = Ended {
                answer,
                ..Ended::default()
            };
            self.end(ended, out);
        }
        // Else the turn that the CLI begins now is the command's, so that it can be interrupted.
    }

    fn goal_is(&self, status: &str) -> bool {
        self.goal.as_ref().is_some_and(|goal| goal.status == status)
    }

    /// Ends a turn of which nothing was reported.
    fn end_unreported(&mut self, turn: String) {
        let Some(thread) = self.thread.as_ref().map(|thread| thread.id.clone()) else {
            return;
        };
        self.interrupt_unreported(&thread, &turn);
        if let Some(current) = &mut self.current {
            current.id = Some(turn);
        }
        self.end_commands();
    }

    fn interrupt_unreported(&mut self, thread: &str, turn: &str) {
        let params = json!({"threadId": thread, "turnId": turn});
        self.call(Call::Other, "turn/interrupt", &params);
    }

    /// Returns what the user learns of a command that the CLI has carried out.
    fn done(
        &self,
        command: &GoalCommand,
        goal: Option<&Object<'_>>,
        result: &Object<'_>,
    ) -> String {
        let what = match command {
            GoalCommand::Clear if result.get("cleared") == Some(true) => {
                return "The goal is cleared.".to_owned();
            }
            GoalCommand::Pause if self.goal_is(PAUSED) => {
                return "The goal is paused: `/goal resume` continues it.".to_owned();
            }
            GoalCommand::Set(_) if self.goal_is(ACTIVE) => "The goal is set",
            GoalCommand::Resume if self.goal_is(ACTIVE) => "The goal is active",
            _ => {
                let Some((known, goal)) = self.goal.as_ref().zip(goal) else {
                    return "There is no goal: `/goal OBJECTIVE` sets one.".to_owned();
                };
                let used = goal.get::<u64>("tokens_used").unwrap_or_default();
                let budget = goal.get::<u64>("token_budget");
                let of = budget.map_or_else(String::new, |budget| format!(" of {budget}"));
                let (status, objective) = (known.status(), &known.objective);
                let next = known.next_step().unwrap_or_default();
                return format!(
                    "The goal is {status}, with {used}{of} tokens used{next}: {objective}"
                );
            }
        };
        if self.is_planning {
            return format!(
                "{what}. Codex pursues none in its plan mode: choose another mode, then `/goal resume`."
            );
        }
        format!(
            "{what}. Codex pursues it in turns that it begins by itself, until it is reached: \
             `/goal pause` and `/goal clear` end that."
        )
    }

    /// Handles a goal that the CLI or the model may have changed.
    pub(super) fn goal_updated(&mut self, params: &Object<'_>, out: &mut Events) -> Option<()> {
        let goal = Goal::of(&params.object("goal")?)?;
        if self.is_ours(params) && self.goal.as_ref() != Some(&goal) {
            self.report_goal(&goal, out);
            self.goal = Some(goal);
        }
        Some(())
    }

    /// Handles the removal of a goal.
    pub(super) fn goal_cleared(&mut self, params: &Object<'_>, out: &mut Events) {
        if self.is_ours(params) && self.goal.take().is_some() && !self.one_turn {
            let message = "the goal is cleared";
            out.notice(NoticeLevel::Info, NoticeSource::Stdout, message);
        }
    }

    fn report_goal(&self, goal: &Goal, out: &mut Events) {
        // A run reports what `codex exec` does.
        if self.one_turn {
            return;
        }
        let mut message = format!("the goal is {}: {}", goal.status(), goal.objective);
        let next = goal.next_step();
        let level = next.map_or(NoticeLevel::Info, |_| NoticeLevel::Warning);
        if let Some(next) = next.filter(|_| self.takes_commands) {
            message.push_str(next);
        }
        out.notice(level, NoticeSource::Stdout, message);
    }

    /// Ends a turn that the CLI has begun in a thread that is left: its end would not be reported.
    pub(super) fn leave_turn(&mut self, out: &mut Events) {
        let thread = self.thread.as_ref().filter(|thread| !thread.is_closed);
        let thread = thread.map(|thread| thread.id.clone());
        if let Some((thread, turn)) = thread.zip(self.running.take()) {
            self.interrupt_unreported(&thread, &turn);
        }
        if self.current.is_some() {
            self.end(Ended::interrupted(), out);
        }
    }

    /// Pauses the goal of a thread that is left: its turns would not be reported.
    pub(super) fn leave_goal(&mut self, thread: &str) {
        if self.goal_is(ACTIVE) {
            let (method, mut params) = GoalCommand::Pause.request();
            params["threadId"] = json!(thread);
            self.call(Call::Other, method, &params);
        }
    }
}

/// Returns the error of a refused request, with the next step.
fn refused(error: AgentError) -> AgentError {
    let is = |part: &str| error.message.contains(part);
    let problem = if is("unknown variant `thread/goal/") {
        "this version of Codex has no goals: update it, such as with `npm install -g @openai/codex`"
    } else if is("goals feature is disabled") {
        "Codex's goals are turned off: `codex features enable goals` turns them on, for new sessions"
    } else if is("no goal exists") {
        "there is no goal: `/goal OBJECTIVE` sets one"
    } else {
        return error;
    };
    AgentError::refused("prompt", problem)
}
