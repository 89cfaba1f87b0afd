//! Converts entries of a session's log to updates for the editor.

mod compaction;
pub(crate) mod status;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, Cost, MessageId, Meta, Notice, NoticeSeverity, Plan, PlanEntry,
    PlanEntryPriority, PlanEntryStatus, SessionInfoUpdate, SessionUpdate, ToolCallUpdate,
    UsageUpdate,
};
use serde_json::{Value, json};
use teamster_api::{RunEvent, RunLogEntry, title_of};
use teamster_core::text::{excerpt, one_line};
use teamster_core::{
    AgentEvent, CostSource, Id, McpServerStatus, NoticeLevel, Offers, PlanStatus, RunResult,
    ToolKind, Usage,
};

use crate::tool_call::Call;
use compaction::Compactions;

/// The maximum length of a notice's title, in bytes.
const TITLE: usize = 80;

/// Wraps data that only teamster understands as the protocol's `_meta`.
pub(crate) fn meta(value: Value) -> Meta {
    let mut meta = Meta::new();
    meta.insert("teamster".to_owned(), value);
    meta
}

/// The state of a session's view in an editor.
#[derive(Debug, Default)]
pub(crate) struct View {
    calls: HashMap<Id, Call>,
    /// The session's working directory.
    directory: PathBuf,
    /// The id of the current message if the agent gave it none, and the number of such messages.
    message: Option<MessageId>,
    messages: u64,
    /// Messages that a later entry retracts, in a log that is replayed.
    hidden: HashSet<Id>,
    title: Option<String>,
    /// The title that the session has in lists, if it is known before its first prompt.
    pub(crate) given_title: Option<String>,
    /// The agent's id of its session.
    session: Option<Id>,
    /// The MCP servers that the agent has reported.
    mcp_servers: Vec<McpServerStatus>,
    /// The model that the agent has reported.
    pub(crate) model: Option<String>,
    /// Tokens of the turn up to its last request, and tokens of that request alone.
    turn_tokens: u64,
    context_tokens: u64,
    window: Option<u64>,
    /// The agent reports how full its context is.
    reports_context: bool,
    /// What the agent offers.
    pub(crate) offers: Offers,
    compactions: Compactions,
    /// The tokens of the turns that have ended.
    tokens: u64,
    /// The session's cost in USD, if known, and whether some of it is an estimate.
    cost_usd: Option<f64>,
    is_estimate: bool,
}

/// The context in which an entry is shown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UpdateContext<'a> {
    /// The current content of the changed file.
    pub(crate) content: Option<&'a str>,
    /// The editor supports notices.
    pub(crate) notices: bool,
    /// The editor supports compactions.
    pub(crate) compactions: bool,
    /// The editor's own name: it already shows messages from this source.
    pub(crate) own_source: Option<&'a str>,
    /// All updates of the entries so far are in one list, which is sent later.
    pub(crate) is_replay: bool,
}

