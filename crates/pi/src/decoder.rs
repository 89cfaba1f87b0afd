//! Decoder of the output of `pi --mode json` and `pi --mode rpc`.
//!
//! The CLI prints everything several times: a text comes as deltas, as a block, as a message, with the turn, and with
//! all messages of the run. Only deltas and messages are read.

mod end;
pub(crate) mod errors;
mod messages;
mod tools;
mod usage;
pub(crate) mod wire;

use std::borrow::Cow;

use teamster_core::provider::json_line::{self, parse, type_of};
use teamster_core::provider::{DecodedResult, Decoder, Events, Exit, surrogates};
use teamster_core::text::{excerpt, without_colors};
use teamster_core::{
    ErrorKind, ExecuteParams, Id, NoticeCode, NoticeLevel, NoticeSource, Retry, SessionStarted,
    UsageReport,
};

use crate::launch::{Withheld, mcp};

use end::Ending;
use messages::Answer;
use tools::Calls;
use usage::Used;
use wire::{
    Appended, CompactionEnd, Entry, Extension, Header, Message, MessageLine, RetryEnd, RetryLine,
    Settled, Update,
};

/// Limit of an extension's message in a notice, in bytes.
const NOTICE_BYTES: usize = 1000;

/// Decodes the output of one run, or of the turns of a session.
#[derive(Debug, Default)]
pub struct PiDecoder {
    pub(crate) session: Option<Id>,
    pub(crate) model: Option<String>,
    slash_commands: bool,
    answer: Answer,
    calls: Calls,
    used: Used,
    /// Tokens in the context after the last answer, until they are taken.
    pub(crate) context: Option<u64>,
    pub(crate) ending: Ending,
}

impl Decoder for PiDecoder {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        if json_line::read(line, |text| self.json_line(text, out)).is_none() {
            out.unknown(line);
        }
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        self.end(exit, out)
    }

    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        evidence(stderr)
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        errors::kind_of(stderr)
    }
}

impl PiDecoder {
    /// Creates a decoder for a run with unknown parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a decoder for a run with these parameters.
    pub fn for_run(params: &ExecuteParams) -> Self {
        Self {
            slash_commands: params.slash_commands,
            calls: Calls::of(
                Withheld::of(params),
                (params.mcp_servers.iter())
                    .map(|server| server.name.clone())
                    .collect(),
            ),
            ..Self::default()
        }
    }

    /// Handles a line of a known type. Returns `None` for other lines; then the state is unchanged.
    fn json_line(&mut self, text: &str, out: &mut Events) -> Option<()> {
        let kind = type_of(text)?;
        if kind == "message_update" {
            let line: Update<'_> = parse(text)?;
            let piece = &line.assistant_message_event;
            if let (Some(id), Some(name)) = (piece.id.as_deref(), piece.tool_name.as_deref()) {
                self.calls.begins(id, name);
            }
            return self.answer.piece(&line.assistant_message_event, out);
        }
        // Half a surrogate pair in a leniently parsed field would lose the field.
        let repaired = surrogates::without_lone_escapes(text);
        let text = repaired.as_deref().unwrap_or(text);
        match &*kind {
            "session" => {
                let line: Header<'_> = parse(text)?;
                self.session_is(&line.id, out);
            }
            "agent_start" => {
                whole(text)?;
                self.begins(out);
            }
            "message_start" => {
                let line: MessageLine = parse(text)?;
                if line.message.role == "assistant" {
                    self.calls.begin(&line.message.content);
                    self.answer.begin();
                }
            }
            "message_end" => {
                let line: MessageLine = parse(text)?;
                self.message(&line.message, out);
            }
            "tool_execution_start" => self.calls.start(parse(text)?, out),
            "tool_execution_end" => {
                if !self.calls.end(&parse(text)?, out) {
                    return None;
                }
            }
            "auto_retry_start" | "summarization_retry_scheduled" => {
                self.retry(&parse(text)?, &kind, out);
            }
            "compaction_end" => self.compacted(&parse(text)?, out),
            "auto_retry_end" => self.ending.waited(parse::<RetryEnd>(text)?.success),
            "agent_settled" => {
                let line: Settled = parse(text)?;
                self.settled(line.aborted, out);
            }
            "entry_appended" => self.appended(&parse::<Appended>(text)?.entry, out),
            "extension_error" | "extension_ui_request" => extension(&parse(text)?, out),
            _ if is_noise(&kind) => whole(text)?,
            _ => return None,
        }
        Some(())
    }

    /// Begins the next turn of a session.
    pub(crate) fn next_turn(&mut self) {
        self.used = Used::default();
        self.ending = Ending::default();
    }

    /// Reports the session and the model, if known.
    pub(crate) fn tell_session(&self, out: &mut Events) {
        if let Some(id) = &self.session {
            out.push(SessionStarted::new(id.clone()).model(self.model.clone()));
        }
    }

    fn session_is(&mut self, id: &str, out: &mut Events) {
        if !id.is_empty() && self.session.as_deref() != Some(id) {
            self.session = Some(Id::from(id));
            self.tell_session(out);
        }
    }

