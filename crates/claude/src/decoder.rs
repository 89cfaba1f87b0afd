//! From the lines of `claude --output-format stream-json` to events.

mod background;
mod blocks;
mod end;
mod errors;
mod fast;
mod for_session;
mod hooks;
mod mcp;
mod messages;
mod notices;
mod stream;
mod system;
mod tools;
mod usage;
mod wire;

use std::borrow::Cow;
use std::path::PathBuf;

use teamster_core::provider::json_line::{self, parse, type_of};
use teamster_core::provider::{Activity, Decoder, Events, Exit, RecordFiles, RunSummary};
use teamster_core::{
    AgentEvent, Decision, ErrorKind, ExecuteParams, Id, NoticeLevel, NoticeSource, Permission,
    RateLimit, Session, Usage,
};

use crate::transcript;
use background::Background;
use end::Turns;
use fast::FastDelta;
use mcp::Servers;
use messages::{BlockKind, Lane};
use tools::Tools;
use wire::{ControlLine, RateLimitLine};

/// The model's name on lines that the CLI writes in the model's place.
const SYNTHETIC: &str = "<synthetic>";
/// Written by the CLI in place of an answer without text.
const NO_CONTENT: &str = "(no content)";
/// How much of a text that is no answer a notice shows, in bytes.
const NOTICE_BYTES: usize = 1000;

/// Decodes the output of one run. Made for lines with and without partial messages, and for both
/// in one run.
#[derive(Debug)]
pub struct ClaudeDecoder {
    session: Option<Session>,
    servers: Servers,
    /// The main agent first, then sub-agents.
    lanes: Vec<Lane>,
    tools: Tools,
    background: Background,
    turns: Turns,
    /// A message that the CLI wrote in the model's place, until the next line shows its meaning.
    pending: Option<Synthetic>,
    /// Why a hook held the prompt back.
    blocked: Option<String>,
    /// The session that is resumed in this run.
    resumed: Option<String>,
    /// Where the CLI keeps the sessions of all projects.
    projects: Option<PathBuf>,
}

/// A line that the CLI wrote in the model's place.
#[derive(Debug)]
struct Synthetic {
    text: String,
    /// The CLI's word for what failed. Without it the text may be the output of a slash command.
    error: Option<String>,
    /// Its closer word.
    api_error: Option<String>,
    /// HTTP status of the service's answer.
    status: Option<u16>,
}

impl Default for ClaudeDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder for ClaudeDecoder {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        if let Some(session) = &self.session
            && let Some(delta) = fast::delta(line, &session.session_id)
        {
            self.settle_pending(out);
            match delta {
                FastDelta::Text(index, text) => {
                    self.lanes[0].delta(index, BlockKind::Text, text.as_bytes(), out);
                }
                FastDelta::Thinking(index, text) => {
                    self.lanes[0].delta(index, BlockKind::Thinking, text.as_bytes(), out);
                }
                FastDelta::Input => {}
            }
            return;
        }
        if json_line::read(line, |text| self.json_line(text, out)).is_none() {
            out.unknown(line);
        }
    }

    fn finish(&mut self, _: &Exit, out: &mut Events) -> RunSummary {
        if self.pending.as_ref().is_some_and(|p| p.error.is_none()) {
            self.settle_pending(out);
        }
        let pending = self.pending.take();
        let at_work = self.background.activity() != Activity::None;
        self.turns
            .finish(pending, self.background.in_turn(), at_work, out)
    }

    fn record_files(&self) -> Option<RecordFiles> {
        let session = self.session.as_ref().map(|session| &*session.session_id);
        let id = session.or(self.resumed.as_deref())?;
        transcript::sub_agents(self.projects.as_deref()?, id)
    }

    fn record_line(&mut self, line: &str) -> Option<Usage> {
        let (id, usage) = transcript::answer(line)?;
        self.turns.sub_agent_used(&id, usage)
    }

    fn activity(&self) -> Activity {
        self.background.activity()
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        errors::kind_of_stderr(stderr)
    }
}

impl ClaudeDecoder {
    /// A decoder for one run with these parameters.
    pub fn for_run(params: &ExecuteParams) -> Self {
        Self {
            servers: Servers::new(params),
            turns: Turns::new(transcript::baseline(params)),
            resumed: params.session_id.clone().filter(|_| !params.fork),
            projects: transcript::projects(params),
            ..Self::new()
        }
    }

    /// A decoder for one run of which nothing is known.
    pub fn new() -> Self {
        Self {
            session: None,
            servers: Servers::default(),
            lanes: vec![Lane::new(None)],
            tools: Tools::default(),
            background: Background::default(),
            turns: Turns::default(),
            pending: None,
            blocked: None,
            resumed: None,
            projects: None,
        }
    }

    /// Takes a line that is JSON of a known type. `None` if it is not; then no more has happened
    /// than that its session was taken note of.
    fn json_line(&mut self, text: &str, out: &mut Events) -> Option<()> {
        let kind = type_of(text)?;
        match kind.as_ref() {
            "stream_event" => {
                let line = parse(text)?;
                self.stream_event(line, out)?;
            }
            "assistant" => {
                let line = parse(text)?;
                if !self.assistant(line, out) {
                    out.unknown(text.as_bytes());
                }
            }
            "user" => {
                let line = parse(text)?;
                if !self.user(line, out) {
                    out.unknown(text.as_bytes());
                }
            }
            "system" => {
                let line = parse(text)?;
                self.system(line, out)?;
            }
            "result" => {
                let line = parse(text)?;
                self.result(line, out);
            }
            "rate_limit_event" => {
                let line = parse(text)?;
                self.rate_limit(line, out);
            }
            "tombstone" => {
                let line = parse(text)?;
                self.tombstone(line, out);
            }
            "control_request" => {
                let line = parse(text)?;
                control_request(line, out)?;
            }
            kind if notices::is_silent(kind) => {
                parse::<serde::de::IgnoredAny>(text)?;
            }
            kind => {
                let message = notices::of_surface(kind, text)?;
                if !message.is_empty() {
                    out.notice(NoticeLevel::Info, NoticeSource::Stdout, message);
                }
            }
        }
        Some(())
    }

