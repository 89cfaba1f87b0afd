//! Notifications of the CLI, which need no response.

use teamster_core::provider::Events;
use teamster_core::{
    ContextUse, Decision, NoticeCode, NoticeLevel, NoticeSource, PermissionEvent, PlanEntry,
    PlanStatus, UsageReport,
};

use super::errors::Failure;
use super::notices;
use super::state::CodexSession;
use super::turn::{CurrentTurn, Interrupt, Prompt, Worker};
use crate::decoder::items::Stage;
use crate::decoder::messages::Kind;
use crate::decoder::{FALLING_BACK, mcp};
use crate::wire::{Object, with_underscores};

/// The name in place of the tool's, which a hook that denies a call does not report.
const HOOK_BEFORE_TOOL: &str = "PreToolUse hook";

/// Notifications without a counterpart in a run.
const SILENT: &[&str] = &[
    "account/rateLimits/updated",
    "account/updated",
    "app/list/updated",
    "autoApprovalReview/strictReviewRequired",
    "hook/started",
    "item/autoApprovalReview/completed",
    "item/autoApprovalReview/started",
    "item/commandExecution/terminalInteraction",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/mcpToolCall/progress",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/textDelta",
    "remoteControl/status/changed",
    "skills/changed",
    "thread/environment/connected",
    "thread/environment/disconnected",
    "thread/name/updated",
    "thread/prediction/updated",
    "thread/readState/changed",
    "thread/settings/updated",
    "thread/started",
    "turn/diff/updated",
    "turn/moderationMetadata",
];

/// Items without a counterpart in a run.
const SILENT_ITEMS: &[&str] = &[
    "enteredReviewMode",
    "exitedReviewMode",
    "functionCallOutput",
    "hookPrompt",
    "imageGeneration",
    "imageView",
    "sleep",
];

