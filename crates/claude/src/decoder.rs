//! Decoder of `claude --output-format stream-json`.

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
mod written_calls;

use std::borrow::Cow;
use std::path::PathBuf;

use teamster_core::provider::json_line::{self, parse, type_of};
use teamster_core::provider::{Activity, DecodedResult, Decoder, Events, Exit, RecordFiles};
use teamster_core::{
    Decision, ErrorKind, ExecuteParams, Id, NoticeLevel, NoticeSource, PermissionEvent, RateLimit,
    SessionStarted, Usage,
};

use crate::transcript;
use background::Background;
use end::Turns;
use fast::FastDelta;
use mcp::Servers;
use messages::{BlockKind, Lane};
use tools::Tools;
use wire::{ControlLine, RateLimitLine};
use written_calls::WrittenCalls;

/// Model name of messages that the CLI generates itself.
const SYNTHETIC: &str = "<synthetic>";
/// Text that the CLI writes for an answer without text.
const NO_CONTENT: &str = "(no content)";
/// Maximum length of text in a notice, in bytes.
const NOTICE_BYTES: usize = 1000;

/// Decodes the output of one run. The run may have lines with and without partial messages.
#[derive(Debug)]
pub struct ClaudeDecoder {
    session: Option<SessionStarted>,
    /// Names of the CLI's commands, as of the last turn.
    commands: Vec<String>,
    servers: Servers,
    /// Messages by agent: the main agent first, then sub-agents.
    lanes: Vec<Lane>,
    tools: Tools,
    written_calls: WrittenCalls,
    background: Background,
    turns: Turns,
    /// Message that the CLI generated, until the next line shows its meaning.
    pending: Option<Synthetic>,
    /// True if the credentials are a key that does not change while the CLI runs.
    has_fixed_key: bool,
    /// Reason why a hook blocked the prompt.
    blocked: Option<String>,
    /// Id of the session that the run resumes.
    resumed: Option<String>,
    /// Folder of the sessions of all projects.
    projects: Option<PathBuf>,
}

/// A message that the CLI generated in place of the model.
#[derive(Debug)]
struct Synthetic {
    text: String,
    /// The CLI's code for a failure. Without it, the text may be the output of a slash command.
    error: Option<String>,
    /// The CLI's more specific code for the failure.
    api_error: Option<String>,
    /// HTTP status of the service's response.
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
                    self.lanes[0].text_delta(index, BlockKind::Text, text.into_owned(), out);
                }
                FastDelta::Thinking(index, text) => {
                    let text = text.into_owned();
                    self.lanes[0].text_delta(index, BlockKind::Thinking, text, out);
                }
                FastDelta::Input(index, piece) => {
                    self.written_calls.piece(0, index, piece.as_bytes());
                }
            }
            return;
        }
        if json_line::read(line, |text| self.json_line(text, out)).is_none() {
            out.unknown(line);
        }
    }

    fn finish(&mut self, _: &Exit, out: &mut Events) -> DecodedResult {
        if self.pending.as_ref().is_some_and(|p| p.error.is_none()) {
            self.settle_pending(out);
        }
        // Its turn did not end, so the call may run.
        self.announce_unfinished(out);
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
    /// Creates a decoder for a run with these parameters.
    pub fn for_run(params: &ExecuteParams) -> Self {
        Self {
            servers: Servers::new(params),
            turns: Turns::new(transcript::baseline(params)),
            resumed: params.session_id.clone().filter(|_| !params.fork),
            projects: transcript::projects(params),
            ..Self::new()
        }
    }

    /// Creates a decoder for a run with unknown parameters.
    pub fn new() -> Self {
        Self {
            session: None,
            commands: Vec::new(),
            servers: Servers::default(),
            lanes: vec![Lane::new(None)],
            tools: Tools::default(),
            written_calls: WrittenCalls::default(),
            background: Background::default(),
            turns: Turns::default(),
            pending: None,
            has_fixed_key: false,
            blocked: None,
            resumed: None,
            projects: None,
        }
    }

    /// Decodes a line if it is JSON of a known type. Otherwise returns `None`; the only possible effect is that its
    /// session was recorded.
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
            "tool_progress" => {
                let line: wire::ToolProgress<'_> = parse(text)?;
                if let Some(retry) = &line.subagent_retry {
                    system::sub_agent_retry(retry, self.has_fixed_key, out);
                }
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

    /// Keeps a message that the CLI generated until the next line. Before a failed result, it is that error. Before
    /// anything else, it is an error that was recovered from. Without an error code, it is the output of a slash
    /// command.
    fn synthetic(&mut self, synthetic: Synthetic) {
        if synthetic.text != NO_CONTENT || synthetic.error.is_some() {
            self.pending = Some(synthetic);
        }
    }

    /// Emits the generated message, because the run continues after it.
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
        if failed {
            // The CLI runs no call that broke off, but it counts as one that may have run.
            self.written_calls.drop_unfinished(out);
        } else {
            self.settle_pending(out);
            self.announce_unfinished(out);
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
            // Text that is in no message, such as a structured answer.
            lane.emit_plain(text, out);
        }
        lane.has_text = false;
        // An incomplete message keeps its text: a later turn does not replace it.
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
        out.push(
            PermissionEvent::new(tool.unwrap_or_default().to_owned(), Decision::Denied)
                .tool_id(tool_id)
                .reason(reason.map(str::to_owned).or(failure)),
        );
    }

    fn rate_limit(&mut self, line: RateLimitLine, out: &mut Events) {
        let info = line.rate_limit_info;
        let resets_at = info.resets_at.and_then(epoch_ms);
        if info.status == "rejected" {
            self.turns.limit_reached(resets_at);
        }
        out.push(
            RateLimit::new(info.status)
                .resets_at_ms(resets_at)
                .kind(info.rate_limit_type)
                .utilization(info.utilization),
        );
    }

    /// Returns the index of the lane for the agent that a tool call started, or for the main agent without a call.
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

    /// Records the session that a line names. Normally `init` has named it before; this handles a missing `init`.
    fn session_seen(&mut self, id: Option<&str>, out: &mut Events) {
        if let Some(id) = id
            && self.session.as_ref().is_none_or(|s| *s.session_id != *id)
        {
            self.session_is(SessionStarted::new(Id::from(id)), out);
        }
    }

    fn session_is(&mut self, session: SessionStarted, out: &mut Events) {
        self.turns.session(&session);
        self.session = Some(session.clone());
        out.push(session);
    }
}

/// Handles a control request of the CLI.
fn control_request(line: ControlLine<'_>, out: &mut Events) -> Option<()> {
    let request = line.request;
    if request.subtype.as_deref() != Some("can_use_tool") {
        return None;
    }
    out.push(
        PermissionEvent::new(
            request.tool_name.unwrap_or_default().into_owned(),
            Decision::Requested,
        )
        .tool_id(request.tool_use_id.map(Id::from))
        .reason(request.description.map(Cow::into_owned)),
    );
    Some(())
}

/// Returns milliseconds since the Unix epoch, given seconds (as the CLI prints them) or milliseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
fn epoch_ms(time: f64) -> Option<u64> {
    /// The year 5138 in seconds, or 1973 in milliseconds. Smaller values are seconds.
    const SECONDS_END: f64 = 1e11;
    match time {
        t if !(0.0..1e15).contains(&t) => None,
        t if t < SECONDS_END => Some((t * 1000.0) as u64),
        t => Some(t as u64),
    }
}

#[cfg(test)]
mod tests;
