//! Repositories by their URL: the commit that a name means, and a mirror that has it.
//!
//! git of this machine asks with the credentials that it has, and never asks a person.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use anyhow::{anyhow, bail};
use sha2::{Digest, Sha256};
use teamster_api::check_url;
use teamster_core::text::one_line;

use crate::git::{self, git};
use crate::mirror::{Mirror, Wait, is_commit_id, run_ref};
use crate::network::{self, FOREGROUND, Hung, SILENCE};

/// Returns whether a text is the URL of a repository, as git takes it, rather than a path.
pub fn is_url(text: &str) -> bool {
    if text.contains("://") {
        return true;
    }
    // As in `git@example.com:a/b.git`; a slash before the colon makes it a path.
    text.split_once(':')
        .is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}

/// Returns the commit that a name means in the repository with this URL: the default branch without one.
///
/// # Errors
///
/// Fails if the URL has credentials, if the repository cannot be read or does not answer, or has no branch or tag of this
/// name ([`UnknownCommit`]).
pub fn resolve(url: &str, name: Option<&str>) -> anyhow::Result<String> {
    check_url(url).map_err(|error| anyhow!(error.message))?;
    let name = name.unwrap_or("HEAD");
    if is_commit_id(name) {
        return Ok(name.to_owned());
    }
    // As git does: a tag before a branch, and its commit before the tag's own object.
    let candidates = [
        format!("refs/tags/{name}^{{}}"),
        format!("refs/tags/{name}"),
        format!("refs/heads/{name}"),
        name.to_owned(),
    ];
    let mut command = network::command(Path::new("."));
    command.args(["ls-remote", "--", url]).args(&candidates);
    let listed = network::run(&mut command, SILENCE)?;
    let found = candidates.iter().find_map(|candidate| {
        listed.lines().find_map(|line| {
            let (commit, reference) = line.split_once('\t')?;
            (reference == candidate).then(|| commit.to_owned())
        })
    });
    found.filter(|it| is_commit_id(it)).ok_or_else(|| match name {
        "HEAD" => anyhow!("the repository has no commit yet"),
        _ => UnknownCommit::error(format!(
            "the repository has no branch or tag \"{}\": name one, or a commit by its full hash",
            one_line(name)
        )),
    })
}

/// A commit that was named and that the repository does not have: not the repository is wrong, but the name.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnknownCommit(String);

impl UnknownCommit {
    /// Creates the error, for those who tell it from others by its type.
    pub(crate) fn error(message: String) -> anyhow::Error {
        Self(message).into()
    }
}

impl Mirror {
    /// Opens the mirror of the repository with this URL in `root` for the run with this id, and fetches the commit unless it
    /// has it.
    ///
    /// # Errors
    ///
    /// Fails if the URL has credentials, if the repository cannot be read or does not answer, or does not have the commit.
    pub fn of_url(
        root: &Path,
        url: &str,
        commit: &str,
        id: &str,
        wait: Wait<'_>,
    ) -> anyhow::Result<Self> {
        check_url(url).map_err(|error| anyhow!(error.message))?;
        if !is_commit_id(commit) {
            bail!("\"{}\" is not the id of a commit", one_line(commit));
        }
        let mut name = format!("{:x}", Sha256::digest(format!("url {url}")));
        name.truncate(commit.len());
        let mirror = Self::open(root, &name, wait)?;
        let path = mirror.path();
        // By which submodules are found, and what an agent pushes to.
        git(path, ["config", "remote.origin.url", url])?;
        let branches = "+refs/heads/*:refs/remotes/origin/*";
        git(path, ["config", "remote.origin.fetch", branches])?;
        // Before what the repository's own `.lfsconfig` names: it does not choose who gets logins.
        let large_files = large_files(url);
        git(path, ["config", "lfs.url", &large_files])?;
        git(path, ["config", "lfs.pushurl", &large_files])?;
        let kept = run_ref(id);
        if !has(path, commit) {
            let fetch = |what: &[&str]| {
                let mut command = network::command(path);
                command.args(FOREGROUND);
                command.args(["fetch", "--progress", "--no-write-fetch-head", "--no-tags"]);
                command.args(["--", url]).args(what);
                network::run(&mut command, wait.silence)
            };
            // Only its history. Not every server lets a commit be fetched that is not that of a ref.
            match fetch(&[&format!("+{commit}:{kept}")]) {
                Err(error) if error.is::<Hung>() => return Err(error),
                Err(_) => {
                    let fetched = fetch(&[branches, "+refs/tags/*:refs/tags/*"]);
                    fetched.map_err(git::with_version)?;
                }
                Ok(_) => {}
            }
            if !has(path, commit) {
                let message = format!("the repository does not have the commit {commit}");
                return Err(UnknownCommit::error(message));
            }
        }
        mirror.note_use()?;
        git(path, ["update-ref", &kept, commit])?;
        Ok(mirror)
    }
}

