//! Decoder of the output of `copilot --output-format=json`.

mod background;
mod end;
pub(crate) mod errors;
pub(crate) mod mcp;
mod messages;
mod notices;
mod repeats;
pub(crate) mod results;
mod session_event;
mod shapes;
pub(crate) mod tools;
mod usage;
pub(crate) mod wire;

use std::mem;

use teamster_core::provider::json_line::{self, parse, type_of};
use teamster_core::provider::{
    Activity, BegunCalls, DecodedResult, Decoder, Events, Exit, RecordFiles, surrogates,
};
use teamster_core::{
    Decision, ErrorKind, ExecuteParams, Id, NoticeLevel, NoticeSource, PermissionEvent, Retry,
    ToolResult, Usage,
};

use crate::{launch, transcript};
use background::Background;
use end::Ending;
use errors::Failure;
use mcp::Servers;
use messages::Lane;
use repeats::Repeats;
use session_event::SessionState;
use tools::{Calls, file_changes};
use wire::{
    Direct, Envelope, Line, Message, MessageDelta, ReasoningDelta, ShellOutput, ToolComplete,
    ToolStart,
};

use usage::Totals;

/// Index of the main agent's lane.
const MAIN: usize = 0;

/// Decodes the output of one run.
#[derive(Debug)]
pub struct CopilotDecoder {
    session: SessionState,
    /// Lanes of the main agent, which is first, and of sub-agents.
    lanes: Vec<Lane>,
    calls: Calls,
    begun: BegunCalls,
    background: Background,
    ending: Ending,
    repeats: Repeats,
    /// Files of the session's record.
    record: Option<RecordFiles>,
}

impl Default for CopilotDecoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Decoder for CopilotDecoder {
    fn line(&mut self, line: &[u8], out: &mut Events) {
        if json_line::read(line, |text| self.json_line(text, out)).is_none() {
            out.unknown(line);
        }
    }

    fn finish(&mut self, exit: &Exit, out: &mut Events) -> DecodedResult {
        self.begun.finish(out);
        self.ending
            .finish(exit, &self.session, &self.lanes[MAIN], out)
    }

    fn record_files(&self) -> Option<RecordFiles> {
        self.record.clone()
    }

    fn record_line(&mut self, line: &str) -> Option<Usage> {
        self.ending.recorded.record_line(line)
    }

    fn activity(&self) -> Activity {
        self.background.activity()
    }

    fn classify_stderr(&self, stderr: &str) -> Option<ErrorKind> {
        errors::kind_of_stderr(stderr)
    }
}

impl CopilotDecoder {
    /// Creates a decoder for a run with unknown parameters.
    pub fn new() -> Self {
        Self::with(SessionState::default())
    }

    /// Creates a decoder for a run with these parameters, which determine its session.
    pub fn for_run(params: &ExecuteParams) -> Self {
        // A session with a chosen id may already exist: then it is resumed.
        let exists = || launch::session_exists(params);
        let is_new = params.session_id.is_none() && params.new_session_id.is_some() && !exists();
        let chosen = params
            .session_id
            .as_ref()
            .or(params.new_session_id.as_ref());
        let asked = params.mcp_servers.iter().map(|server| server.name.clone());
        let asked: Vec<String> = asked.collect();
        let mut decoder = Self::with(SessionState::new(
            chosen.map(String::as_str),
            is_new,
            asked.clone(),
        ));
        decoder.calls.servers = Servers::new(asked);
        let events = launch::events(params);
        let shutdown = events.as_deref().and_then(transcript::last_shutdown);
        decoder.ending.before = shutdown.as_deref().and_then(Totals::of_line);
        decoder.record = launch::record(params);
        decoder
    }

    fn with(session: SessionState) -> Self {
        Self {
            session,
            lanes: vec![Lane::new(None, None)],
            calls: Calls::default(),
            begun: BegunCalls::default(),
            background: Background::default(),
            ending: Ending::default(),
            repeats: Repeats::default(),
            record: None,
        }
    }

