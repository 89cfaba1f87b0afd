//! `.teamster.toml`: what a repository wants of teamster.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use teamster_core::text::{one_line, printable};

use crate::git::{self, git_bytes, git_path_at};

/// The file in the root of a repository.
pub const PROJECT_FILE: &str = ".teamster.toml";
/// Largest size of the file in bytes.
const LARGEST: u64 = 64 << 10;

/// The content of a repository's `.teamster.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Project {
    /// The folder that all worktrees of the repository share.
    pub repository: PathBuf,
    /// Shell commands that set a workspace up.
    pub setup: Vec<String>,
    /// SHA-256 of the file, in hexadecimal digits.
    pub digest: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    #[serde(default)]
    setup: Commands,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Commands {
    One(String),
    Many(Vec<String>),
}

impl Default for Commands {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Project {
    /// Reads the file in the worktree that contains this directory; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails if the directory is in no worktree, and if the file is not valid.
    pub fn of_worktree(directory: &Path) -> anyhow::Result<Option<Self>> {
        let top = git_path_at(directory, ["rev-parse", "--show-toplevel"])?;
        let file = top.join(PROJECT_FILE);
        let shown = printable(&file.to_string_lossy());
        match fs::symlink_metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(about) if about.is_file() && about.len() <= LARGEST => {}
            Ok(_) => bail!("{shown} is not a file of at most 64 KiB"),
            Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
        }
        let text = fs::read(&file).with_context(|| format!("cannot read {shown}"))?;
        Self::parse(&top, &text).with_context(|| format!("{shown} is not valid"))
    }

    /// Reads the file in a commit of the repository that contains this directory; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Fails without the commit, and if the file is not valid.
    pub fn of_commit(directory: &Path, commit: &str) -> anyhow::Result<Option<Self>> {
        let shown = one_line(commit);
        let wanted = format!("{commit}^{{commit}}");
        let found = git::git(directory, ["rev-parse", "--verify", "--quiet", &wanted]);
        let Ok(found) = found else {
            bail!("the repository has no commit \"{shown}\": fetch it first");
        };
        let file = format!("{found}:{PROJECT_FILE}");
        if git::git(directory, ["cat-file", "-e", &file]).is_err() {
            return Ok(None);
        }
        let text = git_bytes(directory, ["cat-file", "blob", &file])?;
        Self::parse(directory, &text)
            .with_context(|| format!("{PROJECT_FILE} of {shown} is not valid"))
    }

    fn parse(directory: &Path, text: &[u8]) -> anyhow::Result<Option<Self>> {
        let content = std::str::from_utf8(text).context("it is not UTF-8")?;
        let Content { setup } = toml::from_str(content)?;
        let setup = match setup {
            Commands::One(command) => vec![command],
            Commands::Many(commands) => commands,
        };
        if setup
            .iter()
            .any(|it| it.trim().is_empty() || it.contains('\0'))
        {
            bail!("setup: expected shell commands that are not blank");
        }
        Ok(Some(Self {
            repository: git::common_dir(directory)?,
            setup,
            digest: format!("{:x}", Sha256::digest(text)),
        }))
    }
}
