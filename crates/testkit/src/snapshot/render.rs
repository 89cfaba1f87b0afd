//! Rendering of events, one per line.
//!
//! Snapshots contain only the fields that are rendered here.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use teamster_core::{
    AgentError, AgentEvent, Done, ErrorEvent, FileChange, Id, McpServerStatus, McpTool, Notice,
    PermissionEvent, Plan, PlanEntry, RateLimit, RawJson, Retract, Retry, SessionStarted, Text,
    Thinking, ToolResult, ToolUse, TurnEnd, Unknown, Usage,
};

use super::quote::{hash, name, plain, quoted};
use super::{IdKind, Redactor, result};

/// Longer sequences of deltas of one message are folded.
const FOLD_OVER: usize = 24;
/// Number of deltas that are shown before and after the fold.
const SHOWN_BEFORE: usize = 8;
const SHOWN_AFTER: usize = 4;

/// Renders events as text, one per line, `done` on several.
pub fn render(events: &[AgentEvent]) -> String {
    let mut redactor = Redactor::new();
    let mut out = String::new();
    let mut rest = events;
    while !rest.is_empty() {
        let (run, after) = rest.split_at(deltas_of_one_message(rest).max(1));
        let folded = if run.len() > FOLD_OVER {
            SHOWN_BEFORE..run.len() - SHOWN_AFTER
        } else {
            0..0
        };
        for (index, one) in run.iter().enumerate() {
            if !folded.contains(&index) {
                event(one, &mut redactor, &mut out);
            } else if index == folded.start {
                fold(&run[folded.clone()], &mut redactor, &mut out);
            }
        }
        rest = after;
    }
    out
}

/// Returns the number of leading events that are deltas of the same message.
fn deltas_of_one_message(events: &[AgentEvent]) -> usize {
    let Some(first) = events.first().and_then(delta) else {
        return 0;
    };
    let same = |event| {
        delta(event).is_some_and(|d| {
            (d.kind, d.message, d.parent) == (first.kind, first.message, first.parent)
        })
    };
    events.iter().take_while(|event| same(*event)).count()
}

struct Delta<'a> {
    kind: &'static str,
    message: Option<&'a Id>,
    parent: Option<&'a Id>,
    text: &'a str,
}

/// Returns the delta of an event that may be folded.
fn delta(event: &AgentEvent) -> Option<Delta<'_>> {
    let kind = event.type_name();
    match event {
        AgentEvent::Text(Text {
            text,
            message_id,
            parent_tool_id,
            ..
        })
        | AgentEvent::Thinking(Thinking {
            text,
            message_id,
            parent_tool_id,
            ..
        }) => Some(Delta {
            kind,
            message: message_id.as_ref(),
            parent: parent_tool_id.as_ref(),
            text,
        }),
        _ => None,
    }
}

fn fold(events: &[AgentEvent], redactor: &mut Redactor, out: &mut String) {
    let Some(first) = events.first().and_then(delta) else {
        return;
    };
    let texts: Vec<String> = events
        .iter()
        .filter_map(delta)
        .map(|delta| redactor.text(delta.text))
        .collect();
    let bytes: usize = texts.iter().map(String::len).sum();
    let hash = hash(texts.iter().map(String::as_str));
    let mut line = Line::new(first.kind, redactor);
    line.id_or_dash(IdKind::Message, first.message);
    line.parent(first.parent);
    line.word(format!("… {} more ({bytes} bytes, {hash})", events.len()));
    line.end(out);
}

fn event(event: &AgentEvent, redactor: &mut Redactor, out: &mut String) {
    let mut line = Line::new(event.type_name(), redactor);
    match event {
        AgentEvent::SessionStarted(e) => session(e, &mut line),
        AgentEvent::Text(Text {
            text,
            message_id,
            parent_tool_id,
            ..
        })
        | AgentEvent::Thinking(Thinking {
            text,
            message_id,
            parent_tool_id,
            ..
        }) => {
            line.id_or_dash(IdKind::Message, message_id.as_ref());
            line.parent(parent_tool_id.as_ref());
            line.quoted(text);
        }
        AgentEvent::Retract(Retract { message_id, .. }) => {
            line.id(IdKind::Message, message_id);
        }
        AgentEvent::ToolUse(e) => tool_use(e, &mut line),
        AgentEvent::ToolResult(e) => tool_result(e, &mut line),
        AgentEvent::FileChange(e) => file_change(e, &mut line),
        AgentEvent::Plan(Plan { entries, .. }) => {
            for PlanEntry {
                content, status, ..
            } in entries
            {
                line.word(format!("[{}]", word(status)));
                line.quoted(content);
            }
        }
        AgentEvent::Permission(e) => permission(e, &mut line),
        AgentEvent::Usage(e) => {
            line.word(usage_words(&e.usage));
            if let Some(cost) = e.cost_usd {
                line.word(usd(cost));
            }
        }
        AgentEvent::Retry(e) => retry(e, &mut line),
        AgentEvent::RateLimit(e) => rate_limit(e, &mut line),
        AgentEvent::Notice(e) => {
            let Notice {
                level,
                message,
                source,
                code,
                ..
            } = &**e;
            line.word(word(level));
            line.word(word(source));
            line.named("code", code.as_ref().map(word));
            line.quoted(message);
        }
        AgentEvent::Unknown(Unknown { native, .. }) => {
            line.word(shape(native));
        }
        AgentEvent::TurnEnd(e) => turn_end(e, &mut line),
        AgentEvent::Error(e) => {
            let ErrorEvent { error, .. } = &**e;
            line.error(error);
        }
        AgentEvent::Done(Done { result, .. }) => {
            result::status(result, &mut line);
        }
        // `AgentEvent` is `#[non_exhaustive]` and defined in another crate.
        other => {
            line.json(&serde_json::to_value(other).unwrap_or_default());
        }
    }
    line.end(out);
    if let AgentEvent::Done(Done { result, .. }) = event {
        result::fields(result, redactor, out);
    }
}

