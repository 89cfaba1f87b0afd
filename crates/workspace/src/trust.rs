//! Contents of `.teamster.toml` that the owner of this machine trusts.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};

use crate::Project;
use crate::worktree::{make, path};

/// A content of `.teamster.toml` that is trusted, in one repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TrustedProject {
    /// The folder that all worktrees of the repository share.
    #[serde(with = "path")]
    pub repository: PathBuf,
    /// SHA-256 of the file, in hexadecimal digits.
    pub digest: String,
    /// Its commands when it was trusted.
    #[serde(default)]
    pub setup: Vec<String>,
}

/// The list of what is trusted: a file that only the user can read.
#[derive(Debug, Clone)]
pub struct Trust {
    file: PathBuf,
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    #[serde(default)]
    trusted: Vec<TrustedProject>,
}

impl Trust {
    /// Creates the list in this file, which need not exist.
    pub fn at(file: impl Into<PathBuf>) -> Self {
        Self { file: file.into() }
    }

    /// Returns whether the commands are trusted in their repository. No commands are.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn trusts(&self, project: &Project) -> anyhow::Result<bool> {
        let is_it = |it: &TrustedProject| {
            it.repository == project.repository && it.digest == project.digest
        };
        Ok(project.setup.is_empty() || self.list()?.iter().any(is_it))
    }

    /// Returns what is trusted.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read.
    pub fn list(&self) -> anyhow::Result<Vec<TrustedProject>> {
        let cannot = || format!("cannot read {}", self.file.display());
        match fs::read(&self.file) {
            Ok(text) => {
                let content: Content = serde_json::from_slice(&text).with_context(cannot)?;
                Ok(content.trusted)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error).with_context(cannot),
        }
    }

    /// Trusts this content from now on.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn add(&self, project: &Project) -> anyhow::Result<()> {
        self.change(|trusted| {
            trusted.retain(|it| it.repository != project.repository || it.digest != project.digest);
            trusted.push(TrustedProject {
                repository: project.repository.clone(),
                digest: project.digest.clone(),
                setup: project.setup.clone(),
            });
        })
    }

    /// Trusts no content in this repository any more. Returns how many it were.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be written.
    pub fn remove(&self, repository: &Path) -> anyhow::Result<usize> {
        let mut removed = 0;
        self.change(|trusted| {
            let before = trusted.len();
            trusted.retain(|it| it.repository != repository);
            removed = before - trusted.len();
        })?;
        Ok(removed)
    }

    fn change(&self, change: impl FnOnce(&mut Vec<TrustedProject>)) -> anyhow::Result<()> {
        let cannot = || format!("cannot write {}", self.file.display());
        if let Some(folder) = self.file.parent() {
            make(folder).with_context(cannot)?;
        }
        let private = |path: &Path| {
            let mut options = OpenOptions::new();
            options.write(true).create(true).mode(0o600).open(path)
        };
        let lock = private(&self.file.with_extension("lock")).with_context(cannot)?;
        lock.lock().with_context(cannot)?;
        let mut trusted = self.list()?;
        change(&mut trusted);
        let draft = self.file.with_extension("new");
        let mut file = private(&draft).with_context(cannot)?;
        file.set_len(0).with_context(cannot)?;
        file.write_all(&serde_json::to_vec(&Content { trusted })?)
            .and_then(|()| file.sync_data())
            .and_then(|()| fs::rename(&draft, &self.file))
            .with_context(cannot)
    }
}
