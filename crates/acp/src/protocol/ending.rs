//! The end of a turn, and turns that the agent begins by itself.
//!
//! The protocol wants all updates of a turn before the answer to its prompt, but agents print some after it, because
//! they write updates and answers in tasks of their own. So a turn ends when the agent has been silent for a moment
//! after its answer. Some agents also continue by themselves, such as when work in the background has ended.

use std::time::Duration;

use serde_json::Value;
use teamster_core::provider::{Decoder, Events};
use teamster_core::{AgentError, AgentEvent, ErrorKind, TurnEnd};

use super::{AcpProtocol, CANCELLED, End, cut_short};
use crate::dialect::{Announcement, NextUpdate};
use crate::errors::{RequestKind, RpcError};
use crate::peer;
use crate::wire::Message;
use crate::write;

/// Silence after the answer to a prompt that ends the turn.
const AFTER_ANSWER: Duration = Duration::from_millis(250);
/// Silence that ends a turn in which the agent printed more after its answer, which it began without announcing it, or
/// which was cancelled while its record is still missing.
const AFTER_MORE: Duration = Duration::from_secs(1);
/// Longest wait for the agent's record of a turn that it has answered. Without the record a turn of Kimi Code has no
/// tokens and no failure. On a machine with 20 busy programs for two processors it came later than 2 s after the answer
/// in some turns.
const FOR_RECORD: Duration = Duration::from_secs(10);

/// The agent's answer to a prompt, until the turn ends.
#[derive(Debug)]
pub(super) struct Answer {
    result: Result<Value, RpcError>,
    /// Failure that the agent's last text reports.
    reported: Option<AgentError>,
    /// True if what followed the answer was interrupted.
    interrupted: bool,
}

/// A turn that the agent began by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnTurn {
    /// It ends when the agent is silent.
    Unannounced,
    /// The agent also announces its end.
    Announced,
    /// The end was announced, and the agent's record of the turn is read meanwhile.
    Ended,
}

impl AcpProtocol {
    /// Returns whether there is a turn to which updates belong.
    pub(super) fn is_active(&self) -> bool {
        self.prompt_id.is_some() || self.own.is_some()
    }

    /// Returns whether updates continue a turn that is answered, or that the agent began by itself.
    pub(super) fn is_late(&self) -> bool {
        self.answer.is_some() || self.prompt_id.is_none()
    }

    pub(super) fn prompt_answered(&mut self, result: Result<Value, RpcError>, out: &mut Events) {
        let next = result.as_ref().map_or(NextUpdate::Other, NextUpdate::End);
        let reported = self.resolve(next, out);
        self.resumable |= result.is_ok();
        self.withdraw_all();
        self.answer = Some(Answer {
            result,
            reported,
            interrupted: false,
        });
    }

    /// Returns the silence that ends the turn.
    pub(super) fn silence_of_end(&self) -> Option<Duration> {
        if self.prompt_id.is_some() && self.answer.is_none() || !self.is_active() {
            return None;
        }
        if self.cancelling {
            let awaits = self.dialect.awaits_record();
            return Some(if awaits { AFTER_MORE } else { AFTER_ANSWER });
        }
        match self.own {
            Some(OwnTurn::Announced) => None,
            Some(OwnTurn::Ended) => Some(AFTER_ANSWER),
            _ if !self.permissions.is_empty() => None,
            _ if self.turn.late_calls() || self.waits_for_background() => None,
            None if self.dialect.awaits_record() => Some(FOR_RECORD),
            None if !self.turn.followed => Some(AFTER_ANSWER),
            _ => Some(AFTER_MORE),
        }
    }

    /// Ends the turn that is answered, or that the agent began by itself.
    pub(super) fn end_after_silence(&mut self, out: &mut Events) {
        match self.answer.take() {
            Some(answer) => self.end_answered(answer, out),
            None if self.prompt_id.is_none() && self.own.is_some() => self.end_own(out),
            None => {}
        }
    }

    fn end_answered(&mut self, answer: Answer, out: &mut Events) {
        let reported = answer
            .reported
            .or_else(|| self.resolve(NextUpdate::Other, out));
        let is_cancelled = self.cancelling || answer.interrupted;
        if !is_cancelled && !self.dialect.reports_every_call() {
            self.announce_pending(out);
        }
        let end = match answer.result {
            Ok(result) => {
                let stop_reason = if answer.interrupted {
                    Some(CANCELLED)
                } else {
                    result["stopReason"].as_str()
                };
                self.interrupted = stop_reason == Some(CANCELLED);
                let figures = self.dialect.figures(&result, &self.turn);
                let failure = if self.interrupted {
                    None
                } else {
                    reported
                        .or_else(|| self.dialect.failure(stop_reason, &self.turn))
                        .or_else(|| cut_short(stop_reason))
                };
                let failed = failure.is_some();
                if let Some(error) = failure {
                    out.error(error);
                }
                End {
                    failed,
                    stop_reason: stop_reason.map(str::to_owned),
                    figures,
                }
            }
            Err(error) => {
                let figures = self.dialect.figures(&peer::result_of(&error), &self.turn);
                let error = self.dialect.error(&error, RequestKind::Prompt);
                self.interrupted = self.cancelling && error.kind == ErrorKind::Aborted;
                if !self.interrupted {
                    out.error(error);
                }
                End {
                    failed: !self.interrupted,
                    figures,
                    ..End::default()
                }
            }
        };
        self.end_turn(end, out);
    }

