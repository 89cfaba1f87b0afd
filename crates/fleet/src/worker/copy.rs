//! The copy of a run's log into the fleet.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_nats::Subscriber;
use async_nats::jetstream::Message;
use futures_core::stream::BoxStream;
use teamster_api::{Command, LogLine, ProblemCode, RunLogEntry, ServiceError};
use teamster_core::sync::lock;
use teamster_core::{AgentError, AgentEvent, Done, LogEntry};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::bring;
use super::carry::refused_result;
use super::folder::{Brought, Folders};
use super::home::keep_session;
use super::outside::Outside;
use super::{RETRY, Shared};
use crate::follow::WATCH_EVERY;
use crate::frame::Frame;
use crate::names::RunKey;
use crate::protocol::{Copier, CopyEffect, Outcome, State, Tag};
use crate::records::{PAUSE, next};

/// Time for which entries are gathered into one frame while the log is read.
const GATHER: Duration = Duration::from_millis(100);
/// The same while nothing reads it.
const GATHER_UNREAD: Duration = Duration::from_millis(500);
/// Size at which a frame is sent, in bytes of its entries.
const FRAME_BYTES: usize = 512 * 1024;
/// Interval in which the record is read: a person may have wanted a stop that did not reach this machine.
const LOOK_EVERY: Duration = Duration::from_secs(10);

type Lines = BoxStream<'static, Result<LogLine, ServiceError>>;

pub(super) struct Copy<'a> {
    shared: &'a Arc<Shared>,
    key: &'a RunKey,
    nonce: Tag,
    /// The run names no account.
    own_logins: bool,
    /// The id of the run on this machine.
    local: String,
    outside: Outside,
    /// The number of the next entry of the source, and the source.
    source: Option<(u64, Lines)>,
    looked: Instant,
    /// The reports of readers of the copy, and the time of the last one.
    readers: Option<Subscriber>,
    read_at: Option<Instant>,
    is_stopped: bool,
    /// The record is final, although the log is not complete.
    is_given_up: bool,
    /// The session of which it is known where it is.
    session: Option<String>,
}

impl<'a> Copy<'a> {
    /// Creates the copy for this claim. `own_logins`: a limit in the log is one of the agent's own login.
    pub(super) fn new(
        shared: &'a Arc<Shared>,
        key: &'a RunKey,
        nonce: Tag,
        own_logins: bool,
    ) -> Self {
        Self {
            shared,
            key,
            nonce,
            own_logins,
            local: key.local(),
            outside: Outside::of(key),
            source: None,
            looked: Instant::now(),
            readers: None,
            read_at: None,
            is_stopped: false,
            is_given_up: false,
            session: None,
        }
    }

    /// Copies the log to its end. `refused` is the reason why no run was started: then the log has it alone.
    pub(super) async fn copy(mut self, has_begun: bool, refused: Option<&AgentError>) -> Outcome {
        let mut copier = Copier::new(self.nonce);
        if refused.is_none() {
            // Without them, entries arrive a little later.
            let subscribed = self.shared.fleet.client.subscribe(self.key.watch()).await;
            self.readers = subscribed.ok();
            self.stop_if_wanted().await;
        }
        loop {
            copier = match copier.next() {
                CopyEffect::Stop => return Outcome::Fenced,
                CopyEffect::ReadTail => match self.shared.fleet.tail_of(self.key).await {
                    Ok(tail) => {
                        if tail.is_none() {
                            // The end of a run that was given up may have aged out, too.
                            self.stop_if_wanted().await;
                        }
                        if self.is_given_up {
                            return Outcome::Fenced;
                        }
                        copier.tail(tail)
                    }
                    Err(_) => {
                        sleep(RETRY).await;
                        copier
                    }
                },
                CopyEffect::Publish { expected, from } => {
                    let copied = from.saturating_sub(1);
                    lock(&self.shared.copied).insert(self.key.clone(), copied);
                    let lines = match refused {
                        Some(error) if from == 1 => {
                            Ok(refusal(error, &self.key.run, self.shared.fleet.now().await))
                        }
                        Some(_) => Ok(Vec::new()),
                        None => self.gather(from).await,
                    };
                    match lines {
                        Ok(_) if self.is_given_up => return Outcome::Fenced,
                        Ok(lines) if lines.is_empty() => return Outcome::Finished,
                        Ok(mut lines) => {
                            if refused.is_none()
                                && let Some(end) = lines.pop_if(|line| line.is_end())
                            {
                                let brought = self.brought().await;
                                lines.push(with_missing(end, &brought, &self.key.run));
                            }
                            self.send(copier, expected, &lines).await
                        }
                        Err(error) if error.code == Some(ProblemCode::RunNotFound) => {
                            return if has_begun {
                                Outcome::Vanished
                            } else {
                                Outcome::NeverBegun
                            };
                        }
                        Err(error) => {
                            let text = format!("its log cannot be read: {error}");
                            self.shared.notice(self.key, text);
                            self.source = None;
                            sleep(RETRY).await;
                            copier
                        }
                    }
                }
            }
        }
    }

