//! `teamster runs fetch`.

use std::io::Write;

use anyhow::{Context, anyhow, bail};
use teamster_api::BUNDLE;
use teamster_workspace::{Incoming, TakeError, Target};

use super::args::RunsFetchArgs;
use super::found::Found;
use crate::remote::Machine;
use crate::{exit_code, words};

pub(super) async fn main(args: &RunsFetchArgs, machine: &Machine) -> anyhow::Result<u8> {
    let target = Target::find(&std::env::current_dir()?)?;
    let found = Found::find(machine, &args.run).await?;
    if !fetch(&target, &found, args.branch.as_deref()).await? {
        let shown = words::one_line(found.run.id());
        bail!("run {shown} has changed nothing, so there is nothing to fetch");
    }
    Ok(exit_code::SUCCESS)
}

/// Makes a branch of the run's commits, and prints what it has. Returns `false` if the run has changed nothing.
pub(super) async fn fetch(
    target: &Target,
    found: &Found,
    branch: Option<&str>,
) -> anyhow::Result<bool> {
    let id = found.run.id();
    let shown = words::one_line(id);
    // A live run is an error of this.
    let bundle = found.read(BUNDLE).await?;
    found.check_workspace()?;
    let workspace = found.workspace.as_ref();
    let (workspace, head) = workspace
        .and_then(|it| Some((it, it.head.as_deref()?)))
        .with_context(|| format!("run {shown} has no commits that are known"))?;
    if bundle.is_none() {
        return Ok(false);
    }
    let branch = match (branch, &workspace.branch) {
        (Some(branch), _) => branch.to_owned(),
        (None, Some(branch)) => branch.clone(),
        (None, None) => format!("teamster/{id}"),
    };
    let mut incoming = Incoming::new(id, &workspace.base, head);
    incoming.wip = workspace.wip.as_deref();
    let bundle = bundle.as_ref().map(tempfile::NamedTempFile::path);
    let name = words::one_line(&branch);
    let wip = match target.fetch(bundle, incoming, &branch) {
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
    // A closed stderr is ignored.
    let _ = writeln!(anstream::stderr(), "{said}");
    Ok(true)
}

fn explained(error: TakeError, id: &str, branch: &str) -> anyhow::Error {
    match error {
        TakeError::MissingBase(base) => anyhow!(
            "the repository here does not have the commit {base}, at which run {id} began: fetch it first, or run this in \
             another clone"
        ),
        TakeError::OtherCommits(_) => anyhow!(
            "the branch {branch} has commits that run {id} does not have, so it was not changed: name another branch, as \
             in `teamster runs fetch {id} NAME`"
        ),
        TakeError::CheckedOut(_, folder) => anyhow!(
            "the branch {branch} is checked out in {}, so it was not changed: name another branch, as in `teamster runs \
             fetch {id} NAME`, and merge it there",
            words::printable(&folder.to_string_lossy())
        ),
        TakeError::Git(error) => error.context("the commits were not fetched"),
        error => anyhow!("the commits were not fetched: {error:?}"),
    }
}
