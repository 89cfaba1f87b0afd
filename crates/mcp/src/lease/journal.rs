//! The record of a change for undoing it, and the new text of a file.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use teamster_core::provider::ConfigFormat;

use crate::edit::{self, Clash, EditError};

/// The version of the journal that this code reads and writes.
const VERSION: u32 = 1;

/// Name and definition of a server.
pub(super) type Entry = (String, Value);

/// Everything that is needed to undo the changes of a file, beside the original itself.
///
/// It does not contain the location of the journal's folder: both may be moved together.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Journal {
    teamster_lease: u32,
    /// The way from the folder of the journal to the file.
    pub(super) file: String,
    format: Format,
    pub(super) key: String,
    /// Whether there was a file.
    existed: bool,
    /// Content of a newly created file beside our entries.
    new_file: String,
    /// How many parts of the way lead to each of the folders that we make.
    pub(super) folders: Vec<usize>,
    /// The file without us; nothing if there is to be none.
    pub(super) base: Option<String>,
    /// Whether `base` is no longer the original: another program has changed the file.
    pub(super) edited: bool,
    /// Whether we have written the file more than once. Then the text of the original may be there
    /// without being the original.
    pub(super) rewritten: bool,
    /// Whether the table of servers is ours.
    made_table: bool,
    /// All entries of ours that are or may be in the file.
    pub(super) entries: Vec<Entry>,
    /// Holders of the entries. Dead holders are ignored.
    pub(super) holders: Vec<Holder>,
    /// Expected content of the file unless another program has changed it: one of these during a change.
    pub(super) written: Vec<String>,
}

/// Without the texts: the user's secrets may be in them.
impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal")
            .field("file", &self.file)
            .field("servers", &self.names())
            .finish_non_exhaustive()
    }
}

/// One lease.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Holder {
    /// The name of the file that it holds locked for as long as it lives.
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
    /// The journal of a file that has no entry of ours yet.
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
        // All keys are texts, and nothing else in it can fail.
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    pub(super) fn format(&self) -> ConfigFormat {
        match self.format {
            Format::Json => ConfigFormat::Json,
            Format::Toml => ConfigFormat::Toml,
        }
    }

    /// Names of the servers that may be in the file.
    pub(super) fn names(&self) -> Vec<String> {
        self.entries.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Compares the file's content. If another program has changed it, that content without our entries is the
    /// new base. Does not write the file.
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
                let rest = edit::remove(
                    text,
                    self.format(),
                    &self.key,
                    &self.entries,
                    self.made_table,
                )?;
                (self.existed || !is_blank(&rest, &self.new_file)).then_some(rest)
            }
        };
        // Who removes the file does not want it back.
        self.existed &= current.is_some();
        self.edited = true;
        self.base = base;
        // What is there now becomes this base when our entries are taken out.
        self.written = current.map(str::to_owned).into_iter().collect();
        Ok(())
    }

    /// Names of the user's servers in the file without us.
    pub(super) fn base_names(&self) -> Result<Vec<String>, EditError> {
        let text = self.base.as_deref().unwrap_or_default();
        edit::names(text, self.format(), &self.key)
    }

    /// The new content of the file with these entries; notes that it is about to be written.
    /// `current` is its present content, already compared.
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

    /// Notes that the plan for these entries has been written. Returns whether that is a change.
    pub(super) fn settle(&mut self, next: Option<String>, entries: Vec<Entry>) -> bool {
        let news = entries.len() != self.entries.len();
        self.written = next.into_iter().collect();
        self.entries = entries;
        news
    }

    /// Forgets all but one holder. What they have in the file together is no longer known then.
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
        // What comes back distinguishes an empty table of the user's from none.
        let without = edit::remove(next, self.format(), &self.key, entries, true)?;
        Ok(without == base)
    }
}

/// Whether nothing is in a file but what a new one has.
fn is_blank(text: &str, new_file: &str) -> bool {
    let solid = |text: &str| -> String { text.split_whitespace().collect() };
    let rest = solid(text.trim_start_matches('\u{feff}'));
    rest.is_empty() || rest == "{}" || rest == solid(new_file)
}

/// The entries of these holders, each once.
pub(super) fn union<'a>(holders: impl IntoIterator<Item = &'a [Entry]>) -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    for entry in holders.into_iter().flatten() {
        if !all.iter().any(|(name, _)| *name == entry.0) {
            all.push(entry.clone());
        }
    }
    all
}
