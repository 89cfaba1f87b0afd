//! Rendering of events, one per line.
//!
//! Snapshots contain only the fields that are rendered here.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use teamster_core::{
    AgentError, AgentEvent, Id, McpServerStatus, RawJson, SessionStarted, ToolUse, Usage,
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
    let (message, parent, text) = match event {
        AgentEvent::Text(e) => (&e.message_id, &e.parent_tool_id, &e.text),
        AgentEvent::Thinking(e) => (&e.message_id, &e.parent_tool_id, &e.text),
        _ => return None,
    };
    Some(Delta {
        kind: event.type_name(),
        message: message.as_ref(),
        parent: parent.as_ref(),
        text,
    })
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
    let mut line = Line::of_delta(&first, redactor);
    line.word(format!("… {} more ({bytes} bytes, {hash})", events.len()));
    line.end(out);
}

fn event(event: &AgentEvent, redactor: &mut Redactor, out: &mut String) {
    if let Some(delta) = delta(event) {
        let mut line = Line::of_delta(&delta, redactor);
        line.quoted(delta.text);
        line.end(out);
        return;
    }
    let mut line = Line::new(event.type_name(), redactor);
    match event {
        AgentEvent::SessionStarted(e) => session(e, &mut line),
        AgentEvent::Retract(e) => line.id(IdKind::Message, &e.message_id),
        AgentEvent::ToolUse(e) => tool_use(e, &mut line),
        AgentEvent::ToolResult(e) => {
            line.id(IdKind::Tool, &e.tool_id);
            line.parent(e.parent_tool_id.as_ref());
            line.word(match e.is_error {
                Some(true) => "error",
                Some(false) => "ok",
                None => "-",
            });
            line.quoted(&e.output);
        }
        AgentEvent::FileChange(e) => {
            line.word(word(&e.change));
            line.quoted(&e.path);
            line.id_or_dash(IdKind::Tool, e.tool_id.as_ref());
        }
        AgentEvent::Plan(e) => {
            for entry in &e.entries {
                line.word(format!("[{}]", word(&entry.status)));
                line.quoted(&entry.content);
            }
        }
        AgentEvent::Permission(e) => {
            line.word(word(&e.decision));
            line.word(name(&e.tool_name));
            line.id_or_dash(IdKind::Tool, e.tool_id.as_ref());
            line.quoted_if_some(e.reason.as_deref());
        }
        AgentEvent::Usage(e) => {
            line.word(usage_words(&e.usage));
            if let Some(cost) = e.cost_usd {
                line.word(usd(cost));
            }
        }
        AgentEvent::Retry(e) => {
            let max = or_dash(e.max_attempts, |max| max.to_string());
            line.word(format!("{}/{max}", e.attempt));
            let delay = e.delay_ms.map(|ms| line.redactor.wait(ms));
            line.named("delay", delay);
            line.error(&e.error);
        }
        AgentEvent::RateLimit(e) => {
            line.word(name(&e.status));
            line.named("kind", e.kind.as_deref().map(name));
            line.named("utilization", e.utilization);
            line.resets_at(e.resets_at_ms);
        }
        AgentEvent::Notice(e) => {
            line.word(word(&e.level));
            line.word(word(&e.source));
            line.named("code", e.code.as_ref().map(word));
            line.quoted(&e.message);
        }
        AgentEvent::Unknown(e) => line.word(shape(&e.native)),
        AgentEvent::TurnEnd(e) => {
            line.word(if e.is_error { "error" } else { "ok" });
            line.word(or_dash(e.stop_reason.as_deref(), name));
            line.word(or_dash(e.usage.as_ref(), usage_words));
            line.word(or_dash(e.cost_usd, usd));
        }
        AgentEvent::Error(e) => line.error(&e.error),
        AgentEvent::Done(e) => result::status(&e.result, &mut line),
        other => line.json(&serde_json::to_value(other).unwrap_or_default()),
    }
    line.end(out);
    if let AgentEvent::Done(e) = event {
        result::fields(&e.result, redactor, out);
    }
}

fn session(event: &SessionStarted, line: &mut Line) {
    line.id(IdKind::Session, &event.session_id);
    line.named("model", event.model.as_deref().map(name));
    let tools = event.tools.as_ref();
    line.named(
        "tools",
        tools.map(|tools| format!("{}[{}]", tools.len(), plain(&tools.join(" ")))),
    );
    let servers = event.mcp_servers.as_ref().map(|servers| {
        let server = |it: &McpServerStatus| format!("{}:{}", name(&it.name), name(&it.status));
        format!(
            "[{}]",
            servers.iter().map(server).collect::<Vec<_>>().join(" ")
        )
    });
    line.named("mcp", servers);
}

fn tool_use(event: &ToolUse, line: &mut Line) {
    line.id(IdKind::Tool, &event.tool_id);
    line.parent(event.parent_tool_id.as_ref());
    line.word(name(&event.tool_name));
    line.word(word(&event.kind));
    let mcp = event.mcp.as_ref();
    line.named(
        "mcp",
        mcp.map(|it| format!("{}/{}", name(&it.server), name(&it.tool))),
    );
    line.json(&event.input);
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
    let keys = keys.filter(|k| !matches!(*k, "type" | "subtype")).map(name);
    let _ = write!(out, " {{{}}}", plain(&keys.collect::<Vec<_>>().join(",")));
    out
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
    let figures = [
        ("in", usage.input_tokens),
        ("out", usage.output_tokens),
        ("cacheRead", usage.cache_read_tokens),
        ("cacheWrite", usage.cache_write_tokens),
        ("reasoning", usage.reasoning_tokens),
    ];
    let known = figures
        .iter()
        .filter_map(|(name, figure)| figure.map(|f| format!("{name}={f}")))
        .collect::<Vec<_>>();
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

/// Returns the words of a value, or `-` without one.
pub(super) fn or_dash<T>(value: Option<T>, words: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), words)
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

    fn of_delta(delta: &Delta, redactor: &'a mut Redactor) -> Self {
        let mut line = Self::new(delta.kind, redactor);
        line.id_or_dash(IdKind::Message, delta.message);
        line.parent(delta.parent);
        line
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
        self.word(word(&error.code));
        self.word(word(&error.kind));
        self.word(if error.retryable {
            "retryable"
        } else {
            "final"
        });
        let retry_after = error.retry_after_ms.map(|ms| self.redactor.wait(ms));
        self.named("retryAfter", retry_after);
        self.resets_at(error.resets_at_ms);
        self.quoted(&error.message);
    }

    fn resets_at(&mut self, at_ms: Option<u64>) {
        let at = at_ms.map(|ms| self.redactor.time(ms));
        self.named("resetsAt", at);
    }

    pub(super) fn redactor(&mut self) -> &mut Redactor {
        self.redactor
    }

    pub(super) fn end(self, out: &mut String) {
        out.push_str(self.text.trim_end());
        out.push('\n');
    }
}