/// Returns the URL of the large files of a repository, as git-lfs derives it
/// (<https://github.com/git-lfs/git-lfs/blob/main/docs/api/server-discovery.md>).
fn large_files(url: &str) -> String {
    let is_http = ["https://", "http://"].iter().any(|it| url.starts_with(it));
    if !is_http {
        return url.to_owned();
    }
    let url = url.trim_end_matches('/');
    let end = if url.strip_suffix(".git").is_some() {
        ""
    } else {
        ".git"
    };
    format!("{url}{end}/info/lfs")
}

/// Returns whether a mirror has the commit with its history.
fn has(mirror: &Path, commit: &str) -> bool {
    git(
        mirror,
        ["rev-list", "--max-count=1", commit, "--not", "--all"],
    )
    .is_ok_and(|it| it.is_empty())
}

/// Checks out the submodules of a worktree of a mirror. Returns a warning if that fails, also because nothing was printed
/// for the time `silence`.
pub(crate) fn submodules(mirror: &Path, tree: &Path, silence: Duration) -> Option<String> {
    if !tree.join(".gitmodules").is_file() {
        return None;
    }
    let url = git(mirror, ["config", "remote.origin.url"]).ok()?;
    let mut command = network::command(tree);
    command.args(FOREGROUND);
    // What it names is not run before its set-up is trusted.
    git::without_side_effects(&mut command);
    // The settings of the mirror do not hold for them, and what they name gets no logins.
    command.env("GIT_LFS_SKIP_SMUDGE", "1");
    command.args(["-c", of_this_machine(&url)]);
    command.args(["submodule", "update", "--progress", "--init", "--recursive"]);
    let error = network::run(&mut command, silence).err()?;
    Some(format!(
        "`worktree`: submodules are not checked out: {error:#}"
    ))
}

/// Returns git's setting for submodules that are repositories of this machine, in one with this URL. One of this machine may
/// name others. One of another machine may not, even if the user's settings allow it.
fn of_this_machine(url: &str) -> &'static str {
    if url.starts_with("file://") || !is_url(url) {
        "protocol.file.allow=always"
    } else {
        "protocol.file.allow=never"
    }
}

/// Returns the name of a worktree's folder for a repository.
pub fn folder_name(url: &str) -> Option<String> {
    let last = url.trim_end_matches('/').rsplit(['/', ':']).next()?;
    let name = last.strip_suffix(".git").unwrap_or(last);
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    let is_name = !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain);
    (is_name && OsStr::new(name).len() <= 200).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_repository_has_no_submodules_of_this_machine() {
        for (url, allowed) in [
            ("/a", "always"),
            ("../a", "always"),
            ("file:///a", "always"),
            ("https://example.com/a.git", "never"),
            ("git@example.com:a/b.git", "never"),
            ("ssh://example.com/a", "never"),
        ] {
            let setting = format!("protocol.file.allow={allowed}");
            assert_eq!(of_this_machine(url), setting, "{url}");
        }
    }

    #[test]
    fn a_url_is_told_from_a_path() {
        for url in [
            "https://a/b",
            "git@a:b/c.git",
            "a:b",
            "file:///a",
            "ssh://a/b",
        ] {
            assert!(is_url(url), "{url}");
        }
        for path in [".", "../a", "/a/b", "a", "./a:b", "/a:b"] {
            assert!(!is_url(path), "{path}");
        }
    }

    #[test]
    fn large_files_are_where_the_repository_is() {
        for (url, expected) in [
            ("https://a/b", "https://a/b.git/info/lfs"),
            ("https://a/b.git/", "https://a/b.git/info/lfs"),
            ("ssh://git@a/b", "ssh://git@a/b"),
            ("git@a:b.git", "git@a:b.git"),
        ] {
            assert_eq!(large_files(url), expected);
        }
    }

    #[test]
    fn the_folder_of_a_repository_has_its_name() {
        assert_eq!(folder_name("https://a/b/c.git").as_deref(), Some("c"));
        assert_eq!(folder_name("git@a:c.git/").as_deref(), Some("c"));
        assert_eq!(folder_name("https://a/.."), None);
        assert_eq!(folder_name("https://a/b;c"), None);
    }
}
