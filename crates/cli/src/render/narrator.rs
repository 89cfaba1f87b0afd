//! Lines about a run, other than the agent's text.

mod activity;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::time::Duration;

use teamster::{
    AgentEvent, Decision, ErrorKind, Id, NoticeCode, NoticeLevel, PermissionEvent, Plan,
    PlanStatus, RateLimit, RunResult, RunStatus, SessionStarted, ToolKind, ToolResult, ToolUse,
};
use teamster_api::{LifecycleEntry, RunEvent, RunLogEntry, tool_input};
use teamster_core::ToolLedger;
use teamster_core::time::millis;

use super::View;
use super::attempts::Attempts;
use super::line::{Line, Tone};
use crate::{hints, words};
use activity::Activity;

/// Indentation of a tool, and of each level of sub-agents, in columns.
pub(super) const INDENT: usize = 2;

/// Maximum number of shown lines of a command's output.
const OUTPUT_LINES: usize = 20;
/// Maximum number of columns of what a tool would do in the line of its request.
const REQUEST_COLUMNS: usize = 200;

/// Converts log entries to lines. The caller shows the text of the main agent.
#[derive(Debug)]
pub(crate) struct Narrator {
    view: View,
    attempts: Attempts,
    tools: ToolLedger<ShownTool>,
    changed_files: BTreeSet<String>,
    session: Option<Id>,
    /// Incomplete thinking or text of a sub-agent.
    pending: Option<PendingText>,
    activity: Activity,
    /// Number of requests that a caller has denied.
    refused: usize,
}

#[derive(Debug)]
struct ShownTool {
    parent: Option<Id>,
    /// Nesting level; 0 for a tool of the main agent.
    depth: usize,
    name: String,
    summary: String,
    since: Duration,
    kind: ToolKind,
    /// Set once a line about its start was shown.
    announced: bool,
    denied: Option<String>,
}

#[derive(Debug)]
struct PendingText {
    thinking: bool,
    message: Option<Id>,
    parent: Option<Id>,
    text: String,
}

impl Narrator {
    pub(crate) fn new(view: View) -> Self {
        Self {
            attempts: Attempts::new(view.agent),
            view,
            tools: ToolLedger::default(),
            changed_files: BTreeSet::new(),
            session: None,
            pending: None,
            activity: Activity::starting(),
            refused: 0,
        }
    }

    /// Ends a turn of a session. The next one has no header if the session stays the same.
    pub(super) fn end_turn(&mut self) {
        let activity = match self.session {
            Some(_) => Activity::waiting(),
            None => Activity::starting(),
        };
        *self = Self {
            attempts: self.attempts.clone(),
            session: self.session.take(),
            activity,
            ..Self::new(self.view.clone())
        };
    }

    /// Forgets the session, so that the next one has a header of its own.
    pub(super) fn clear_session(&mut self) {
        self.session = None;
        self.activity = Activity::starting();
    }

    /// Returns the settings of the display.
    pub(super) fn view(&self) -> &View {
        &self.view
    }

    pub(super) fn entry(&mut self, entry: &RunLogEntry, now: Duration) -> Vec<Line> {
        match entry {
            RunLogEntry::Agent(entry) => self.event(&entry.event, now),
            RunLogEntry::Run(entry) => self.run_event(entry),
            _ => Vec::new(),
        }
    }

    /// Returns the line about a shown message that is retracted, if there is one.
    pub(super) fn retraction(&self) -> Option<Line> {
        self.attempts.retraction()
    }

    fn run_event(&mut self, entry: &LifecycleEntry) -> Vec<Line> {
        self.attempts.event(&entry.event);
        let gap = match &entry.event {
            RunEvent::Reset { .. } => {
                format!("entries 1 to {} were removed to free space", entry.seq)
            }
            RunEvent::Damaged { .. } => {
                format!("entries up to {} are damaged and left out", entry.seq)
            }
            _ => return Vec::new(),
        };
        let mut lines = self.end_pending(None);
        lines.push(Line::new(Tone::Warning, "warning:", gap));
        if self.view.quiet { Vec::new() } else { lines }
    }

