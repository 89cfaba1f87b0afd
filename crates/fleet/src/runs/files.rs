//! The changes and files of runs.

use teamster_api::{
    AppliedChanges, BUNDLE, DiffQuery, DiscardedChanges, FileList, FileManifest, PATCH,
    ProblemCode, RunFile, ServiceError, WorkspaceDiff,
};
use tokio::time::{Instant, sleep};

use super::FleetRuns;
use crate::follow::SETTLES;
use crate::large::is_internal;
use crate::names::RunKey;
use crate::protocol::State;
use crate::record::Record;
use crate::records::PAUSE;
use crate::wire::{Answered, Question, internal};

/// Largest changes that are read, in bytes of JSON.
const LARGEST: usize = 256 << 20;

/// Name of the changes of an ended run among its files. It is none that a run's file can have.
pub(crate) const DIFF: &str = "./diff";

impl FleetRuns {
    pub(super) async fn changes_of(
        &self,
        run: &str,
        query: DiffQuery,
    ) -> Result<WorkspaceDiff, ServiceError> {
        let key = self.key(run);
        let (_, record) = self.fleet.find(&key).await?;
        if record.state == State::Started
            && let Some(Answered::Diff(diff)) =
                self.fleet.ask(&key, Question::Diff(query.clone())).await?
        {
            return Ok(*diff);
        }
        let json = match record.results() {
            Some(files) => self.fleet.get_file(&key, files, DIFF, LARGEST).await?,
            None => None,
        };
        let Some(json) = json else {
            return Err(nothing_left(run));
        };
        let diff: WorkspaceDiff =
            serde_json::from_slice(&json).map_err(|error| internal(&error))?;
        Ok(selected(diff, &query))
    }

    pub(super) async fn files_of(&self, run: &str) -> Result<FileList, ServiceError> {
        let key = self.key(run);
        let Some(files) = self.ended(&key).await?.results() else {
            return Ok(FileList::new(Vec::new()));
        };
        let files = self.fleet.manifests(&key, files).await?.into_iter();
        let files = files.map(|file| RunFile::new(file.name, Some(file.bytes)));
        Ok(FileList::new(files.collect()))
    }

    pub(super) async fn manifest_of(
        &self,
        run: &str,
        name: &str,
    ) -> Result<FileManifest, ServiceError> {
        let key = self.key(run);
        let record = self.ended(&key).await?;
        let manifest = match record.results() {
            Some(files) => {
                let file = self.fleet.file_at(&key, files, name).await?;
                file.map(|(_, manifest)| manifest)
            }
            None => None,
        };
        if manifest.is_none()
            && [PATCH, BUNDLE].contains(&name)
            && (record.summary(run).workspace).is_some_and(|left| left.has_changes())
        {
            return Err(nothing_left(run));
        }
        manifest.filter(|_| !is_internal(name)).ok_or_else(|| {
            let message = format!("run {run} has no file \"{name}\"");
            ServiceError::new(ProblemCode::FileNotFound, message)
        })
    }

    pub(super) async fn part_of(
        &self,
        run: &str,
        name: &str,
        number: u32,
    ) -> Result<Vec<u8>, ServiceError> {
        let manifest = self.manifest_of(run, name).await?;
        let key = self.key(run);
        let part = self.fleet.result_part(&key, name, number).await?;
        manifest.check_part(number, &part)?;
        Ok(part)
    }

    pub(super) async fn apply_changes(&self, run: &str) -> Result<AppliedChanges, ServiceError> {
        match self.ask_late(run, Question::Apply).await? {
            Answered::Applied(applied) => Ok(*applied),
            _ => Err(other_version(run)),
        }
    }

    pub(super) async fn discard_changes(
        &self,
        run: &str,
    ) -> Result<DiscardedChanges, ServiceError> {
        match self.ask_late(run, Question::Discard).await? {
            Answered::Discarded(discarded) => Ok(*discarded),
            _ => Err(other_version(run)),
        }
    }

    /// Asks the worker that had an ended run.
    async fn ask_late(&self, run: &str, question: Question) -> Result<Answered, ServiceError> {
        let key = self.key(run);
        let Some(worker) = self.ended(&key).await?.worker else {
            let message = format!("run {run} was not started, so it has no workspace");
            return Err(ServiceError::new(ProblemCode::NoWorkspace, message));
        };
        let answered = self.fleet.ask_late(&worker, &key, question).await?;
        answered.ok_or_else(|| {
            let message = format!(
                "worker {worker}, which has the workspace of run {run}, is not there: try again when it is back"
            );
            ServiceError::new(ProblemCode::RunnerNotResponding, message)
        })
    }

    async fn ended(&self, key: &RunKey) -> Result<Record, ServiceError> {
        let until = Instant::now() + SETTLES;
        loop {
            let (_, record) = self.fleet.find(key).await?;
            if record.state.is_final() {
                return Ok(record);
            }
            if Instant::now() > until || !self.log_has_end(key).await? {
                let message = format!("run {} has not ended", key.run);
                return Err(ServiceError::new(ProblemCode::RunLive, message));
            }
            sleep(PAUSE).await;
        }
    }

    /// Returns whether a reader of the log has seen its last entry.
    async fn log_has_end(&self, key: &RunKey) -> Result<bool, ServiceError> {
        let tail = self.fleet.tail_of(key).await?;
        Ok(tail.is_some_and(|tail| tail.is_end))
    }
}

fn nothing_left(run: &str) -> ServiceError {
    let message = format!("run {run} has no workspace of its own, or nothing is left of it");
    ServiceError::new(ProblemCode::NoWorkspace, message)
}

pub(super) fn other_version(run: &str) -> ServiceError {
    let message = format!("the worker of run {run} has another version of teamster");
    ServiceError::new(ProblemCode::Internal, message)
}

/// Returns the part of the changes that is wanted.
fn selected(mut diff: WorkspaceDiff, query: &DiffQuery) -> WorkspaceDiff {
    let is_below = |path: &str| {
        query.paths.iter().any(|wanted| {
            let wanted = wanted.trim_end_matches('/');
            path.strip_prefix(wanted)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        })
    };
    if !query.paths.is_empty() {
        diff.files.retain(|file| is_below(&file.path));
    }
    if query.stat {
        for file in &mut diff.files {
            file.hunks.clear();
        }
    }
    diff
}
