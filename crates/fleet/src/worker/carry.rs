//! One run on this machine: what its [`Carrier`] decides is done here.

mod prepare;
mod start;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::Message;
use teamster_api::{ProblemCode, RunSummary, Spec, ViewState};
use teamster_core::AgentError;
use teamster_host::state;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};

use super::control::Control;
use super::copy::{Copy, release};
use super::folder::{Brought, Folders, is_damaged};
use super::hold::has_own_logins;
use super::home::Held;
use super::outside::Outside;
use super::pull::forget;
use super::{RETRY, Shared};
use crate::follow::End;
use crate::frame::Frame;
use crate::names::RunKey;
use crate::protocol::{Carrier, Change, Effect, Folder, Next, Outcome, Seen, Step, Tag, Verdict};
use crate::record::Record;
use crate::records::{PAUSE, next};
pub(super) use start::refused_result;

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
    /// The conversation of the run.
    held: Option<Held>,
    /// Where the agent works, if the run does not name it.
    directory: Option<PathBuf>,
    /// The description, if its record does not have it.
    large: Option<Spec>,
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
            held: None,
            directory: None,
            large: None,
        }
    }

    /// Does what the carrier decides until nothing is left, and gives the slot back.
    pub(super) async fn carry_out(mut self, _slot: Option<OwnedSemaphorePermit>) -> Verdict {
        let verdict = loop {
            match self.carrier.next() {
                Next::Over(verdict) => break verdict,
                Next::Do(effect) => {
                    (self.shared.before_effect)(effect);
                    let outcome = Box::pin(self.perform(effect)).await;
                    self.carrier = self.carrier.on(outcome);
                }
            }
        };
        match verdict {
            Verdict::Ended => self.shared.notice(&self.key, "has ended"),
            Verdict::Nothing | Verdict::NotReady | Verdict::Elsewhere | Verdict::NotQueued => {}
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
            Effect::Preflight => self.prepare().await,
            Effect::Change(change) => self.change(change).await,
            Effect::Acknowledge => {
                if let Some(hint) = &self.hint {
                    forget(&self.shared, hint).await;
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
                let decided = self.decide();
                let make = move || shared.folders.make(&key, nonce, revision, decided);
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
                match self.shared.fleet.tail_of(&self.key).await {
                    Ok(tail) => return Outcome::Witness(tail.map(|tail| tail.nonce)),
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
                let own_logins = self.submitted().is_ok_and(|spec| has_own_logins(&spec));
                Copy::new(&self.shared, &self.key, folder.nonce, own_logins)
                    .copy(folder.has_begun, refusal.as_ref())
                    .await
            }
        }
    }

    /// Does something on the disk until it succeeds.
    async fn until_done(
        &self,
        work: impl Fn(&Shared, &RunKey) -> std::io::Result<()> + Send + Sync + 'static,
    ) -> Outcome {
        self.shared.until_done(&self.key, work).await;
        Outcome::Done
    }

    async fn look(&self) -> Option<Folder> {
        loop {
            let mut found = self.shared.folders.look(&self.key);
            // With the claim that the record has, it can be ended, and is not started.
            if found.as_ref().is_err_and(is_damaged)
                && let Some(nonce) = self.own_claim().await
            {
                found = self.shared.folders.of_claim(&self.key, nonce, 0).map(Some);
            }
            let mut folder = match found {
                Ok(folder) => folder?,
                Err(error) => {
                    self.shared.unreadable(&self.key, &error).await;
                    continue;
                }
            };
            if folder.has_begun || folder.is_refused {
                return Some(folder);
            }
            match self.shared.folders.may_have_spawned(&self.key) {
                // A run with this id is an earlier one, whose record was deleted.
                Ok(false) => return Some(folder),
                Ok(true) => {}
                Err(error) => {
                    self.shared.unreadable(&self.key, &error).await;
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
                Err(error) => {
                    self.shared.unreadable(&self.key, &error).await;
                    continue;
                }
            }
            return Some(folder);
        }
    }

    /// Returns the number of the record's claim if it is one of this worker with this state directory.
    async fn own_claim(&self) -> Option<Tag> {
        let record = self.shared.fleet.read(&self.key).await.ok()?.record?;
        let claim = record.claim?;
        (record.worker_machine == Some(self.shared.machine_tag)).then_some(claim.nonce)
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
                            self.hold(&record);
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
                    self.fetch_description().await;
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

    async fn change(&mut self, change: Change) -> Outcome {
        let Some((_, record)) = self.record.clone() else {
            sleep(RETRY).await;
            return Outcome::NotStored;
        };
        let mut new = record.changed(change, self.shared.fleet.now().await);
        match change.step {
            Step::Claim => {
                new.worker = Some(self.shared.config.name.clone());
                new.worker_machine = Some(self.shared.machine_tag);
                let decided = self.decide();
                (new.directory, new.max_time_ms) = (decided.directory, decided.max_time_ms);
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
                let _ = self
                    .shared
                    .fleet
                    .hint(&new.queue(&self.key), &self.key)
                    .await;
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
            record.ended(summary, Some(Box::new(result)), None);
        } else if let Ok(view) = self.shared.runs.show(&self.key.local()).await {
            let outside = Outside::of(&self.key).with_clock(&self.shared.fleet).await;
            let mut view = outside.view(view);
            let summary = Arc::make_mut(&mut view.summary);
            // As in the end of the log.
            let brought = self.brought().await;
            brought.add_to(summary.workspace.as_mut());
            if let Some(result) = &mut view.result {
                brought.add_to(result.workspace.as_mut());
            }
            let end = self.last_entry(summary.seq).await;
            record.ended(Arc::unwrap_or_clone(view.summary), view.result, end);
        }
    }

    /// Returns what the entry of the machine's log with this number has if it is the last one: when the copy has aged out, the
    /// record has the end alone.
    async fn last_entry(&self, seq: u64) -> Option<End> {
        let local = self.key.local();
        let mut lines = self.shared.runs.follow(&local, seq.saturating_sub(1));
        End::of(&next(&mut lines).await?.ok()?)
    }

    /// Returns what was brought to the fleet before the end of the log.
    async fn brought(&self) -> Brought {
        let brought = self.shared.until_read(&self.key, Folders::brought);
        brought.await.ok().flatten().unwrap_or_default()
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
