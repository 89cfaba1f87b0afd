//! The record of a change for undoing it, and the new text of a file.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use teamster_core::provider::ConfigFormat;

use crate::edit::{self, Clash, EditError};

/// The version of the journal that this code reads and writes.
const VERSION: u32 = 1;

/// Name and definition of a server.
pub(super) type Entry = (String, Value);

/// Data to undo the changes of a file, together with the original.
///
/// The location of the journal's folder is not included, so both may be moved together.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    teamster_lease: u32,
    /// Path from the journal's folder to the file.
    pub(super) file: String,
    format: Format,
    pub(super) key: String,
    /// True if the file existed.
    existed: bool,
    /// Content of a newly created file without our entries.
    new_file: String,
    /// For each folder that we create, the number of leading parts of the path.
    pub(super) folders: Vec<usize>,
    /// Content of the file without our entries, or `None` if it should not exist.
    pub(super) base: Option<String>,
    /// True if `base` is no longer the original, because another program has changed the file.
    pub(super) edited: bool,
    /// True if we have written the file more than once. A file with the original's content need not be the original
    /// then.
    pub(super) rewritten: bool,
    /// True if we created the table of servers.
    made_table: bool,
    /// Our entries that are or may be in the file.
    pub(super) entries: Vec<Entry>,
    /// Holders of the entries. Dead ones are ignored.
    pub(super) holders: Vec<Holder>,
    /// Possible content of the file unless another program has changed it. There are two during a change.
    pub(super) written: Vec<String>,
}

// Omits the contents, because they may have secrets of the user.
teamster_core::debug_fields!(Journal |it| { file: it.file, servers: it.names() });

/// Holder of a lease.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Holder {
    /// Name of the file that the holder keeps locked.
    pub(super) id: String,
    pub(super) entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Json,
    Toml,
}

/// Error of reading a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreadable {
    Damaged,
    OtherVersion,
}

impl Journal {
    /// Creates the journal of a file that has no entry of ours yet.
    pub(super) fn new(
        file: String,
        format: ConfigFormat,
        key: &str,
        original: Option<String>,
        new_file: &str,
    ) -> Self {
        Self {
            teamster_lease: VERSION,
            file,
            format: if format == ConfigFormat::Toml {
                Format::Toml
            } else {
                Format::Json
            },
            key: key.to_owned(),
            existed: original.is_some(),
            folders: Vec::new(),
            new_file: new_file.to_owned(),
            written: original.iter().cloned().collect(),
            base: original,
            edited: false,
            rewritten: false,
            made_table: false,
            entries: Vec::new(),
            holders: Vec::new(),
        }
    }

    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Unreadable> {
        #[derive(Deserialize)]
        struct Version {
            teamster_lease: u32,
        }
        let version: Version = serde_json::from_slice(bytes).map_err(|_| Unreadable::Damaged)?;
        if version.teamster_lease != VERSION {
            return Err(Unreadable::OtherVersion);
        }
        serde_json::from_slice(bytes).map_err(|_| Unreadable::Damaged)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // All keys are strings, and no other part can fail to serialize.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    pub(super) fn format(&self) -> ConfigFormat {
        match self.format {
            Format::Json => ConfigFormat::Json,
            Format::Toml => ConfigFormat::Toml,
        }
    }

    /// Returns the names of the servers that may be in the file.
    pub(super) fn names(&self) -> Vec<String> {
        self.entries.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Compares the file's content with the known contents. If another program has changed it, it becomes the new base,
    /// without our entries. Does not write the file.
    pub(super) fn look(&mut self, current: Option<&str>) -> Result<(), EditError> {
        let known = match current {
            Some(text) => {
                self.written.iter().any(|written| written == text)
                    || self.base.as_deref() == Some(text)
            }
            None => self.base.is_none(),
        };
        if known {
            return Ok(());
        }
        let base = match current {
            None => None,
            Some(text) => {
                let remove = if self.made_table {
                    edit::remove_with_table
                } else {
                    edit::remove
                };
                let rest = remove(text, self.format(), &self.key, &self.entries)?;
                (self.existed || !is_blank(&rest, &self.new_file)).then_some(rest)
            }
        };
        // A program that has removed the file does not want it back.
        self.existed &= current.is_some();
        self.edited = true;
        self.base = base;
        // The current content becomes this base when our entries are removed.
        self.written = current.map(str::to_owned).into_iter().collect();
        Ok(())
    }

    /// Returns the names of the user's servers in the file.
    pub(super) fn base_names(&self) -> Result<Vec<String>, EditError> {
        let text = self.base.as_deref().unwrap_or_default();
        edit::names(text, self.format(), &self.key)
    }

    /// Returns the new content of the file with these entries, and records that it is about to be written. `current` is
    /// its present content, after [`look`](Self::look).
    pub(super) fn plan(
        &mut self,
        current: Option<&str>,
        entries: &[Entry],
    ) -> Result<Option<String>, EditError> {
        let next = if entries.is_empty() {
            self.base.clone()
        } else {
            let base = self.base.as_deref().unwrap_or(&self.new_file);
            let next = edit::merge(base, self.format(), &self.key, entries, Clash::Refuse)?;
            self.made_table = self.makes_table(base, &next, entries)?;
            Some(next)
        };
        for entry in entries {
            if !self.entries.contains(entry) {
                self.entries.push(entry.clone());
            }
        }
        self.written = current.map(str::to_owned).into_iter().collect();
        if let Some(next) = &next
            && !self.written.contains(next)
        {
            self.written.push(next.clone());
        }
        Ok(next)
    }

    /// Records that the plan for these entries was written. Returns whether that is a change.
    pub(super) fn settle(&mut self, next: Option<String>, entries: Vec<Entry>) -> bool {
        let news = entries.len() != self.entries.len();
        self.written = next.into_iter().collect();
        self.entries = entries;
        news
    }

    /// Removes all holders but one. Their combined content of the file is then unknown.
    pub(super) fn only(&mut self, id: &str) {
        if self.holders.len() > 1 {
            self.existed = true;
            self.base = None;
            self.written.clear();
        }
        self.holders.retain(|holder| holder.id == id);
        self.entries = union(self.holders.iter().map(|holder| &*holder.entries));
    }

    fn makes_table(&self, base: &str, next: &str, entries: &[Entry]) -> Result<bool, EditError> {
        if !edit::names(base, self.format(), &self.key)?.is_empty() {
            return Ok(false);
        }
        // The result of a removal distinguishes an empty table of the user from a missing one.
        let without = edit::remove_with_table(next, self.format(), &self.key, entries)?;
        Ok(without == base)
    }
}

/// Returns whether a file has only the content of a new one.
fn is_blank(text: &str, new_file: &str) -> bool {
    let solid = |text: &str| -> String { text.split_whitespace().collect() };
    let rest = solid(text.trim_start_matches('\u{feff}'));
    rest.is_empty() || rest == "{}" || rest == solid(new_file)
}

/// Returns the entries of these holders without duplicates.
pub(super) fn union<'a>(holders: impl IntoIterator<Item = &'a [Entry]>) -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    for entry in holders.into_iter().flatten() {
        if !all.iter().any(|(name, _)| *name == entry.0) {
            all.push(entry.clone());
        }
    }
    all
}
