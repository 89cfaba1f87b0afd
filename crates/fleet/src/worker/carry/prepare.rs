//! What is checked and fetched before a run is claimed, and its description as this machine carries it out.

use std::path::Path;
use std::sync::atomic::Ordering;

use async_nats::jetstream::AckKind;
use teamster_api::{ProblemCode, ServiceError, Spec, Workspace, either};
use teamster_core::text::one_line;
use teamster_core::time::millis;
use tokio::time::{sleep, timeout};

use super::{Carry, RETRY};
use crate::homes::{ConversationKey, local_key};
use crate::large::IN_FILE;
use crate::names::{HOST_SUBJECTS, RunKey};
use crate::protocol::{Outcome, Tag};
use crate::record::Record;
use crate::runs::check_spec;
use crate::worker::folder::{Decided, is_damaged};
use crate::worker::hold::has_own_logins;
use crate::worker::home::{self, Found, Held, Location};
use crate::worker::location::check_case;
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

    pub(super) fn submitted(&self) -> Result<Spec, ServiceError> {
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

    /// Returns the spec as it was submitted, if it may be carried out here. Its owner can change the record until the
    /// start, so it is checked before the claim and before the start.
    fn permitted(&self) -> Result<Spec, ServiceError> {
        let wanted = self.submitted()?;
        check_spec(&wanted)?;
        if self.shared.ignores_case {
            check_case(&self.key)?;
        }
        let allows = |directory: &Path| self.shared.allows(directory);
        self.shared.config.policy.check(&wanted, allows)?;
        Ok(wanted)
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
        let prepared = self.patiently(Box::pin(self.preflight())).await;
        match prepared {
            Ok(found) => match found.location {
                // Uploads can take minutes: it would be interrupted before its agent starts.
                Location::Here if self.shared.drains.load(Ordering::Relaxed) => Outcome::NotReady,
                Location::Here => {
                    (self.held, self.directory) = (found.held, found.directory);
                    Outcome::Ready(Tag::random())
                }
                Location::Elsewhere(worker) => {
                    let text = format!("is left to {worker}");
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
        // A hint from before it was left to another, or one that a user has written: that of the record is elsewhere.
        let queue = record.queue(&self.key);
        if let Some(hint) = self.hint.as_ref().filter(|hint| *hint.subject != *queue) {
            if record.machine.is_none() && hint.subject.starts_with(HOST_SUBJECTS) {
                let message = "its record does not name this worker, or was read too early";
                return Err(ServiceError::unreachable(message));
            }
            return Ok(Found::elsewhere(waits_for(record)));
        }
        let wanted = self.permitted()?;
        if has_own_logins(&wanted) {
            self.shared.check_hold(wanted.provider()).await?;
        }
        let found = home::find(&self.shared, &self.key, &wanted).await?;
        if let Location::Elsewhere(worker) = &found.location {
            self.forward(worker).await?;
            return Ok(Found::elsewhere(format!("worker {worker}")));
        }
        let decided = Decided {
            directory: found.directory.clone(),
            max_time_ms: None,
        };
        let spec = self.localized(wanted.clone(), &decided)?;
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
            Location::Here => Ok(found),
            Location::Elsewhere(worker) => {
                self.forward(&worker).await?;
                Ok(Found::elsewhere(format!("worker {worker}")))
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

    /// Returns the spec as this machine carries it out, if it still may be.
    pub(super) fn permitted_here(&self) -> Result<Spec, ServiceError> {
        self.localized_here(self.permitted()?)
    }

    /// Returns the spec as this machine carries it out.
    pub(super) fn spec(&self) -> Result<Spec, ServiceError> {
        self.localized_here(self.submitted()?)
    }

    /// Returns a spec with what was decided at the claim, which the record's owner cannot change.
    fn localized_here(&self, spec: Spec) -> Result<Spec, ServiceError> {
        let decided = self.shared.folders.decided(&self.key);
        let decided = decided.map_err(|error| {
            if is_damaged(&error) {
                let message = format!(
                    "what the worker has written down about the run is damaged, so it was not started: {error}"
                );
                return ServiceError::new(ProblemCode::FileDamaged, message);
            }
            unwritable(&error)
        })?;
        self.localized(spec, &decided)
    }

    /// Returns what this machine decides about a run that it claims now.
    pub(super) fn decide(&self) -> Decided {
        Decided {
            directory: self.directory.clone(),
            max_time_ms: self.shared.config.policy.max_time.map(millis),
        }
    }

    /// Returns a spec as this machine carries it out.
    fn localized(&self, mut spec: Spec, decided: &Decided) -> Result<Spec, ServiceError> {
        let record = self.record.as_ref().map(|(_, record)| record);
        if let Some(trace) = record.and_then(|record| record.trace.as_ref()) {
            let trusted = either!(&mut spec, spec => &mut spec.trusted);
            trusted.env.extend(trace.variables());
        }
        let secrets = Secrets::read(self.shared.config.policy.secrets.as_deref())?;
        secrets.give(&self.key.owner, &mut spec)?;
        let mut spec = spec.for_one_machine();
        if let Some(limit) = decided.max_time_ms {
            let wanted = either!(&mut spec, spec => &mut spec.max_time_ms);
            // 0 is no limit.
            *wanted = Some(
                wanted
                    .filter(|wanted| *wanted > 0)
                    .map_or(limit, |wanted| wanted.min(limit)),
            );
        }
        place(&self.key.owner, &mut spec, decided.directory.as_deref());
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

/// Returns for what a record waits, in words.
fn waits_for(record: &Record) -> String {
    match &record.machine {
        Some(worker) => format!("worker {}", one_line(worker)),
        None => format!("the pool {}", one_line(&record.pool)),
    }
}

/// Gives a spec the names that its conversation and its session have here, and this directory if it names none.
fn place(owner: &str, spec: &mut Spec, directory: Option<&Path>) {
    if let Some(key) = either!(spec, spec => &mut spec.session_key) {
        *key = local_key(owner, key);
    }
    let mut continues = false;
    if let Spec::Session(spec) = spec {
        if let Some(first) = &mut spec.continues {
            // One of the same owner alone: an id with an owner in it is none then.
            *first = RunKey::new(owner, first).local();
        }
        continues = matches!(spec.workspace, Some(Workspace::Continued {}));
    }
    if let Some(directory) = directory.filter(|_| !continues) {
        either!(spec, spec => spec.working_directory = Some(directory.to_owned()));
        return;
    }
    // Not the directory in which the worker was started.
    either!(spec, spec => {
        if spec.location().is_none() {
            spec.workspace = Some(Workspace::Empty {});
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_person_reads_for_what_a_run_waits_and_no_subject() {
        let spec = Spec::from(teamster_api::RunSpec::new("claude", "hello"));
        let mut record = Record::new("gpu", &spec);
        assert_eq!(waits_for(&record), "the pool gpu");
        record.machine = Some("w3".to_owned());
        assert_eq!(waits_for(&record), "worker w3");
    }

    #[test]
    fn a_session_continues_one_of_its_owner_alone() {
        let placed = |continues: &str, directory: Option<&str>| {
            let workspace = json!({ "kind": "continued" });
            let spec =
                json!({ "provider": "claude", "continues": continues, "workspace": workspace });
            let mut spec = Spec::Session(serde_json::from_value(spec).unwrap());
            place("bob", &mut spec, directory.map(Path::new));
            let Spec::Session(spec) = spec else {
                panic!("a session")
            };
            (spec.continues.unwrap(), spec.working_directory)
        };
        // Before, it was where the session of the user `ann` works, and that of this machine's user.
        let (first, _) = placed("ann@s1", None);
        assert_eq!(first, "bob@ann@s1");
        // The directory of the resumed session excludes the workspace.
        assert_eq!(placed("s1", Some("/w")), ("bob@s1".to_owned(), None));
    }
}
