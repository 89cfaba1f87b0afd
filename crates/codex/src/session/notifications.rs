//! What the CLI tells: notifications, which want no answer.

use teamster_core::provider::Events;
use teamster_core::{AgentEvent, NoticeLevel, NoticeSource, PlanEntry, PlanStatus, Retry};

use super::errors::Failure;
use super::protocol::CodexSession;
use super::turn::{Ended, Playing, Prompt};
use crate::decoder::items::Stage;
use crate::decoder::messages::Kind;
use crate::decoder::wire::{Object, with_underscores};
use crate::decoder::{FALLING_BACK, Reconnect, errors, mcp};

/// Notifications that a run has nothing for.
const SILENT: &[&str] = &[
    "account/rateLimits/updated",
    "account/updated",
    "app/list/updated",
    "hook/started",
    "item/autoApprovalReview/completed",
    "item/autoApprovalReview/started",
    "item/commandExecution/outputDelta",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/textDelta",
    "remoteControl/status/changed",
    "skills/changed",
    "thread/compacted",
    "thread/environment/connected",
    "thread/environment/disconnected",
    "thread/goal/cleared",
    "thread/goal/updated",
    "thread/name/updated",
    "thread/readState/changed",
    "thread/settings/updated",
    "thread/started",
    "thread/status/changed",
    "turn/diff/updated",
];

/// Items that a run has nothing for.
const SILENT_ITEMS: &[&str] = &[
    "contextCompaction",
    "enteredReviewMode",
    "exitedReviewMode",
    "functionCallOutput",
    "hookPrompt",
    "imageGeneration",
    "imageView",
    "sleep",
    "subAgentActivity",
];

/// How a warning begins that has no consequence: the CLI brings what it does not find.
const NO_BUBBLEWRAP: &str = "Codex could not find bubblewrap on PATH";

/// How many parts of a summary may be empty before the next one counts as the next.
const MOST_EMPTY_PARTS: u64 = 8;

impl CodexSession {
    /// Takes a notification. `None` if it is not known; then nothing has happened.
    pub(super) fn told(
        &mut self,
        method: &str,
        params: &Object<'_>,
        out: &mut Events,
    ) -> Option<()> {
        if SILENT.contains(&method) {
            return Some(());
        }
        match method {
            "warning" | "guardianWarning" => self.warned(&params.text("message")?, out),
            "configWarning" => notice(NoticeLevel::Warning, params, out)?,
            "deprecationNotice" => notice(NoticeLevel::Info, params, out)?,
            "mcpServer/startupStatus/updated" => server(params, out)?,
            "serverRequest/resolved" => {
                let id = params.value("request_id")?;
                self.approvals.resolved(&id, &mut self.exchange);
            }
            "thread/closed" if self.is_ours(params) => self.closed(),
            "thread/closed" => {}
            "turn/started" => self.started(params, out)?,
            "turn/completed" => self.completed(params, out)?,
            "thread/tokenUsage/updated" => {
                let report = params.object("token_usage")?;
                if self.is_ours(params) {
                    let of_turn = self.is_current(params);
                    self.figures.reported(&report, of_turn)?;
                }
            }
            "hook/completed" => self.hook_ended(params)?,
            "item/started" => self.item(Stage::Started, params, out)?,
            "item/completed" => self.item(Stage::Completed, params, out)?,
            _ => self.told_of_turn(method, params, out)?,
        }
        Some(())
    }

    /// What only the turn that is being played is told of.
    fn told_of_turn(&mut self, method: &str, params: &Object<'_>, out: &mut Events) -> Option<()> {
        let is_current = self.is_current(params);
        let playing = self.playing.as_mut().filter(|_| is_current);
        match method {
            "item/agentMessage/delta" => {
                let (item, piece) = (params.text("item_id")?, params.text("delta")?);
                if let Some(playing) = playing {
                    playing.items.piece(&item, Kind::Text, &piece, out);
                }
            }
            "item/reasoning/summaryTextDelta" => {
                let (item, piece) = (params.text("item_id")?, params.text("delta")?);
                let part = params.get("summary_index").unwrap_or(0);
                if let Some(playing) = playing {
                    playing.thought(&item, part, &piece, out);
                }
            }
            "turn/plan/updated" => {
                let entries = params.objects("plan").iter().filter_map(entry).collect();
                if let Some(playing) = playing {
                    playing.items.messages.settle();
                    playing.items.plan(entries, out);
                }
            }
            "error" => {
                let error = params.object("error")?;
                let again = params.get("will_retry") == Some(true);
                if let Some(playing) = playing {
                    playing.failed(Failure::of(&error), again, out);
                }
            }
            "model/rerouted" => {
                let to = params.text("to_model")?;
                if let Some(playing) = playing {
                    let message = format!("the service answers with the model {to}");
                    out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
                    playing.model = Some(to.into_owned());
                }
            }
            _ => return None,
        }
        if is_current {
            self.interrupt_if_wanted();
        }
        Some(())
    }

