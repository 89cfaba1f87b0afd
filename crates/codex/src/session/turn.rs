//! The current turn.

use std::collections::BTreeMap;

use teamster_core::provider::{CommandId, Events, UniqueIds};
use teamster_core::{NoticeLevel, NoticeSource, Turn};

use super::agents::Agents;
use super::errors::Failure;
use super::work::Work;
use crate::decoder::errors;

/// A turn that was sent to the CLI, or that the CLI began by itself.
#[derive(Debug, Default)]
pub(super) struct CurrentTurn {
    /// Number of the turn in this process.
    pub(super) number: u64,
    /// The CLI's id of the turn, once it is known.
    pub(super) id: Option<String>,
    /// Earlier turns of the main agent that belong to this one: it got more work while agents were at work.
    pub(super) earlier: Vec<String>,
    /// True if the CLI has reported the start. Before, the turn can be neither interrupted nor steered.
    pub(super) started: bool,
    pub(super) interrupt: Interrupt,
    pub(super) prompt: Prompt,
    pub(super) ids: UniqueIds,
    pub(super) main: Work,
    /// Work of agents for the turn, by their own turns.
    pub(super) agents: BTreeMap<String, Work>,
    /// End of the main agent's turn, while other agents are still at work.
    pub(super) held: Option<Ended>,
    /// True if the main agent got more work while agents are at work, and the CLI has not responded yet.
    pub(super) is_resuming: bool,
    /// Another model that answered.
    pub(super) model: Option<String>,
}

/// An agent that works for the current turn.
#[derive(Debug)]
pub(super) enum Worker {
    Main,
    Agent { thread: String, turn: String },
}

/// State of a turn's prompt.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Prompt {
    #[default]
    Given,
    /// A hook blocked the prompt with this message. The CLI calls such a turn completed.
    HeldBack(String),
    /// The prompt is part of the conversation.
    Taken,
}

/// State of an interruption of a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Interrupt {
    #[default]
    No,
    /// Requested, and sent as soon as possible.
    Wanted,
    /// Sent to the CLI.
    Sent,
}

/// Commands for a turn that is not ready for them.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// A turn that was not sent to the CLI yet.
    pub(super) turn: Option<Turn>,
    /// Messages to send as soon as the turn takes them.
    pub(super) steers: Vec<(CommandId, String)>,
}

/// End of the last turn.
#[derive(Debug, Clone, Default)]
pub(super) struct Ended {
    pub(super) is_error: bool,
    pub(super) interrupted: bool,
    pub(super) stop_reason: Option<String>,
    /// The last message, if the turn ended well.
    pub(super) answer: Option<String>,
}

impl Ended {
    pub(super) fn interrupted() -> Self {
        Self {
            is_error: true,
            interrupted: true,
            ..Self::default()
        }
    }
}

impl CurrentTurn {
    /// Returns whether this turn of the CLI, for which agents may work, is part of the current turn.
    pub(super) fn is_root(&self, turn: &str) -> bool {
        self.id.as_deref() == Some(turn) || self.earlier.iter().any(|earlier| earlier == turn)
    }

    /// Returns an agent's work for the turn.
    pub(super) fn work(&mut self, worker: &Worker, agents: &Agents) -> (&mut Work, &mut UniqueIds) {
        let work = match worker {
            Worker::Main => &mut self.main,
            Worker::Agent { thread, turn } => self
                .agents
                .entry(turn.clone())
                .or_insert_with(|| Work::of_agent(agents.origin(thread))),
        };
        (work, &mut self.ids)
    }

    /// Records that the main agent runs another turn while agents are at work.
    pub(super) fn goes_on(&mut self, id: String) {
        self.earlier.extend(self.id.replace(id));
        self.held = None;
        self.main.items.messages.settle();
        if self.interrupt == Interrupt::Sent {
            self.interrupt = Interrupt::Wanted;
        }
    }

    /// Emits the calls that wait for their arguments, at the end of the turn.
    pub(super) fn finish(&mut self, out: &mut Events) {
        let works = [&mut self.main].into_iter().chain(self.agents.values_mut());
        for work in works {
            work.items.finish(out);
        }
    }

    /// Handles the end of the main agent's turn, and an error that the CLI may have reported.
    pub(super) fn ended(
        &mut self,
        status: &str,
        reported: Option<Failure>,
        out: &mut Events,
    ) -> Ended {
        if status == "failed" {
            let differs = |pending: &mut Failure| {
                reported
                    .as_ref()
                    .is_some_and(|reported| reported.message != pending.message)
            };
            if let Some(pending) = self.main.pending.take_if(differs) {
                out.notice(NoticeLevel::Warning, NoticeSource::Stdout, pending.message);
            }
            let failure = reported.or_else(|| self.main.pending.take());
            let error = match &failure {
                Some(failure) => failure.error(),
                None => errors::of_message(""),
            };
            let reason = (failure.as_ref()).and_then(|it| errors::stop_reason(&it.message));
            let stop_reason = reason.map(str::to_owned);
            out.error(error);
            return Ended {
                is_error: true,
                stop_reason,
                ..Ended::default()
            };
        }
        self.main.settle_pending(out);
        if status == "interrupted" {
            return Ended::interrupted();
        }
        if let Prompt::HeldBack(why) = &self.prompt {
            out.error(errors::held_back(why));
            return Ended {
                is_error: true,
                ..Ended::default()
            };
        }
        self.main.items.messages.ended(out);
        Ended {
            answer: self.main.items.messages.last().map(str::to_owned),
            ..Ended::default()
        }
    }
}
