//! Playback of a recorded run through the code of live runs: the engine's line splitting, [`RunAssembler`]
//! and the provider's decoder.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;
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
    /// True to include the lines that the events came from.
    pub include_native: bool,
}

/// Result of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The events, `done` last.
    pub events: Vec<AgentEvent>,
    /// The line that each event came from, if requested.
    pub natives: Vec<Option<RawJson>>,
    /// Violation of the stream grammar, if any.
    pub grammar: Result<(), grammar::Violation>,
}

impl Replay {
    pub(crate) fn new(entries: impl IntoIterator<Item = LogEntry>) -> Self {
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

    /// Returns the result of the run, or `None` if the grammar is broken.
    pub fn result(&self) -> Option<&RunResult> {
        match self.events.last()? {
            AgentEvent::Done(done) => Some(&done.result),
            _ => None,
        }
    }

    /// Returns the number of non-blank lines that the CLI printed.
    pub fn lines(&self) -> u64 {
        self.result().map_or(0, |r| r.diagnostics.lines)
    }

    /// Returns the number of JSON lines of an unknown type.
    pub fn unknown(&self) -> u64 {
        self.result().map_or(0, |r| r.diagnostics.unknown)
    }

    /// Returns the number of lines that were not valid JSON of the expected form.
    pub fn malformed(&self) -> u64 {
        self.result().map_or(0, |r| r.diagnostics.malformed)
    }

    /// Writes every event as JSON, as one in a log too, and reads it back.
    ///
    /// # Errors
    ///
    /// Fails with the first event that is not what it was.
    pub fn read_back(&self) -> Result<(), String> {
        fn check<T: Serialize + DeserializeOwned + PartialEq>(written: &T) -> Result<(), String> {
            let json = serde_json::to_string(written).map_err(|error| error.to_string())?;
            match serde_json::from_str::<T>(&json) {
                Ok(read) if read == *written => Ok(()),
                Ok(read) => {
                    let read = serde_json::to_string(&read).unwrap_or_default();
                    Err(format!("{json}\nis read back as\n{read}"))
                }
                Err(error) => Err(format!("{json}\nis not read back: {error}")),
            }
        }
        for (event, native) in self.events.iter().zip(&self.natives) {
            check(event)?;
            let mut entry = LogEntry::from(event.clone());
            entry.native.clone_from(native);
            check(&entry)?;
        }
        Ok(())
    }

    /// Returns the number of events by the name of their type.
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
/// For a program that never started, returns the engine's events for that failure.
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
    /// Number of the line that caused the `tool_use`, counted from 0.
    pub line: usize,
    /// Number of the line that caused its result; `None` if the run ended earlier.
    pub ended: Option<usize>,
}

impl TracedCall {
    /// Returns whether it was announced before its result.
    pub fn was_announced(&self) -> bool {
        self.ended.is_none_or(|ended| self.line < ended)
    }
}

/// Returns the tool calls of a recorded run, with their lines. Events that a decoder emits at the end of a
/// run are excluded.
pub fn calls(fixture: &Fixture, provider: &dyn CliProvider) -> Vec<TracedCall> {
    let params = params(fixture, provider);
    let mut assembler = RunAssembler::new(provider.decoder(&params));
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

/// Returns the parameters of a fixture's run.
fn params(fixture: &Fixture, provider: &dyn CliProvider) -> ExecuteParams {
    let mut params = ExecuteParams::new(&fixture.meta.prompt);
    // Without `slash_commands`, a prompt is not passed on in the form of a command.
    let prompt = &*params.prompt;
    let passed_on = |argument: &String| {
        argument
            .strip_suffix(prompt)
            .is_some_and(|flag| flag.is_empty() || flag.ends_with('='))
    };
    params.slash_commands = prompt.starts_with('/') && fixture.meta.argv.iter().any(passed_on);
    params.env.clone_from(&fixture.meta.env);
    provider.recorded_params(&fixture.meta.argv, &mut params);
    if let Some(recorded) = &fixture.meta.params {
        params.session_id.clone_from(&recorded.session_id);
        params.fork = recorded.fork;
        params.model.clone_from(&recorded.model);
        params.effort.clone_from(&recorded.effort);
        params.permission = recorded.permission;
        // Decoders identify MCP tools by the names of their servers.
        let servers = fixture.meta.mcp_servers.iter();
        params.mcp_servers = servers
            .map(|name| McpServer::stdio(name, "", [""; 0]))
            .collect();
    }
    params
}

/// Replays output in these chunks, as it would arrive through a pipe.
pub fn replay_bytes<'a>(
    provider: &dyn CliProvider,
    chunks: impl IntoIterator<Item = &'a [u8]>,
    exit: Exit,
) -> Replay {
    replay_run(provider, &ExecuteParams::new(""), chunks, exit)
}

/// Replays output in these chunks, of a run with these parameters.
pub fn replay_run<'a>(
    provider: &dyn CliProvider,
    params: &ExecuteParams,
    chunks: impl IntoIterator<Item = &'a [u8]>,
    exit: Exit,
) -> Replay {
    replay_chunks(provider, params, chunks, None, exit, 0)
}

/// Passes lines to a decoder as in a run, and ends the run. Returns the events, `done` last, and the result.
/// For tests of decoders, which need not show a whole run: one without any output may succeed.
///
/// # Panics
///
/// If the events break the grammar of a stream.
pub fn decode(
    decoder: impl Decoder + 'static,
    lines: &[String],
    exit: Exit,
) -> (Vec<AgentEvent>, RunResult) {
    let mut assembler = RunAssembler::new(Box::new(decoder)).may_be_silent(true);
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
    let mut assembler = RunAssembler::new(provider.decoder(params))
        .include_native(params.include_native)
        .resumes(params.session_id.is_some())
        .may_be_silent(params.is_command());
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
        // Also if no line followed the stop.
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