    /// Handles a line that is JSON of a known type. Returns `None` for other lines; then at most the session was
    /// reported.
    fn json_line(&mut self, text: &str, out: &mut Events) -> Option<()> {
        let kind = type_of(text)?;
        if kind == "assistant.message_delta" {
            let line: Direct<'_, MessageDelta<'_>> = parse(text)?;
            let mark = Repeats::mark(&kind, line.id.text(), text.len());
            if self.repeats.knows(mark) {
                return Some(());
            }
            self.repeats.remember(mark);
            self.session.begins(out);
            let lane = self.lane(line.agent.get(), line.data.parent_tool_call_id.get());
            let piece = &line.data.delta_content.0;
            self.lanes[lane].delta(line.data.message_id.text(), piece, out);
            if lane == MAIN {
                self.ending.works();
            }
            return Some(());
        }
        // Half a surrogate pair in a leniently parsed field would lose the field. Deltas keep their halves, which may
        // form a pair.
        let repaired = match &*kind {
            "assistant.reasoning_delta" => None,
            _ => surrogates::without_lone_escapes(text),
        };
        let text = repaired.as_deref().unwrap_or(text);
        let envelope: Envelope<'_> = parse(text)?;
        let mark = Repeats::mark(&kind, envelope.id.text(), text.len());
        if self.repeats.knows(mark) {
            return Some(());
        }
        if kind != "result" {
            self.session.begins(out);
        }
        if notices::is_noise(&kind) {
            return Some(());
        }
        self.other_line(&kind, text, out)?;
        self.repeats.remember(mark);
        Some(())
    }

    fn other_line(&mut self, kind: &str, text: &str, out: &mut Events) -> Option<()> {
        match kind {
            "assistant.message" => {
                let line: Line<'_, Message<'_>> = parse(text)?;
                if !self.message(&line, out) {
                    out.unknown(text.as_bytes());
                }
            }
            "assistant.reasoning_delta" => {
                let line: Direct<'_, ReasoningDelta<'_>> = parse(text)?;
                let lane = self.lane(line.agent.get(), None);
                let piece = &line.data.delta_content.0;
                self.lanes[lane].reasoning_delta(line.data.reasoning_id.text(), piece, out);
            }
            "assistant.reasoning" => {
                let line: Line<'_, wire::Reasoning<'_>> = parse(text)?;
                let lane = self.lane(line.agent.get(), None);
                let id = line.data.reasoning_id.text();
                self.lanes[lane].reasoning(id, line.data.content.text(), out);
            }
            "assistant.tool_call_delta" => {
                let line: Direct<'_, wire::CallDelta<'_>> = parse(text)?;
                let name = line.data.tool_name.text();
                let kind = tools::kind_of_own(name);
                self.begun.piece(line.data.tool_call_id.text(), kind);
            }
            "tool.execution_start" => self.tool_start(parse(text)?, out),
            "tool.shell_output" => {
                let line: Direct<'_, ShellOutput<'_>> = parse(text)?;
                let lane = self.lane(line.agent.get(), None);
                self.calls.shell_output(lane, &line.data);
            }
            "tool.execution_complete" => {
                let line: Line<'_, ToolComplete<'_>> = parse(text)?;
                // The end of a call of a process that was killed, when its session is resumed: a warning follows.
                let error = line.data.error.as_ref();
                let interrupted = error.is_some_and(|error| error.code.text() == "interrupted");
                if !self.tool_complete(&line, out) && !interrupted {
                    out.unknown(text.as_bytes());
                }
            }
            "assistant.turn_start"
            | "assistant.turn_end"
            | "assistant.turn_retry"
            | "assistant.idle"
            | "model.call_start"
            | "model.call_finished"
            | "model.turn_retry" => {
                self.turn(kind, &parse(text)?, out);
            }
            "model.call_failure" => {
                let line: Line<'_, wire::CallFailure<'_>> = parse(text)?;
                let lane = self.lane(line.agent.get(), None);
                self.lanes[lane].call_failed = true;
                self.lanes[lane].failure = Some(Failure::new(&line.data));
            }
            "session.error" => {
                let line: Line<'_, wire::SessionError<'_>> = parse(text)?;
                let lane = self.lane(line.agent.get(), None);
                let error = errors::of_session(&line.data, self.lanes[lane].failure.as_ref());
                if lane == MAIN {
                    self.ending.failed(error);
                } else {
                    let lane = &mut self.lanes[lane];
                    agent_failed(lane.name.as_deref(), &error.message, out);
                    lane.failure_is_reported = true;
                }
            }
            "abort" => {
                let line: Line<'_, wire::MessageLine<'_>> = parse(text)?;
                if line.agent.get().is_none() {
                    self.ending.aborted(line.data.reason.get());
                }
            }
            "subagent.started" | "subagent.completed" | "subagent.failed" => {
                self.sub_agent(kind, &parse(text)?, out);
            }
            "session.start" => self.session.starts(&parse(text)?, &mut self.ending, out),
            "session.shutdown" => {
                parse::<Line<'_, wire::Shutdown<'_>>>(text)?;
                self.ending.shut_down(Totals::of_line(text));
            }
            "message" => {
                let line = wire::plain_message(text)?;
                if wire::is_of_assistant(text) && !self.message(&line, out) {
                    out.unknown(text.as_bytes());
                }
            }
            "result" => {
                let line: wire::ResultLine<'_> = parse(text)?;
                self.background.wakes();
                self.ending.result(&line, &mut self.session, out);
            }
            _ => return self.notice(kind, text, out),
        }
        Some(())
    }