    fn event(&mut self, event: &AgentEvent, now: Duration) -> Vec<Line> {
        let mut lines = self.end_pending(Some(event));
        self.activity.event(event, now);
        match event {
            AgentEvent::SessionStarted(session) => lines.extend(self.session(session)),
            AgentEvent::Thinking(e) => {
                self.add_pending(
                    &e.text,
                    true,
                    e.message_id.as_ref(),
                    e.parent_tool_id.as_ref(),
                );
            }
            AgentEvent::Text(e) if e.parent_tool_id.is_some() => {
                self.add_pending(
                    &e.text,
                    false,
                    e.message_id.as_ref(),
                    e.parent_tool_id.as_ref(),
                );
            }
            AgentEvent::Text(e) => self.attempts.has_printed |= !e.text.trim().is_empty(),
            AgentEvent::ToolUse(tool) => self.tool_use(tool, now, &mut lines),
            AgentEvent::ToolResult(result) => self.tool_result(result, now, &mut lines),
            AgentEvent::FileChange(change) => {
                self.changed_files.insert(change.path.clone());
            }
            AgentEvent::Plan(plan) => lines.extend(self.plan(plan)),
            AgentEvent::Permission(permission) => lines.extend(self.permission(permission)),
            AgentEvent::Retry(retry) => lines.push(self.attempts.retry(retry)),
            AgentEvent::RateLimit(limit) => lines.extend(self.rate_limit(limit)),
            AgentEvent::Notice(notice)
                if notice.code == Some(NoticeCode::UntestedVersion)
                    && (self.view.quiet || !(self.view.is_first)(&notice.message)) => {}
            AgentEvent::Notice(notice) => lines.push(match notice.level {
                NoticeLevel::Warning => {
                    Line::new(Tone::Warning, "warning:", words::printable(&notice.message))
                }
                _ => Line::aside(words::printable(&notice.message)).indented(INDENT),
            }),
            AgentEvent::Unknown(unknown) if self.view.verbose => {
                lines.push(Line::aside(format!(
                    "unknown line: {}",
                    words::one_line(&teamster_core::text::excerpt(unknown.native.get(), 120))
                )));
            }
            AgentEvent::Error(error) if error.error.kind != ErrorKind::Aborted => {
                let error = &error.error;
                let message = words::printable(&hints::message(error));
                lines.push(Line::new(Tone::Error, "error:", message));
                let now_ms = (self.view.clock)();
                if let Some(step) = hints::next_step(
                    error,
                    self.attempts.agent(),
                    &self.attempts.bin(),
                    self.view.mcp,
                    self.view.permission,
                    now_ms,
                ) {
                    lines.push(Line::new(Tone::Hint, "next:", step).indented(INDENT));
                }
                return lines;
            }
            AgentEvent::Done(done) => self.end(&done.result, &mut lines),
            // The caller shows text; usage and the number of turns are in `done`.
            _ => {}
        }
        if self.view.quiet { Vec::new() } else { lines }
    }

    pub(super) fn spinner_text(&self, now: Duration) -> String {
        (self.activity).text(self.attempts.agent(), &self.tools, now)
    }

    /// Marks the run as being stopped.
    pub(super) fn stopping(&mut self) {
        self.activity.stop();
    }

    fn session(&mut self, session: &SessionStarted) -> Option<Line> {
        let new = self.session.as_ref() != Some(&session.session_id);
        let first = self.session.replace(session.session_id.clone()).is_none();
        if !new {
            return None;
        }
        let mut body = self.attempts.agent().name.to_owned();
        if let Some(model) = session.model.as_deref().filter(|_| first) {
            let _ = write!(body, " · {}", words::one_line(model));
        }
        let _ = write!(body, " · session {}", words::one_line(&session.session_id));
        Some(Line::aside(body).wrapped())
    }

    fn tool_use(&mut self, tool: &ToolUse, now: Duration, lines: &mut Vec<Line>) {
        self.announce(tool.parent_tool_id.as_ref(), lines);
        let depth = self.depth_below(tool.parent_tool_id.as_ref());
        let name = match &tool.mcp {
            Some(mcp) => format!("{}/{}", mcp.server, mcp.tool),
            None => tool.tool_name.clone(),
        };
        let shown = ShownTool {
            parent: tool.parent_tool_id.clone(),
            depth,
            name: words::one_line(&name),
            summary: tool_input::summary(&tool.input, self.view.directory.as_deref()),
            since: now,
            kind: tool.kind,
            announced: false,
            denied: None,
        };
        self.tools.start(&tool.tool_id, shown);
    }