    /// Whether this is about our thread, and not about that of an agent or of a session before.
    fn is_ours(&self, params: &Object<'_>) -> bool {
        let ours = self.thread.as_ref().map(|thread| &*thread.id);
        match params.text("thread_id") {
            Some(thread) => ours == Some(&*thread),
            None => true,
        }
    }

    /// Whether this is about the turn that is being played.
    fn is_current(&self, params: &Object<'_>) -> bool {
        let id = self
            .playing
            .as_ref()
            .and_then(|playing| playing.id.as_deref());
        let is_it = match params.text("turn_id") {
            Some(turn) => id == Some(&*turn),
            None => id.is_some(),
        };
        is_it && self.is_ours(params)
    }

    /// Whether it is an agent of the turn that asks with this request. `None` if it has nothing to do with
    /// the turn.
    pub(super) fn asks(&self, params: &Object<'_>) -> Option<bool> {
        let turn = self.playing.as_ref()?.id.as_deref()?;
        let thread = params.text("thread_id").unwrap_or_default();
        let is_agent = self.agents.works_for(&thread, turn);
        (is_agent || self.is_current(params)).then_some(is_agent)
    }

    fn warned(&mut self, message: &str, out: &mut Events) {
        out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
        if let Some(playing) = &mut self.playing
            && message.starts_with(FALLING_BACK)
        {
            playing.items.messages.broke_off(out);
        }
    }

    fn started(&mut self, params: &Object<'_>, out: &mut Events) -> Option<()> {
        let turn = params.object("turn")?;
        let id = turn.text("id")?.into_owned();
        if !self.is_ours(params) {
            return self.agents.started(&params.text("thread_id")?, &turn);
        }
        self.running = Some(id.clone());
        match &mut self.playing {
            Some(playing) if playing.id.as_ref().is_none_or(|known| *known == id) => {
                playing.id = Some(id);
                self.turn_started();
            }
            // The answer tells which is ours.
            Some(_) => {}
            None if self.waiting.turn.is_some() => {}
            // The CLI begins it by itself.
            None => {
                self.figures.turn_begins();
                self.playing = Some(Playing {
                    id: Some(id),
                    started: true,
                    ..Playing::default()
                });
                self.turn_begins(out);
            }
        }
        Some(())
    }

    fn completed(&mut self, params: &Object<'_>, out: &mut Events) -> Option<()> {
        let turn = params.object("turn")?;
        let id = turn.text("id")?;
        let status = turn.text("status")?;
        let status = match &*status {
            "completed" | "interrupted" | "failed" => status,
            _ => return None,
        };
        if !self.is_ours(params) {
            self.agents.completed(&params.text("thread_id")?);
            return Some(());
        }
        if self.running.as_deref() == Some(&*id) {
            self.running = None;
        }
        let is_it = |playing: &&mut Playing| playing.id.as_deref() == Some(&*id);
        let Some(playing) = self.playing.as_mut().filter(is_it) else {
            return Some(());
        };
        // What was not said at its end is so at the latest.
        if let Some(thread) = &mut self.thread {
            thread.can_be_resumed = true;
        }
        let said = turn.object("error").map(|error| Failure::of(&error));
        let ended = playing.ended(&status, said, out);
        self.end(ended, out);
        Some(())
    }

    /// A hook of the user's has ended. What it says of a tool or of the answer, the model is told.
    fn hook_ended(&mut self, params: &Object<'_>) -> Option<()> {
        let run = params.object("run")?;
        let status = run.text("status")?;
        if self.is_current(params)
            && matches!(&*status, "blocked" | "stopped")
            && let Some(playing) = &mut self.playing
            && playing.prompt != Prompt::Taken
        {
            let said = run.objects("entries");
            let said = said.iter().filter_map(|entry| entry.text("text"));
            let why = said.collect::<Vec<_>>().join("\n");
            playing.prompt = Prompt::HeldBack(why);
        }
        Some(())
    }

