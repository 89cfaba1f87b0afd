//! A recorded run, taken through the very code that a live run goes through: the engine's line
//! splitting, [`RunAssembler`] and the provider's decoder.

use std::collections::BTreeMap;

use teamster_core::provider::{Decoder, Events, Exit, RunAssembler, grammar};
use teamster_core::{
    AgentError, AgentEvent, CliProvider, ErrorCode, ErrorKind, ExecuteParams, LogEntry, McpServer,
    RawJson, RunResult, ToolUse,
};
use teamster_process::RuntimeConfig;
use teamster_process::framing::{Frame, LineBuf};

use crate::fixture::Fixture;

/// Options of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Also give the lines that the events came from.
    pub include_native: bool,
}

/// Result of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The events, `done` last.
    pub events: Vec<AgentEvent>,
    /// The line that each event came from, if requested.
    pub natives: Vec<Option<RawJson>>,
    /// Whether they are a stream as it must be.
    pub grammar: Result<(), grammar::Violation>,
}

impl Replay {
    fn new(entries: impl IntoIterator<Item = LogEntry>) -> Self {
        let entries = entries.into_iter();
        let (events, natives): (Vec<_>, _) =
            entries.map(|entry| (entry.event, entry.native)).unzip();
        let grammar = grammar::check(&events);
        Self {
            events,
            natives,
            grammar,
        }
    }

    /// The result of the run. None only if the grammar is broken.
    pub fn result(&self) -> Option<&RunResult> {
        match self.events.last()? {
            AgentEvent::Done(done) => Some(&done.result),
            _ => None,
        }
    }

    /// How many lines the CLI printed that were not blank.
    pub fn lines(&self) -> u64 {
        self.result().map_or(0, |r| r.diagnostics.lines)
    }

    /// How many lines were JSON of a type that the decoder does not know.
    pub fn unknown(&self) -> u64 {
        self.result().map_or(0, |r| r.diagnostics.unknown)
    }

    /// How many lines were not the JSON that they should be.
    pub fn malformed(&self) -> u64 {
        self.result().map_or(0, |r| r.diagnostics.malformed)
    }

    /// How many events there are of each type, by the type's name.
    pub fn counts(&self) -> BTreeMap<&'static str, usize> {
        let mut counts = BTreeMap::new();
        for event in &self.events {
            *counts.entry(event.type_name()).or_default() += 1;
        }
        counts
    }
}

/// Replays a fixture.
///
/// A fixture of a program that never started gives the engine's events for that.
pub fn replay(fixture: &Fixture, provider: &dyn CliProvider, options: ReplayOptions) -> Replay {
    if let Some(error) = fixture.never_started() {
        return Replay::new(RunAssembler::refuse(spawn_error(error)).map(LogEntry::from));
    }
    let mut params = params(fixture, provider);
    params.include_native = options.include_native;
    let chunks = [fixture.stdout.as_slice()];
    let duration_ms = fixture.meta.duration_ms;
    let stopped = fixture.meta.stopped.as_ref();
    let stopped_after = stopped.map(|stopped| stopped.after_lines);
    let exit = fixture.exit();
    replay_chunks(provider, &params, chunks, stopped_after, exit, duration_ms)
}

/// A tool call in a recorded run, with the lines of its use and result.
#[derive(Debug, Clone, PartialEq)]
pub struct TracedCall {
    /// The event.
    pub tool_use: ToolUse,
    /// The line with which the `tool_use` came, counted from 0.
    pub line: usize,
    /// The line with which its result came, unless the run was over before.
    pub ended: Option<usize>,
}

impl TracedCall {
    /// Whether it was announced before its result.
    pub fn was_announced(&self) -> bool {
        self.ended.is_none_or(|ended| self.line < ended)
    }
}

/// The calls of a recorded run, with their lines. Events that a decoder emits at the end of a run are not
/// among them.
pub fn calls(fixture: &Fixture, provider: &dyn CliProvider) -> Vec<TracedCall> {
    let params = params(fixture, provider);
    let mut assembler = RunAssembler::new(provider.decoder(&params), false);
    let mut calls: Vec<TracedCall> = Vec::new();
    let mut out = Events::new();
    for (number, line) in fixture.stdout.split(|byte| *byte == b'\n').enumerate() {
        assembler.line(line, &mut out);
        for event in out.drain() {
            match event {
                AgentEvent::ToolUse(tool_use) => calls.push(TracedCall {
                    tool_use: *tool_use,
                    line: number,
                    ended: None,
                }),
                AgentEvent::ToolResult(result) => {
                    let call = calls
                        .iter_mut()
                        .find(|c| c.tool_use.tool_id == result.tool_id);
                    if let Some(call) = call {
                        call.ended = Some(number);
                    }
                }
                _ => {}
            }
        }
    }
    calls
}

