//! Lines about a run, other than the agent's text.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::mem;
use std::time::Duration;

use teamster::{
    AgentEvent, Decision, ErrorKind, Id, NoticeLevel, Permission, Plan, PlanStatus, RateLimit,
    RunResult, RunStatus, Session, ToolKind, ToolResult, ToolUse,
};
use teamster_core::ToolLedger;
use teamster_core::time::millis;

use super::line::{Line, Tone};
use super::retry::retry_line;
use super::{PreviousText, View};
use crate::{hints, words};

/// Indentation of a tool, and of each level of sub-agents, in columns.
pub(super) const INDENT: usize = 2;

/// Converts events to lines. The caller shows the text of the main agent.
#[derive(Debug)]
pub(crate) struct Narrator {
    view: View,
    tools: ToolLedger<ShownTool>,
    changed_files: BTreeSet<String>,
    session: Option<Id>,
    /// Incomplete thinking or text of a sub-agent.
    pending: Option<PendingText>,
    /// Set once the main agent has printed text in this attempt.
    has_printed: bool,
    activity: Activity,
    since: Duration,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    Starting,
    Waiting,
    Thinking,
    Retrying,
    Ending,
    Stopping,
}

impl Narrator {
    pub(crate) fn new(view: View) -> Self {
        Self {
            view,
            tools: ToolLedger::default(),
            changed_files: BTreeSet::new(),
            session: None,
            pending: None,
            has_printed: false,
            activity: Activity::Starting,
            since: Duration::ZERO,
            refused: 0,
        }
    }

    /// Continues a session whose header was already shown.
    pub(crate) fn continue_session(mut self, session: Id) -> Self {
        self.session = Some(session);
        self.activity = Activity::Waiting;
        self
    }

    /// Returns the settings of the display.
    pub(crate) fn view(&self) -> &View {
        &self.view
    }

    /// Returns the lines of an event.
    pub(crate) fn event(&mut self, event: &AgentEvent, now: Duration) -> Vec<Line> {
        let mut lines = self.end_pending(event);
        self.update_activity(event, now);
        match event {
            AgentEvent::Session(session) => lines.extend(self.session(session)),
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
            AgentEvent::Text(e) => self.has_printed |= !e.text.trim().is_empty(),
            AgentEvent::ToolUse(tool) => self.tool_use(tool, now, &mut lines),
            AgentEvent::ToolResult(result) => self.tool_result(result, now, &mut lines),
            AgentEvent::FileChange(change) => {
                self.changed_files.insert(change.path.clone());
            }
            AgentEvent::Plan(plan) => lines.extend(self.plan(plan)),
            AgentEvent::Permission(permission) => lines.extend(self.permission(permission)),
            AgentEvent::Retry(retry) => {
                let previous = self.view.current.take_previous_text();
                let printed = previous.is_some() && mem::take(&mut self.has_printed);
                lines.push(retry_line(
                    retry,
                    printed && previous == Some(PreviousText::Discarded),
                ));
            }
            AgentEvent::RateLimit(limit) => lines.extend(self.rate_limit(limit)),
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
                let (bin, now_ms) = (self.view.current.bin(), (self.view.clock)());
                let info = self.view.info();
                if let Some(step) = hints::next_step(
                    error,
                    info,
                    &bin,
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

    /// Returns the text of the spinner.
    pub(crate) fn spinner_text(&self, now: Duration) -> String {
        let elapsed = |since: Duration| {
            let ms = millis(now.saturating_sub(since));
            // Short times are omitted: they would flicker.
            if ms < 2000 {
                String::new()
            } else {
                format!("  {}", words::duration_ms(ms))
            }
        };
        let info = self.view.info();
        match (self.activity, self.tools.open().next_back()) {
            (Activity::Stopping, _) => format!("stopping {}", info.name),
            (_, Some((_, tool))) => {
                let more = self.tools.open().len() - 1;
                let more = if more == 0 {
                    String::new()
                } else {
                    format!("  (and {more} more)")
                };
                // The time comes before the summary: long lines are cut at the end.
                format!(
                    "{}{}  {}{more}",
                    tool.name,
                    elapsed(tool.since),
                    tool.summary
                )
            }
            (activity, None) => {
                let what = match activity {
                    Activity::Thinking => "thinking".to_owned(),
                    Activity::Starting => format!("starting {}", info.name),
                    Activity::Ending => format!("waiting for {} to end", info.name),
                    Activity::Retrying => "waiting to retry".to_owned(),
                    _ => "waiting for the model".to_owned(),
                };
                format!("{what}{}", elapsed(self.since))
            }
        }
    }

    /// Marks the run as being stopped.
    pub(crate) fn stopping(&mut self) {
        self.activity = Activity::Stopping;
    }

    fn update_activity(&mut self, event: &AgentEvent, now: Duration) {
        let activity = match event {
            AgentEvent::Thinking(_) => Activity::Thinking,
            AgentEvent::Retry(_) => Activity::Retrying,
            AgentEvent::TurnEnd(_) => Activity::Ending,
            // These events do not change the activity.
            AgentEvent::Notice(_) | AgentEvent::RateLimit(_) | AgentEvent::Unknown(_) => return,
            _ => Activity::Waiting,
        };
        if self.activity != Activity::Stopping
            && (self.activity != activity || activity == Activity::Waiting)
        {
            self.activity = activity;
            self.since = now;
        }
    }

    fn session(&mut self, session: &Session) -> Option<Line> {
        let new = self.session.as_ref() != Some(&session.session_id);
        let first = self.session.replace(session.session_id.clone()).is_none();
        if !new {
            return None;
        }
        let mut body = self.view.info().name.to_owned();
        if let Some(model) = session.model.as_deref().filter(|_| first) {
            let _ = write!(body, " · {}", words::one_line(model));
        }
        let _ = write!(body, " · session {}", words::one_line(&session.session_id));
        Some(Line::aside(body))
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
            summary: words::tool_input(&tool.input, self.view.directory.as_deref()),
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

    fn permission(&mut self, permission: &Permission) -> Option<Line> {
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
                let body = name + &words::how_to_answer(permission.request_id.as_deref());
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
        if let Some(at) = limit.resets_at {
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
    fn end_pending(&mut self, event: &AgentEvent) -> Vec<Line> {
        let next = match event {
            AgentEvent::Thinking(e) => Some((true, &e.message_id, &e.parent_tool_id)),
            AgentEvent::Text(e) => Some((false, &e.message_id, &e.parent_tool_id)),
            _ => None,
        };
        let ends = |m: &mut PendingText| Some((m.thinking, &m.message, &m.parent)) != next;
        let Some(pending) = self.pending.take_if(ends) else {
            return Vec::new();
        };
        if let AgentEvent::Retract(retract) = event
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
            let mode = self.view.permission;
            let body = hints::denials(
                &result.permission_denials,
                mode,
                self.view.info(),
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
                self.view.info().name
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
        if let Some(command) = self.view.resume_command(result) {
            let line = Line::aside(format!("resume with: {command}"));
            lines.push(line.indented(INDENT));
        }
    }
}

fn indent(depth: usize) -> usize {
    INDENT * (depth + 1)
}
