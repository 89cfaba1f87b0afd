//! The branch of a run, in a repository of the user.

use std::io::Seek;
use std::path::Path;

use anyhow::{Context, anyhow};
use teamster_api::{BUNDLE, ProblemCode, RunHandle, ServiceError};
use teamster_core::WorkspaceResult;
use teamster_workspace::{Incoming, TakeError, Target};
use tempfile::NamedTempFile;
use tokio::task::spawn_blocking;

use crate::words;

/// Makes a branch of what a run has left, in the repository that contains this directory. Prints and returns what it has;
/// `None` if the run has changed nothing. git runs beside the tasks of the runtime, to its end even if this is dropped.
pub(crate) async fn bring_back(
    run: &RunHandle,
    directory: &Path,
) -> anyhow::Result<Option<String>> {
    let directory = directory.to_owned();
    let target = spawn_blocking(move || target(&directory)).await??;
    let workspace = run.outline().await?.summary.workspace.clone();
    let (Some(workspace), Some(bundle)) = (workspace, read(run, BUNDLE).await??) else {
        // Nothing was changed.
        return Ok(None);
    };
    let id = run.id().to_owned();
    let taken = spawn_blocking(move || take(&target, &id, &workspace, bundle.path(), None));
    taken.await?.map(Some)
}

/// Explains why the branch of a run did not come back.
pub(crate) fn not_back(error: anyhow::Error, id: &str) -> anyhow::Error {
    let teamster = crate::global::typed();
    error.context(format!(
        "the branch of the run did not come back: `{teamster} runs fetch {id}` repeats it"
    ))
}

/// Finds the worktree that contains this directory, with warnings of what was found in it.
pub(crate) fn target(directory: &Path) -> anyhow::Result<Target> {
    let mut target = Target::find(directory)?;
    crate::report::warn(&target.take_warnings());
    Ok(target)
}

/// Reads a file of a run into a temporary one, at its beginning; `None` if the run has no such file. The outer error is one
/// of this machine.
pub(crate) async fn read(
    run: &RunHandle,
    name: &str,
) -> anyhow::Result<Result<Option<NamedTempFile>, ServiceError>> {
    let mut file = NamedTempFile::new().context("cannot make a temporary file")?;
    Ok(match run.read(name, &mut file).await {
        Ok(_) => {
            file.rewind().context("cannot read a temporary file")?;
            Ok(Some(file))
        }
        Err(error) if error.code == Some(ProblemCode::FileNotFound) => Ok(None),
        Err(error) => Err(error),
    })
}

/// Makes a branch of the commits in a run's bundle. Prints and returns what it has.
pub(crate) fn take(
    target: &Target,
    id: &str,
    workspace: &WorkspaceResult,
    bundle: &Path,
    branch: Option<&str>,
) -> anyhow::Result<String> {
    let shown = words::one_line(id);
    let head =
        (workspace.head.as_deref()).with_context(|| format!("run {shown} has no known commits"))?;
    let branch = match (branch, &workspace.branch) {
        (Some(branch), _) => branch.to_owned(),
        (None, Some(branch)) => branch.clone(),
        (None, None) => format!("teamster/{id}"),
    };
    let mut incoming = Incoming::new(id, &workspace.base, head);
    incoming.wip = workspace.wip.as_deref();
    let name = words::one_line(&branch);
    let wip = match target.fetch(Some(bundle), incoming, &branch) {
        Ok(wip) => wip,
        Err(error) => return Err(explained(error, &shown, &name)),
    };
    let commits = words::plural(workspace.commits.unwrap_or_default(), "commit");
    let mut said = format!("branch {name}: {commits} of run {shown}");
    if let Some(wip) = wip {
        said = format!(
            "{said}\nwhat was not committed is in {wip}: `git cherry-pick --no-commit {wip}` on the branch takes it over"
        );
    }
    crate::report::note(&said);
    Ok(said)
}

fn explained(error: TakeError, id: &str, branch: &str) -> anyhow::Error {
    let teamster = crate::global::typed();
    match error {
        TakeError::MissingBase(base) => anyhow!(
            "the repository here does not have the commit {base}, at which run {id} began: fetch it first, or run this in \
             another clone"
        ),
        TakeError::OtherCommits(_) => anyhow!(
            "the branch {branch} has commits that run {id} does not have, so it was not changed: name another branch, as \
             in `{teamster} runs fetch {id} NAME`"
        ),
        TakeError::CheckedOut(_, folder) => anyhow!(
            "the branch {branch} is checked out in {}, so it was not changed: name another branch, as in `{teamster} runs \
             fetch {id} NAME`, and merge it there",
            words::printable(&folder.to_string_lossy())
        ),
        TakeError::Git(error) => error.context("the commits were not fetched"),
        error => anyhow!("the commits were not fetched: {error:?}"),
    }
}
