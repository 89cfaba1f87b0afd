//! Result of a run in memory, and the parts that are kept beside its log.

use teamster_api::{
    ARTIFACTS, AppliedChanges, DiffFile, DiffLine, DiffLineKind, DiffQuery, DiffStatus,
    DiscardedChanges, FileList, Hunk, KeptSpec, KeptTexts, PATCH, ProblemCode, RunFile,
    ServiceError, Spec, WorkspaceDiff, Worktree, check_title, either,
};
use teamster_core::sync::lock;
use teamster_core::{WorkspaceKind, WorkspaceResult};

use super::play::MemoryRun;

/// The commit at which every run begins.
const BASE: &str = "0000000000000000000000000000000000000000";

impl MemoryRun {
    /// Returns the result of the workspace; `None` if the run has none of its own.
    pub(super) fn left(&self) -> Option<WorkspaceResult> {
        let worktree = either!(&self.spec, spec => &spec.worktree);
        if !Worktree::is_requested(worktree.as_ref()) {
            return None;
        }
        let count = lock(&self.data).files.len() as u64;
        let mut left = WorkspaceResult::new(WorkspaceKind::Worktree, BASE);
        left.head = Some(BASE.to_owned());
        left.commits = Some(0);
        (left.files_changed, left.insertions) = (Some(count), Some(count));
        left.deletions = Some(0);
        left.dirty = Some(count > 0);
        Some(left)
    }

    pub(super) fn diff(&self, query: &DiffQuery) -> Result<WorkspaceDiff, ServiceError> {
        self.check_left()?;
        let mut diff = WorkspaceDiff::new(BASE, BASE);
        for (path, text) in &lock(&self.data).files {
            if !query.paths.is_empty() && !query.paths.contains(path) {
                continue;
            }
            let mut file = DiffFile::new(DiffStatus::Added, path);
            file.new_mode = Some("100644".to_owned());
            (file.insertions, file.deletions) = (Some(1), Some(0));
            if !query.stat {
                let mut hunk = Hunk::new((0, 0), (1, 1));
                hunk.lines.push(DiffLine::new(DiffLineKind::Added, text));
                file.hunks.push(hunk);
            }
            diff.files.push(file);
        }
        diff.files_changed = diff.files.len() as u64;
        diff.insertions = diff.files_changed;
        Ok(diff)
    }

    pub(super) fn files(&self) -> Result<FileList, ServiceError> {
        self.check_ended()?;
        let data = lock(&self.data);
        let mut files = Vec::new();
        if !data.files.is_empty() && !data.is_discarded {
            files.push(RunFile::new(PATCH, None));
        }
        if self.collects() {
            files.extend(data.files.iter().map(|(path, text)| {
                RunFile::new(format!("{ARTIFACTS}{path}"), Some(text.len() as u64 + 1))
            }));
        }
        Ok(FileList::new(files))
    }

    /// Returns the content of a file.
    pub(super) fn file(&self, name: &str) -> Result<Vec<u8>, ServiceError> {
        self.check_ended()?;
        if name == PATCH && self.left().is_some() {
            self.check_left()?;
        }
        let data = lock(&self.data);
        let content = match name.strip_prefix(ARTIFACTS) {
            Some(path) if self.collects() => data.files.get(path).map(|text| format!("{text}\n")),
            None if name == PATCH && !data.files.is_empty() => {
                let patches = data.files.iter().map(|(path, text)| {
                    format!(
                        "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 \
                         @@\n+{text}\n"
                    )
                });
                Some(patches.collect())
            }
            _ => None,
        };
        content.map(String::into_bytes).ok_or_else(|| {
            let message = format!("run {} has no file \"{name}\"", self.info.run_id);
            ServiceError::new(ProblemCode::FileNotFound, message)
        })
    }

    /// Applies the changes to a working tree that only has what was applied.
    pub(super) fn apply(&self) -> Result<AppliedChanges, ServiceError> {
        self.check_ended()?;
        self.check_left()?;
        let mut data = lock(&self.data);
        let count = data.files.len() as u64;
        if data.is_applied && count > 0 {
            let message = "the files exist already, so nothing was changed";
            return Err(ServiceError::new(ProblemCode::ChangesConflict, message));
        }
        data.is_applied = true;
        Ok(AppliedChanges::new("/memory", count))
    }

    pub(super) fn discard(&self) -> Result<DiscardedChanges, ServiceError> {
        self.check_ended()?;
        self.check_left()?;
        lock(&self.data).is_discarded = true;
        Ok(DiscardedChanges::new(Some("teamster/memory".to_owned())))
    }

    /// Gives the run another title, or the first one again.
    pub(super) fn rename(&self, title: Option<&str>) -> Result<(), ServiceError> {
        lock(&self.data).title = title.map(check_title).transpose()?;
        self.notify();
        Ok(())
    }

    /// Returns what a runner would keep of the spec.
    pub(super) fn kept(&self) -> KeptSpec {
        KeptSpec::new(self.spec.clone(), KeptTexts::All)
    }

    pub(super) fn prompt(&self) -> Option<String> {
        self.kept().prompt().map(str::to_owned)
    }

    /// Checks that the run had a workspace of its own, whose changes are still there.
    fn check_left(&self) -> Result<(), ServiceError> {
        let id = &self.info.run_id;
        let message = if self.left().is_none() {
            format!("run {id} has no workspace of its own")
        } else if lock(&self.data).is_discarded {
            format!("the changes of run {id} were discarded")
        } else {
            return Ok(());
        };
        Err(ServiceError::new(ProblemCode::NoWorkspace, message))
    }

    /// Returns whether files are collected: all that were written.
    fn collects(&self) -> bool {
        matches!(&self.spec, Spec::Run(spec) if !spec.artifacts.is_empty())
    }

    fn check_ended(&self) -> Result<(), ServiceError> {
        if self.has_ended() {
            return Ok(());
        }
        let message = format!("run {} has not ended", self.info.run_id);
        Err(ServiceError::new(ProblemCode::RunLive, message))
    }
}
