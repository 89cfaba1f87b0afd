//! Bundles of what runs leave.

use std::ffi::OsStr;
use std::path::Path;

use crate::git;

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