    /// Keeps what the CLI wrote in the model's place until the next line: before a failed result
    /// it is that error, before anything else it is an error that was overcome, and without an
    /// error it is the output of a slash command.
    fn synthetic(&mut self, synthetic: Synthetic) {
        if synthetic.text != NO_CONTENT || synthetic.error.is_some() {
            self.pending = Some(synthetic);
        }
    }

    /// The run continues after the message that the CLI wrote in the model's place.
    fn settle_pending(&mut self, out: &mut Events) {
        let Some(synthetic) = self.pending.take() else {
            return;
        };
        if synthetic.error.is_some() {
            out.notice(NoticeLevel::Warning, NoticeSource::Stdout, synthetic.text);
        } else {
            self.lanes[0].emit_plain(&synthetic.text, out);
        }
    }

    fn result(&mut self, line: wire::ResultLine<'_>, out: &mut Events) {
        let new = self.background.in_turn() || self.turns.none_ended();
        self.background.turn_ends(line.origin.as_ref());
        let stopped = hooks::stopped(&line, self.blocked.take());
        let failed = line.failed() || stopped.is_some();
        if !failed {
            self.settle_pending(out);
        }
        for denial in &line.permission_denials {
            self.denied(
                denial.tool_name.as_deref(),
                denial.tool_use_id.as_deref(),
                None,
                out,
            );
        }
        let lane = &mut self.lanes[0];
        if new
            && !failed
            && !lane.has_text
            && let Some(text) = line.result.as_deref()
        {
            // Text that came in no message, such as a structured answer.
            lane.emit_plain(text, out);
        }
        lane.has_text = false;
        // What broke off stays as it is: a later turn does not take its place.
        lane.stop();
        let pending = self.pending.take();
        let error = pending.and_then(|p| p.error);
        self.turns.result(line, error.as_deref(), stopped, out);
    }

    fn denied(
        &mut self,
        tool: Option<&str>,
        tool_id: Option<&str>,
        reason: Option<&str>,
        out: &mut Events,
    ) {
        let tool_id = tool_id.map(Id::from);
        if let Some(id) = &tool_id
            && !self.turns.first_denial(id)
        {
            return;
        }
        let failure = tool_id.as_ref().and_then(|id| self.tools.failure(id));
        out.push(AgentEvent::Permission(Box::new(
            Permission::new(tool.unwrap_or_default().to_owned(), Decision::Denied)
                .tool_id(tool_id)
                .reason(reason.map(str::to_owned).or(failure)),
        )));
    }

    fn rate_limit(&mut self, line: RateLimitLine, out: &mut Events) {
        let info = line.rate_limit_info;
        let resets_at = info.resets_at.and_then(epoch_ms);
        if info.status == "rejected" {
            self.turns.limit_reached(resets_at);
        }
        out.push(AgentEvent::RateLimit(Box::new(
            RateLimit::new(info.status)
                .resets_at(resets_at)
                .kind(info.rate_limit_type)
                .utilization(info.utilization),
        )));
    }

    /// The lane of the agent that a tool call started; the main agent's without one.
    fn lane(&mut self, parent: Option<&str>) -> usize {
        let Some(parent) = parent else { return 0 };
        let known = self.lanes[1..]
            .iter()
            .position(|lane| lane.parent().is_some_and(|id| **id == *parent));
        match known {
            Some(at) => at + 1,
            None => {
                self.lanes.push(Lane::new(Some(Id::from(parent))));
                self.lanes.len() - 1
            }
        }
    }

    /// A line names its session. Normally `init` has come before; if that line was lost, the id is
    /// still worth having.
    fn session_seen(&mut self, id: Option<&str>, out: &mut Events) {
        if let Some(id) = id
            && self.session.as_ref().is_none_or(|s| *s.session_id != *id)
        {
            self.session_is(Session::new(Id::from(id)), out);
        }
    }

    fn session_is(&mut self, session: Session, out: &mut Events) {
        self.turns.session(&session);
        self.session = Some(session.clone());
        out.push(AgentEvent::Session(Box::new(session)));
    }
}

/// The CLI asks the program that runs it.
fn control_request(line: ControlLine<'_>, out: &mut Events) -> Option<()> {
    let request = line.request;
    if request.subtype.as_deref() != Some("can_use_tool") {
        return None;
    }
    out.push(AgentEvent::Permission(Box::new(
        Permission::new(
            request.tool_name.unwrap_or_default().into_owned(),
            Decision::Requested,
        )
        .tool_id(request.tool_use_id.map(Id::from))
        .reason(request.description.map(Cow::into_owned)),
    )));
    Some(())
}

/// Milliseconds since the Unix epoch, of a time in seconds (as the CLI gives it) or milliseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
fn epoch_ms(time: f64) -> Option<u64> {
    /// The year 5138 in seconds, 1973 in milliseconds: between them no time of interest lies.
    const SECONDS_END: f64 = 1e11;
    match time {
        t if !(0.0..1e15).contains(&t) => None,
        t if t < SECONDS_END => Some((t * 1000.0) as u64),
        t => Some(t as u64),
    }
}

#[cfg(test)]
mod tests;
