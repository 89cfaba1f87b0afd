//! Bundles of what runs leave.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use crate::git::{self, git};
use crate::large::{self, Contents, Store};
use crate::step::before_change;

/// Settings of git with which what cannot be compressed takes little time.
const FAST: [&str; 4] = ["-c", "core.bigFileThreshold=1m", "-c", "pack.compression=1"];

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

/// Writes a bundle of these refs of a repository, without what these commits have.
pub(crate) fn write<'a>(
    repository: &Path,
    to: &Path,
    refs: &[&str],
    without: impl IntoIterator<Item = &'a String>,
) -> anyhow::Result<()> {
    let mut input: String = refs.iter().flat_map(|it| [*it, "\n"]).collect();
    for commit in without {
        input.push('^');
        input += commit;
        input.push('\n');
    }
    let mut command = git::command(repository);
    git::without_side_effects(&mut command);
    if refs.contains(&large::REF) {
        command.args(FAST);
    }
    command
        // With one thread, the same objects are the same bundle: what was sent is not sent again.
        .args(["-c", "pack.threads=1"])
        .args(["bundle", "create", "--quiet"])
        .arg(to)
        .arg("--stdin");
    before_change();
    git::run_with_input(command, input.as_bytes()).map(drop)
}

/// Returns the commits that a bundle is based on, which its header has.
pub(crate) fn prerequisites(bundle: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for line in BufReader::new(File::open(bundle)?).split(b'\n') {
        let line = line?;
        // The pack follows an empty line.
        if line.is_empty() {
            break;
        }
        let commit = line
            .strip_prefix(b"-")
            .and_then(|line| line.split(|it| *it == b' ').next());
        found.extend(commit.map(|commit| String::from_utf8_lossy(commit).into_owned()));
    }
    Ok(found)
}

/// Returns the content of large files that these refs name, and `base` does not, as far as the repository has it.
pub(crate) fn large_files(
    repository: &Path,
    refs: &[&str],
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
    (refs, base): (&[&str], &String),
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
    let refs: Vec<_> = refs.iter().copied().chain([large::REF]).collect();
    write(&own, to, &refs, [base])
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