    /// Publishes a frame, part by part.
    async fn send(&mut self, mut copier: Copier, mut expected: u64, lines: &[LogLine]) -> Copier {
        let state = self.state(lines).await;
        for frame in Frame::of(self.nonce, lines, &state) {
            let message = frame.message(expected);
            let Some(number) = self.shared.fleet.publish(&self.key.log(), message).await else {
                sleep(PAUSE).await;
                return copier.not_published();
            };
            expected = number;
            copier = copier.published(number, frame.tail(number).next);
        }
        copier
    }

    /// Writes down once that the agent's session is on this machine, before the end of the run is known.
    async fn keep_session(&mut self, provider: &str, session: &str, directory: Option<&PathBuf>) {
        if self.session.as_deref() == Some(session) {
            return;
        }
        while let Err(error) =
            keep_session(self.shared, self.key, provider, session, directory).await
        {
            if !error.retryable {
                let text = format!("its session is not found later: {error}");
                self.shared.notice(self.key, text);
                break;
            }
            sleep(RETRY).await;
        }
        self.session = Some(session.to_owned());
    }

    /// Returns what changes when more than the log of the run has changed.
    async fn state(&mut self, lines: &[LogLine]) -> String {
        let Ok(view) = self.shared.runs.outline(&self.local).await else {
            return String::new();
        };
        let summary = &view.summary;
        let live = (summary.live.as_ref()).and_then(|live| live.provider.as_deref());
        let provider = live.unwrap_or(&summary.info.provider);
        if self.own_logins {
            self.shared.note_limits(provider, lines).await;
        }
        if let Some(session) = &summary.session_id {
            self.keep_session(provider, session, summary.info.directory.as_ref())
                .await;
        }
        let requests = view.summary.requests.iter();
        let requests: Vec<_> = requests.map(|request| &*request.request_id).collect();
        let session = view.summary.session_id.is_some();
        format!("{:?} {session} {}", view.summary.state, requests.join(" "))
    }

    /// Returns the time for which entries are gathered.
    async fn pace(&mut self) -> Duration {
        if let Some(readers) = &mut self.readers {
            while let Ok(Some(_)) = timeout(Duration::ZERO, next(readers)).await {
                self.read_at = Some(Instant::now());
            }
        }
        let is_read = |at: Instant| at.elapsed() < 3 * WATCH_EVERY;
        if self.read_at.is_some_and(is_read) {
            GATHER
        } else {
            GATHER_UNREAD
        }
    }

