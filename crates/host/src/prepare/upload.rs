//! The worktree of an uploaded repository.

use std::path::Path;

use anyhow::anyhow;
use teamster_api::{BUNDLE, INCLUDED, ProblemCode};
use teamster_workspace::{Mirror, NewWorktree, Origin, Wait, Worktree};

use crate::state;

/// Takes the upload of the run with this id into the mirror of its repository, and makes a worktree at its commit.
pub(super) fn make(
    root: &Path,
    id: &str,
    (repository, commit): (&str, &str),
    included: Option<&str>,
    mut wanted: NewWorktree,
    wait: Wait<'_>,
) -> anyhow::Result<Worktree> {
    let uploads = state::uploads()?;
    let bundle = match uploads.complete(id, BUNDLE) {
        Ok(bundle) => Some(bundle),
        // The mirror may have all commits.
        Err(error) if error.code == Some(ProblemCode::FileNotFound) => None,
        Err(error) => return Err(anyhow!(error.message)),
    };
    let files = match included {
        Some(_) => {
            let files = uploads.complete(id, INCLUDED);
            Some(files.map_err(|error| anyhow!(error.message))?)
        }
        None => None,
    };
    let mirror = Mirror::open(&state::mirrors()?, repository, wait)?;
    mirror.receive(id, commit, bundle.as_deref())?;
    let files = files.map(|files| mirror.receive_large_files(&files));
    let files = files.transpose();
    mirror.path().clone_into(&mut wanted.directory);
    wanted.from = Some(commit.to_owned());
    wanted.origin = Origin::Uploaded;
    let made = files.and_then(|files| {
        let mut made = Worktree::create(root, id, &wanted)?;
        if let (Some(files), Some(included)) = (files, included) {
            made.include(files.bundle(), included)?;
        }
        Ok(made)
    });
    match made {
        Ok(made) => {
            uploads.remove(id);
            Ok(made)
        }
        Err(error) => {
            // The commit stays for a repetition: the upload is still there.
            let _ = mirror.forget(id);
            Err(error)
        }
    }
}
