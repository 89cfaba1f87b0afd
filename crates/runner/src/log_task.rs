//! Task that writes the entries of a run to its log.

use std::future::{pending, ready};
use std::io;
use std::time::Duration;

use teamster_api::{LifecycleEntry, RunEvent, RunLogEntry};
use teamster_core::time::epoch_ms;
use teamster_core::{
    AgentError, AgentEvent, Done, ErrorCode, ErrorKind, Id, LogEntry, RunResult, RunStatus,
};
use teamster_orchestrator::RunLog;
use tokio::sync::{mpsc, watch};
use tokio::task::coop::consume_budget;
use tokio::time::{Instant, sleep, sleep_until};

use crate::log::Watch;
use crate::log_sink::LogSink;
use crate::status::StatusBoard;
use crate::{OnLostLog, Position, RequestChannel};

/// Time for which a log that cannot be written is tried again, before it is given up.
const WRITE_RETRY_LIMIT: Duration = Duration::from_secs(30);
/// Interval of the write attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);
/// Time limit for writing the end of a run that was stopped for that reason.
const END_RETRY_LIMIT: Duration = Duration::from_secs(5);
/// Number of bytes of a run that does not wait for its log, beyond which a log that cannot be written is given up.
const MOST_UNWRITTEN: usize = 64 << 20;
/// Maximum number of entries in one write.
const BATCH: usize = 256;

/// Sources of log entries other than runs.
pub(crate) struct SideChannels {
    /// Requests, and the events about them, which are not events of the agent.
    pub(crate) channel: RequestChannel,
    /// Actions of a session's clients.
    pub(crate) notes: mpsc::UnboundedReceiver<Note>,
}

/// Log entry for an action of a client.
pub(crate) enum Note {
    /// Text that was sent to the agent during the turn in progress.
    Steer {
        text: String,
        from: Option<String>,
    },
    Event(AgentEvent),
}

/// Writes the entries of a run to its sink and announces them to its readers.
pub(crate) struct LogTask {
    sink: LogSink,
    watch: Option<Watch>,
    announce: watch::Sender<Position>,
    status: StatusBoard,
    /// Run id of entries that are created here.
    run_id: Id,
    /// Attempt of the newest entry.
    attempt: u32,
    /// Provider of the current attempt.
    provider: String,
    /// Start of a series of write errors.
    failing: Option<Instant>,
    /// Error for which the log was given up: further entries are dropped.
    lost: Option<io::Error>,
    on_lost: OnLostLog,
}

impl LogTask {
    /// Creates the task of this sink. MUST be called in a Tokio runtime.
    pub(crate) fn new(sink: LogSink, run_id: &str) -> Self {
        Self {
            watch: sink.watch(),
            sink,
            announce: watch::channel(Position::default()).0,
            status: StatusBoard::new(),
            run_id: run_id.into(),
            attempt: 1,
            provider: String::new(),
            failing: None,
            lost: None,
            on_lost: OnLostLog::StopRun,
        }
    }

    pub(crate) fn on_lost(mut self, on_lost: OnLostLog) -> Self {
        self.on_lost = on_lost;
        self
    }

    /// Returns the position of the log, for its readers.
    pub(crate) fn position(&self) -> watch::Receiver<Position> {
        self.announce.subscribe()
    }

    pub(crate) fn status(&self) -> &StatusBoard {
        &self.status
    }

    /// Returns the number of the newest entry that was written.
    pub(crate) fn written(&self) -> u64 {
        self.sink.written().seq
    }

