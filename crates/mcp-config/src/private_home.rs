//! A private home for a CLI that reads its configuration only there: one changed file, and links to the user's files.

mod carry_back;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use teamster_core::provider::{ConfigEdit, PrivateHome};
use teamster_core::{AgentError, ErrorCode, ErrorKind};

use crate::edit::{Clash, merge};
use carry_back::{Stamp, carry_back};

/// The private home of one run. The caller that created its folder removes it.
#[derive(Debug)]
pub struct Home {
    spec: PrivateHome,
    /// The path to pass to the CLI.
    path: PathBuf,
    /// The user's folder and the private one.
    users: PathBuf,
    private: PathBuf,
    /// Name of the changed file in both folders.
    changed: OsString,
    /// Links in the private folder, with the state of their targets.
    links: BTreeMap<OsString, Option<Stamp>>,
}

impl Home {
    /// Creates the home in `location`, a folder that only this user can enter. Blocks.
    ///
    /// # Errors
    ///
    /// Fails if the configuration cannot be read or changed, or if the home cannot be created.
    pub fn make(
        location: &Path,
        edit: &ConfigEdit,
        home: &PrivateHome,
    ) -> Result<Self, AgentError> {
        let mut spec = home.clone();
        spec.home = std::path::absolute(&home.home)
            .map_err(|error| cannot("make a private home like", &home.home, &error))?;
        let users = spec.home.join(home.folder);
        let file = &edit.table.file;
        let changed = match file.file_name() {
            Some(name) if std::path::absolute(file).is_ok_and(|f| f == users.join(name)) => name,
            _ => {
                return Err(AgentError::new(
                    ErrorCode::ConfigLease,
                    ErrorKind::Internal,
                    format!("{} is not in {}", file.display(), users.display()),
                ));
            }
        };
        let content = merged(edit)?;
        let path = location.join("home");
        let mut made = Self {
            private: path.join(home.folder),
            spec,
            path,
            users,
            changed: changed.to_owned(),
            links: BTreeMap::new(),
        };
        made.fill(content.as_bytes())
            .map_err(|error| cannot("make a private home in", location, &error))?;
        Ok(made)
    }

    fn fill(&mut self, content: &[u8]) -> io::Result<()> {
        DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&self.private)?;
        for name in names_in(&self.spec.home)? {
            if name != self.spec.folder {
                symlink(self.spec.home.join(&name), self.path.join(name))?;
            }
        }
        create_private(&self.private.join(&self.changed))?.write_all(content)?;
        for name in self.spec.folders {
            fs::create_dir_all(self.users.join(name))?;
        }
        let mut names: BTreeSet<OsString> = names_in(&self.users)?.into_iter().collect();
        if self.users.is_dir() {
            names.extend(self.spec.files.iter().map(OsString::from));
        }
        names.remove(&self.changed);
        for name in names {
            let users = self.users.join(&name);
            symlink(&users, self.private.join(&name))?;
            self.links.insert(name, Stamp::of(&users));
        }
        Ok(())
    }

    /// Returns the path that the CLI must use as the user's home.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Copies to the user's folder the files that the CLI has created beside the links or in place of them. Blocks.
    /// Returns a sentence for the user about each lost file.
    pub fn copy_new_files_to_user(&self) -> Vec<String> {
        let mut lost = Vec::new();
        for name in names_in(&self.private).unwrap_or_default() {
            if name == self.changed || self.is_litter(&name) {
                continue;
            }
            let (private, users) = (self.private.join(&name), self.users.join(&name));
            let known = self.links.get(&name);
            let is_our_link =
                known.is_some() && fs::read_link(&private).is_ok_and(|leads_to| leads_to == users);
            if is_our_link {
                continue;
            }
            let before = lost.len();
            carry_back(&private, &users, known.and_then(Option::as_ref), &mut lost);
            if self.spec.caches.iter().any(|cache| name == *cache) {
                lost.truncate(before);
            }
        }
        lost
    }

    fn is_litter(&self, name: &OsStr) -> bool {
        let name = name.to_string_lossy();
        name.split('.')
            .skip(1)
            .any(|extension| self.spec.litter.contains(&extension))
    }
}

/// Returns the names in a folder. A missing folder has none.
fn names_in(folder: &Path) -> io::Result<Vec<OsString>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        entries => entries?
            .map(|entry| entry.map(|entry| entry.file_name()))
            .collect(),
    }
}

/// Returns the content of the user's file with the entries of the run.
fn merged(edit: &ConfigEdit) -> Result<String, AgentError> {
    let table = &edit.table;
    let text = match fs::read_to_string(&table.file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => edit.new_file.to_owned(),
        result => result.map_err(|error| cannot("read", &table.file, &error))?,
    };
    merge(
        &text,
        table.format,
        table.key,
        &edit.entries,
        Clash::Replace,
    )
    .map_err(|error| {
        AgentError::new(
            ErrorCode::ConfigLease,
            ErrorKind::Mcp,
            format!(
                "{}: the MCP servers of this run cannot be added to a private copy of it: {error}",
                table.file.display()
            ),
        )
    })
}

/// Creates a file that only this user can read.
fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> AgentError {
    let message = format!("cannot {what} {}: {error}", path.display());
    AgentError::new(ErrorCode::ConfigLease, ErrorKind::Mcp, message)
}
