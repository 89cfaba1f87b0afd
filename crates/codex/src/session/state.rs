//! The state of one `codex app-server` process.

use serde_json::Value;
use teamster_core::provider::{CommandId, LiveOutput, Outbox};
use teamster_core::{Id, PermissionMode, SessionOptions};

use super::agents::Agents;
use super::approvals::Approvals;
use super::calls::{Call, Calls};
use super::goals::Goal;
use super::permissions::Settings;
use super::turn::{CurrentTurn, Ended, Waiting};
use super::usage::Figures;
use crate::launch::Start;
use crate::totals::Baseline;
use crate::transcript::Before;

/// State of one process and its session.
#[derive(Debug)]
pub(super) struct CodexSession {
    pub(super) outbox: Outbox,
    pub(super) calls: Calls,
    pub(super) start: Start,
    /// Usage of the resumed session before this process.
    pub(super) baseline: Baseline,
    pub(super) settings: Lookup<Settings>,
    pub(super) mode: PermissionMode,
    pub(super) mode_changed: bool,
    /// The CLI is in its collaboration mode for plans.
    pub(super) is_planning: bool,
    pub(super) model: Option<String>,
    pub(super) model_changed: bool,
    /// A thread that must be started or resumed.
    pub(super) opening: Option<Opening>,
    pub(super) thread: Option<Thread>,
    pub(super) figures: Figures,
    pub(super) agents: Agents,
    pub(super) approvals: Approvals,
    pub(super) waiting: Waiting,
    pub(super) current: Option<CurrentTurn>,
    /// The active turn of our thread as reported by the CLI.
    pub(super) running: Option<String>,
    pub(super) turns: u64,
    /// The goal of the thread, if the CLI has reported one.
    pub(super) goal: Option<Goal>,
    pub(super) ended: Option<Ended>,
    pub(super) interrupted: bool,
    /// The session is a run: its events are those of `codex exec`.
    pub(super) one_turn: bool,
    /// The models are to be requested: the session is not a run, and they were not requested yet.
    pub(super) wants_models: bool,
    /// A prompt `/NAME` is a skill of that name.
    pub(super) takes_commands: bool,
    /// Names of the skills.
    pub(super) skills: Lookup<Vec<String>>,
    /// Live output of the turn's commands.
    pub(super) live: LiveOutput,
    /// True after an item has reported the end of a compaction.
    pub(super) compacted: bool,
}

/// A value requested from the CLI once, on first use.
#[derive(Debug)]
pub(super) enum Lookup<T> {
    Not,
    Waiting,
    Answered(T),
}

impl CodexSession {
    pub(super) fn new(options: &SessionOptions) -> Self {
        let start = Start::of(options);
        let baseline = match &start.resume {
            Some(_) => Before::of(&options.params).printed,
            None => Baseline::default(),
        };
        Self {
            outbox: Outbox::new(),
            calls: Calls::default(),
            mode: start.permission,
            mode_changed: false,
            is_planning: false,
            model: start.model.clone(),
            model_changed: false,
            baseline,
            settings: Lookup::Not,
            opening: None,
            thread: None,
            figures: Figures::default(),
            agents: Agents::default(),
            approvals: Approvals::default(),
            waiting: Waiting::default(),
            current: None,
            running: None,
            turns: 0,
            goal: None,
            ended: None,
            interrupted: false,
            one_turn: options.one_turn,
            wants_models: !options.one_turn,
            takes_commands: options.params.slash_commands && !options.one_turn,
            skills: Lookup::Not,
            live: LiveOutput::default(),
            compacted: false,
            start,
        }
    }

    pub(super) fn call(&mut self, call: Call, method: &str, params: &Value) -> u64 {
        self.calls.call(&mut self.outbox, call, method, params)
    }

    /// Continues the request numbers from this one, as if requests had been made before.
    #[cfg(all(test, repository))]
    pub(super) fn number_requests_from(&mut self, number: u64) {
        self.calls.number_from(number);
    }
}

/// A session in the CLI's terms.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) id: Id,
    /// The model that the thread began with.
    pub(super) model: Option<String>,
    /// Another model that answered in the last turn.
    pub(super) answered_by: Option<String>,
    /// True if the thread is on disk.
    pub(super) can_be_resumed: bool,
    /// True if the CLI has closed the thread.
    pub(super) is_closed: bool,
    /// The sandbox and the approval policy, if they are from the user's settings.
    pub(super) defaults: Option<(Value, Value)>,
}

/// A thread that must be started or resumed.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) kind: OpeningKind,
    /// The command that waits for the thread, if it replaces another one.
    pub(super) clear: Option<CommandId>,
    /// The number of the request, once it was sent.
    pub(super) call: Option<u64>,
    pub(super) baseline: Baseline,
}

#[derive(Debug)]
pub(super) enum OpeningKind {
    New,
    Resume(String),
    Fork(String),
}
