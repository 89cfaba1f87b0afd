//! Decoder of the output of `opencode run --format json`.
//!
//! The CLI prints a part of a message when it is complete: a block of text, a block of reasoning, a tool call with
//! its result, or the start or end of a step (one request to the model and the tools that it calls). No line marks
//! the start or end of the run.

mod end;
pub(crate) mod errors;
mod messages;
pub(crate) mod stderr;
pub(crate) mod steps;
pub(crate) mod tools;
pub(crate) mod wire;

use std::borrow::Cow;
use std::collections::HashSet;

use teamster_core::provider::json_line::{self, parse, repaired, type_of};
use teamster_core::provider::{DecodedResult, Decoder, Events, Exit};
use teamster_core::text::excerpt;
use teamster_core::{
    AgentError, Decision, ErrorCode, ErrorKind, ExecuteParams, Id, NoticeCode, NoticeLevel,
    NoticeSource, PermissionEvent, Retract, Retry, SessionStarted, Text, Thinking, ToolResult,
    ToolUse,
};

use crate::launch::{self, Withheld};

use errors::{CliError, Help};
use messages::{News, Parts};
use steps::Steps;
use tools::Call;
use wire::{ErrorBody, Line, Part};

/// Longest part of unrecognized text in a notice, in bytes.
const NOTICE_BYTES: usize = 1000;
/// Longest part of a failed tool's output that is kept as the reason of a denial, in bytes.
pub(crate) const REASON_BYTES: usize = 500;
/// Number of retries of a request by the CLI (measured: six requests in all).
const RETRIES: u32 = 5;

/// Decodes the output of one run.
#[derive(Debug, Default)]
pub struct OpenCodeDecoder {
    session: Option<Id>,
    /// The requested model. The CLI reports none.
    model: Option<String>,
    /// MCP servers of the run, if known.
    mcp_servers: Vec<String>,
    /// Tools that the run's settings withhold.
    withheld: Withheld,
    /// True if an existing session is resumed.
    resumed: bool,
    parts: Parts,
    tool_ids: HashSet<Id>,
    steps: Steps,
    /// The last error, until the next line shows whether the run continued.
    error: Option<CliError>,
    /// The last error after which the run continued. The exit code still reports it.
    overcome: Option<CliError>,
    denials: Denials,
    told_about_sub_agents: bool,
    /// True if the output showed a repeated request.
    reported_retry: bool,
    /// True if the last line was not JSON, such as when the CLI exits before it has printed everything.
    broken: bool,
    /// Lines of help on stdout, printed instead of a run.
    help: Help,
}

/// Denials since the start of the last step.
#[derive(Debug, Default)]
struct Denials {
    /// The tool whose permission request was rejected, which ends the run unless it is configured to continue.
    rejected: Option<String>,
}

impl Decoder for OpenCodeDecoder {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        self.broken = false;
        if json_line::read(line, |text| self.json_line(text, out)).is_none() {
            self.broken = !is_json(line);
            out.unknown(line);
        }
    }

    fn plain_line(&mut self, line: &[u8]) {
        self.help.line(&String::from_utf8_lossy(line));
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        self.end(exit, out)
    }

    fn stderr_evidence<'a>(&self, stderr: &'a str) -> Cow<'a, str> {
        Cow::Owned(self.evidence(stderr))
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        errors::kind_of_stderr(stderr)
    }
}

impl OpenCodeDecoder {
    /// Creates a decoder for a run with unknown parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a decoder for a run with these parameters.
    pub fn for_run(params: &ExecuteParams) -> Self {
        Self::with(params, launch::known_servers(params), Withheld::of(params))
    }

    fn with(params: &ExecuteParams, mcp_servers: Vec<String>, withheld: Withheld) -> Self {
        Self {
            model: params.model.clone(),
            resumed: params.session_id.is_some(),
            mcp_servers,
            withheld,
            ..Self::default()
        }
    }