impl CodexSession {
    /// Handles a notification. Returns `None` if it is unknown; then the state is unchanged.
    pub(super) fn notification(
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
            "configWarning" => notices::message(NoticeLevel::Warning, params, out)?,
            "deprecationNotice" => notices::message(NoticeLevel::Info, params, out)?,
            "modelProvider/authRecoveryStarted"
            | "modelProvider/authRecoveryCompleted"
            | "model/verification"
            | "model/safetyBuffering/updated"
            | "windows/worldWritableWarning" => notices::of(method, params, out)?,
            "mcpServer/startupStatus/updated" => server(params, out)?,
            "serverRequest/resolved" => {
                let id = params.value("request_id")?;
                self.approvals.resolved(&id, &mut self.outbox);
            }
            // An item reports it, too, but not those of older versions.
            "thread/compacted" if self.is_ours(params) && std::mem::take(&mut self.compacted) => {}
            "thread/compacted" => self.compaction(Stage::Completed, params, out),
            "thread/closed" if self.is_ours(params) => self.closed(),
            "thread/closed" => self.agent_gone(params, out),
            "thread/status/changed" => {
                let status = params.object("status")?.text("type")?;
                if status == "notLoaded" && !self.is_ours(params) {
                    self.agent_gone(params, out);
                }
            }
            "thread/goal/updated" => self.goal_updated(params, out)?,
            "thread/goal/cleared" => self.goal_cleared(params, out),
            "turn/started" => self.started(params, out)?,
            "turn/completed" => self.completed(params, out)?,
            "thread/tokenUsage/updated" => {
                let report = params.object("token_usage")?;
                self.used(params, &report, out)?;
            }
            "hook/completed" => self.hook_ended(params, out)?,
            "item/started" => self.item(Stage::Started, params, out)?,
            "item/completed" => self.item(Stage::Completed, params, out)?,
            _ => self.turn_notification(method, params, out)?,
        }
        Some(())
    }

    /// Handles notifications about the current turn only.
    fn turn_notification(
        &mut self,
        method: &str,
        params: &Object<'_>,
        out: &mut Events,
    ) -> Option<()> {
        let is_current = self.is_current(params);
        let worker = self.worker(params);
        let current = self.current.as_mut().zip(worker.as_ref());
        let at_work = current.map(|(current, worker)| current.work(worker, &self.agents));
        match method {
            "item/agentMessage/delta" | "item/plan/delta" => {
                let (item, piece) = (params.text("item_id")?, params.text("delta")?);
                if let Some((work, ids)) = at_work {
                    work.items.piece(&item, Kind::Text, &piece, ids, out);
                }
            }
            "item/commandExecution/outputDelta" => {
                let (item, piece) = (params.text("item_id")?, params.text("delta")?);
                if let Some((work, _)) = at_work
                    && let Some(call) = work.call(&item)
                    && !self.one_turn
                {
                    self.live.piece(&call, &piece, out);
                }
            }
            "item/reasoning/summaryTextDelta" => {
                let (item, piece) = (params.text("item_id")?, params.text("delta")?);
                let part = params.get("summary_index").unwrap_or(0);
                if let Some((work, ids)) = at_work {
                    work.thought(&item, part, &piece, ids, out);
                }
            }
            // An agent's plan is not the run's plan.
            "turn/plan/updated" => {
                let entries = params.objects("plan").iter().filter_map(entry).collect();
                if let Some((work, _)) = at_work {
                    work.items.messages.settle();
                    if is_current {
                        work.items.plan(entries, out);
                    }
                }
            }
            "error" => {
                let error = params.object("error")?;
                let again = params.get("will_retry") == Some(true);
                if let Some((work, _)) = at_work {
                    work.failed(Failure::of(&error), again, out);
                }
            }
            "model/rerouted" => {
                let to = params.text("to_model")?;
                if let Some(current) = self.current.as_mut().filter(|_| is_current) {
                    let message = format!("the service answers with the model {to}");
                    out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
                    current.model = Some(to.into_owned());
                }
            }
            _ => return None,
        }
        if is_current {
            self.interrupt_if_wanted();
        }
        Some(())
    }

    /// Handles a thread's usage: its total and its last request.
    fn used(&mut self, params: &Object<'_>, report: &Object<'_>, out: &mut Events) -> Option<()> {
        let has_grown = if self.is_ours(params) {
            let of_turn = self.is_current(params);
            self.figures.reported(report, of_turn)?
        } else {
            let thread = params.text("thread_id")?;
            self.figures.reported_by_agent(&thread, report)?
        };
        let usage = self.figures.of_turn().filter(|_| self.current.is_some());
        if let Some(usage) = usage.filter(|_| has_grown) {
            out.push(UsageReport::new(usage));
        }
        if self.is_current(params)
            && has_grown
            && !self.one_turn
            && let Some(window) = report.get("model_context_window")
            && let Some(last) = report.object("last")
            && let Some(tokens) = last.get("total_tokens")
        {
            out.push(ContextUse::new(tokens, window));
        }
        Some(())
    }

    /// Handles the start and the end of a compaction.
    fn compaction(&mut self, stage: Stage, params: &Object<'_>, out: &mut Events) {
        if !self.is_ours(params) {
            return;
        }
        let (code, message) = match stage {
            Stage::Started => (
                NoticeCode::CompactionStarted,
                "the conversation is being compacted",
            ),
            Stage::Completed => (NoticeCode::Compacted, "the conversation was compacted"),
            Stage::Updated => return,
        };
        out.coded_notice(code, NoticeLevel::Info, NoticeSource::Stdout, message);
    }

    /// Returns whether this is about our thread. Other threads are those of agents and of earlier sessions.
    pub(super) fn is_ours(&self, params: &Object<'_>) -> bool {
        let ours = self.thread.as_ref().map(|thread| &*thread.id);
        match params.text("thread_id") {
            Some(thread) => ours == Some(&*thread),
            None => true,
        }
    }

    /// Returns whether this is about the current turn.
    fn is_current(&self, params: &Object<'_>) -> bool {
        let id = self
            .current
            .as_ref()
            .and_then(|current| current.id.as_deref());
        let is_it = match params.text("turn_id") {
            Some(turn) => id == Some(&*turn),
            None => id.is_some(),
        };
        is_it && self.is_ours(params)
    }

    /// Returns the agent of the current turn that this is about.
    pub(super) fn worker(&self, params: &Object<'_>) -> Option<Worker> {
        if self.is_current(params) {
            return Some(Worker::Main);
        }
        let thread = params.text("thread_id")?;
        let (turn, root) = self.agents.turn_of(&thread)?;
        let is_it = params.text("turn_id").is_none_or(|of| of == turn);
        let current = self.current.as_ref()?;
        (is_it && current.is_root(root)).then(|| Worker::Agent {
            thread: thread.into_owned(),
            turn: turn.to_owned(),
        })
    }

    fn warned(&mut self, message: &str, out: &mut Events) {
        out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
        if let Some(current) = &mut self.current
            && message.starts_with(FALLING_BACK)
        {
            current.main.items.messages.broke_off(out);
        }
    }

    fn started(&mut self, params: &Object<'_>, out: &mut Events) -> Option<()> {
        let turn = params.object("turn")?;
        let id = turn.text("id")?.into_owned();
        if !self.is_ours(params) {
            return self.agent_started(&params.text("thread_id")?, &turn);
        }
        self.running = Some(id.clone());
        let root = turn.text("root_turn_id");
        match &mut self.current {
            // The turn that carries out a review, whose lines have the id of the response.
            Some(current)
                if current.held.is_none()
                    && root.is_some()
                    && current.id.as_deref() == root.as_deref() =>
            {
                self.turn_started();
            }
            Some(current) if current.id.as_ref().is_none_or(|known| *known == id) => {
                current.id = Some(id);
                self.turn_started();
            }
            // Another turn of the main agent, while agents are at work.
            Some(current) if current.held.is_some() => {
                current.goes_on(id);
                self.turn_started();
            }
            // The response identifies it.
            Some(_) => {}
            None if self.waiting.turn.is_some() => {}
            // The CLI begins the turn by itself.
            None => {
                self.figures.turn_begins();
                self.current = Some(CurrentTurn {
                    id: Some(id),
                    started: true,
                    ..CurrentTurn::default()
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
            self.agent_ended(params, &turn, out);
            return Some(());
        }
        if self.running.as_deref() == Some(&*id) {
            self.running = None;
        }
        let is_it = |current: &&mut CurrentTurn| current.id.as_deref() == Some(&*id);
        let Some(current) = self.current.as_mut().filter(is_it) else {
            return Some(());
        };
        self.running = None;
        // The thread is stored by now, if not before.
        if let Some(thread) = &mut self.thread {
            thread.can_be_resumed = true;
        }
        let reported = turn.object("error").map(|error| Failure::of(&error));
        let ended = current.ended(&status, reported, out);
        current.held = Some(ended);
        self.end_with_agents(out);
        Some(())
    }

    /// Handles the start of an agent's turn.
    fn agent_started(&mut self, thread: &str, turn: &Object<'_>) -> Option<()> {
        self.agents.started(thread, turn)?;
        let Some((id, root)) = self.agents.turn_of(thread) else {
            return Some(());
        };
        let current = self.current.as_ref();
        let is_wanted = current.is_some_and(|it| it.interrupt != Interrupt::No && it.is_root(root));
        if is_wanted || self.agents.is_interrupted(root) {
            let id = id.to_owned();
            self.interrupt_agent(thread.to_owned(), id);
        }
        Some(())
    }

    /// Handles the end of an agent's turn.
    fn agent_ended(&mut self, params: &Object<'_>, turn: &Object<'_>, out: &mut Events) {
        let (Some(thread), Some(id)) = (params.text("thread_id"), turn.text("id")) else {
            return;
        };
        let worker = self.worker(params);
        if let (Some(worker @ Worker::Agent { turn: known, .. }), Some(current)) =
            (&worker, &mut self.current)
            && *known == id
        {
            let reported = turn.object("error").map(|error| Failure::of(&error));
            let status = turn.text("status").unwrap_or_default();
            let (work, _) = current.work(worker, &self.agents);
            work.agent_ended(&status, reported, out);
        }
        self.agents.completed(&thread, &id);
        self.end_with_agents(out);
    }

    /// Handles the removal of an agent by the CLI.
    fn agent_gone(&mut self, params: &Object<'_>, out: &mut Events) {
        if let Some(thread) = params.text("thread_id") {
            self.agents.gone(&thread);
            self.end_with_agents(out);
        }
    }

    /// Handles the end of a user's hook. One that blocks before the CLI has taken the prompt holds that back; one before
    /// a tool denies a call, which is in no item. The model gets the output of any other hook about a tool or the
    /// answer.
    fn hook_ended(&mut self, params: &Object<'_>, out: &mut Events) -> Option<()> {
        let run = params.object("run")?;
        let status = run.text("status")?;
        let ends = self.is_current(params) && matches!(&*status, "blocked" | "stopped");
        let Some(current) = self.current.as_mut().filter(|_| ends) else {
            return Some(());
        };
        let entries = run.objects("entries");
        let texts = entries.iter().filter_map(|entry| entry.text("text"));
        let why = texts.collect::<Vec<_>>().join("\n");
        if current.prompt != Prompt::Taken {
            current.prompt = Prompt::HeldBack(why);
        } else if status == "blocked" && run.text("event_name").as_deref() == Some("preToolUse") {
            out.push(PermissionEvent::new(HOOK_BEFORE_TOOL, Decision::Denied).reason(Some(why)));
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
                && let Some(current) = &mut self.current
            {
                current.prompt = Prompt::Taken;
            }
            if stage == Stage::Completed
                && self.is_ours(params)
                && let Some(thread) = &mut self.thread
            {
                // The first one makes the session resumable.
                thread.can_be_resumed = true;
            }
            return Some(());
        }
        if kind == "contextCompaction" {
            if self.is_ours(params) {
                self.compacted = stage == Stage::Completed;
                self.compaction(stage, params, out);
            }
            return Some(());
        }
        if SILENT_ITEMS.contains(&&*kind) {
            return Some(());
        }
        // It reports the end of the agent's turn, which has a notification of its own.
        if kind == "subAgentActivity" && item.text("kind").as_deref() == Some("completed") {
            return Some(());
        }
        let Some(worker) = self.worker(params) else {
            // It belongs to an ended turn: a command that continues, or an agent.
            return Some(());
        };
        let current = self.current.as_mut()?;
        let (work, ids) = current.work(&worker, &self.agents);
        let id = item.text("id").unwrap_or_default();
        // The call is open from its start to its end.
        let before = work.call(&id);
        work.item(stage, &item, ids, out)?;
        if let Some(call) = before.or_else(|| work.call(&id)) {
            let root = match &worker {
                Worker::Main => current.id.clone(),
                Worker::Agent { thread, .. } => {
                    let turn = self.agents.turn_of(thread);
                    turn.map(|(_, root)| root.to_owned())
                }
            };
            self.agents.called(&kind, &item, &call, root.as_deref());
            if stage == Stage::Completed {
                self.live.ended(&call);
            }
        }
        self.interrupt_if_wanted();
        Some(())
    }
}

/// Handles the state of an MCP server that starts.
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
        PlanStatus::from_word(word.as_deref()),
    ))
}
