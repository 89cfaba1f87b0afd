//! Where an agent works.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use teamster_core::AgentError;

use crate::{RunSpec, SessionSpec};

/// A new git worktree for a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Worktree {
    /// `true` for a worktree on a new branch that is named after the run.
    Switch(bool),
    /// A worktree on a new branch of this name.
    Branch(#[schemars(length(min = 1))] String),
}

impl Worktree {
    /// Returns whether there is to be a worktree.
    pub fn is_requested(worktree: Option<&Self>) -> bool {
        !matches!(worktree, None | Some(Self::Switch(false)))
    }
}

/// Where an agent works: the long form of `workingDirectory` and `worktree`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
#[non_exhaustive]
pub enum Workspace {
    /// A directory of the machine that runs the agent.
    Directory {
        /// An absolute path.
        #[serde(with = "crate::path::required")]
        #[schemars(with = "PathBuf", regex(pattern = "^/"))]
        path: PathBuf,
    },
    /// A new git worktree of a directory's repository.
    Worktree {
        /// The directory, an absolute path. Default: that of the server.
        #[serde(default, with = "crate::path::optional")]
        #[schemars(with = "Option<PathBuf>", regex(pattern = "^/"))]
        directory: Option<PathBuf>,
        /// The commit at which the worktree starts, as git names it. Default: `HEAD`.
        #[schemars(length(min = 1), regex(pattern = r"^[^-\s]"))]
        from: Option<String>,
        /// The name of its new branch. Default: `teamster/` and the run's id.
        #[schemars(length(min = 1))]
        branch: Option<String>,
    },
    /// A new git worktree of a repository that is fetched.
    Repository {
        /// The repository's URL, without a user's password or token in it.
        #[schemars(length(min = 1), regex(pattern = r"^[^-\s]"))]
        url: String,
        /// The commit at which the worktree starts: its full hash.
        #[schemars(regex(pattern = "^([0-9a-f]{40}|[0-9a-f]{64})$"))]
        commit: String,
        /// The agent's directory in the repository, a relative path. Default: its root.
        #[schemars(length(min = 1))]
        subdirectory: Option<String>,
    },
    /// A new git worktree of the repository that was uploaded for this run. Its file `bundle` has the commits that the
    /// machine did not have; without it, the machine has all.
    Upload {
        /// The full hash of the repository's first commit, by which the machine knows copies of it.
        #[schemars(regex(pattern = "^([0-9a-f]{40}|[0-9a-f]{64})$"))]
        repository: String,
        /// The commit at which the worktree starts: its full hash.
        #[schemars(regex(pattern = "^([0-9a-f]{40}|[0-9a-f]{64})$"))]
        commit: String,
        /// The commit on which that one has the uncommitted files, and which the submitter has: what comes back begins
        /// there. Default: the same commit.
        #[schemars(regex(pattern = "^([0-9a-f]{40}|[0-9a-f]{64})$"))]
        head: Option<String>,
        /// The full hash of a commit of files that git ignores, which are copied into the worktree. The file `included` of
        /// the run is its bundle. Default: none.
        #[schemars(regex(pattern = "^([0-9a-f]{40}|[0-9a-f]{64})$"))]
        included: Option<String>,
        /// The name of the worktree's folder. Default: the first commit.
        #[schemars(length(min = 1, max = 200), regex(pattern = "^[^/.][^/]*$"))]
        name: Option<String>,
        /// The agent's directory in the repository, a relative path. Default: its root.
        #[schemars(length(min = 1))]
        subdirectory: Option<String>,
        /// The directory that was submitted, as its machine names it. It is shown with the session and changes nothing else.
        #[schemars(length(min = 1))]
        submitted_from: Option<String>,
        /// The worktree stays at the end of the session, for those that continue it (`continued`). It goes
        /// when they are forgotten. Default: it is removed if nothing was changed.
        #[serde(default, skip_serializing_if = "crate::is_default")]
        stays: bool,
    },
    /// The worktree of the session that this one `continues`, whose upload `stays`.
    Continued {},
    /// A new directory without files.
    Empty {},
}