    /// Handles a line of a known type. Returns `None` for other lines; then the state is unchanged.
    fn json_line(&mut self, text: &str, out: &mut Events) -> Option<()> {
        let kind = type_of(text)?;
        if !matches!(
            kind.as_ref(),
            "text" | "reasoning" | "tool_use" | "step_start" | "step_finish" | "error"
        ) {
            return None;
        }
        let line: Line<'_> = parse(text)?;
        if kind == "error" {
            let error = repaired(line.error?);
            let error = CliError::of(&ErrorBody::of(&error)?);
            self.session_seen(line.session_id.as_deref(), out);
            if let Some(before) = self.error.replace(error)
                && self.error.as_ref().is_some_and(|e| *e != before)
            {
                let message = before.error.message;
                out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
            }
            return Some(());
        }
        let mut part = line.part?;
        match kind.as_ref() {
            "text" | "reasoning" if part.text.is_none() => return None,
            "tool_use" if part.tool.is_none() || part.state.is_none() => return None,
            _ => {}
        }
        let news = self.parts.news(&kind, &part)?;
        self.session_seen(line.session_id.as_deref(), out);
        let begun = match news {
            News::All => None,
            News::Nothing => return Some(()),
            News::Result(call) => Some(call),
            News::From(bytes) => {
                let rest = part.text.as_deref().and_then(|text| text.get(bytes..));
                part.text = Some(Cow::Owned(rest.unwrap_or_default().to_owned()));
                None
            }
        };
        match kind.as_ref() {
            "step_start" => self.step_start(&part, out),
            "step_finish" => self.step_finish(&part, out),
            "tool_use" => self.tool_use(part, begun, out),
            kind => self.text(kind, part, out),
        }
        Some(())
    }

    /// Reports the session. It has no line of its own, but every line names it.
    fn session_seen(&mut self, id: Option<&str>, out: &mut Events) {
        let Some(id) = id.filter(|id| !id.is_empty()) else {
            return;
        };
        if self.session.as_deref() == Some(id) {
            return;
        }
        let id = Id::from(id);
        self.session = Some(id.clone());
        out.push(SessionStarted::new(id).model(self.model.clone()));
    }

    /// Records that the run continued after an error.
    fn went_on(&mut self, out: &mut Events) {
        let Some(error) = self.error.take() else {
            return;
        };
        self.steps.error_overcome(error.error.kind);
        out.notice(
            NoticeLevel::Warning,
            NoticeSource::Stdout,
            format!("the run goes on after an error: {}", error.error.message),
        );
        self.overcome = Some(error);
    }

    fn step_start(&mut self, part: &Part<'_>, out: &mut Events) {
        self.went_on(out);
        self.denials = Denials::default();
        let message = part.message_id.as_deref().map(Id::from);
        let Some(lost) = self.steps.start(message) else {
            return;
        };
        // The answer broke off, and the CLI repeats the request in the same message. It gives no reason: the
        // connection was lost, or the stream had an error or an unreadable event.
        self.reported_retry = true;
        out.push(
            Retry::new(
                lost.tries,
                AgentError::new(
                    ErrorCode::CliError,
                    ErrorKind::Network,
                    "the answer of the model's service broke off",
                ),
            )
            .max_attempts(RETRIES),
        );
        if let Some(message) = lost.message.filter(|_| lost.has_text) {
            out.push(Retract::new(message.clone()));
            if !lost.kept.is_empty() {
                say(Some(message), lost.kept, out);
            }
        }
    }

    fn step_finish(&mut self, part: &Part<'_>, out: &mut Events) {
        if let Some(usage) = self.steps.finish(part) {
            out.push(usage);
        }
    }