/// Parameters with which a fixture was started.
fn params(fixture: &Fixture, provider: &dyn CliProvider) -> ExecuteParams {
    let mut params = ExecuteParams::new(&fixture.meta.prompt);
    params.env.clone_from(&fixture.meta.env);
    provider.recorded_params(&fixture.meta.argv, &mut params);
    if let Some(recorded) = &fixture.meta.params {
        params.session_id.clone_from(&recorded.session_id);
        params.fork = recorded.fork;
        params.model.clone_from(&recorded.model);
        params.effort.clone_from(&recorded.effort);
        params.permission = recorded.permission;
        // Decoders know their tools by their names.
        let servers = fixture.meta.mcp_servers.iter();
        params.mcp_servers = servers
            .map(|name| McpServer::stdio(name, "", [""; 0]))
            .collect();
    }
    params
}

/// Replays output that comes in these chunks, as it would through a pipe.
pub fn replay_bytes<'a>(
    provider: &dyn CliProvider,
    chunks: impl IntoIterator<Item = &'a [u8]>,
    exit: Exit,
) -> Replay {
    replay_chunks(provider, &ExecuteParams::new(""), chunks, None, exit, 0)
}

/// Gives lines to a decoder as a run would, and ends the run. The events, `done` last, and its result:
/// for tests of a decoder.
///
/// # Panics
///
/// If the events are no stream as it must be.
pub fn decode(
    decoder: impl Decoder + 'static,
    lines: &[String],
    exit: Exit,
) -> (Vec<AgentEvent>, RunResult) {
    let mut assembler = RunAssembler::new(Box::new(decoder), false);
    let mut out = Events::new();
    for line in lines {
        assembler.line(line.as_bytes(), &mut out);
    }
    assembler.finish(exit, 0, &mut out);
    let replay = Replay::new(out.drain_entries(0));
    match (&replay.grammar, replay.result()) {
        (Ok(()), Some(result)) => {
            let result = result.clone();
            (replay.events, result)
        }
        (grammar, _) => panic!("not a stream as it must be: {grammar:?}"),
    }
}

fn replay_chunks<'a>(
    provider: &dyn CliProvider,
    params: &ExecuteParams,
    chunks: impl IntoIterator<Item = &'a [u8]>,
    stopped_after: Option<usize>,
    exit: Exit,
    duration_ms: u64,
) -> Replay {
    let mut read = 0;
    let mut assembler = RunAssembler::new(provider.decoder(params), params.include_native);
    let mut out = Events::new();
    let mut lines = LineBuf::new(RuntimeConfig::default().max_line_bytes);
    let mut push = |frame: &Frame<'_>, assembler: &mut RunAssembler| {
        if stopped_after == Some(read) {
            assembler.stop_requested();
        }
        read += 1;
        push(frame, assembler, &mut out);
    };
    for chunk in chunks {
        lines.extend(chunk);
        while let Some(frame) = lines.next() {
            push(&frame, &mut assembler);
        }
    }
    if let Some(frame) = lines.finish() {
        push(&frame, &mut assembler);
    }
    if stopped_after.is_some() {
        // Also where no line came after it.
        assembler.stop_requested();
    }
    assembler.finish(exit, duration_ms, &mut out);
    Replay::new(out.drain_entries(0))
}

fn push(frame: &Frame<'_>, assembler: &mut RunAssembler, out: &mut Events) {
    match frame {
        Frame::Line(line) => assembler.line(line, out),
        Frame::Oversize { bytes, head } => assembler.oversize_line(*bytes, head, out),
    }
}

fn spawn_error(message: &str) -> AgentError {
    let too_large = message.contains("E2BIG") || message.contains("Argument list too long");
    if too_large {
        AgentError::new(ErrorCode::PromptTooLarge, ErrorKind::Invalid, message)
    } else {
        AgentError::new(ErrorCode::Io, ErrorKind::Internal, message)
    }
}