impl Workspace {
    fn of_fields(
        workspace: Option<&Self>,
        working_directory: Option<&PathBuf>,
        worktree: Option<&Worktree>,
    ) -> Option<Self> {
        if workspace.is_some() {
            return workspace.cloned();
        }
        let branch = match worktree {
            None | Some(Worktree::Switch(false)) => {
                let path = working_directory?.clone();
                return Some(Self::Directory { path });
            }
            Some(Worktree::Switch(true)) => None,
            Some(Worktree::Branch(branch)) => Some(branch.clone()),
        };
        Some(Self::Worktree {
            directory: working_directory.cloned(),
            from: None,
            branch,
        })
    }

    /// Returns the directory of the machine that is named, be it the agent's or that of the repository.
    pub fn path(&self) -> Option<&PathBuf> {
        match self {
            Self::Directory { path } => Some(path),
            Self::Worktree { directory, .. } => directory.as_ref(),
            _ => None,
        }
    }

    /// Sets the directory that [`path`](Self::path) returns.
    pub fn set_path(&mut self, new: PathBuf) {
        match self {
            Self::Directory { path } => *path = new,
            Self::Worktree { directory, .. } => *directory = Some(new),
            _ => {}
        }
    }

    /// Returns whether the workspace is made for the run, and removed after it unless it was changed.
    pub fn is_made(&self) -> bool {
        !matches!(self, Self::Directory { .. })
    }

    /// Returns whether each run has its own, so that no other run can continue there.
    pub(crate) fn is_of_one_run(&self) -> bool {
        matches!(
            self,
            Self::Empty {} | Self::Upload { .. } | Self::Continued {}
        )
    }

    /// Returns the directory that was submitted, as its machine names it.
    pub fn submitted_from(&self) -> Option<&str> {
        match self {
            Self::Upload { submitted_from, .. } => submitted_from.as_deref(),
            _ => None,
        }
    }

    /// Returns whether only a session can have it.
    pub(crate) fn is_of_sessions(&self) -> bool {
        matches!(self, Self::Continued {} | Self::Upload { stays: true, .. })
    }

    /// Checks what can be checked without the machine that makes the workspace. Fails with the parameter `workspace`
    /// and the field that is wrong.
    pub(crate) fn check(&self) -> Result<(), AgentError> {
        let refuse = |problem: &str| Err(AgentError::refused("workspace", problem));
        let starts_wrong = |text: &str| text.is_empty() || text.starts_with('-');
        match self {
            Self::Directory { path } if path.as_os_str().is_empty() => {
                refuse("`path`: expected a directory")
            }
            Self::Worktree { from, branch, .. } => {
                if from.as_deref().is_some_and(starts_wrong) {
                    return refuse("`from`: expected a commit, such as `origin/main`");
                }
                if branch.as_deref().is_some_and(str::is_empty) {
                    return refuse(
                        "`branch`: expected the name of a branch; omit it for a new one",
                    );
                }
                Ok(())
            }
            Self::Repository {
                url,
                commit,
                subdirectory,
            } => {
                check_url(url)?;
                check_commit("commit", commit)?;
                check_subdirectory(subdirectory.as_deref())
            }
            Self::Upload {
                repository,
                commit,
                head,
                included,
                name,
                subdirectory,
                submitted_from: _,
                stays: _,
            } => {
                check_commit("repository", repository)?;
                check_commit("commit", commit)?;
                if let Some(included) = included {
                    check_commit("included", included)?;
                }
                if let Some(head) = head {
                    check_commit("head", head)?;
                }
                let is_name = |name: &String| {
                    (1..=200).contains(&name.len())
                        && !name.starts_with('.')
                        && !name.contains(['/', '\0'])
                };
                if !name.as_ref().is_none_or(is_name) {
                    return refuse("`name`: expected the name of a folder");
                }
                check_subdirectory(subdirectory.as_deref())
            }
            _ => Ok(()),
        }
    }
}

