//! What is checked and fetched before a run is claimed, and its description as this machine carries it out.

use std::path::PathBuf;

use async_nats::jetstream::AckKind;
use teamster_api::{ProblemCode, ServiceError, Spec, Workspace};
use tokio::time::{sleep, timeout};

use super::{Carry, RETRY};
use crate::homes::{ConversationKey, local_key};
use crate::large::IN_FILE;
use crate::protocol::{Outcome, Tag};
use crate::record::Record;
use crate::runs::check_spec;
use crate::worker::home::{self, Found, Held, Place};
use crate::worker::pull::PROGRESS;
use crate::worker::secrets::Secrets;
use crate::worker::{bring, refusals, unwritable};

impl Carry {
    /// Reads a description that is too large for its record. One that is gone keeps the run from being started.
    pub(super) async fn fetch_description(&mut self) {
        while let Some((_, record)) = &self.record
            && record.spec_file.is_some()
            && self.large.is_none()
            && !record.state.is_final()
        {
            match self.shared.fleet.spec_of(&self.key, record).await {
                Ok(spec) => self.large = Some(spec),
                Err(error) if error.code.is_some() => return,
                Err(_) => sleep(RETRY).await,
            }
        }
    }

    /// Returns the spec as it was submitted.
    fn submitted(&self) -> Result<Spec, ServiceError> {
        let record = self.record.as_ref().map(|(_, record)| record);
        let record = record.ok_or_else(|| crate::records::not_found(&self.key.run))?;
        if record.version > IN_FILE {
            let message = "the run is of a newer version of teamster";
            return Err(ServiceError::new(ProblemCode::Unsupported, message));
        }
        if record.spec_file.is_none() {
            return record.spec();
        }
        self.large.clone().ok_or_else(|| {
            let message = "the run's description is not in the fleet any more";
            ServiceError::new(ProblemCode::FileNotFound, message)
        })
    }

    /// Holds the conversation of a run that is under way here since before this process.
    pub(super) fn hold(&mut self, record: &Record) {
        if self.held.is_none()
            && self.hint.is_none()
            && let Ok(spec) = record.spec()
            && let Some((key, _)) = ConversationKey::of(&self.key.owner, &spec)
        {
            self.held = Held::new(&self.shared, &key);
        }
    }

    /// Makes sure that the run can be carried out here.
    pub(super) async fn prepare(&mut self) -> Outcome {
        // Of an attempt before.
        (self.held, self.directory) = (None, None);
        let prepared = self.patiently(self.preflight()).await;
        match prepared {
            Ok(found) => match found.place {
                Place::Here => {
                    (self.held, self.directory) = (found.held, found.directory);
                    Outcome::Ready(Tag::random())
                }
                Place::Elsewhere(worker) => {
                    let text = format!("is left to worker {worker}");
                    self.shared.notice(&self.key, text);
                    Outcome::Elsewhere
                }
            },
            Err(error) => {
                refusals::report(&self.shared, &self.key, &error).await;
                Outcome::NotReady
            }
        }
    }

    /// Checks that the run can be carried out here, and fetches what it takes along.
    async fn preflight(&self) -> Result<Found, ServiceError> {
        let Some((_, record)) = &self.record else {
            return Err(crate::records::not_found(&self.key.run));
        };
        let own = &self.shared.config.name;
        // A hint from before it was left to another.
        if let Some(other) = record.machine.as_ref().filter(|other| *other != own) {
            return Ok(Found::elsewhere(other.clone()));
        }
        let wanted = self.submitted()?;
        check_spec(&wanted)?;
        self.shared.check_hold(wanted.provider()).await?;
        let policy = &self.shared.config.policy;
        policy.check(&wanted, |directory| self.shared.allows(directory))?;
        let found = home::find(&self.shared, &self.key, &wanted).await?;
        if let Place::Elsewhere(worker) = &found.place {
            self.forward(worker).await?;
            return Ok(found);
        }
        let spec = self.localized(wanted.clone(), found.directory.as_ref())?;
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
            .map_err(|error| unwritable(&error))?;
        // It may be much.
        bring::uploads(&self.shared, &self.key).await?;
        // Last: from here on, the conversation is on this machine.
        match home::take(&self.shared, &self.key, &wanted).await? {
            Place::Here => Ok(found),
            Place::Elsewhere(worker) => {
                self.forward(&worker).await?;
                Ok(Found::elsewhere(worker))
            }
        }
    }

    /// Leaves the run to the worker of its conversation.
    async fn forward(&self, worker: &str) -> Result<(), ServiceError> {
        if let Some((revision, record)) = &self.record
            && home::forward(&self.shared, &self.key, (*revision, record), worker).await?
        {
            return Ok(());
        }
        let message = "the run cannot be left to the worker of its conversation";
        Err(ServiceError::unreachable(message))
    }

    /// Returns the spec as this machine carries it out.
    pub(super) fn spec(&self) -> Result<Spec, ServiceError> {
        let record = self.record.as_ref().map(|(_, record)| record);
        let directory = record.and_then(|record| record.directory.as_ref());
        self.localized(self.submitted()?, directory)
    }

    /// Returns a spec as this machine carries it out, in this directory if it names none.
    fn localized(&self, mut spec: Spec, directory: Option<&PathBuf>) -> Result<Spec, ServiceError> {
        let secrets = Secrets::read(self.shared.config.policy.secrets.as_deref())?;
        secrets.give(&self.key.owner, &mut spec)?;
        let mut spec = spec.for_one_machine();
        let record = self.record.as_ref().map(|(_, record)| record);
        if let Some(limit) = record.and_then(|record| record.max_time_ms) {
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
        let key = match &mut spec {
            Spec::Run(spec) => &mut spec.session_key,
            Spec::Session(spec) => &mut spec.session_key,
        };
        if let Some(key) = key {
            *key = local_key(&self.key.owner, key);
        }
        if let Some(directory) = directory {
            let own = match &mut spec {
                Spec::Run(spec) => &mut spec.working_directory,
                Spec::Session(spec) => &mut spec.working_directory,
            };
            *own = Some(directory.clone());
            return Ok(spec);
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
}
