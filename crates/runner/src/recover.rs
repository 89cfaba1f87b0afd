//! Recovery of a log whose writer was killed.

use std::fs::File;
use std::path::Path;

use teamster_core::time::epoch_ms;
use teamster_core::{
    AgentError, AgentEvent, Done, ErrorCode, ErrorKind, LogEntry, RunResult, RunStatus,
};
use teamster_core::{TextLedger, ToolLedger};
use teamster_orchestrator::{RunEvent, RunLogEntry};

use crate::log::{FILE, LogLine, last_entry, run_id_of};
use crate::status::Totals;
use crate::{LogLimits, RunLogReader, RunLogWriter, RunsError};

/// Returns the last complete entry of the log in this folder.
pub(crate) fn last_line(folder: &Path) -> Result<Option<LogLine>, RunsError> {
    let path = folder.join(FILE);
    let last = File::open(&path).and_then(|file| last_entry(&file, &run_id_of(folder)));
    Ok(last.map_err(RunsError::io("read", &path))?.1)
}

/// Appends `error` and `done`. The caller MUST hold the recovery lock.
pub(crate) fn append_end(folder: &Path) -> Result<(), RunsError> {
    let path = folder.join(FILE);
    let mut log =
        RunLogWriter::open(folder, LogLimits::default()).map_err(RunsError::io("open", &path))?;
    let recovered = RecoveredRun::read(folder)?;
    let error = AgentError::new(
        ErrorCode::Interrupted,
        ErrorKind::Interrupted,
        "the runner of this run was killed, or its machine went down; changes that the agent made \
         remain: resume its session, or start a new run",
    );
    let run_id = Some(run_id_of(folder));
    let attempt = recovered.attempt;
    // A reader that was killed between the two may have written the error.
    let has_error = recovered.has_error();
    let done = AgentEvent::Done(Done::new(Box::new(recovered.into_result(error.clone()))));
    let error = (!has_error).then(|| AgentEvent::error(error));
    for event in error.into_iter().chain([done]) {
        let mut entry = LogEntry::from(event);
        entry.run_id.clone_from(&run_id);
        entry.at_ms = epoch_ms();
        entry.attempt = attempt;
        log.push(RunLogEntry::Agent(entry));
    }
    log.flush()
        .and_then(|_| log.sync())
        .map_err(RunsError::io("write", &path))
}

/// State of a run, reconstructed from its incomplete log.
#[derive(Default)]
struct RecoveredRun {
    started_at: Option<u64>,
    last_at: u64,
    attempt: u32,
    text: TextLedger,
    tools: ToolLedger,
    result: RunResult,
    /// Totals of the ended turns of a session.
    turns: Totals,
    /// A turn has begun and not ended.
    in_turn: bool,
}

impl RecoveredRun {
    fn read(folder: &Path) -> Result<Self, RunsError> {
        let mut reader = RunLogReader::open(folder, 0)?;
        let mut recovered = Self {
            attempt: 1,
            ..Self::default()
        };
        while let Some(line) = reader.next_line()? {
            // An entry of a later version that cannot be parsed is skipped.
            if let Ok(entry) = line.entry() {
                recovered.take(entry);
            }
        }
        Ok(recovered)
    }

    fn take(&mut self, entry: RunLogEntry) {
        self.started_at.get_or_insert(entry.at_ms());
        self.last_at = self.last_at.max(entry.at_ms());
        match entry {
            RunLogEntry::Agent(entry) => {
                self.attempt = entry.attempt;
                self.event(entry.event);
            }
            RunLogEntry::Run(entry) => {
                if let RunEvent::Start {
                    session_id, model, ..
                } = entry.event
                {
                    self.in_turn = true;
                    self.result.session_id = session_id.or(self.result.session_id.take());
                    self.result.model = model.or(self.result.model.take());
                }
            }
            _ => {}
        }
    }

    fn event(&mut self, event: AgentEvent) {
        self.text.event(&event);
        match event {
            AgentEvent::Session(session) => {
                self.result.model = session.model.or(self.result.model.take());
                self.result.session_id = Some(session.session_id);
            }
            AgentEvent::ToolUse(tool) => {
                // The start of the turn may be pruned.
                self.in_turn = true;
                self.tools.start(&tool.tool_id, ());
            }
            AgentEvent::ToolResult(tool) => {
                self.tools.end(&tool.tool_id);
            }
            AgentEvent::Usage(report) => {
                self.result.usage = Some(report.usage);
                self.result.total_cost_usd = report.cost_usd.or(self.result.total_cost_usd);
            }
            AgentEvent::Error(error) => self.result.errors.push(error.error),
            // This is the `done` of a turn: the log has none of its own.
            AgentEvent::Done(done) => {
                self.in_turn = false;
                self.turns.add(&done.result);
                self.text = TextLedger::default();
                self.tools = ToolLedger::default();
                self.result.errors.clear();
                self.result.usage = None;
                self.result.total_cost_usd = None;
            }
            _ => {}
        }
    }

    /// Returns whether the log has the error already.
    fn has_error(&self) -> bool {
        let last = self.result.errors.last();
        last.is_some_and(|error| error.code == ErrorCode::Interrupted)
    }

    fn into_result(self, error: AgentError) -> RunResult {
        let has_error = self.has_error();
        let mut result = self.result;
        if self.turns.turns > 0 {
            let mut turns = self.turns;
            if self.in_turn {
                // The turn that was cut off counts as well.
                turns.add(&result);
            }
            turns.write_to(&mut result);
        }
        result.status = RunStatus::Incomplete;
        result.duration_ms = self.last_at - self.started_at.unwrap_or(self.last_at);
        result.final_message = self.text.last_message();
        result.pieces = self.text.text_pieces();
        result.text = self.text.into_text();
        result.open_tool_ids = self.tools.into_open();
        if !has_error {
            result.errors.push(error);
        }
        result
    }
}
