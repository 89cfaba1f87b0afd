//! Entries of a session's log as updates for an editor.

use std::collections::{HashMap, HashSet};

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, Cost, MessageId, Meta, Notice, NoticeSeverity, Plan, PlanEntry,
    PlanEntryPriority, PlanEntryStatus, SessionInfoUpdate, SessionUpdate, UsageUpdate,
};
use serde_json::{Value, json};
use teamster_core::text::{excerpt, one_line};
use teamster_core::{AgentEvent, Id, NoticeLevel, PlanStatus, RunResult, ToolKind, Usage};
use teamster_orchestrator::{RunEvent, RunLogEntry};

use crate::tool_call::Call;

/// The longest title of a session, in bytes.
const TITLE: usize = 80;

/// What of an update only teamster understands, in the protocol's place for extensions.
pub(crate) fn meta(value: Value) -> Meta {
    let mut meta = Meta::new();
    meta.insert("teamster".to_owned(), value);
    meta
}

/// What an editor has been shown of a session.
#[derive(Debug, Default)]
pub(crate) struct Story {
    calls: HashMap<Id, Call>,
    /// The current message without an id of its own, and how many there were.
    message: Option<MessageId>,
    messages: u64,
    /// Withdrawn text that must not be shown, of a log that is read as a whole.
    hidden: HashSet<Id>,
    title: Option<String>,
    /// The model that the agent has reported.
    pub(crate) model: Option<String>,
    /// Tokens of the turn at the last request, and what the last request had.
    counted: u64,
    in_context: u64,
    window: Option<u64>,
    /// What the session has cost, where that is known.
    cost_usd: Option<f64>,
}

/// What is around an entry.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Around<'a> {
    /// What is in the changed file now.
    pub(crate) content: Option<&'a str>,
    /// The editor shows notices.
    pub(crate) notices: bool,
    /// Messages from this source were typed in the editor, which shows them itself.
    pub(crate) own_source: Option<&'a str>,
}

impl Story {
    /// Prepares for these entries of a log, of which more is known than of those that come: a message that was
    /// retracted later is not shown at all.
    pub(crate) fn hide_retracted(&mut self, entries: &[RunLogEntry]) {
        for entry in entries {
            if let RunLogEntry::Agent(entry) = entry
                && let AgentEvent::Retract(retract) = &entry.event
            {
                self.hidden.insert(retract.message_id.clone());
            }
        }
    }

    /// The updates of an entry.
    pub(crate) fn see(
        &mut self,
        entry: &RunLogEntry,
        around: Around<'_>,
        out: &mut Vec<SessionUpdate>,
    ) {
        match entry {
            RunLogEntry::Agent(entry) => self.event(&entry.event, around, out),
            RunLogEntry::Run(entry) => self.run_event(&entry.event, around, out),
            _ => {}
        }
    }