    /// Adds the line about the start of a sub-agent, and of its parents, before the sub-agent's first line.
    fn announce(&mut self, id: Option<&Id>, lines: &mut Vec<Line>) {
        let tool = id.and_then(|id| self.tools.open_mut(id));
        let Some(tool) = tool.filter(|tool| !tool.announced) else {
            return;
        };
        tool.announced = true;
        let begins = Line::new(
            Tone::Aside,
            format!("▸ {}", tool.name),
            tool.summary.clone(),
        )
        .fitting(indent(tool.depth), "");
        let parent = tool.parent.clone();
        self.announce(parent.as_ref(), lines);
        lines.push(begins);
    }

    fn tool_result(&mut self, result: &ToolResult, now: Duration, lines: &mut Vec<Line>) {
        let Some(tool) = self.tools.end(&result.tool_id) else {
            return;
        };
        let indent = indent(tool.depth);
        let failed = result.is_error == Some(true) || tool.denied.is_some();
        let took = words::duration_ms(millis(now.saturating_sub(tool.since)));
        let tone = match (failed, result.is_error) {
            (true, _) => Tone::Failed,
            // Some CLIs do not report whether a command succeeded.
            (false, None) if tool.kind == ToolKind::Execute => Tone::Ended,
            (false, _) => Tone::Ok,
        };
        let line = Line::new(tone, tool.name.clone(), tool.summary.clone());
        lines.push(line.fitting(indent, took));
        let detail = match &tool.denied {
            Some(reason) if reason.is_empty() => "permission denied".to_owned(),
            Some(reason) => format!("permission denied: {}", words::one_line(reason)),
            None if failed => words::tool_failure(&result.output),
            None => String::new(),
        };
        if !detail.is_empty() {
            lines.push(Line::aside(detail).fitting(indent + 2, ""));
        }
        if self.view.verbose && !failed && tool.kind == ToolKind::Execute {
            let output = words::first_lines(&result.output, OUTPUT_LINES);
            lines.extend(output.map(|line| Line::aside(line).fitting(indent + 2, "")));
        }
    }

    fn depth_below(&self, parent: Option<&Id>) -> usize {
        parent.map_or(0, |id| 1 + self.tools.get(id).map_or(0, |tool| tool.depth))
    }

    fn plan(&self, plan: &Plan) -> Option<Line> {
        let count = |status| plan.entries.iter().filter(|e| e.status == status).count();
        if plan.entries.is_empty() {
            return None;
        }
        if self.view.verbose {
            let list: Vec<String> = plan
                .entries
                .iter()
                .map(|entry| {
                    let mark = match entry.status {
                        PlanStatus::Completed => "✓",
                        PlanStatus::InProgress => "▸",
                        PlanStatus::Cancelled => "✗",
                        _ => "·",
                    };
                    format!("{mark} {}", words::one_line(&entry.content))
                })
                .collect();
            let list = format!("plan:\n{}", list.join("\n"));
            return Some(Line::new(Tone::Aside, "", list));
        }
        let current = plan
            .entries
            .iter()
            .find(|entry| entry.status == PlanStatus::InProgress)
            .map(|entry| format!(": {}", words::one_line(&entry.content)))
            .unwrap_or_default();
        let (done, cancelled) = (count(PlanStatus::Completed), count(PlanStatus::Cancelled));
        let all = plan.entries.len() - cancelled;
        Some(Line::aside(format!("plan {done}/{all}{current}")).fitting(INDENT, ""))
    }

    fn permission(&mut self, permission: &PermissionEvent) -> Option<Line> {
        let reason = permission.reason.as_deref().unwrap_or_default();
        let name = words::one_line(&permission.tool_name);
        match permission.decision {
            Decision::Denied => {
                let by_caller = permission.request_id.is_some() && !permission.timed_out;
                self.refused += usize::from(by_caller);
                let id = permission.tool_id.as_ref();
                let known = id.is_some_and(|id| self.tools.get(id).is_some());
                if let Some(tool) = id.and_then(|id| self.tools.open_mut(id)) {
                    tool.denied = Some(reason.to_owned());
                }
                // For a known tool, the tool's own line shows the denial.
                (!known).then(|| {
                    let reason = words::one_line(reason);
                    let body = if reason.is_empty() {
                        name
                    } else {
                        format!("{name}: {reason}")
                    };
                    Line::new(Tone::Warning, "permission denied:", body)
                })
            }
            Decision::Requested => {
                let tool = permission
                    .tool_id
                    .as_ref()
                    .and_then(|id| self.tools.get(id));
                let summary = tool.map(|tool| tool.summary.as_str()).unwrap_or_default();
                let space = if summary.is_empty() { "" } else { " " };
                let summary = words::cut(summary, REQUEST_COLUMNS);
                let how = words::how_to_answer(permission.request_id.as_deref());
                let body = format!("{name}{space}{summary}{how}");
                Some(Line::new(Tone::Warning, "asks for permission:", body))
            }
            _ => (self.view.verbose).then(|| Line::aside(format!("permission given: {name}"))),
        }
    }