    /// Handles a message. Returns `false` if its content cannot be read.
    fn message(&mut self, line: &Line<'_, Message<'_>>, out: &mut Events) -> bool {
        let data = &line.data;
        let at = self.lane(line.agent.get(), data.parent_tool_call_id.get());
        let lane = &mut self.lanes[at];
        let id = data.id.text();
        if let Some(reasoning) = data.reasoning_text.get() {
            lane.reasoning_of_message(id, reasoning, out);
        }
        let calls_tools = !data.tool_requests.is_empty();
        for call in &data.tool_requests {
            let kind = tools::kind_of_own(call.name.text());
            self.begun.piece(call.tool_call_id.text(), kind);
        }
        if data.content.is_odd {
            lane.message_ends(id);
        } else {
            lane.message(id, data.content.text(), calls_tools, out);
        }
        if at == MAIN {
            self.ending.works();
            if let Some(model) = data.model.get() {
                self.ending.answered_by(model);
            }
        }
        !data.content.is_odd
    }

    fn tool_start(&mut self, line: Line<'_, ToolStart<'_>>, out: &mut Events) {
        let lane = self.lane(line.agent.get(), line.data.parent_tool_call_id.get());
        self.begun.came(line.data.tool_call_id.text());
        let mut tool_use = self.calls.start(lane, line.data);
        tool_use.parent_tool_id.clone_from(&self.lanes[lane].parent);
        self.lanes[lane].unfinished = false;
        if lane == MAIN {
            self.ending.works();
        }
        out.push(tool_use);
    }

    /// Handles the end of a call. Returns `false` if its start was lost.
    fn tool_complete(&mut self, line: &Line<'_, ToolComplete<'_>>, out: &mut Events) -> bool {
        let data = &line.data;
        let lane = self.lane(line.agent.get(), data.parent_tool_call_id.get());
        let Some(call) = self.calls.end(lane, data.tool_call_id.text()) else {
            return false;
        };
        let outcome = call.outcome(data);
        match call.background_shell(data) {
            Some(shell) => self.background.shell_starts(shell),
            None => self.background.output(data.result.content.text()),
        }
        if outcome.denied {
            out.push(
                PermissionEvent::new(call.name, Decision::Denied)
                    .tool_id(call.id.clone())
                    .reason(outcome.reason),
            );
        }
        out.push(
            ToolResult::new(call.id.clone(), outcome.output)
                .is_error(outcome.is_error)
                .parent_tool_id(self.lanes[lane].parent.clone()),
        );
        for event in file_changes(&call.id, &data.file_edits) {
            out.push(event);
        }
        true
    }