fn session(event: &SessionStarted, line: &mut Line) {
    let SessionStarted {
        session_id,
        model,
        tools,
        mcp_servers,
        ..
    } = event;
    line.id(IdKind::Session, session_id);
    line.named("model", model.as_deref().map(name));
    let tools = tools.as_ref();
    line.named(
        "tools",
        tools.map(|tools| format!("{}[{}]", tools.len(), plain(&tools.join(" ")))),
    );
    let servers = mcp_servers.as_ref().map(|servers| {
        let servers = servers.iter().map(
            |McpServerStatus {
                 name: server,
                 status,
                 ..
             }| { format!("{}:{}", name(server), name(status)) },
        );
        format!("[{}]", servers.collect::<Vec<_>>().join(" "))
    });
    line.named("mcp", servers);
}

fn tool_use(event: &ToolUse, line: &mut Line) {
    let ToolUse {
        tool_name,
        tool_id,
        input,
        kind,
        mcp,
        parent_tool_id,
        ..
    } = event;
    line.id(IdKind::Tool, tool_id);
    line.parent(parent_tool_id.as_ref());
    line.word(name(tool_name));
    line.word(word(kind));
    line.named(
        "mcp",
        mcp.as_ref()
            .map(|McpTool { server, tool, .. }| format!("{}/{}", name(server), name(tool))),
    );
    line.json(input);
}

fn tool_result(event: &ToolResult, line: &mut Line) {
    let ToolResult {
        tool_id,
        output,
        is_error,
        parent_tool_id,
        ..
    } = event;
    line.id(IdKind::Tool, tool_id);
    line.parent(parent_tool_id.as_ref());
    line.word(match is_error {
        Some(true) => "error",
        Some(false) => "ok",
        None => "-",
    });
    line.quoted(output);
}

fn file_change(event: &FileChange, line: &mut Line) {
    let FileChange {
        path,
        change,
        tool_id,
        ..
    } = event;
    line.word(word(change));
    line.quoted(path);
    line.id_or_dash(IdKind::Tool, tool_id.as_ref());
}

fn permission(event: &PermissionEvent, line: &mut Line) {
    let PermissionEvent {
        tool_name,
        tool_id,
        decision,
        reason,
        ..
    } = event;
    line.word(word(decision));
    line.word(name(tool_name));
    line.id_or_dash(IdKind::Tool, tool_id.as_ref());
    line.quoted_if_some(reason.as_deref());
}

fn retry(event: &Retry, line: &mut Line) {
    let Retry {
        attempt,
        max_attempts,
        delay_ms,
        error,
        ..
    } = event;
    let max = max_attempts.map_or_else(|| "-".to_owned(), |max| max.to_string());
    line.word(format!("{attempt}/{max}"));
    let delay = delay_ms.map(|ms| line.redactor.wait(ms));
    line.named("delay", delay);
    line.error(error);
}

fn rate_limit(event: &RateLimit, line: &mut Line) {
    let RateLimit {
        status,
        resets_at_ms,
        kind,
        utilization,
        ..
    } = event;
    line.word(name(status));
    line.named("kind", kind.as_deref().map(name));
    line.named("utilization", utilization.as_ref());
    let resets_at_ms = resets_at_ms.map(|ms| line.redactor.time(ms));
    line.named("resetsAt", resets_at_ms);
}

fn turn_end(event: &TurnEnd, line: &mut Line) {
    let TurnEnd {
        stop_reason,
        is_error,
        usage,
        cost_usd,
        ..
    } = event;
    line.word(if *is_error { "error" } else { "ok" });
    line.word(stop_reason.as_deref().map_or_else(|| "-".into(), name));
    line.word(usage.as_ref().map_or_else(|| "-".into(), usage_words));
    line.word(cost_usd.map_or_else(|| "-".into(), usd));
}

