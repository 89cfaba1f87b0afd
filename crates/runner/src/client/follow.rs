//! Following the log of a run.

use std::collections::VecDeque;

use tokio::time::{Instant, sleep, timeout_at};

use super::{ANSWER_LIMIT, Connection, PAUSE, settle};
use crate::background::{Reader, blocking};
use crate::{RunFolder, RunState, RunsError};
use teamster_api::{Command, LogLine, Reply};

/// Stream of the entries of a run's log: existing entries, then new ones, up to the end of the log.
///
/// Needs a Tokio runtime. If the runner is killed, this completes the log.
#[must_use = "nothing is read before the stream is polled"]
#[derive(Debug)]
pub struct Follow {
    run: RunFolder,
    reader: Reader,
    /// Entries that were read and not returned yet.
    read: VecDeque<LogLine>,
    runner: Option<Connection>,
    /// Time limit for the first answer of the runner, until it has come.
    answers_by: Option<Instant>,
    /// The run has ended, so the log gets no further entries.
    settled: bool,
}

impl Follow {
    /// Follows the log of this run after the entry with this number; 0 is the beginning.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be opened.
    pub fn new(run: RunFolder, after: u64) -> Result<Self, RunsError> {
        let reader = Reader::Idle(run.log(after)?);
        Ok(Self {
            run,
            reader,
            read: VecDeque::new(),
            runner: None,
            answers_by: None,
            settled: false,
        })
    }

    /// Waits for the last entry of a run's log. Returns `None` if the log has ended without one.
    ///
    /// # Errors
    ///
    /// Fails as [`next`](Self::next) does.
    pub async fn end(run: RunFolder) -> Result<Option<LogLine>, RunsError> {
        let mut follow = blocking(move || {
            let newest = run.last_line()?.map_or(0, |line| line.seq());
            Self::new(run, newest.saturating_sub(1))
        })
        .await?;
        let mut last = None;
        while let Some(line) = follow.next().await? {
            last = Some(line);
        }
        Ok(last.filter(LogLine::is_end))
    }

    /// Returns the run.
    pub fn run(&self) -> &RunFolder {
        &self.run
    }

    /// Waits for the next entry. Returns `None` after the last one. Cancel-safe.
    ///
    /// # Errors
    ///
    /// Fails if the log cannot be read, or cannot be completed after the runner was killed, and with
    /// [`RunsError::NotAnswering`] if a live runner sends no first answer.
    pub async fn next(&mut self) -> Result<Option<LogLine>, RunsError> {
        loop {
            if let Some(line) = self.read.pop_front() {
                return Ok(Some(line));
            }
            let (lines, has_ended) = self.reader.next_lines().await?;
            if !lines.is_empty() {
                self.read = lines;
                continue;
            }
            if has_ended || self.settled {
                return Ok(None);
            }
            let Some(runner) = &mut self.runner else {
                self.connect().await?;
                continue;
            };
            let reply = match self.answers_by {
                Some(limit) => timeout_at(limit, runner.reply::<Reply>()).await,
                None => Ok(runner.reply::<Reply>().await),
            };
            match reply {
                Ok(Ok(Some(Reply::Position { .. }))) => self.answers_by = None,
                // An unknown reply counts as a closed connection.
                Ok(_) => self.runner = None,
                Err(_) => {
                    // The next call has a new limit.
                    (self.runner, self.answers_by) = (None, None);
                    return Err(self.run.not_answering());
                }
            }
        }
    }

    /// Subscribes to the runner's position. Without a runner, completes the log.
    async fn connect(&mut self) -> Result<(), RunsError> {
        let limit = *(self.answers_by).get_or_insert_with(|| Instant::now() + ANSWER_LIMIT);
        if let Some(mut runner) = Connection::open(&self.run).await?
            && runner.send(&Command::Follow).await.is_ok()
        {
            self.runner = Some(runner);
            return Ok(());
        }
        match settle(&self.run).await? {
            RunState::Ended => self.settled = true,
            RunState::Live if Instant::now() >= limit => {
                self.answers_by = None;
                return Err(self.run.not_answering());
            }
            RunState::Live => sleep(PAUSE).await,
        }
        Ok(())
    }
}