    /// Returns whether the log was given up.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.is_some()
    }

    /// Sets the run id of entries that are created here.
    pub(crate) fn set_run(&mut self, run_id: &str) {
        self.run_id = run_id.into();
        self.attempt = 1;
    }

    pub(crate) fn push(&mut self, entry: RunLogEntry) {
        if self.is_lost() {
            return;
        }
        if let RunLogEntry::Agent(entry) = &entry {
            self.attempt = entry.attempt;
        }
        self.status.see(&entry);
        self.sink.push(entry);
    }

    /// Adds an event that is not the agent's.
    pub(crate) fn push_event(&mut self, event: AgentEvent) {
        self.push(self.entry(event));
    }

    /// Returns the entry of an event that is not the agent's.
    fn entry(&self, event: AgentEvent) -> RunLogEntry {
        let mut entry = LogEntry::from(event);
        entry.run_id = Some(self.run_id.clone());
        entry.at_ms = epoch_ms();
        entry.attempt = self.attempt;
        RunLogEntry::Agent(entry)
    }

    /// Writes a user's message to the log.
    pub(crate) fn push_message(
        &mut self,
        text: String,
        from: Option<String>,
        key: Option<String>,
        steer: bool,
    ) {
        let mut event = RunEvent::user_message(self.run_id.clone(), text, from, steer);
        if let RunEvent::UserMessage { key: own, .. } = &mut event {
            *own = key;
        }
        let entry = LifecycleEntry::new(event).at_ms(epoch_ms());
        self.push(entry.attempt(self.attempt).into());
    }

    pub(crate) fn push_note(&mut self, note: Note) {
        match note {
            Note::Steer { text, from } => self.push_message(text, from, None, true),
            Note::Event(event) => self.push_event(event),
        }
    }

    /// Waits until a write is due, or the log may have been removed. Cancel-safe.
    pub(crate) async fn due(&self) {
        if self.is_lost() {
            return pending().await;
        }
        let write = async {
            match (self.failing, self.sink.due()) {
                (Some(_), _) => sleep(RETRY_INTERVAL).await,
                (None, Some(due)) => sleep_until(Instant::from_std(due)).await,
                (None, None) => self.sink.room().await,
            }
        };
        let removal = async {
            match &self.watch {
                Some(watch) => watch.changed().await,
                None => pending().await,
            }
        };
        tokio::select! {
            () = write => {}
            () = removal => {}
        }
    }

    /// Returns whether entries can be taken: none of them waits to be written, or the run does not wait for its log.
    fn is_open(&self) -> bool {
        match self.on_lost {
            OnLostLog::StopRun => self.failing.is_none() && !self.sink.is_full(),
            OnLostLog::Continue => true,
        }
    }

    /// Writes due entries. Returns whether the log was given up by this call.
    pub(crate) fn write(&mut self) -> bool {
        if self.is_lost() {
            return false;
        }
        if (self.sink.due()).is_some_and(|due| due <= std::time::Instant::now()) {
            self.sink.end_frame();
        }
        let Err(error) = self.try_write() else {
            return false;
        };
        let given_up = is_permanent(&error)
            || (self.on_lost == OnLostLog::Continue
                && self.sink.unwritten_bytes() > MOST_UNWRITTEN)
            || (self.failing).is_some_and(|since| since.elapsed() >= WRITE_RETRY_LIMIT);
        if given_up {
            self.lost = Some(error);
            self.failing = None;
            self.sink.discard_unwritten();
        }
        given_up
    }

    fn try_write(&mut self) -> io::Result<()> {
        if self.sink.is_removed() {
            let error = io::Error::new(io::ErrorKind::NotFound, "its folder was removed");
            return Err(error);
        }
        match self.sink.flush() {
            Ok(position) => {
                self.failing = None;
                self.announce.send_if_modified(|known| {
                    let changed = *known != position;
                    *known = position;
                    changed
                });
                Ok(())
            }
            Err(error) => {
                self.failing.get_or_insert_with(Instant::now);
                Err(error)
            }
        }
    }

    /// Writes a run to its end and returns its result. `see` is called first with each entry of the run.
    ///
    /// A request of the agent comes after the start of the run, even if the agent asks before it reports anything.
    pub(crate) async fn record(
        &mut self,
        log: &mut RunLog,
        side: &mut SideChannels,
        see: &mut (dyn FnMut(&RunLogEntry) + Send),
    ) -> RunResult {
        let abort = log.abort_handle();
        let mut result = RunResult::default().status(RunStatus::Incomplete);
        let mut begun = false;
        // Requests from before the start of the run.
        let mut early = Vec::new();
        loop {
            let mut over = false;
            tokio::select! {
                biased;
                entry = log.next(), if self.is_open() => {
                    let mut next = entry;
                    for taken in 1.. {
                        let Some(entry) = next else {
                            over = true;
                            break;
                        };
                        see(&entry);
                        if let RunLogEntry::Agent(entry) = &entry
                            && let AgentEvent::Done(done) = &entry.event
                        {
                            result = (*done.result).clone();
                        }
                        begun = true;
                        if !is_start(&entry) {
                            early.drain(..).for_each(|event| self.push_event(event));
                        }
                        self.take(entry, side);
                        // Checked before the next entry is fetched: a fetched entry must be taken.
                        if taken == BATCH || self.sink.is_full() {
                            break;
                        }
                        next = tokio::select! {
                            biased;
                            entry = log.next() => entry,
                            () = ready(()) => break,
                        };
                    }
                }
                Some(event) = side.channel.events.recv(), if self.is_open() => {
                    early.push(event);
                    if !begun {
                        log.report_start();
                    }
                }
                Some(note) = side.notes.recv(), if self.is_open() => {
                    self.push_note(note);
                }
                () = self.due() => {}
            }
            if begun {
                early.drain(..).for_each(|event| self.push_event(event));
            }
            if self.write() && self.on_lost == OnLostLog::StopRun {
                abort.abort();
            }
            if over {
                break;
            }
            // A CLI may print without pause.
            consume_budget().await;
        }
        result
    }

    fn take(&mut self, entry: RunLogEntry, side: &mut SideChannels) {
        let entry = match entry {
            RunLogEntry::Agent(mut entry) => {
                let Some(event) = side.channel.requests.mark(&self.provider, entry.event) else {
                    return;
                };
                if let AgentEvent::Permission(_) = &event {
                    // A decision follows its request.
                    while let Ok(request) = side.channel.events.try_recv() {
                        self.push_event(request);
                    }
                }
                entry.event = event;
                RunLogEntry::Agent(entry)
            }
            entry => {
                if let RunLogEntry::Run(entry) = &entry
                    && let RunEvent::Attempt { provider, .. } = &entry.event
                {
                    self.provider.clone_from(provider);
                }
                entry
            }
        };
        self.push(entry);
    }

    /// Writes the remaining entries. A log that was given up gets its end if possible. Fails if the log is incomplete.
    pub(crate) async fn end(&mut self, result: &mut RunResult) -> io::Result<()> {
        self.sink.end_frame();
        let continues = self.on_lost == OnLostLog::Continue;
        if continues && let Some(error) = self.lost.take() {
            return Err(error);
        }
        if let Some(error) = &self.lost {
            let error = AgentError::new(
                ErrorCode::Io,
                ErrorKind::Internal,
                format!(
                    "the log of this run could not be written, so the run was stopped: {error}"
                ),
            );
            result.errors.push(error.clone());
            result.status = RunStatus::Failed;
            for event in [
                AgentEvent::error(error),
                AgentEvent::Done(Done::new(Box::new(result.clone()))),
            ] {
                self.sink.push(self.entry(event));
            }
        }
        let until = Instant::now()
            + match self.is_lost() {
                _ if continues => Duration::ZERO,
                true => END_RETRY_LIMIT,
                false => WRITE_RETRY_LIMIT,
            };
        // The next reader completes a log without its end.
        while let Err(error) = self.try_write() {
            if is_permanent(&error) || Instant::now() >= until {
                return Err(error);
            }
            sleep(RETRY_INTERVAL).await;
        }
        self.sink.finish().await
    }
}

