//! One run on this machine: what its [`Carrier`] decides is done here.

mod start;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::{AckKind, Message};
use teamster_api::{ProblemCode, RunService, RunSummary, ServiceError, Spec, ViewState, Workspace};
use teamster_core::AgentError;
use teamster_host::state;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, timeout};

use super::Shared;
use super::bring;
use super::control::Control;
use super::copy::{Copy, release};
use super::outside::Outside;
use super::pull::PROGRESS;
use crate::frame::Frame;
use crate::names::RunKey;
use crate::protocol::{Carrier, Change, Effect, Folder, Next, Outcome, Seen, Step, Tag, Verdict};
use crate::record::Record;
use crate::records::PAUSE;
use crate::runs::check_spec;
pub(super) use start::refused_result;

/// Pause after an error of this machine or of the server.
const RETRY: Duration = Duration::from_secs(1);
/// Time after which a record that is not found is gone, and was not only missed by a stale read.
const MISSED: Duration = Duration::from_secs(30);
/// Number of deliveries of a hint after which its record is taken for gone.
const DELIVERIES: i64 = 30;

/// A run that is carried out.
pub(super) struct Carry {
    shared: Arc<Shared>,
    key: RunKey,
    carrier: Carrier,
    hint: Option<Message>,
    /// Since when no record is found.
    missed: Option<Instant>,
    /// The newest record that was read or written, and its revision.
    record: Option<(u64, Record)>,
    control: Option<Control>,
    /// The reason why the run could not be started, until it is written down.
    refused: Option<AgentError>,
}

impl Carry {
    pub(super) fn new(
        shared: Arc<Shared>,
        key: RunKey,
        carrier: Carrier,
        hint: Option<Message>,
    ) -> Self {
        Self {
            shared,
            key,
            carrier,
            hint,
            missed: None,
            record: None,
            control: None,
            refused: None,
        }
    }

    /// Does what the carrier decides until nothing is left, and gives the slot back.
    pub(super) async fn carry_out(mut self, _slot: Option<OwnedSemaphorePermit>) -> Verdict {
        let verdict = loop {
            match self.carrier.next() {
                Next::Over(verdict) => break verdict,
                Next::Do(effect) => {
                    (self.shared.before_effect)(effect);
                    let outcome = self.perform(effect).await;
                    self.carrier = self.carrier.on(outcome);
                }
            }
        };
        match verdict {
            Verdict::Ended | Verdict::Nothing | Verdict::NotReady | Verdict::NotQueued => {}
            other => self
                .shared
                .notice(&self.key, format!("was left: {other:?}")),
        }
        if matches!(verdict, Verdict::Ended | Verdict::Lost) {
            self.clean_up().await;
        }
        self.shared.let_go(&self.key);
        verdict
    }

    async fn perform(&mut self, effect: Effect) -> Outcome {
        match effect {
            Effect::Look => Outcome::Folder(self.look().await),
            Effect::Read => self.read().await,
            Effect::Preflight if self.shared.drains.load(Ordering::Relaxed) => Outcome::NotReady,
            Effect::Preflight => match self.patiently(self.preflight()).await {
                Ok(()) => Outcome::Ready(Tag::random()),
                Err(error) => {
                    let text = format!("is not carried out here: {error}");
                    self.shared.notice(&self.key, text);
                    Outcome::NotReady
                }
            },
            Effect::Change(change) => self.change(change).await,
            Effect::Acknowledge => {
                if let Some(hint) = &self.hint {
                    let _ = hint.ack().await;
                }
                Outcome::Done
            }
            Effect::Release => {
                if let Some(hint) = &self.hint {
                    release(hint).await;
                }
                Outcome::Done
            }
            Effect::MakeFolder { nonce, revision } => {
                let (shared, key) = (self.shared.clone(), self.key.clone());
                let make = move || shared.folders.make(&key, nonce, revision);
                match tokio::task::spawn_blocking(make).await {
                    Ok(Ok(())) => Outcome::Done,
                    Ok(Err(error)) => {
                        let text = format!("its state cannot be written: {error}");
                        self.shared.notice(&self.key, text);
                        Outcome::NotStored
                    }
                    Err(_) => Outcome::NotStored,
                }
            }
            Effect::DropFolder => {
                self.control = None;
                self.until_done(|shared, key| shared.folders.remove(key))
                    .await
            }
            Effect::Witness(nonce) => {
                self.listen().await;
                let message = Frame::witness(nonce).message(0);
                let stored = self.shared.fleet.publish(&self.key.log(), message).await;
                stored.map_or(Outcome::NotStored, Outcome::Stored)
            }
            Effect::ReadWitness => loop {
                // An answer that is late, or a server that refuses everything.
                sleep(PAUSE).await;
                match self.shared.fleet.log_tail(&self.key).await {
                    Ok(message) => {
                        let frame = message
                            .and_then(|message| Frame::read(&message.headers, &message.payload));
                        return Outcome::Witness(frame.map(|frame| frame.nonce));
                    }
                    Err(_) => sleep(RETRY).await,
                }
            },
            Effect::Spawn => match self.spawn().await {
                Ok(()) => Outcome::Done,
                Err(error) => {
                    self.refused = Some(error);
                    Outcome::Refused
                }
            },
            Effect::Refuse(reason) => self.refuse(reason).await,
            Effect::Stop => {
                self.stop().await;
                Outcome::Done
            }
            Effect::Follow => {
                let Some(folder) = self.look().await else {
                    return Outcome::Vanished;
                };
                let refusal = self.refusal(folder).await;
                Copy::new(&self.shared, &self.key, folder.nonce)
                    .copy(folder.has_begun, refusal.as_ref())
                    .await
            }
        }
    }

