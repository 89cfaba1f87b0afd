//! Sources: files and databases, and the problems of reading them.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use memchr::memmem::Finder;
use teamster_api::usage::Diagnostics;

use crate::accounts::Totals;
use crate::lines::{self, Line};
use crate::{Key, Provider, Record};

/// A file or a database that holds records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    /// The provider of the file.
    pub(crate) provider: Provider,
    /// Path of the file or database.
    pub(crate) path: PathBuf,
    /// Position of the start, in bytes.
    pub(crate) start: u64,
    /// Size in bytes. Large sources are read first.
    pub(crate) size: u64,
    /// The only session to read, if set.
    pub(crate) session: Option<String>,
}

impl Source {
    /// Calls `each` with every line from the start on, until `sink` is done.
    pub(crate) fn lines(
        &self,
        sink: &mut Sink<'_>,
        mut each: impl FnMut(Line<'_>, &mut Sink<'_>),
    ) -> io::Result<()> {
        lines::read(&self.path, self.start, &mut each, sink)
    }
}

/// Possible delay of a file's time behind the clock. File systems update it a few hundred times a second, or once in
/// two seconds.
const GRANULARITY: Duration = Duration::from_secs(2);

/// Reads a regular file of at most `longest` bytes. Others are refused, because a pipe may never end.
pub(crate) fn small_file(path: &Path, longest: u64) -> io::Result<Vec<u8>> {
    let metadata = path.metadata()?;
    if !metadata.is_file() || metadata.len() > longest {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    // The file may be growing.
    File::open(path)?.take(longest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Sources of a scan.
#[derive(Debug)]
pub(crate) struct Sources {
    /// Time before which files were last changed that are left out, because they have no newer record.
    pub(crate) since: Option<SystemTime>,
    /// The only session to search for, if set.
    pub(crate) session: Option<String>,
    /// Sources found.
    pub(crate) found: Vec<Source>,
    /// Folders that could not be read.
    pub(crate) diagnostics: Diagnostics,
}

impl Sources {
    pub(crate) fn new(since: Option<SystemTime>) -> Self {
        Self {
            since: since.and_then(|since| since.checked_sub(GRANULARITY)),
            session: None,
            found: Vec::new(),
            diagnostics: Diagnostics::default(),
        }
    }

    /// Adds a file unless it is too old.
    pub(crate) fn add(&mut self, provider: Provider, path: PathBuf, metadata: &Metadata) {
        // A read of a pipe or a device may block forever.
        if !metadata.is_file() && !metadata.is_dir() {
            return;
        }
        let old = match (self.since, metadata.modified()) {
            (Some(since), Ok(modified)) => modified < since,
            _ => false,
        };
        if old {
            self.diagnostics.old_files += 1;
        } else {
            self.found.push(Source {
                provider,
                path,
                start: 0,
                size: metadata.len(),
                session: self.session.clone(),
            });
        }
    }

    /// Adds all `wanted` files in a folder, up to this `depth`. Follows links, except those to a parent folder. A
    /// missing folder has no files.
    pub(crate) fn walk(
        &mut self,
        provider: Provider,
        folder: &Path,
        depth: usize,
        wanted: impl Fn(&Path) -> bool,
    ) {
        let walk = walkdir::WalkDir::new(folder).follow_links(true);
        for entry in walk.max_depth(depth) {
            match entry {
                Ok(entry) if entry.file_type().is_file() && wanted(entry.path()) => {
                    match entry.metadata() {
                        Ok(metadata) => self.add(provider, entry.into_path(), &metadata),
                        Err(_) => self.diagnostics.unreadable(entry.path()),
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    let path = error.path().unwrap_or(folder);
                    // Other errors are links to a parent folder.
                    if let Some(error) = error.io_error() {
                        self.failed(path, error);
                    }
                }
            }
        }
    }

    /// Returns the entries of a folder. A missing folder has none.
    pub(crate) fn entries(&mut self, folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).and_then(|entries| {
            let paths = entries.map(|entry| Ok(entry?.path()));
            paths.collect::<io::Result<_>>()
        });
        entries
            .inspect_err(|error| self.failed(folder, error))
            .unwrap_or_default()
    }

    /// Returns the metadata of a file or a folder, if it exists.
    pub(crate) fn metadata(&mut self, path: &Path) -> Option<Metadata> {
        path.metadata()
            .inspect_err(|error| self.failed(path, error))
            .ok()
    }

    /// Records that a path could not be read. A missing path is not an error, nor is a path below a file.
    fn failed(&mut self, path: &Path, error: &io::Error) {
        use io::ErrorKind::{NotADirectory, NotFound};
        if !matches!(error.kind(), NotFound | NotADirectory) {
            self.diagnostics.unreadable(path);
        }
    }
}

/// Returns whether a line may have an object in a field. `field` finds the field's name with its quotation marks.
/// Spaces around the colon are accepted.
pub(crate) fn has_object(field: &Finder<'_>, line: &[u8]) -> bool {
    field.find_iter(line).any(|index| {
        let rest = line[index + field.needle().len()..].trim_ascii_start();
        let value = rest.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        value.is_some_and(|value| value.starts_with(b"{"))
    })
}

/// Returns whether a file has JSON lines.
pub(crate) fn is_jsonl(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "jsonl")
}

/// An item found by a reader.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "nearly all are records")]
pub(crate) enum Found {
    /// A record.
    Record(Record),
    /// The minimum number of output tokens of the request with this alias.
    Amendment(Key, u64),
    /// The request with this key is a copy of one that has a line with this alias.
    Copy(Key, Key),
    /// Totals reported by a session's processes.
    Totals(Box<Totals>),
}

/// Receiver of a reader's items.
pub(crate) struct Sink<'a> {
    take: &'a mut dyn FnMut(Found),
    /// Problems.
    pub(crate) diagnostics: Diagnostics,
    /// True if the remaining lines can be skipped.
    pub(crate) done: bool,
}

impl<'a> Sink<'a> {
    pub(crate) fn new(take: &'a mut dyn FnMut(Found)) -> Self {
        Self {
            take,
            diagnostics: Diagnostics::default(),
            done: false,
        }
    }

    /// Passes on a record.
    pub(crate) fn record(&mut self, record: Record) {
        (self.take)(Found::Record(record));
    }

    /// Passes on the output tokens of a request in another file.
    pub(crate) fn amend(&mut self, alias: Key, output_tokens: u64) {
        (self.take)(Found::Amendment(alias, output_tokens));
    }

    /// Passes on that a request is a copy of one that has a line with this alias.
    pub(crate) fn copy(&mut self, key: Key, alias: Key) {
        (self.take)(Found::Copy(key, alias));
    }

    /// Passes on the totals that a session's processes report.
    pub(crate) fn totals(&mut self, totals: Totals) {
        (self.take)(Found::Totals(Box::new(totals)));
    }

    /// Records a line with figures that could not be parsed. An incomplete last line is not an error, because the CLI
    /// may be writing it.
    pub(crate) fn malformed(&mut self, line: Line<'_>) {
        if line.complete {
            self.diagnostics.malformed_lines += 1;
        }
    }
}

/// Shares equal consecutive texts. Most lines of a file have the same session, model and directory.
#[derive(Debug, Default)]
pub(crate) struct Shared(Option<Arc<str>>);

impl Shared {
    /// Returns a shared text, reusing the last one if it is equal.
    pub(crate) fn of(&mut self, text: &str) -> Arc<str> {
        match &self.0 {
            Some(last) if **last == *text => last.clone(),
            _ => {
                let text: Arc<str> = text.into();
                self.0 = Some(text.clone());
                text
            }
        }
    }
}