    fn text(&mut self, kind: &str, part: Part<'_>, out: &mut Events) {
        let message = part.message_id.as_deref().map(Id::from);
        let text = part.text.unwrap_or_default().into_owned();
        if part.synthetic {
            if part.metadata.is_some_and(|m| m.compaction_continue) {
                self.compacted(out);
            } else {
                let text = excerpt(&text, NOTICE_BYTES);
                out.notice(NoticeLevel::Info, NoticeSource::Stdout, text);
            }
            return;
        }
        if text.is_empty() {
            return;
        }
        if kind == "reasoning" {
            out.push(Thinking::new(text).message_id(message));
        } else if self.steps.is_summary() {
            let text = excerpt(&text, NOTICE_BYTES);
            let text = format!("the conversation was compacted to this summary: {text}");
            let code = NoticeCode::Compacted;
            out.coded_notice(code, NoticeLevel::Info, NoticeSource::Stdout, text);
        } else {
            self.steps.text(message.as_ref(), &text);
            say(message, text, out);
        }
    }

    /// Handles the CLI's continuation after a compaction: the previous message was no answer but the summary of the
    /// conversation.
    fn compacted(&mut self, out: &mut Events) {
        if let Some(message) = self.steps.last_message_was_a_summary() {
            out.push(Retract::new(message));
            out.coded_notice(
                NoticeCode::Compacted,
                NoticeLevel::Info,
                NoticeSource::Stdout,
                "the conversation was compacted: the text before was its summary",
            );
        }
    }

    /// Handles a tool call, or the end of a started one.
    fn tool_use(&mut self, part: Part<'_>, begun: Option<Id>, out: &mut Events) {
        let running = part.is_running();
        let id = part.call_id.as_deref().unwrap_or_default();
        let part_id = part.id.as_deref().unwrap_or_default();
        let (Some(name), Some(state)) = (part.tool, part.state) else {
            return;
        };
        if state.time.compacted.is_some() {
            // An old call whose output the CLI removed from the conversation.
            return;
        }
        let is_new = begun.is_none();
        let id = begun.unwrap_or_else(|| self.unique_id(id, part_id));
        let mut call = Call::new(&name, state, &self.mcp_servers, &self.withheld);
        if is_new {
            out.push(
                ToolUse::new(
                    call.name.clone(),
                    id.clone(),
                    call.kind,
                    std::mem::take(&mut call.input),
                )
                .mcp(call.mcp.take()),
            );
        }
        if running {
            self.parts.begun(part_id, id);
            return;
        }
        self.tool_result(&id, call, out);
    }

    fn tool_result(&mut self, id: &Id, call: Call, out: &mut Events) {
        if call.denied {
            if call.rejected {
                self.denials.rejected = Some(call.name.clone());
            }
            out.push(
                PermissionEvent::new(call.name, Decision::Denied)
                    .tool_id(id.clone())
                    .reason(excerpt(&call.output, REASON_BYTES)),
            );
        }
        out.push(ToolResult::new(id.clone(), call.output).is_error(call.is_error));
        for mut change in call.changes {
            change.tool_id = Some(id.clone());
            out.push(change);
        }
        if let Some(plan) = call.plan {
            out.push(plan);
        }
        if call.sub_agent && !self.told_about_sub_agents {
            self.told_about_sub_agents = true;
            out.notice(
                NoticeLevel::Warning,
                NoticeSource::Runtime,
                "OpenCode does not report what its sub-agents use: the figures of this run are \
                 those of the main agent alone",
            );
        }
    }

    /// Returns the id of a call. The model's ids may be repeated within a run; the CLI's ids of parts are unique.
    fn unique_id(&mut self, call_id: &str, part_id: &str) -> Id {
        for id in [call_id, part_id] {
            if !id.is_empty() && self.tool_ids.insert(Id::from(id)) {
                return Id::from(id);
            }
        }
        let mut number = self.tool_ids.len();
        loop {
            let id = Id::from(format!("tool-{number}"));
            if self.tool_ids.insert(id.clone()) {
                return id;
            }
            number += 1;
        }
    }
}

fn say(message_id: Option<Id>, text: String, out: &mut Events) {
    out.push(Text::new(text).message_id(message_id));
}

/// Returns whether a line is JSON of any type.
fn is_json(line: &[u8]) -> bool {
    json_line::read(line, |text| parse::<serde::de::IgnoredAny>(text)).is_some()
}

#[cfg(test)]
mod tests;