    /// Begins a turn that the agent did not announce, unless there is a turn.
    pub(super) fn begin_own(&mut self) {
        if !self.is_active() {
            self.own = Some(OwnTurn::Unannounced);
        }
    }

    /// Returns whether the agent may begin a turn by itself. What follows an interrupted turn belongs to that.
    pub(super) fn may_begin(&self) -> bool {
        !self.interrupted && !self.cancelling && self.session.is_some()
    }

    /// Ends what follows an answer, or a turn of the agent's own, by an interruption.
    pub(super) fn interrupt_late(&mut self, out: &mut Events) {
        if self.own == Some(OwnTurn::Ended) {
            return self.end_own(out);
        }
        let goes_on = self.own.is_some() || self.waits_for_background();
        if let Some(session) = self.session.clone().filter(|_| goes_on) {
            write::cancel(&mut self.outbox, &session);
        }
        match &mut self.answer {
            Some(answer) => {
                answer.interrupted = goes_on;
                self.end_after_silence(out);
            }
            None => {
                self.interrupted = true;
                self.resolve(NextUpdate::Other, out);
                let end = End {
                    stop_reason: Some(CANCELLED.to_owned()),
                    figures: self.dialect.figures(&Value::Null, &self.turn),
                    ..End::default()
                };
                self.end_turn(end, out);
            }
        }
    }

    /// Ends the turn with its process. Returns whether the agent was in a turn whose end it would have announced.
    pub(super) fn end_with_process(&mut self, out: &mut Events) -> bool {
        let is_cut = self.own.take_if(|own| *own == OwnTurn::Announced);
        self.end_after_silence(out);
        is_cut.is_some()
    }

    fn end_own(&mut self, out: &mut Events) {
        let failure = self.resolve(NextUpdate::End(&Value::Null), out);
        let figures = self.dialect.figures(&Value::Null, &self.turn);
        let failed = failure.is_some();
        if let Some(error) = failure {
            out.error(error);
        }
        let end = End {
            failed,
            figures,
            ..End::default()
        };
        self.end_turn(end, out);
    }

    /// Handles a message by which the agent announces a turn of its own. Returns whether it is one.
    pub(super) fn announced(&mut self, message: &Message<'_>, out: &mut Events) -> bool {
        let method = message.method.as_deref().unwrap_or_default();
        match self.dialect.announces(method) {
            Some(Announcement::Begin) if self.own == Some(OwnTurn::Ended) => {
                self.end_own(out);
                self.begins_next = true;
            }
            Some(Announcement::Begin) if self.may_begin() => {
                self.own = Some(OwnTurn::Announced);
            }
            Some(Announcement::End) if self.prompt_id.is_none() => {
                let has_events = self.turn.has_answer() || self.turn.used_tools();
                if self.own.is_some() && has_events && self.record_files().is_some() {
                    self.own = Some(OwnTurn::Ended);
                } else if self.own.is_some() {
                    self.end_own(out);
                }
            }
            Some(Announcement::End) => {
                self.own = None;
                self.turn.followed |= self.answer.is_some();
            }
            Some(Announcement::Begin) => {}
            None => return false,
        }
        true
    }

    /// Ends the turn, whether its prompt was sent or not.
    pub(super) fn end_turn(&mut self, end: End, out: &mut Events) {
        self.withdraw_all();
        self.prompt_id = None;
        self.answer = None;
        self.own = None;
        self.waiting = None;
        self.cancelling = false;
        out.push(AgentEvent::TurnEnd(Box::new(
            TurnEnd::new(end.failed)
                .stop_reason(end.stop_reason.clone())
                .usage(end.figures.usage)
                .cost_usd(end.figures.cost.map(|(usd, _)| usd)),
        )));
        self.end = Some(end);
    }

    /// Returns whether the answered turn of a run waits for the agent's work in the background, which ends with a turn
    /// of the agent's own. In a session that turn is one of its own too.
    pub(super) fn waits_for_background(&self) -> bool {
        self.answer.is_some() && self.settings.one_turn && self.dialect.works_in_background()
    }

    /// Forgets the turn that has ended, except for the ids of its calls.
    pub(super) fn forget_turn(&mut self) {
        self.live.clear();
        let turn = std::mem::take(&mut self.turn);
        self.earlier.clear();
        self.earlier.extend(turn.ended);
        self.earlier
            .extend(turn.open.into_iter().map(|open| open.call.id));
    }
}
