//! Bundles of what runs leave.

use std::ffi::OsStr;
use std::path::Path;

use crate::git::{self, git};
use crate::large::{self, Contents, Store};

/// Returns the name of a ref of a run, such as `refs/teamster/ID/wip`.
pub(crate) fn reference(id: &str, name: &str) -> String {
    format!("refs/teamster/{}/{name}", encoded_id(id))
}

/// Returns an id as a part of the name of a ref: characters that no ref may have are percent-encoded.
pub(crate) fn encoded_id(id: &str) -> String {
    let id = id
        .replace(':', "%3A")
        .replace('~', "%7E")
        .replace("..", "%2E%2E");
    match id.strip_suffix('.') {
        Some(start) => format!("{start}%2E"),
        None => match id.strip_suffix(".lock") {
            Some(start) => format!("{start}%2Elock"),
            None => id,
        },
    }
}

/// Writes a bundle of these refs, without what `base` has.
pub(crate) fn write(
    repository: &Path,
    to: &Path,
    refs: &[&String],
    base: &str,
) -> anyhow::Result<()> {
    let mut command = git::command(repository);
    git::without_side_effects(&mut command);
    command
        .args(["bundle", "create", "--quiet"].map(OsStr::new))
        .arg(to)
        .args(refs)
        .arg(format!("^{base}"));
    git::run(&mut command).map(drop)
}

/// Returns the content of large files that these refs name, and `base` does not, as far as the repository has it.
pub(crate) fn large_files(
    repository: &Path,
    refs: &[&String],
    base: &str,
) -> anyhow::Result<Contents> {
    let store = Store::of(repository)?;
    if !store.is_used() {
        return Ok(Contents::new());
    }
    let mut command = git::command(repository);
    command.args(["rev-list", "--objects"]).args(refs);
    let listed = git::run_bytes(command.args([&format!("^{base}"), "--"]))?;
    let listed = String::from_utf8_lossy(&listed);
    let objects = listed
        .lines()
        .map(|line| line.split(' ').next().unwrap_or(line));
    let oids = large::named_by(repository, objects)?;
    let there = oids.into_iter().filter(|oid| store.has(oid));
    Ok(there.map(|oid| (oid.clone(), store.path(&oid))).collect())
}

/// Writes a bundle as [`write`] does, with this content. `scratch` is a folder for a while.
pub(crate) fn write_with(
    repository: &Path,
    scratch: &Path,
    to: &Path,
    (refs, base): (&[&String], &str),
    content: &Contents,
) -> anyhow::Result<()> {
    // The user's repository is only read.
    let own = scratch.join("repository.git");
    large::make_beside(repository, &own)?;
    for name in refs {
        let commit = git(repository, ["rev-parse", name])?;
        git(&own, ["update-ref", name, &commit])?;
    }
    large::commit(&own, content)?;
    let refs: Vec<_> = refs
        .iter()
        .map(|it| it.as_str())
        .chain([large::REF])
        .collect();
    large::write_bundle(&own, to, &refs, &[base.to_owned()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_becomes_the_name_of_a_ref() {
        for (id, name) in [
            ("nightly-1", "refs/teamster/nightly-1/wip"),
            ("a:b..c.", "refs/teamster/a%3Ab%2E%2Ec%2E/wip"),
            ("x.lock", "refs/teamster/x%2Elock/wip"),
            ("x.2", "refs/teamster/x.2/wip"),
            ("ann@x~2", "refs/teamster/ann@x%7E2/wip"),
        ] {
            assert_eq!(reference(id, "wip"), name);
        }
    }
}