impl RunSpec {
    /// Makes the directories that it names count from a folder, such as that of the file in which it is.
    pub fn directories_from(&mut self, folder: &Path) {
        if let Some(directory) = &mut self.working_directory {
            *directory = folder.join(&*directory);
        }
        if let Some(workspace) = &mut self.workspace
            && let Some(path) = workspace.path().map(|path| folder.join(path))
        {
            workspace.set_path(path);
        }
    }

    /// Returns where the agent works; `None` in the directory of the program that carries the spec out.
    pub fn location(&self) -> Option<Workspace> {
        Workspace::of_fields(
            self.workspace.as_ref(),
            self.working_directory.as_ref(),
            self.worktree.as_ref(),
        )
    }
}

impl SessionSpec {
    /// Returns where the agent works; `None` in the directory of the program that carries the spec out.
    pub fn location(&self) -> Option<Workspace> {
        Workspace::of_fields(
            self.workspace.as_ref(),
            self.working_directory.as_ref(),
            self.worktree.as_ref(),
        )
    }
}

/// Checks that the URL of a repository has no secret. The error does not have the URL, as it may be logged.
///
/// # Errors
///
/// Fails with the parameter `workspace`.
pub fn check_url(url: &str) -> Result<(), AgentError> {
    let refuse = |problem: &str| Err(AgentError::refused("workspace", problem));
    if url.is_empty() || url.starts_with('-') || url.contains(|it: char| it.is_control()) {
        return refuse(
            "`url`: expected the URL of a repository, such as https://example.com/a/b.git",
        );
    }
    if url.contains("::") {
        // As in `ext::sh -c …`: git would start a program.
        return refuse("`url`: a transport of git that starts a program is not accepted");
    }
    let has_credentials = || {
        refuse(
            "`url`: it has credentials: leave them out, and let git of the machine that runs the agent know them, \
             as by a credential helper or an SSH key",
        )
    };
    let Some((scheme, rest)) = url.split_once("://") else {
        // As in `git@host:path`; git takes a second colon for a part of the path.
        let host = url.split('/').next().unwrap_or_default();
        let is_password = host
            .split_once('@')
            .is_some_and(|(user, _)| user.contains(':'));
        return if is_password {
            has_credentials()
        } else {
            Ok(())
        };
    };
    let is_http = ["http", "https"]
        .iter()
        .any(|it| scheme.eq_ignore_ascii_case(it));
    // A token can also be in the query.
    if is_http && rest.contains('?') {
        return has_credentials();
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((user, _)) if is_http || user.contains(':') => has_credentials(),
        _ => Ok(()),
    }
}

fn check_commit(field: &str, commit: &str) -> Result<(), AgentError> {
    let is_hex = |it: u8| it.is_ascii_digit() || (b'a'..=b'f').contains(&it);
    if matches!(commit.len(), 40 | 64) && commit.bytes().all(is_hex) {
        return Ok(());
    }
    let problem = format!("`{field}`: expected the full hash of a commit");
    Err(AgentError::refused("workspace", problem))
}