    /// Waits for entries from this number on. Returns none after the last one.
    async fn gather(&mut self, from: u64) -> Result<Vec<LogLine>, ServiceError> {
        if self.source.as_ref().is_none_or(|(next, _)| *next != from) {
            let lines = self.shared.runs.follow(&self.local, from - 1);
            self.source = Some((from, lines));
        }
        let mut lines: Vec<LogLine> = Vec::new();
        let mut bytes = 0;
        let mut until = None;
        loop {
            let deadline = until.unwrap_or(self.looked + LOOK_EVERY);
            let Some((number, source)) = &mut self.source else {
                return Ok(lines);
            };
            match timeout_at(deadline, next(source)).await {
                Ok(Some(line)) => {
                    let line = self.outside.line(line?);
                    bytes += line.json().len();
                    *number = line.seq() + 1;
                    let is_end = line.is_end();
                    lines.push(line);
                    if bytes >= FRAME_BYTES || is_end {
                        return Ok(lines);
                    }
                    if until.is_none() {
                        until = Some(Instant::now() + self.pace().await);
                    }
                }
                Ok(None) => return Ok(lines),
                Err(_) if until.is_some() => return Ok(lines),
                Err(_) => {
                    self.stop_if_wanted().await;
                    if self.is_given_up {
                        return Ok(lines);
                    }
                }
            }
        }
    }

    /// Reads the record. Stops the run if that has the wish.
    async fn stop_if_wanted(&mut self) {
        self.looked = Instant::now();
        let Ok(found) = self.shared.fleet.read(self.key).await else {
            return;
        };
        let Some(record) = found.record else { return };
        // One that was ended by its log has that, so nothing is left to copy.
        self.is_given_up = record.state.is_final() && record.state != State::Ended;
        if let Some(stop) = record.stop.filter(|_| !self.is_stopped) {
            let cancel = Command::Cancel { kill: stop.kill };
            let stopped = self.shared.runs.send(&self.local, cancel).await;
            self.is_stopped = stopped.is_ok();
        }
    }

    /// Brings the results to the fleet, unless that was done for this claim: what its log tells of them at its end, a reader
    /// may have seen, and what was left out is not brought later.
    async fn brought(&mut self) -> Brought {
        let known = self.shared.until_read(self.key, Folders::brought).await;
        if let Ok(Some(brought)) = known {
            return brought;
        }
        let missing = self.bring_results().await;
        let brought = Brought { missing };
        let kept = brought.clone();
        self.shared
            .until_done(self.key, move |shared, key| {
                shared.folders.keep_brought(key, &kept)
            })
            .await;
        brought
    }

    /// Brings the results to the fleet. What cannot be read here, or has no room there, is left out: returns why, and where
    /// it is. For the fleet's server it waits.
    async fn bring_results(&mut self) -> Option<String> {
        while let Err(error) = bring::results(self.shared, self.key, self.nonce).await {
            let text = format!("its files cannot be brought to the fleet: {error}");
            self.shared.notice(self.key, text);
            if error.code.is_some() {
                let worker = &self.shared.config.name;
                let error = self.outside.error(error).message;
                return Some(format!(
                    "not all changes and files of the run are in the fleet, but on worker {worker}: {error}"
                ));
            }
            sleep(RETRY).await;
        }
        None
    }
}

/// Adds to the end of a log what is missing in the fleet, if the run has a workspace.
fn with_missing(end: LogLine, brought: &Brought, run: &str) -> LogLine {
    if brought.missing.is_none() {
        return end;
    }
    let Ok(RunLogEntry::Agent(mut entry)) = end.entry() else {
        return end;
    };
    let AgentEvent::Done(done) = &mut entry.event else {
        return end;
    };
    if done.result.workspace.is_none() {
        return end;
    }
    brought.add_to(done.result.workspace.as_mut());
    LogLine::of_entry(RunLogEntry::Agent(entry), run)
}

/// The log of a run that was refused.
fn refusal(error: &AgentError, run: &str, now: u64) -> Vec<LogLine> {
    let done = AgentEvent::Done(Done::new(Box::new(refused_result(error))));
    let mut entry = LogEntry::new(1, now, done);
    entry.run_id = Some(run.into());
    vec![LogLine::of_entry(RunLogEntry::Agent(entry), run)]
}

/// Leaves a hint to other workers.
pub(super) async fn release(message: &Message) {
    use async_nats::jetstream::AckKind;

    let later = AckKind::Nak(Some(super::pull::ELSEWHERE));
    let _ = message.ack_with(later).await;
}