/// Returns the shape of an unknown line: `type/subtype` and the other keys.
fn shape(native: &RawJson) -> String {
    let Ok(Value::Object(object)) = serde_json::from_str(native.get()) else {
        return plain(native.get());
    };
    let mut out = String::new();
    match object.get("type") {
        Some(Value::String(text)) => out.push_str(&name(text)),
        Some(other) => out.push_str(&plain(&other.to_string())),
        None => out.push('-'),
    }
    if let Some(subtype) = object.get("subtype").and_then(Value::as_str) {
        let _ = write!(out, "/{}", name(subtype));
    }
    let keys = object.keys().map(String::as_str);
    let keys: Vec<_> = keys.filter(|k| !matches!(*k, "type" | "subtype")).collect();
    let _ = write!(out, " {{{}}}", quote_keys(&keys));
    out
}

fn quote_keys(keys: &[&str]) -> String {
    plain(
        &keys
            .iter()
            .map(|key| name(key))
            .collect::<Vec<_>>()
            .join(","),
    )
}

/// Returns the wire name of an enum's value.
pub(super) fn word<T: Serialize>(value: &T) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(error) => format!("<{error}>"),
    }
}

pub(super) fn usage_words(usage: &Usage) -> String {
    let Usage {
        input_tokens,
        output_tokens,
        cache_read_tokens,
        cache_write_tokens,
        reasoning_tokens,
        ..
    } = usage;
    let figures = [
        ("in", input_tokens),
        ("out", output_tokens),
        ("cacheRead", cache_read_tokens),
        ("cacheWrite", cache_write_tokens),
        ("reasoning", reasoning_tokens),
    ];
    let known = figures
        .iter()
        .filter_map(|(name, figure)| figure.map(|f| format!("{name}={f}")));
    let known: Vec<_> = known.collect();
    if known.is_empty() {
        "{}".to_owned()
    } else {
        known.join(" ")
    }
}

/// Formats an amount in USD, without rounding errors of binary fractions.
pub(super) fn usd(amount: f64) -> String {
    let amount = format!("{amount:.9}");
    let amount = amount.trim_end_matches('0').trim_end_matches('.');
    format!("${amount}")
}

/// Builder of one snapshot line.
pub(super) struct Line<'a> {
    text: String,
    redactor: &'a mut Redactor,
}

impl<'a> Line<'a> {
    pub(super) fn new(head: &str, redactor: &'a mut Redactor) -> Self {
        let text = format!("{head:<12}");
        Self { text, redactor }
    }

    pub(super) fn word(&mut self, word: impl AsRef<str>) {
        self.text.push(' ');
        self.text.push_str(word.as_ref());
    }

    pub(super) fn named(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.word(format!("{name}={}", value.to_string()));
        }
    }

    pub(super) fn quoted(&mut self, text: &str) {
        let text = self.redactor.text(text);
        self.word(quoted(&text));
    }

    pub(super) fn quoted_if_some(&mut self, text: Option<&str>) {
        if let Some(text) = text {
            self.quoted(text);
        }
    }

    pub(super) fn json(&mut self, value: &Value) {
        let text = self.redactor.text(&value.to_string());
        self.word(plain(&text));
    }

    pub(super) fn id(&mut self, kind: IdKind, id: &Id) {
        let name = self.redactor.id(kind, id);
        self.word(name);
    }

    pub(super) fn id_or_dash(&mut self, kind: IdKind, id: Option<&Id>) {
        match id {
            Some(id) => self.id(kind, id),
            None => self.word("-"),
        }
    }

    fn parent(&mut self, id: Option<&Id>) {
        if let Some(id) = id {
            let name = self.redactor.id(IdKind::Tool, id);
            self.word(format!("in={name}"));
        }
    }

    pub(super) fn error(&mut self, error: &AgentError) {
        let AgentError {
            message,
            code,
            kind,
            retryable,
            retry_after_ms,
            resets_at_ms,
            ..
        } = error;
        self.word(word(code));
        self.word(word(kind));
        self.word(if *retryable { "retryable" } else { "final" });
        let retry_after = retry_after_ms.map(|ms| self.redactor.wait(ms));
        self.named("retryAfter", retry_after);
        let resets_at_ms = resets_at_ms.map(|ms| self.redactor.time(ms));
        self.named("resetsAt", resets_at_ms);
        self.quoted(message);
    }

    pub(super) fn redactor(&mut self) -> &mut Redactor {
        self.redactor
    }

    pub(super) fn end(self, out: &mut String) {
        out.push_str(self.text.trim_end());
        out.push('\n');
    }
}