fn is_start(entry: &RunLogEntry) -> bool {
    matches!(entry, RunLogEntry::Run(entry)
        if matches!(entry.event, RunEvent::Start { .. } | RunEvent::Attempt { .. }))
}

/// Returns whether a write will not succeed later: the limit of file sizes (`ulimit -f`) is that of the process, and a
/// reader or a folder that is gone does not come back.
fn is_permanent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::FileTooLarge | io::ErrorKind::BrokenPipe | io::ErrorKind::NotFound
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LogLimits, Runs};
    use teamster_api::RunInfo;

    #[tokio::test]
    async fn the_end_of_a_lost_log_names_its_run_and_attempt() {
        let dir = tempfile::tempdir().unwrap();
        let info = RunInfo::new("session", "claude");
        let run = Runs::at(dir.path())
            .accept(&info, LogLimits::default())
            .unwrap();
        let mut task = LogTask::new(LogSink::Log(run.log), "session");
        task.set_run("turn");
        task.attempt = 3;
        task.lost = Some(io::Error::other("no space"));
        task.end(&mut RunResult::default()).await.unwrap();
        let mut lines = run.folder.log(0).unwrap();
        let mut types = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            let RunLogEntry::Agent(entry) = line.entry().unwrap() else {
                panic!("{line:?}");
            };
            assert_eq!((entry.run_id.as_deref(), entry.attempt), (Some("turn"), 3));
            types.push(entry.event.type_name());
        }
        assert_eq!(types, ["error", "done"]);
    }
}