    fn event(&mut self, event: &AgentEvent, around: Around<'_>, out: &mut Vec<SessionUpdate>) {
        match event {
            AgentEvent::Session(session) if session.model.is_some() => {
                self.model.clone_from(&session.model);
            }
            AgentEvent::Text(text) => {
                if let Some(parent) = &text.parent_tool_id {
                    let call = self.calls.get_mut(parent);
                    out.extend(call.map(|call| {
                        SessionUpdate::ToolCallUpdate(call.sub_agent_text(&text.text))
                    }));
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
                // What was shown cannot be taken back; the next words are a new message.
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
                );
                let mut begin = call.begin(&tool.tool_name);
                begin.meta = Some(of_call(
                    tool.kind,
                    tool.mcp.as_ref(),
                    tool.parent_tool_id.as_ref(),
                ));
                out.push(SessionUpdate::ToolCall(begin));
                self.calls.insert(tool.tool_id.clone(), call);
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
                    let update = call.changed(change, around.content);
                    out.extend(update.map(SessionUpdate::ToolCallUpdate));
                }
            }
            AgentEvent::Plan(plan) => out.push(SessionUpdate::Plan(plan_of(plan))),
            AgentEvent::Usage(report) => {
                self.count(&report.usage);
                out.extend(self.usage(report.cost_usd));
            }
            AgentEvent::Retry(retry) => notice(
                around,
                NoticeSeverity::Warning,
                "The agent repeats a request",
                &retry.error.message,
                meta(json!({"event": event})),
                out,
            ),
            AgentEvent::Notice(it) if it.level != NoticeLevel::Info => notice(
                around,
                NoticeSeverity::Warning,
                &excerpt(&one_line(&it.message), TITLE),
                &it.message,
                meta(json!({"event": event})),
                out,
            ),
            AgentEvent::Done(done) => self.done(&done.result, out),
            _ => {}
        }
    }

    fn run_event(&mut self, event: &RunEvent, around: Around<'_>, out: &mut Vec<SessionUpdate>) {
        match event {
            RunEvent::UserMessage { text, from, .. } => {
                self.message = None;
                let own = around.own_source.is_some() && from.as_deref() == around.own_source;
                if !own {
                    let id = self.message_id(None, "u");
                    self.message = None;
                    out.push(SessionUpdate::UserMessageChunk(chunk(text, id)));
                }
                if self.title.is_none() {
                    let title = title_of(text);
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
                self.message = None;
                let why = reason.as_ref().map_or("no slot is free", |it| &*it.message);
                let title = match until_ms {
                    Some(_) => format!("Waiting for {group} until its limit is reset"),
                    None => format!("Waiting for {group}"),
                };
                waiting(around, &title, why, &mut self.messages, out);
            }
            RunEvent::Retry { reason, .. } => {
                self.message = None;
                waiting(
                    around,
                    "Trying again",
                    &reason.message,
                    &mut self.messages,
                    out,
                );
            }
            RunEvent::Fallback { reason, next, .. } => {
                self.message = None;
                let title = format!("Going on with {}", next.provider);
                waiting(around, &title, &reason.message, &mut self.messages, out);
            }
            _ => {}
        }
    }

    /// A turn has ended: figures of the whole session.
    fn done(&mut self, result: &RunResult, out: &mut Vec<SessionUpdate>) {
        self.calls.clear();
        self.message = None;
        let window = (result.usage_by_model.values()).filter_map(|usage| usage.context_window);
        self.window = window.max().or(self.window);
        if let Some(usage) = &result.usage
            && self.counted == 0
        {
            self.in_context = usage.total_tokens().unwrap_or_default();
        }
        self.cost_usd = match (self.cost_usd, result.total_cost_usd) {
            (Some(before), Some(turn)) => Some(before + turn),
            (one, other) => one.or(other),
        };
        out.extend(self.usage(None));
        self.counted = 0;
    }

    /// Takes running figures of a turn: what a request adds is what the context holds.
    fn count(&mut self, usage: &Usage) {
        let total = usage.total_tokens().unwrap_or_default();
        if total > self.counted {
            self.in_context = total - self.counted;
            self.counted = total;
        }
    }

    /// How full the context is, where its size is known.
    fn usage(&self, turn_cost: Option<f64>) -> Option<SessionUpdate> {
        let size = self.window?;
        let cost = match (self.cost_usd, turn_cost) {
            (Some(before), Some(turn)) => Some(before + turn),
            (one, other) => one.or(other),
        };
        let update =
            UsageUpdate::new(self.in_context, size).cost(cost.map(|usd| Cost::new(usd, "USD")));
        Some(SessionUpdate::UsageUpdate(update))
    }

    /// The call of this id, for a request about it.
    pub(crate) fn call(&self, id: &Id) -> Option<&Call> {
        self.calls.get(id)
    }

    fn is_hidden(&self, id: Option<&Id>) -> bool {
        id.is_some_and(|id| self.hidden.contains(id))
    }

    /// The message of a piece of text: the agent's own id, else one for all pieces up to something else.
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

/// The title of a session that begins with this prompt.
pub(crate) fn title_of(prompt: &str) -> String {
    let line = prompt.lines().find(|line| !line.trim().is_empty());
    excerpt(&one_line(line.unwrap_or_default().trim()), TITLE)
}

/// What the answer to a prompt has of the result, for other teamsters.
pub(crate) fn of_result(result: &RunResult) -> Meta {
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

fn of_call(kind: ToolKind, mcp: Option<&teamster_core::McpTool>, parent: Option<&Id>) -> Meta {
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

/// A notice, for an editor that shows them.
fn notice(
    around: Around<'_>,
    severity: NoticeSeverity,
    title: &str,
    text: &str,
    meta: Meta,
    out: &mut Vec<SessionUpdate>,
) {
    if around.notices && !title.is_empty() {
        let text = Some(text.to_owned()).filter(|text| text != title);
        let notice = Notice::new(severity, title.to_owned())
            .description(text)
            .meta(meta);
        out.push(SessionUpdate::Notice(notice));
    }
}

/// What the user waits for: a notice, else a thought, which every editor shows.
fn waiting(
    around: Around<'_>,
    title: &str,
    why: &str,
    messages: &mut u64,
    out: &mut Vec<SessionUpdate>,
) {
    if around.notices {
        let about = meta(json!({}));
        notice(around, NoticeSeverity::Warning, title, why, about, out);
        return;
    }
    *messages += 1;
    let id = MessageId::new(format!("n{messages}"));
    out.push(SessionUpdate::AgentThoughtChunk(chunk(
        &format!("{title}: {why}\n"),
        id,
    )));
}

#[cfg(test)]
mod tests;