impl View {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            ..Self::default()
        }
    }

    /// Hides the messages that these entries retract. Call it before a replay.
    pub(crate) fn hide_retracted(&mut self, entries: &[RunLogEntry]) {
        for entry in entries {
            if let RunLogEntry::Agent(entry) = entry
                && let AgentEvent::Retract(retract) = &entry.event
            {
                self.hidden.insert(retract.message_id.clone());
            }
        }
    }

    /// Appends the updates for an entry to `out`.
    pub(crate) fn apply(
        &mut self,
        entry: &RunLogEntry,
        context: UpdateContext<'_>,
        out: &mut Vec<SessionUpdate>,
    ) {
        match entry {
            RunLogEntry::Agent(entry) => self.event(&entry.event, context, out),
            RunLogEntry::Run(entry) => self.run_event(&entry.event, context, out),
            _ => {}
        }
    }

    fn event(
        &mut self,
        event: &AgentEvent,
        context: UpdateContext<'_>,
        out: &mut Vec<SessionUpdate>,
    ) {
        match event {
            AgentEvent::SessionStarted(session) => {
                if session.model.is_some() {
                    self.model.clone_from(&session.model);
                }
                if let Some(servers) = &session.mcp_servers {
                    self.mcp_servers.clone_from(servers);
                }
                self.session = Some(session.session_id.clone());
            }
            AgentEvent::Offers(offers) => self.offers.update(offers),
            AgentEvent::Context(context) => {
                self.reports_context = true;
                self.context_tokens = context.tokens;
                self.window = Some(context.window);
                out.extend(self.usage(None));
            }
            AgentEvent::Text(text) => {
                if let Some(parent) = &text.parent_tool_id {
                    if let Some(call) = self.calls.get_mut(parent) {
                        let update = call.sub_agent_text(&text.text);
                        show_live(call, update, context, out);
                    }
                } else if !self.is_hidden(text.message_id.as_ref()) {
                    let id = self.message_id(text.message_id.as_ref(), "m");
                    out.push(SessionUpdate::AgentMessageChunk(chunk(&text.text, id)));
                }
            }
            AgentEvent::Thinking(text)
                if text.parent_tool_id.is_none() && !self.is_hidden(text.message_id.as_ref()) =>
            {
                let id = self.message_id(text.message_id.as_ref(), "t");
                out.push(SessionUpdate::AgentThoughtChunk(chunk(&text.text, id)));
            }
            AgentEvent::Retract(retract) => {
                // The protocol cannot retract shown text; the next text starts a new message.
                self.message = None;
                let about = json!({"retract": retract.message_id});
                out.push(SessionUpdate::SessionInfoUpdate(
                    SessionInfoUpdate::new().meta(meta(about)),
                ));
            }
            AgentEvent::ToolUse(tool) => {
                self.message = None;
                let call = Call::new(
                    &tool.tool_id,
                    &tool.tool_name,
                    tool.kind,
                    &tool.input,
                    tool.mcp.as_ref(),
                )
                .in_directory(&self.directory);
                let mut begin = call.begin(&tool.tool_name);
                begin.meta = Some(call_meta(
                    tool.kind,
                    tool.mcp.as_ref(),
                    tool.parent_tool_id.as_ref(),
                ));
                out.push(SessionUpdate::ToolCall(begin));
                self.calls.insert(tool.tool_id.clone(), call);
            }
            AgentEvent::ToolOutput(output) => {
                if let Some(call) = self.calls.get_mut(&output.tool_id) {
                    let update = call.live_output(&output.text);
                    show_live(call, update, context, out);
                }
            }
            AgentEvent::ToolResult(result) => {
                self.message = None;
                if let Some(call) = self.calls.get(&result.tool_id) {
                    let end = call.end(&result.output, result.is_error == Some(true));
                    out.push(SessionUpdate::ToolCallUpdate(end));
                }
            }
            AgentEvent::FileChange(change) => {
                let call = change.tool_id.as_ref();
                if let Some(call) = call.and_then(|id| self.calls.get_mut(id)) {
                    let update = call.changed(change, context.content);
                    out.extend(update.map(SessionUpdate::ToolCallUpdate));
                }
            }
            AgentEvent::Plan(plan) => out.push(SessionUpdate::Plan(plan_of(plan))),
            AgentEvent::Usage(report) => {
                self.record_usage(&report.usage);
                out.extend(self.usage(report.cost_usd));
            }
            AgentEvent::Retry(retry) => {
                let (title, about) = ("The agent retries a request", json!({"event": event}));
                self.show(context, Some(title), &retry.error.message, about, out);
            }
            AgentEvent::Notice(it) if compaction::is_about(it) => {
                if context.compactions {
                    out.extend(self.compactions.update(it));
                } else {
                    self.show(context, None, &it.message, json!({"event": event}), out);
                }
            }
            AgentEvent::Notice(it) if it.level != NoticeLevel::Info => {
                self.show(context, None, &it.message, json!({"event": event}), out);
            }
            AgentEvent::Done(done) => self.done(&done.result, out),
            _ => {}
        }
    }

    fn run_event(
        &mut self,
        event: &RunEvent,
        context: UpdateContext<'_>,
        out: &mut Vec<SessionUpdate>,
    ) {
        match event {
            RunEvent::UserMessage { text, from, .. } => {
                self.message = None;
                let own = context.own_source.is_some() && from.as_deref() == context.own_source;
                if !own {
                    let id = self.message_id(None, "u");
                    self.message = None;
                    out.push(SessionUpdate::UserMessageChunk(chunk(text, id)));
                }
                if self.title.is_none()
                    && let Some(title) = self.given_title.take().or_else(|| title_of(text))
                {
                    let info = SessionInfoUpdate::new().title(title.clone());
                    out.push(SessionUpdate::SessionInfoUpdate(info));
                    self.title = Some(title);
                }
            }
            RunEvent::Hold {
                group,
                until_ms,
                reason,
                ..
            } => {
                let why = reason.as_ref().map_or("no slot is free", |it| &*it.message);
                let title = match until_ms {
                    Some(_) => format!("Waiting for {group} until its limit is reset"),
                    None => format!("Waiting for {group}"),
                };
                self.notice(context, &title, why, out);
            }
            RunEvent::Retry { reason, .. } => {
                self.notice(context, "Retrying", &reason.message, out);
            }
            RunEvent::Fallback { reason, next, .. } => {
                let title = format!("Continuing with {}", next.provider);
                // They are another agent's.
                self.offers = Offers::new();
                self.mcp_servers.clear();
                self.reports_context = false;
                self.notice(context, &title, &reason.message, out);
            }
            _ => {}
        }
    }

    /// Processes the end of a turn: updates the session's usage and cost.
    fn done(&mut self, result: &RunResult, out: &mut Vec<SessionUpdate>) {
        self.calls.clear();
        self.message = None;
        let window = (result.usage_by_model.values()).filter_map(|usage| usage.context_window);
        if !self.reports_context {
            self.window = window.max().or(self.window);
        }
        if let Some(usage) = &result.usage
            && self.turn_tokens == 0
            && !self.reports_context
        {
            self.context_tokens = usage.total_tokens().unwrap_or_default();
        }
        let tokens = result.usage.as_ref().and_then(Usage::total_tokens);
        self.tokens = self.tokens.saturating_add(tokens.unwrap_or_default());
        self.is_estimate |= result.cost_source == Some(CostSource::Estimated);
        self.cost_usd = match (self.cost_usd, result.total_cost_usd) {
            (Some(before), Some(turn)) => Some(before + turn),
            (one, other) => one.or(other),
        };
        out.extend(self.usage(None));
        self.turn_tokens = 0;
    }

    /// Records the turn's cumulative usage. The increase since the last request is the size of the context.
    fn record_usage(&mut self, usage: &Usage) {
        let total = usage.total_tokens().unwrap_or_default();
        if total > self.turn_tokens {
            if !self.reports_context {
                self.context_tokens = total - self.turn_tokens;
            }
            self.turn_tokens = total;
        }
    }

    /// Returns the usage of the context window, if its size is known.
    fn usage(&self, turn_cost: Option<f64>) -> Option<SessionUpdate> {
        let size = self.window?;
        let cost = match (self.cost_usd, turn_cost) {
            (Some(before), Some(turn)) => Some(before + turn),
            (one, other) => one.or(other),
        };
        let update =
            UsageUpdate::new(self.context_tokens, size).cost(cost.map(|usd| Cost::new(usd, "USD")));
        Some(SessionUpdate::UsageUpdate(update))
    }

    pub(crate) fn call(&mut self, id: &Id) -> Option<&mut Call> {
        self.calls.get_mut(id)
    }

    /// Shows what happens beside the agent's own words, such as a wait.
    pub(crate) fn notice(
        &mut self,
        context: UpdateContext<'_>,
        title: &str,
        text: &str,
        out: &mut Vec<SessionUpdate>,
    ) {
        self.show(context, Some(title), text, json!({}), out);
    }

    /// Shows a notice: as such, or as a thought if the editor does not support notices. Without a title, it is the
    /// beginning of the text.
    fn show(
        &mut self,
        context: UpdateContext<'_>,
        title: Option<&str>,
        text: &str,
        about: Value,
        out: &mut Vec<SessionUpdate>,
    ) {
        self.message = None;
        if context.notices {
            let short = excerpt(&one_line(text), TITLE);
            let title = title.unwrap_or(&short);
            let text = Some(text.to_owned()).filter(|text| text != title);
            let notice = Notice::new(NoticeSeverity::Warning, title.to_owned())
                .description(text)
                .meta(meta(about));
            out.push(SessionUpdate::Notice(notice));
            return;
        }
        self.messages += 1;
        let id = MessageId::new(format!("n{}", self.messages));
        let shown = match title {
            Some(title) => format!("{title}: {text}\n"),
            None => format!("{text}\n"),
        };
        out.push(SessionUpdate::AgentThoughtChunk(chunk(&shown, id)));
    }

    fn is_hidden(&self, id: Option<&Id>) -> bool {
        id.is_some_and(|id| self.hidden.contains(id))
    }

    /// Returns the message id for a chunk: the agent's id, or a generated one that consecutive chunks of the same kind
    /// share.
    fn message_id(&mut self, id: Option<&Id>, prefix: &str) -> MessageId {
        if let Some(id) = id {
            self.message = None;
            return MessageId::new(id.to_string());
        }
        if let Some(id) = &self.message
            && id.0.starts_with(prefix)
        {
            return id.clone();
        }
        self.messages += 1;
        let id = MessageId::new(format!("{prefix}{}", self.messages));
        self.message = Some(id.clone());
        id
    }
}