fn check_subdirectory(subdirectory: Option<&str>) -> Result<(), AgentError> {
    use std::path::{Component, Path};

    let Some(subdirectory) = subdirectory else {
        return Ok(());
    };
    let is_inside = |part| matches!(part, Component::Normal(_));
    if subdirectory.is_empty() || !Path::new(subdirectory).components().all(is_inside) {
        return Err(AgentError::refused(
            "workspace",
            "`subdirectory`: expected a relative path inside of the repository",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(json: serde_json::Value) -> Option<String> {
        let workspace: Workspace = serde_json::from_value(json).unwrap();
        let error = workspace.check().err()?;
        assert_eq!(error.parameter(), Some("workspace"));
        Some(error.message)
    }

    const COMMIT: &str = "0123456789012345678901234567890123456789";

    #[test]
    fn every_kind_is_the_same_after_json() {
        for json in [
            json!({"kind": "directory", "path": "/a"}),
            json!({"kind": "worktree"}),
            json!({"kind": "worktree", "directory": "/a", "from": "origin/main", "branch": "b"}),
            json!({"kind": "repository", "url": "git@example.com:a/b.git", "commit": COMMIT, "subdirectory": "c"}),
            json!({"kind": "upload", "repository": COMMIT, "commit": COMMIT}),
            json!({"kind": "upload", "repository": COMMIT, "commit": COMMIT, "head": COMMIT, "name": "a b", "subdirectory": "c/d"}),
            json!({"kind": "upload", "repository": COMMIT, "commit": COMMIT, "submittedFrom": "/home/me/a", "stays": true}),
            json!({"kind": "continued"}),
            json!({"kind": "empty"}),
        ] {
            let workspace: Workspace = serde_json::from_value(json.clone()).unwrap();
            assert_eq!(serde_json::to_value(&workspace).unwrap(), json);
            assert_eq!(refused(json), None);
        }
        for json in [
            json!({"kind": "empty", "form": 1}),
            json!({"kind": "worktree", "form": "x"}),
        ] {
            let error = serde_json::from_value::<Workspace>(json).unwrap_err();
            assert!(error.to_string().contains("form"), "{error}");
        }
    }

    #[test]
    fn a_field_that_is_wrong_is_named() {
        let named = |json, name: &str| {
            let message = refused(json).unwrap();
            assert!(message.contains(name), "{message}");
        };
        named(json!({"kind": "worktree", "from": "-x"}), "`from`");
        named(json!({"kind": "worktree", "branch": ""}), "`branch`");
        named(
            json!({"kind": "repository", "url": "https://a/b", "commit": "main"}),
            "`commit`",
        );
        named(
            json!({"kind": "upload", "repository": COMMIT, "commit": COMMIT, "subdirectory": "../x"}),
            "`subdirectory`",
        );
        for name in ["", "..", "a/b", ".git"] {
            named(
                json!({"kind": "upload", "repository": COMMIT, "commit": COMMIT, "name": name}),
                "`name`",
            );
        }
    }

    #[test]
    fn a_url_with_a_secret_is_refused_and_not_repeated() {
        for url in [
            "https://user:s3cret@example.com/a.git",
            "https://s3cret@example.com/a.git",
            "HTTPS://s3cret@example.com/a.git",
            "ssh://git:s3cret@example.com/a.git",
            "https://example.com/a.git?access_token=s3cret",
            "user:s3cret@example.com:a.git",
            "ext::sh -c s3cret",
            "-s3cret",
        ] {
            let error = check_url(url).unwrap_err();
            assert!(!error.message.contains("s3cret"), "{}", error.message);
        }
        for url in [
            "https://example.com/a@b.git",
            "git@example.com:a/b.git",
            "ssh://git@example.com:22/a.git",
            "file:///a/b",
            "/a/b.git",
        ] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn the_short_form_means_the_long_one() {
        let path = PathBuf::from("/a");
        let of = |worktree: Option<Worktree>| {
            Workspace::of_fields(None, Some(&path), worktree.as_ref()).unwrap()
        };
        let directory = Workspace::Directory { path: path.clone() };
        assert_eq!(of(None), directory);
        assert_eq!(of(Some(Worktree::Switch(false))), directory);
        let branch = Workspace::Worktree {
            directory: Some(path.clone()),
            from: None,
            branch: Some("b".into()),
        };
        assert_eq!(of(Some(Worktree::Branch("b".into()))), branch);
        assert_eq!(Workspace::of_fields(None, None, None), None);
    }
}