    fn item(&mut self, stage: Stage, params: &Object<'_>, out: &mut Events) -> Option<()> {
        let item = params.object("item")?;
        let kind = item.text("type")?;
        let thread = params.text("thread_id").unwrap_or_default();
        if kind == "commandExecution" {
            if stage == Stage::Started {
                let turn = params.text("turn_id");
                self.agents.command(&thread, &item, turn.as_deref());
            } else if let Some(id) = item.text("id") {
                self.agents.command_ended(&thread, &id);
            }
        }
        if kind == "userMessage" {
            if self.is_current(params)
                && let Some(playing) = &mut self.playing
            {
                playing.prompt = Prompt::Taken;
            }
            if stage == Stage::Completed
                && self.is_ours(params)
                && let Some(thread) = &mut self.thread
            {
                // The first one is what makes the session one that can be resumed.
                thread.can_be_resumed = true;
            }
            return Some(());
        }
        if SILENT_ITEMS.contains(&&*kind) {
            return Some(());
        }
        if !self.is_current(params) {
            // Of an agent, or of a turn that has ended: a command that it left running.
            return Some(());
        }
        let playing = self.playing.as_mut()?;
        let id = item.text("id").unwrap_or_default();
        match &*kind {
            "agentMessage" | "reasoning" if stage == Stage::Started => {
                playing.items.messages.begins(&id, out);
            }
            "fileChange" if stage == Stage::Started => {
                if let Some(changes) = item.value("changes") {
                    playing.changes.insert(id.into_owned(), changes);
                }
            }
            "fileChange" => {
                playing.changes.remove(&*id);
            }
            _ => {}
        }
        playing.items.item(stage, &item, out)?;
        self.interrupt_if_wanted();
        Some(())
    }
}

impl Playing {
    /// A piece of a summary of what the model thinks. Its parts are lines.
    fn thought(&mut self, item: &str, part: u64, piece: &str, out: &mut Events) {
        let before = self.parts.entry(item.to_owned()).or_default();
        let new = part.saturating_sub(*before).min(MOST_EMPTY_PARTS);
        *before = part.max(*before);
        let lines = usize::try_from(new).unwrap_or_default();
        let piece = "\n".repeat(lines) + piece;
        self.items.piece(item, Kind::Thinking, &piece, out);
    }

    /// Something failed: the CLI tries it again, or the end of the turn will tell.
    fn failed(&mut self, failure: Failure, again: bool, out: &mut Events) {
        if !again {
            self.settle_pending(out);
            self.pending = Some(failure);
            return;
        }
        self.items.messages.broke_off(out);
        self.retries += 1;
        let reconnect = Reconnect::of(&failure.message);
        let count = reconnect.as_ref();
        out.push(AgentEvent::Retry(Box::new(
            Retry::new(
                count.and_then(|it| it.attempt).unwrap_or(self.retries),
                failure.error_of_retry(),
            )
            .max_attempts(count.and_then(|it| it.max_attempts)),
        )));
    }

    /// The turn went on after what the CLI called an error.
    fn settle_pending(&mut self, out: &mut Events) {
        if let Some(pending) = self.pending.take() {
            out.notice(NoticeLevel::Warning, NoticeSource::Stdout, pending.message);
        }
    }

    /// The turn has ended in this way, and the CLI may have said why.
    fn ended(&mut self, status: &str, said: Option<Failure>, out: &mut Events) -> Ended {
        if status == "failed" {
            let differs = |pending: &mut Failure| {
                said.as_ref()
                    .is_some_and(|said| said.message != pending.message)
            };
            if let Some(pending) = self.pending.take_if(differs) {
                out.notice(NoticeLevel::Warning, NoticeSource::Stdout, pending.message);
            }
            let failure = said.or_else(|| self.pending.take());
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
        self.settle_pending(out);
        if status == "interrupted" {
            return Ended {
                is_error: true,
                interrupted: true,
                ..Ended::default()
            };
        }
        if let Prompt::HeldBack(why) = &self.prompt {
            out.error(errors::held_back(why));
            return Ended {
                is_error: true,
                ..Ended::default()
            };
        }
        self.items.messages.ended(out);
        Ended {
            answer: self.items.messages.last().map(str::to_owned),
            ..Ended::default()
        }
    }
}

fn notice(level: NoticeLevel, params: &Object<'_>, out: &mut Events) -> Option<()> {
    let summary = params.text("summary")?;
    if summary.starts_with(NO_BUBBLEWRAP) {
        return Some(());
    }
    let message = match params.text("details") {
        Some(details) => format!("{summary}\n{details}"),
        None => summary.into_owned(),
    };
    out.notice(level, NoticeSource::Stdout, message);
    Some(())
}

/// How an MCP server is that starts.
fn server(params: &Object<'_>, out: &mut Events) -> Option<()> {
    let (name, status) = (params.text("name")?, params.text("status")?);
    if status == "failed" {
        let reason = params.text("error").unwrap_or_default();
        let message = mcp::not_started(&name, &reason);
        out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
    }
    Some(())
}

fn entry(step: &Object<'_>) -> Option<PlanEntry> {
    let status = step.text("status");
    let word = status.as_deref().map(with_underscores);
    Some(PlanEntry::new(
        step.text("step")?.into_owned(),
        PlanStatus::of_word(word.as_deref()),
    ))
}