    /// Handles the start of the CLI's work, the first or a later one.
    fn begins(&mut self, out: &mut Events) {
        self.ending.begun = true;
        self.ending.ended = None;
        if let Some(error) = self.ending.failure.take()
            && error.kind == ErrorKind::ContextWindow
        {
            // The CLI compacted the conversation and repeats the request.
            self.answer.retract(out);
            out.push(Retry::new(1, error));
        }
    }

    fn message(&mut self, message: &Message, out: &mut Events) {
        let is_answer = message.role == "assistant";
        if is_answer {
            self.calls.begin(&message.content);
            self.answer.complete(&message.content, out);
            self.ending.answer(message);
            if message.model.is_some() {
                self.model.clone_from(&message.model);
            }
            let tokens = message.usage.as_ref().map(wire::Figures::tokens);
            self.context = tokens.filter(|tokens| *tokens > 0).or(self.context);
        }
        // A tool may have asked a model, too.
        if is_answer || message.role == "toolResult" {
            self.add(message.usage.as_ref(), message.model.as_deref(), out);
        }
    }

    fn add(&mut self, figures: Option<&wire::Figures>, model: Option<&str>, out: &mut Events) {
        let Some(figures) = figures else { return };
        if self.used.add(figures, model)
            && let Some(tokens) = self.used.tokens
        {
            out.push(UsageReport::new(tokens).cost_usd(self.used.cost_usd));
        }
    }

    /// Handles the retry of a request: the failed answer is withdrawn.
    fn retry(&mut self, line: &RetryLine, kind: &str, out: &mut Events) {
        if kind == "auto_retry_start" {
            self.answer.retract(out);
            self.ending.failure = None;
        }
        let error = errors::of_answer(Some(&line.error_message));
        out.push(
            Retry::new(line.attempt, error)
                .max_attempts(line.max_attempts)
                .delay_ms(line.delay_ms),
        );
    }

    /// Handles an entry of the session: usage beside the answers, such as to keep a cache warm, and servers without
    /// tools, which the extension that registers the run's MCP servers found.
    fn appended(&mut self, entry: &Entry, out: &mut Events) {
        // Between two turns, the figures are of none.
        if self.ending.begun && self.ending.ended.is_none() {
            self.add(entry.usage.as_ref(), entry.model.as_deref(), out);
        }
        if entry.custom_type != mcp::ENTRY {
            return;
        }
        for server in &entry.data.without_tools {
            let message = format!("the MCP server {server} offers no tools: did it start?");
            out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
        }
    }

    fn compacted(&mut self, line: &CompactionEnd, out: &mut Events) {
        let figures = line.result.as_ref().and_then(|result| result.usage);
        let model = self.model.clone();
        self.add(figures.as_ref(), model.as_deref(), out);
        let (code, level, message) = match &line.error_message {
            Some(error) => {
                let error = excerpt(error, NOTICE_BYTES);
                let message = format!("the conversation could not be compacted: {error}");
                (NoticeCode::CompactionFailed, NoticeLevel::Warning, message)
            }
            None if line.aborted || line.result.is_none() => return,
            None => (
                NoticeCode::Compacted,
                NoticeLevel::Info,
                "the conversation was compacted".to_owned(),
            ),
        };
        out.coded_notice(code, level, NoticeSource::Stdout, message);
    }
}

/// Returns `None` for a line that is more than one value, or less.
fn whole(text: &str) -> Option<()> {
    parse::<serde::de::IgnoredAny>(text).map(drop)
}

/// Reports the message or the failure of an extension.
fn extension(line: &Extension, out: &mut Events) {
    let (level, message) = if !line.error.is_empty() {
        let (path, error) = (&line.path, excerpt(&line.error, NOTICE_BYTES));
        let message = format!("the extension {path} failed: {error}");
        (NoticeLevel::Warning, message)
    } else if line.method == "notify" {
        let level = match line.notify_type.as_deref() {
            Some("warning" | "error") => NoticeLevel::Warning,
            _ => NoticeLevel::Info,
        };
        (level, excerpt(&line.message, NOTICE_BYTES))
    } else {
        return;
    };
    out.notice(level, NoticeSource::Stdout, message);
}

/// Returns whether lines of this type are of no use to a user: repetitions, and the CLI's own bookkeeping.
fn is_noise(kind: &str) -> bool {
    matches!(
        kind,
        "turn_start"
            | "turn_end"
            | "agent_end"
            | "tool_execution_update"
            | "summarization_retry_attempt_start"
            | "summarization_retry_finished"
            | "compaction_start"
            | "queue_update"
            | "session_info_changed"
            | "thinking_level_changed"
            | "bash_execution_update"
    )
}

/// Returns the part of stderr that explains a failure, without the note that a session with a chosen id is new.
fn evidence(stderr: &str) -> Cow<'_, str> {
    const IS_NEW: &str = "Warning: No project session found with id";
    let stderr = without_colors(stderr);
    if !stderr.contains(IS_NEW) {
        return stderr;
    }
    let lines = stderr.split_inclusive('\n');
    Cow::Owned(lines.filter(|line| !line.starts_with(IS_NEW)).collect())
}

#[cfg(test)]
mod tests;
