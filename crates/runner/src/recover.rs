//! Recovery of a log whose writer was killed.

use std::path::Path;

use teamster_api::{LogLine, RunEvent, RunLogEntry};
use teamster_core::time::epoch_ms;
use teamster_core::{
    AgentError, AgentEvent, CostSource, Done, ErrorCode, ErrorKind, Id, LogEntry, RunResult,
    RunStatus,
};
use teamster_core::{TextLedger, ToolLedger};

use crate::log::{FILE, last_entry, run_id_of};
use crate::status::Totals;
use crate::{LogLimits, RunLogReader, RunLogWriter, RunsError, files};

/// Returns the last complete entry of the log in this folder.
pub(crate) fn last_line(folder: &Path) -> Result<Option<LogLine>, RunsError> {
    let path = folder.join(FILE);
    let last = files::open(&path).and_then(|file| last_entry(&file, &run_id_of(folder)));
    Ok(last.map_err(RunsError::io("read", &path))?.1)
}

/// Appends `error` and `done` of the turn in progress, if the log is of a session, then those of the log's own run.
/// The caller MUST hold the recovery lock.
pub(crate) fn append_end(folder: &Path) -> Result<(), RunsError> {
    let path = folder.join(FILE);
    let mut log =
        RunLogWriter::open(folder, LogLimits::default()).map_err(RunsError::io("open", &path))?;
    let mut recovered = RecoveredRun::read(folder)?;
    // In a log whose lines another program has moved, neither the end nor the largest number need be last.
    recovered.has_ended = log.written().ended;
    log.continue_after(recovered.last_seq);
    while !recovered.has_ended {
        let entry = recovered.next_entry();
        log.push(RunLogEntry::Agent(entry.clone()));
        recovered.apply(RunLogEntry::Agent(entry));
    }
    log.flush()
        .and_then(|_| log.sync())
        .map_err(RunsError::io("write", &path))
}

fn interrupted() -> AgentError {
    AgentError::new(
        ErrorCode::Interrupted,
        ErrorKind::Interrupted,
        "the runner of this run was killed, or its machine went down; changes that the agent made \
         remain: resume its session, or start a new run",
    )
}

/// State of a run, reconstructed from its incomplete log.
#[derive(Default)]
struct RecoveredRun {
    /// Id of the log's own run.
    id: Id,
    turn: Option<Id>,
    ended_turn: Option<Id>,
    has_ended: bool,
    /// Number of the last entry that readers get.
    last_seq: u64,
    started_at: Option<u64>,
    turn_started_at: u64,
    last_at: u64,
    attempt: u32,
    text: TextLedger,
    tools: ToolLedger,
    result: RunResult,
    /// Totals of the ended turns of a session.
    turns: Totals,
}

impl RecoveredRun {
    fn read(folder: &Path) -> Result<Self, RunsError> {
        let mut reader = RunLogReader::open(folder, 0)?;
        let mut recovered = Self {
            id: run_id_of(folder),
            attempt: 1,
            ..Self::default()
        };
        while let Some(line) = reader.next_line()? {
            recovered.last_seq = line.seq();
            // An entry of a later version that cannot be parsed is skipped.
            if let Ok(entry) = line.entry() {
                recovered.take(entry);
            }
        }
        Ok(recovered)
    }

    /// Returns the next entry that the log lacks: an error, or the end of the turn or of the log.
    fn next_entry(&self) -> LogEntry {
        // A reader that was killed before the end may have written the error.
        let event = if self.has_error() {
            AgentEvent::Done(Done::new(Box::new(self.result())))
        } else {
            AgentEvent::error(interrupted())
        };
        let mut entry = LogEntry::from(event);
        entry.run_id = Some(self.turn.as_ref().unwrap_or(&self.id).clone());
        entry.at_ms = epoch_ms();
        entry.attempt = self.attempt;
        entry
    }

    fn take(&mut self, entry: RunLogEntry) {
        self.started_at.get_or_insert(entry.at_ms());
        self.last_at = self.last_at.max(entry.at_ms());
        let run_id = match &entry {
            RunLogEntry::Agent(entry) => entry.run_id.as_ref(),
            RunLogEntry::Run(entry) => entry.event.run_id(),
            _ => None,
        };
        // A run other than the log's own is a turn of a session, whose beginning may be pruned.
        if let Some(run_id) = run_id
            && *run_id != self.id
            && self.turn.as_ref() != Some(run_id)
            && self.ended_turn.as_ref() != Some(run_id)
        {
            self.turn = Some(run_id.clone());
            self.turn_started_at = entry.at_ms();
        }
        self.apply(entry);
    }

    fn apply(&mut self, entry: RunLogEntry) {
        match entry {
            RunLogEntry::Agent(entry) => {
                self.attempt = entry.attempt;
                let is_own = entry.run_id.is_none_or(|it| it == self.id);
                match entry.event {
                    AgentEvent::Done(_) if is_own => self.has_ended = true,
                    event => self.event(event),
                }
            }
            RunLogEntry::Run(entry) => {
                if let RunEvent::Start {
                    session_id, model, ..
                } = entry.event
                {
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
            AgentEvent::SessionStarted(session) => {
                self.result.model = session.model.or(self.result.model.take());
                self.result.session_id = Some(session.session_id);
            }
            AgentEvent::ToolUse(tool) => {
                self.tools.start(&tool.tool_id, ());
            }
            AgentEvent::ToolResult(tool) => {
                self.tools.end(&tool.tool_id);
            }
            AgentEvent::Usage(report) => {
                self.result.usage = Some(report.usage);
                if report.cost_usd.is_some() {
                    self.result.total_cost_usd = report.cost_usd;
                    self.result.cost_source = report.cost_source.or(Some(CostSource::Reported));
                }
            }
            AgentEvent::Error(error) => self.result.errors.push(error.error),
            // The end of a turn.
            AgentEvent::Done(done) => {
                self.ended_turn = self.turn.take();
                self.turns.add(&done.result);
                self.text = TextLedger::default();
                self.tools = ToolLedger::default();
                self.result.errors.clear();
                self.result.usage = None;
                self.result.total_cost_usd = None;
                self.result.cost_source = None;
            }
            _ => {}
        }
    }

    /// Returns whether the log has the error already.
    fn has_error(&self) -> bool {
        let last = self.result.errors.last();
        last.is_some_and(|error| error.code == ErrorCode::Interrupted)
    }

    /// Returns the result of the turn in progress, or of the log's own run.
    fn result(&self) -> RunResult {
        let mut result = self.result.clone();
        if self.turn.is_none() && self.turns.turns > 0 {
            self.turns.write_to(&mut result);
        }
        result.status = RunStatus::Incomplete;
        let started_at = match self.turn {
            Some(_) => self.turn_started_at,
            None => self.started_at.unwrap_or(self.last_at),
        };
        result.duration_ms = self.last_at.saturating_sub(started_at);
        result.final_message = self.text.last_message();
        result.pieces = self.text.text_pieces();
        result.text = self.text.clone().into_text();
        result.open_tool_ids = self.tools.clone().into_open();
        result
    }
}