    /// Handles the progress of an agent's work.
    fn turn(&mut self, kind: &str, line: &Line<'_, wire::Turn<'_>>, out: &mut Events) {
        let at = self.lane(line.agent.get(), line.data.parent_tool_call_id.get());
        let lane = &mut self.lanes[at];
        match kind {
            "assistant.turn_start" => {
                lane.retries = 0;
                lane.failure = None;
                lane.call_failed = false;
                if at == MAIN {
                    self.background.wakes();
                    self.ending.turns += 1;
                    self.ending.works();
                    if mem::take(&mut lane.cut_off) {
                        out.notice(
                            NoticeLevel::Warning,
                            NoticeSource::Stdout,
                            "the model's output limit cut off a message; the CLI continues it",
                        );
                    }
                }
            }
            "model.call_start" => {
                // Versions that print no retry just start the next request.
                if lane.call_failed {
                    retry(lane, None, out);
                }
                lane.call_starts();
            }
            "model.call_finished" => {
                let outcome = line.data.outcome.get();
                lane.call_succeeded = outcome == Some("success");
                lane.call_failed |= outcome == Some("error");
            }
            "assistant.turn_retry" | "model.turn_retry" => {
                retry(lane, line.data.reason.get(), out);
            }
            "assistant.turn_end" => {
                lane.turn_ends();
            }
            // `assistant.idle` is not the end of the run, which waits for background work.
            _ if at == MAIN => {
                if line.data.aborted {
                    self.ending.aborted(None);
                } else if self.background.idle() {
                    self.ending.turn_ends(out);
                }
            }
            _ => {}
        }
    }

    fn sub_agent(&mut self, kind: &str, line: &Line<'_, wire::SubAgent<'_>>, out: &mut Events) {
        let data = &line.data;
        if kind == "subagent.started" {
            let Some(agent) = line.agent.get() else {
                return;
            };
            let caller = data.parent_id.get().map(|id| self.lane(Some(id), None));
            let call = data.tool_call_id.text();
            let id = self.calls.id_of(caller.unwrap_or(MAIN), call);
            let id = id.or_else(|| self.calls.id_of_any(call));
            let at = self.lane(Some(agent), Some(call));
            let lane = &mut self.lanes[at];
            if id.is_some() {
                lane.parent = id;
            }
            lane.name = data.agent_display_name.get().map(str::to_owned);
            lane.failure_is_reported = false;
            if data.execution_mode.get() == Some("background") {
                self.background.agent_starts(agent);
            }
            return;
        }
        self.background.agent_ends(line.agent.text());
        if kind == "subagent.failed" {
            let at = self.lane(line.agent.get(), None);
            // After a failed request there was a `session.error`.
            if !mem::take(&mut self.lanes[at].failure_is_reported) {
                agent_failed(data.agent_display_name.get(), data.error.text(), out);
            }
        }
    }

    /// Returns the lane of an agent, or the main agent's without an id. `parent` is the call that started the agent.
    fn lane(&mut self, agent: Option<&str>, parent: Option<&str>) -> usize {
        if agent.is_none() && parent.is_none() {
            return MAIN;
        }
        // The CLI identifies a call by its own id, which two calls may share: use the open one.
        let call = parent.and_then(|call| self.calls.id_of_any(call));
        let known = self.lanes[1..].iter().rposition(|lane| match agent {
            Some(agent) => lane.agent.as_deref() == Some(agent),
            None if lane.agent.is_some() => false,
            None => match &call {
                Some(call) => lane.parent.as_ref() == Some(call),
                None => lane.raw_parent.as_deref() == parent,
            },
        });
        if let Some(at) = known {
            return at + 1;
        }
        // The agent's start was lost. Use the call that the line names, or else an id that keeps its text apart from
        // other agents'.
        let id = call.or_else(|| parent.or(agent).map(Id::from));
        let mut lane = Lane::new(agent, id);
        lane.raw_parent = parent.map(str::to_owned);
        self.lanes.push(lane);
        self.lanes.len() - 1
    }
}

/// Reports the failure of a sub-agent.
fn agent_failed(name: Option<&str>, why: &str, out: &mut Events) {
    let agent = name.map_or_else(
        || "a sub-agent".to_owned(),
        |name| format!("the sub-agent {name:?}"),
    );
    let message = format!("{agent} failed: {why}");
    out.notice(NoticeLevel::Warning, NoticeSource::Stdout, message);
}

/// Handles the CLI's retry of this agent's failed request.
fn retry(lane: &mut Lane, reason: Option<&str>, out: &mut Events) {
    lane.retry(out);
    lane.retries += 1;
    let attempt = lane.failure.as_ref().and_then(|f| f.attempt);
    out.push(Retry::new(
        attempt.map_or(lane.retries, |before| before.saturating_add(1)),
        errors::of_retry(lane.failure.as_ref(), reason),
    ));
}

#[cfg(test)]
mod tests;
