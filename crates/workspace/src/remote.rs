//! Repositories by their URL: the commit that a name means, and a mirror that has it.
//!
//! git of this machine asks with the credentials that it has, and never asks a person.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, anyhow, bail};
use sha2::{Digest, Sha256};
use teamster_api::check_url;
use teamster_core::text::one_line;

use crate::git::{self, git};
use crate::mirror::{FOREGROUND, Mirror, is_commit_id};

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
/// Fails if the URL has credentials, if the repository cannot be read, or has no branch or tag of this name.
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
    let mut command = asking(Path::new("."));
    command.args(["ls-remote", "--", url]).args(&candidates);
    let listed = run(&mut command)?;
    let found = candidates.iter().find_map(|candidate| {
        listed.lines().find_map(|line| {
            let (commit, reference) = line.split_once('\t')?;
            (reference == candidate).then(|| commit.to_owned())
        })
    });
    found.filter(|it| is_commit_id(it)).with_context(|| match name {
        "HEAD" => "the repository has no commit yet".to_owned(),
        _ => format!(
            "the repository has no branch or tag \"{}\": name one, or a commit by its full hash",
            one_line(name)
        ),
    })
}

impl Mirror {
    /// Opens the mirror of the repository with this URL in `root`, and fetches the commit unless it has it.
    ///
    /// # Errors
    ///
    /// Fails if the URL has credentials, if the repository cannot be read, or does not have the commit.
    pub fn of_url(root: &Path, url: &str, commit: &str) -> anyhow::Result<Self> {
        check_url(url).map_err(|error| anyhow!(error.message))?;
        if !is_commit_id(commit) {
            bail!("\"{}\" is not the id of a commit", one_line(commit));
        }
        let mut name = format!("{:x}", Sha256::digest(format!("url {url}")));
        name.truncate(commit.len());
        let mirror = Self::open(root, &name)?;
        let path = mirror.path();
        // By which submodules are found, and what an agent pushes to.
        git(path, ["config", "remote.origin.url", url])?;
        let branches = "+refs/heads/*:refs/remotes/origin/*";
        git(path, ["config", "remote.origin.fetch", branches])?;
        if has(path, commit) {
            return Ok(mirror);
        }
        let fetch = |what: &[&str]| {
            let mut command = asking(path);
            command.args(FOREGROUND);
            command.args(["fetch", "--quiet", "--no-write-fetch-head"]);
            run(command.args(["--no-tags", "--", url]).args(what))
        };
        // Only its history. Not every server lets a commit be fetched that is not that of a ref.
        let kept = format!("+{commit}:refs/teamster-mirror/commits/{commit}");
        if fetch(&[&kept]).is_err() {
            fetch(&[branches, "+refs/tags/*:refs/tags/*"])?;
        }
        if !has(path, commit) {
            bail!("the repository does not have the commit {commit}");
        }
        Ok(mirror)
    }
}

/// Returns whether a mirror has the commit with its history.
fn has(mirror: &Path, commit: &str) -> bool {
    git(
        mirror,
        ["rev-list", "--max-count=1", commit, "--not", "--all"],
    )
    .is_ok_and(|it| it.is_empty())
}

/// Checks out the submodules of a worktree of a mirror. Returns a warning if that fails.
pub(crate) fn submodules(mirror: &Path, tree: &Path) -> Option<String> {
    if !tree.join(".gitmodules").is_file() {
        return None;
    }
    let url = git(mirror, ["config", "remote.origin.url"]).ok()?;
    let mut command = asking(tree);
    command.args(FOREGROUND);
    // What it names is not run before its set-up is trusted.
    git::without_side_effects(&mut command);
    // A repository of this machine may name others; one of another machine may not.
    if url.starts_with("file://") || !is_url(&url) {
        command.args(["-c", "protocol.file.allow=always"]);
    }
    command.args(["submodule", "--quiet", "update", "--init", "--recursive"]);
    let error = run(&mut command).err()?;
    Some(format!(
        "`worktree`: submodules are not checked out: {error:#}"
    ))
}

/// Creates a git command that reaches another machine, and asks no person for anything.
fn asking(directory: &Path) -> Command {
    let mut command = git::command(directory);
    command
        // A server that sends nothing ends the command.
        .env("GIT_HTTP_LOW_SPEED_LIMIT", "1000")
        .env("GIT_HTTP_LOW_SPEED_TIME", "60")
        .env("GIT_ASKPASS", "")
        .env("SSH_ASKPASS", "false")
        .env("SSH_ASKPASS_REQUIRE", "force")
        // A certificate's password, for example.
        .args(["-c", "core.askPass="]);
    command
}

fn run(command: &mut Command) -> anyhow::Result<String> {
    git::run(command).map_err(|error| anyhow!(without_credentials(&format!("{error:#}"))))
}

/// Removes users and passwords from the URLs in a message: git may have replaced a part of a URL by its settings.
fn without_credentials(message: &str) -> String {
    let mut shown = String::new();
    let mut rest = message;
    while let Some((before, after)) = rest.split_once("://") {
        shown.push_str(before);
        shown.push_str("://");
        let end = after
            .find(|it: char| it == '/' || it.is_whitespace() || it == '\'')
            .unwrap_or(after.len());
        let host = after[..end].rfind('@').map_or(0, |at| at + 1);
        rest = &after[host..];
    }
    shown.push_str(rest);
    shown
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
    fn a_message_has_no_credentials() {
        let shown = without_credentials(
            "fatal: unable to access 'https://user:s3cret@a.example/b': no, http://x@y z",
        );
        assert_eq!(
            shown,
            "fatal: unable to access 'https://a.example/b': no, http://y z"
        );
    }

    #[test]
    fn the_folder_of_a_repository_has_its_name() {
        assert_eq!(folder_name("https://a/b/c.git").as_deref(), Some("c"));
        assert_eq!(folder_name("git@a:c.git/").as_deref(), Some("c"));
        assert_eq!(folder_name("https://a/.."), None);
        assert_eq!(folder_name("https://a/b;c"), None);
    }
}