    /// Does something on the disk until it succeeds: a full disk may have space again.
    async fn until_done(
        &self,
        work: impl Fn(&Shared, &RunKey) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Outcome {
        let work = Arc::new(work);
        loop {
            let (shared, key, work) = (self.shared.clone(), self.key.clone(), work.clone());
            let done = tokio::task::spawn_blocking(move || work(&shared, &key)).await;
            match done {
                Ok(Ok(())) => return Outcome::Done,
                Ok(Err(error)) => {
                    let text = format!("its state cannot be written: {error}");
                    self.shared.notice(&self.key, text);
                }
                Err(_) => {}
            }
            sleep(RETRY).await;
        }
    }

    async fn look(&self) -> Option<Folder> {
        loop {
            let Ok(folder) = self.shared.folders.look(&self.key) else {
                sleep(RETRY).await;
                continue;
            };
            let mut folder = folder?;
            if folder.has_begun || folder.is_refused {
                return Some(folder);
            }
            match self.shared.folders.may_have_spawned(&self.key) {
                // A run with this id is an earlier one, whose record was deleted.
                Ok(false) => return Some(folder),
                Ok(true) => {}
                Err(_) => {
                    sleep(RETRY).await;
                    continue;
                }
            }
            // The runner has accepted the run before the worker could write that down.
            let run = &self.key.local();
            let accepted = match self.spec() {
                Ok(spec) => self.shared.runs.started(run, spec).await.map(drop),
                Err(_) => self.shared.runs.outline(run).await.map(drop),
            };
            let is_another =
                |code| matches!(code, ProblemCode::RunNotFound | ProblemCode::RunExists);
            match accepted {
                Ok(()) => folder.has_begun = true,
                Err(error) if error.code.is_some_and(is_another) => {}
                Err(_) => {
                    sleep(RETRY).await;
                    continue;
                }
            }
            return Some(folder);
        }
    }

    async fn read(&mut self) -> Outcome {
        loop {
            match self.shared.fleet.read(&self.key).await {
                Ok(found) => {
                    if let Some(record) = found.record {
                        self.missed = None;
                        let revision = found.seen.revision;
                        // A stale read has older content than what is known.
                        if self
                            .record
                            .as_ref()
                            .is_none_or(|(known, _)| *known <= revision)
                        {
                            self.record = Some((revision, record));
                        }
                    } else if found.seen == Seen::NOTHING {
                        let missed = *self.missed.get_or_insert_with(Instant::now);
                        if missed.elapsed() > MISSED || self.is_old_hint() {
                            return Outcome::Record(Seen::GONE);
                        }
                        // What is read next may be newer.
                        sleep(PAUSE).await;
                    }
                    return Outcome::Record(found.seen);
                }
                Err(_) => sleep(RETRY).await,
            }
        }
    }

    /// Returns whether the hint was delivered so often that its record will not appear any more.
    fn is_old_hint(&self) -> bool {
        let hint = self.hint.as_ref().and_then(|hint| hint.info().ok());
        hint.is_some_and(|info| info.delivered > DELIVERIES)
    }

    /// Does work for which the hint must not go to another worker.
    async fn patiently<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            if let Ok(done) = timeout(PROGRESS, &mut work).await {
                return done;
            }
            if let Some(hint) = &self.hint {
                let _ = hint.ack_with(AckKind::Progress).await;
            }
        }
    }

    /// Checks that the run can be carried out here, and fetches what it takes along.
    async fn preflight(&self) -> Result<(), ServiceError> {
        let spec = self.spec()?;
        check_spec(&spec)?;
        let policy = &self.shared.config.policy;
        policy.check(&spec, |directory| self.shared.allows(directory))?;
        let is_free = self.shared.runs.outline(&self.key.local()).await;
        match is_free {
            Err(error) if error.code == Some(ProblemCode::RunNotFound) => {}
            Err(error) => return Err(error),
            Ok(_) => {
                let message = "this machine has an earlier run with this id";
                return Err(ServiceError::new(ProblemCode::RunExists, message));
            }
        }
        self.shared.runs.check(&spec).await?;
        let shared = self.shared.clone();
        let written = tokio::task::spawn_blocking(move || shared.folders.try_out()).await;
        written
            .unwrap_or_else(|error| Err(std::io::Error::other(error)))
            .map_err(|error| super::unwritable(&error))?;
        // Last: it may be much.
        bring::uploads(&self.shared, &self.key).await
    }

    /// Returns the spec as this machine carries it out.
    fn spec(&self) -> Result<Spec, ServiceError> {
        let record = self.record.as_ref().map(|(_, record)| record);
        let record = record.ok_or_else(|| crate::records::not_found(&self.key.run))?;
        if record.version > Spec::VERSION {
            let message = "the run is of a newer version of teamster";
            return Err(ServiceError::new(ProblemCode::Unsupported, message));
        }
        let mut spec = record.spec()?.for_one_machine();
        if let Some(limit) = record.max_time_ms {
            let wanted = match &mut spec {
                Spec::Run(spec) => &mut spec.max_time_ms,
                Spec::Session(spec) => &mut spec.max_time_ms,
            };
            // 0 is no limit.
            *wanted = Some(
                wanted
                    .filter(|wanted| *wanted > 0)
                    .map_or(limit, |wanted| wanted.min(limit)),
            );
        }
        // Not the directory in which the worker was started.
        match &mut spec {
            Spec::Run(spec) if spec.place().is_none() => spec.workspace = Some(Workspace::Empty {}),
            Spec::Session(spec) if spec.place().is_none() => {
                spec.workspace = Some(Workspace::Empty {});
            }
            _ => {}
        }
        Ok(spec)
    }

    async fn change(&mut self, change: Change) -> Outcome {
        let Some((_, record)) = self.record.clone() else {
            sleep(RETRY).await;
            return Outcome::NotStored;
        };
        let mut new = record.changed(change);
        match change.step {
            Step::Claim => {
                new.worker = Some(self.shared.config.name.clone());
                let limit = self.shared.config.policy.max_time;
                new.max_time_ms =
                    limit.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX));
            }
            // Before it is known that the run may be live: requests find it.
            Step::Start | Step::Resume => self.listen().await,
            Step::End => self.add_end(&mut new).await,
            _ => {}
        }
        let stored = self.shared.fleet.store(&self.key, &new, change.expected);
        if let Some(revision) = stored.await {
            if change.step == Step::HandOn {
                // Without it, a janitor finds the record without a hint.
                let _ = self.shared.fleet.hint(&new.queue(), &self.key).await;
            }
            self.record = Some((revision, new));
            return Outcome::Stored(revision);
        }
        sleep(PAUSE).await;
        Outcome::NotStored
    }

    async fn listen(&mut self) {
        while self.control.is_none() {
            match Control::listen(&self.shared, &self.key).await {
                Ok(control) => self.control = Some(control),
                Err(_) => sleep(RETRY).await,
            }
        }
    }

    /// Adds what is shown of the ended run.
    async fn add_end(&self, record: &mut Record) {
        let refusal = match self.look().await {
            Some(folder) => self.refusal(folder).await,
            None => None,
        };
        if let Some(error) = refusal {
            let result = refused_result(&error);
            let mut summary = RunSummary::new(record.info(&self.key.run), ViewState::Ended);
            (summary.seq, summary.status) = (1, Some(result.status));
            summary.error = result.failure();
            record.ended(summary, Some(Box::new(result)));
        } else if let Ok(view) = self.shared.runs.show(&self.key.local()).await {
            let mut view = Outside::of(&self.key).view(view);
            let summary = Arc::make_mut(&mut view.summary);
            // As its readers see it: also what is missing in the fleet.
            if let Some(result) = self.shared.fleet.last_done(&self.key).await {
                summary.workspace.clone_from(&result.workspace);
                view.result = Some(result);
            }
            record.ended(Arc::unwrap_or_clone(view.summary), view.result);
        }
    }

    /// Lets the log be pruned, and removes the folder: the record has the end.
    async fn clean_up(&self) {
        let (shared, key) = (self.shared.clone(), self.key.clone());
        // What is left is found when the worker is started again.
        let _ = tokio::task::spawn_blocking(move || {
            if let Ok(runs) = state::runs() {
                let _ = runs.release(&key.local());
            }
            shared.folders.remove(&key)
        })
        .await;
    }
}