    fn rate_limit(&self, limit: &RateLimit) -> Option<Line> {
        if limit.status == "allowed" && !self.view.verbose {
            return None;
        }
        let mut body = format!("rate limit: {}", words::one_line(&limit.status));
        if let Some(kind) = &limit.kind {
            let _ = write!(body, ", {}", words::one_line(kind));
        }
        if let Some(used) = limit.utilization {
            let _ = write!(body, ", {:.0}% used", used * 100.0);
        }
        if let Some(at) = limit.resets_at_ms {
            let ms = at.saturating_sub((self.view.clock)());
            let _ = write!(body, ", resets in {}", words::duration_ms(ms));
        }
        Some(Line::aside(body).indented(INDENT))
    }

    fn add_pending(
        &mut self,
        text: &str,
        thinking: bool,
        message: Option<&Id>,
        parent: Option<&Id>,
    ) {
        if self.view.verbose {
            self.pending
                .get_or_insert_with(|| PendingText {
                    thinking,
                    message: message.cloned(),
                    parent: parent.cloned(),
                    text: String::new(),
                })
                .text
                .push_str(text);
        }
    }

    /// Returns the lines of collected thinking or sub-agent text, unless `event` continues it.
    fn end_pending(&mut self, event: Option<&AgentEvent>) -> Vec<Line> {
        let next = match event {
            Some(AgentEvent::Thinking(e)) => Some((true, &e.message_id, &e.parent_tool_id)),
            Some(AgentEvent::Text(e)) => Some((false, &e.message_id, &e.parent_tool_id)),
            _ => None,
        };
        let ends = |m: &mut PendingText| Some((m.thinking, &m.message, &m.parent)) != next;
        let Some(pending) = self.pending.take_if(ends) else {
            return Vec::new();
        };
        if let Some(AgentEvent::Retract(retract)) = event
            && pending.message.as_ref() == Some(&retract.message_id)
        {
            return Vec::new();
        }
        let mut lines = Vec::new();
        self.announce(pending.parent.as_ref(), &mut lines);
        let indent = indent(self.depth_below(pending.parent.as_ref()));
        let text = words::printable(pending.text.trim());
        lines.extend(text.lines().map(|text| Line::aside(text).indented(indent)));
        lines
    }

    fn end(&self, result: &RunResult, lines: &mut Vec<Line>) {
        if !result.permission_denials.is_empty() {
            let by_person = self.view.asks || self.refused >= result.permission_denials.len();
            let granted = (self.view.permission, &*self.view.allowed_tools);
            let body = hints::denials(
                &result.permission_denials,
                granted,
                self.attempts.agent(),
                by_person,
            );
            lines.push(Line::new(Tone::Warning, "permission denied:", body));
        }
        if self.view.verbose
            && result.status != RunStatus::Completed
            && let Some(stderr) = &result.stderr
        {
            let stderr = words::printable(stderr.trim());
            lines.push(Line::aside(format!(
                "stderr of {}:\n{stderr}",
                self.attempts.agent().name
            )));
        }
        let (tone, word) = match result.status {
            RunStatus::Completed => (Tone::EndWell, "completed"),
            RunStatus::Aborted => (Tone::EndBadly, "stopped"),
            RunStatus::TimedOut => (Tone::EndBadly, "timed out"),
            RunStatus::Incomplete => (Tone::EndBadly, "incomplete"),
            _ => (Tone::EndBadly, "failed"),
        };
        let turns = result.num_turns.map(|n| words::plural(n.into(), "turn"));
        let files = self.changed_files.len() as u64;
        let files = (files > 0).then(|| format!("{} changed", words::plural(files, "file")));
        let body: Vec<String> = [
            turns,
            files,
            result.usage.as_ref().and_then(words::tokens),
            words::cost(result),
            Some(words::duration_ms(result.duration_ms)),
        ]
        .into_iter()
        .flatten()
        .collect();
        lines.push(Line::new(tone, word, body.join(" · ")));
        let agent = self.attempts.agent();
        if let Some(command) = self.view.resume_command(agent, result) {
            let line = Line::aside(format!("resume with: {command}"));
            lines.push(line.indented(INDENT));
        }
    }
}

fn indent(depth: usize) -> usize {
    INDENT * (depth + 1)
}
