//! The end of a run or session in its workspace: files are collected, the workspace is finished, commits are pushed.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use teamster_core::sync::lock;
use teamster_core::text::one_line;
use teamster_core::{AgentEvent, NoticeLevel, NoticeSource, WorkspaceResult};
use teamster_orchestrator::{Closed, Closing};
use teamster_workspace::{Finished, Kept, Worktree};

use crate::prepare::{Common, PreparedRun, PreparedSession};
use crate::service::result_folder;
use crate::text::error_chain;
use crate::{artifacts, state};

impl PreparedRun {
    /// Returns the work at the end of the run, once no process of the agent is left. `folder` is that of the run, if it has
    /// one.
    pub fn closing(&mut self, folder: Option<&Path>) -> Option<Closing> {
        let (artifacts, push) = (&self.spec.artifacts, &self.spec.trusted.push);
        AtEnd::of(&mut self.common, artifacts, push.clone(), folder).closing()
    }
}

impl PreparedSession {
    /// Returns the work at the end of the session, once no process of the agent is left. `folder` is that of the session, if
    /// it has one.
    pub fn closing(&mut self, folder: Option<&Path>) -> Option<Closing> {
        let (artifacts, push) = (&self.spec.artifacts, &self.spec.trusted.push);
        AtEnd::of(&mut self.common, artifacts, push.clone(), folder).closing()
    }
}

/// Work at the end of a run, once no process of the agent is left.
#[derive(Debug)]
struct AtEnd {
    id: String,
    worktree: Option<Worktree>,
    /// The folder of the run, if it has one.
    run: Option<PathBuf>,
    /// Patterns of files to collect, with the directory that they are in and the folder of the run's result.
    collect: Option<(Vec<String>, PathBuf, PathBuf)>,
    /// The remote, and the branch after a `:`.
    push: Option<String>,
}

impl AtEnd {
    fn of(
        common: &mut Common,
        artifacts: &[String],
        push: Option<String>,
        folder: Option<&Path>,
    ) -> Self {
        let result = result_folder(&common.id, folder);
        let collect = common.directory.clone().zip(result);
        let collect = collect.filter(|_| !artifacts.is_empty());
        Self {
            id: common.id.clone(),
            worktree: common.worktree.take(),
            run: folder.map(Path::to_owned),
            collect: collect.map(|(directory, result)| (artifacts.to_vec(), directory, result)),
            push,
        }
    }

    /// Returns this as the work at the end; `None` if there is nothing to do.
    fn closing(self) -> Option<Closing> {
        if self.worktree.is_none() && self.collect.is_none() {
            return None;
        }
        // It is called once.
        let work = Mutex::new(Some(self));
        Some(Arc::new(move || {
            let work = lock(&work).take();
            Box::pin(async move {
                // Git takes a while.
                let closed = tokio::task::spawn_blocking(|| work.map(Self::close)).await;
                // It fails only if the runtime ends, which drops the worktree.
                closed.ok().flatten().unwrap_or_default()
            })
        }))
    }

    fn close(self) -> Closed {
        // A folder that someone has removed stays so: nothing would list or prune what is in it.
        let has_location = self.run.as_deref().is_none_or(Path::exists);
        // Before the worktree is removed: what is collected may be ignored by git.
        if let Some((patterns, directory, folder)) = self.collect.as_ref().filter(|_| has_location)
        {
            artifacts::collect(patterns, directory, folder);
        }
        let Some(worktree) = self.worktree else {
            return Closed::default();
        };
        let Finished {
            mut result, report, ..
        } = worktree.finish();
        let mut events = vec![notice(NoticeLevel::Info, report)];
        if let Some(error) = &result.error {
            let text = format!("the workspace's result is not complete: {error}");
            events.push(notice(NoticeLevel::Warning, text));
        }
        if let Some(push) = &self.push {
            events.push(pushed(&self.id, push, &mut result));
        }
        Closed::new(Some(result), events)
    }
}

/// Pushes what a run has committed, and returns the notice of that. A failure leaves everything as it is.
fn pushed(id: &str, push: &str, result: &mut WorkspaceResult) -> AgentEvent {
    let nothing = || {
        notice(
            NoticeLevel::Info,
            "nothing is committed, so nothing was pushed",
        )
    };
    if result.commits.is_none_or(|count| count == 0) {
        return nothing();
    }
    let (remote, branch) = match push.split_once(':') {
        Some((remote, branch)) => (remote, Some(branch)),
        None => (push, None),
    };
    let kept = state::file(state::WORKTREES).map(|root| Kept::find(&root, id));
    let Some(Ok(Some(mut kept))) = kept else {
        return nothing();
    };
    let pushed = state::git_silence()
        .map_err(anyhow::Error::from)
        .and_then(|silence| kept.push(remote, branch, silence));
    match pushed {
        Ok(target) => {
            let text = format!("pushed to {}", one_line(&target));
            result.pushed = Some(target);
            notice(NoticeLevel::Info, text)
        }
        Err(error) => {
            let text = format!(
                "not pushed, the commits are kept here: {}",
                error_chain(&error)
            );
            notice(NoticeLevel::Warning, text)
        }
    }
}

fn notice(level: NoticeLevel, text: impl Into<String>) -> AgentEvent {
    AgentEvent::notice(level, NoticeSource::Runtime, text.into())
}
