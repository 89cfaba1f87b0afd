//! The worktree of a repository that is fetched.

use std::path::Path;

use teamster_workspace::{Mirror, NewWorktree, Origin, Wait, Worktree, WorktreeKey, folder_name};

use super::common;
use crate::state;

/// Fetches the commit into the mirror of its repository, and makes a worktree at it.
pub(super) fn make(
    root: &Path,
    id: &str,
    url: &str,
    commit: &str,
    mut wanted: NewWorktree,
    key: Option<&WorktreeKey>,
    wait: Wait<'_>,
) -> anyhow::Result<Worktree> {
    // Locked until the worktree's branch keeps the commit.
    let mirror = Mirror::of_url(&state::mirrors()?, url, commit, id, wait)?;
    mirror.path().clone_into(&mut wanted.directory);
    wanted.from = Some(commit.to_owned());
    wanted.name = folder_name(url);
    wanted.origin = Origin::Fetched;
    wanted.silence = Some(wait.silence);
    common::create(root, id, &wanted, key)
}