/// Returns the parts of a result that other teamster instances read from the response to a prompt.
pub(crate) fn result_meta(result: &RunResult) -> Meta {
    let mut known = json!({});
    if let Some(usage) = &result.usage {
        known["usage"] = json!(usage);
    }
    if !result.usage_by_model.is_empty() {
        known["usageByModel"] = json!(result.usage_by_model);
    }
    if let Some(usd) = result.total_cost_usd {
        known["costUsd"] = json!(usd);
        known["costSource"] = json!(result.cost_source);
    }
    if let Some(reason) = &result.stop_reason {
        known["stopReason"] = json!(reason);
    }
    meta(known)
}

/// Appends an update with a call's text or output so far. In a replay, one call has one of these: each replaces the one
/// before.
fn show_live(
    call: &mut Call,
    mut update: ToolCallUpdate,
    context: UpdateContext<'_>,
    out: &mut Vec<SessionUpdate>,
) {
    if !context.is_replay {
        return out.push(SessionUpdate::ToolCallUpdate(update));
    }
    // It has the last piece alone.
    update.meta = None;
    let update = SessionUpdate::ToolCallUpdate(update);
    match call.live_at.and_then(|at| out.get_mut(at)) {
        Some(before) => *before = update,
        None => {
            call.live_at = Some(out.len());
            out.push(update);
        }
    }
}

fn call_meta(kind: ToolKind, mcp: Option<&teamster_core::McpTool>, parent: Option<&Id>) -> Meta {
    let mut known = json!({"kind": kind});
    if let Some(mcp) = mcp {
        known["mcp"] = json!(mcp);
    }
    if let Some(parent) = parent {
        known["parentToolId"] = json!(parent);
    }
    meta(known)
}

fn chunk(text: &str, id: MessageId) -> ContentChunk {
    ContentChunk::new(ContentBlock::from(text.to_owned())).message_id(id)
}

fn plan_of(plan: &teamster_core::Plan) -> Plan {
    let entries = plan.entries.iter().map(|entry| {
        let status = match entry.status {
            PlanStatus::InProgress => PlanEntryStatus::InProgress,
            PlanStatus::Completed | PlanStatus::Cancelled => PlanEntryStatus::Completed,
            _ => PlanEntryStatus::Pending,
        };
        PlanEntry::new(entry.content.clone(), PlanEntryPriority::Medium, status)
    });
    Plan::new(entries.collect())
}

#[cfg(test)]
mod tests;
