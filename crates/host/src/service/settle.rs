//! What becomes of the changes that a run of this machine has left: they are applied to the files of its repository, or
//! discarded.

use std::fs;
use std::path::Path;

use teamster_api::{AppliedChanges, BUNDLE, DiscardedChanges, PATCH, ProblemCode, ServiceError};
use teamster_core::text::printable;
use teamster_workspace::{DiscardError, Kept, TakeError, Target, remove_forgotten};

use super::LocalRuns;
use super::limited::unlimited;
use super::results::Results;
use crate::state::{self, WORKTREES};
use crate::text::error_chain;

/// Number of files that an error names.
const NAMED: usize = 20;

impl LocalRuns {
    pub(super) async fn apply_changes(&self, id: &str) -> Result<AppliedChanges, ServiceError> {
        let results = self.ended_results(id).await?;
        unlimited(move || results.apply()).await
    }

    pub(super) async fn discard_changes(&self, id: &str) -> Result<DiscardedChanges, ServiceError> {
        let results = self.ended_results(id).await?;
        unlimited(move || results.discard()).await
    }
}

impl Results {
    fn apply(self) -> Result<AppliedChanges, ServiceError> {
        let id = &self.id;
        let kept = self.changed()?;
        let cannot = |error: anyhow::Error, next: &str| {
            let reason = error_chain(&error);
            let message = format!(
                "the changes of run {id} cannot be applied on this machine: {reason}{next}"
            );
            ServiceError::new(ProblemCode::Unsupported, message)
        };
        kept.repository().map_err(|error| cannot(error, ""))?;
        let merge = "; fetch its commits as a branch, and merge that";
        let mut target = Target::find(kept.made_from()).map_err(|error| cannot(error, merge))?;
        // Of an apply that was killed here: its caller does not see the files.
        let warnings = target.take_warnings();
        let mut applied = self.apply_to(&target).map_err(|mut error| {
            for warning in &warnings {
                error.message = format!("{}; {warning}", error.message);
            }
            error
        })?;
        applied.warnings = warnings;
        Ok(applied)
    }

    fn apply_to(&self, target: &Target) -> Result<AppliedChanges, ServiceError> {
        let id = &self.id;
        let directory = printable(&target.top().to_string_lossy());
        let patch = match self.path_of(PATCH) {
            Err(error) if error.code == Some(ProblemCode::FileNotFound) => {
                return Ok(AppliedChanges::new(directory, 0));
            }
            patch => patch?,
        };
        match target.apply(&patch) {
            Ok(files) => Ok(AppliedChanges::new(directory, files as u64)),
            Err(TakeError::Conflicts(files)) => {
                let more = files.len().saturating_sub(NAMED);
                let mut named: Vec<_> = files.into_iter().take(NAMED).collect();
                if more > 0 {
                    named.push(format!("and {more} more"));
                }
                let message = format!(
                    "the changes of run {id} do not fit the files in {directory}, so nothing was changed: {}",
                    named.join("; ")
                );
                Err(ServiceError::new(ProblemCode::ChangesConflict, message))
            }
            Err(TakeError::Busy(problem)) => {
                Err(ServiceError::new(ProblemCode::ChangesConflict, problem))
            }
            Err(TakeError::Git(error)) => {
                let message = format!("{}, so nothing was changed", error_chain(&error));
                Err(ServiceError::new(ProblemCode::Internal, message))
            }
            Err(TakeError::NotRestored(error)) => Err(ServiceError::new(
                ProblemCode::Internal,
                error_chain(&error),
            )),
            Err(error) => Err(ServiceError::new(
                ProblemCode::Internal,
                format!("{error:?}"),
            )),
        }
    }

    fn discard(mut self) -> Result<DiscardedChanges, ServiceError> {
        self.changed()?;
        let (id, Some(kept), Some(root)) = (&self.id, self.kept.take(), state::file(WORKTREES))
        else {
            return Err(self.nothing_left());
        };
        let mirrors = state::mirrors().ok();
        // Made again if nothing is discarded.
        for name in [PATCH, BUNDLE] {
            let _ = fs::remove_file(self.folder.join(name));
        }
        let discarded = kept.discard(&root, mirrors.as_deref());
        let branch = discarded.map_err(|error| refused(id, error))?;
        if let Some(mirrors) = mirrors {
            remove_forgotten(&root, &mirrors);
        }
        Ok(DiscardedChanges::new(branch))
    }

    /// Returns the workspace, of which something must be left.
    fn changed(&self) -> Result<&Kept, ServiceError> {
        self.kept.as_ref().ok_or_else(|| self.nothing_left())
    }
}

fn refused(id: &str, error: DiscardError) -> ServiceError {
    let path = |path: &Path| printable(&path.to_string_lossy());
    let (code, reason) = match error {
        DiscardError::InUse => (
            ProblemCode::ChangesConflict,
            "a run works in its worktree: wait for its end".to_owned(),
        ),
        DiscardError::OfKey => (
            ProblemCode::ChangesConflict,
            "its worktree belongs to a session key, whose next run continues there".to_owned(),
        ),
        DiscardError::Changed(at) => (
            ProblemCode::ChangesConflict,
            format!(
                "its worktree has other changes than those that the run has kept: look at {}, and remove it with `git worktree \
                 remove`",
                path(&at)
            ),
        ),
        DiscardError::Directory(at) => (
            ProblemCode::Unsupported,
            format!(
                "its workspace is a directory without a repository: remove {}",
                path(&at)
            ),
        ),
        DiscardError::Git(error) => (ProblemCode::Internal, error_chain(&error)),
        error => (ProblemCode::Internal, format!("{error:?}")),
    };
    let message = format!("the changes of run {id} were not discarded: {reason}");
    ServiceError::new(code, message)
}
