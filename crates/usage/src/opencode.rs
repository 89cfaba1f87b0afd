//! OpenCode's messages, and those of its fork Kilo: in its database `opencode.db`, and in older versions in files
//! `storage/message/<session>/msg_<id>.json`.
//!
//! A fork's messages are copies under new ids, with the same times and figures. So the key of a request consists of
//! those. A sub-agent is a session with a parent. A cost of 0 means that the CLI knows no price. The request for a
//! title is not recorded.

mod database;
mod stored;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use jiff::Timestamp;
use memchr::memmem::Finder;
use serde::Deserialize;
use teamster_core::Usage;

use crate::locations::Locations;
use crate::provider::Traits;
use crate::source::{Shared, Sink, Source, Sources, small_file};
use crate::{Key, Provider, Record};

pub(crate) use stored::{Listed, conversation, listed};

pub(crate) const TRAITS: Traits = Traits::NONE;

/// Part of every message with figures.
static FIGURES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"tokens\""));

/// Maximum size of a message of an older version, in bytes.
const LARGEST: u64 = 64 << 20;

/// Location of the messages of OpenCode or a fork of it.
pub(crate) struct Store<'p> {
    pub(crate) provider: Provider,
    /// Name of the database, and prefix of its files.
    pub(crate) name: &'static str,
    /// The data folder.
    pub(crate) data: Option<&'p Path>,
    /// The database, if it is set separately.
    pub(crate) database: Option<&'p Path>,
}

fn own(locations: &Locations) -> Store<'_> {
    Store {
        provider: Provider::OpenCode,
        name: "opencode",
        data: locations.opencode.as_deref(),
        database: locations.opencode_db.as_deref(),
    }
}

/// Adds the databases, and the folders of the sessions of older versions.
pub(crate) fn sources(locations: &Locations, found: &mut Sources) {
    own(locations).sources(found);
}

impl Store<'_> {
    /// Adds all databases, and the folders of the sessions of older versions: of all, or of the requested one. The folders
    /// of its sub-agents cannot be found by name. Versions with such folders are no longer used for agents in loops.
    pub(crate) fn sources(&self, found: &mut Sources) {
        self.databases(found);
        if let Some(data) = self.data {
            let messages = data.join("storage/message");
            let folders = match &found.session {
                Some(session) => vec![messages.join(session)],
                None => found.entries(&messages),
            };
            for folder in folders {
                self.folder(folder, found);
            }
        }
    }

    fn folder(&self, path: PathBuf, found: &mut Sources) {
        if let Some(metadata) = found.metadata(&path)
            && metadata.is_dir()
        {
            found.add(self.provider, path, &metadata);
        }
    }

    /// Adds the configured database, relative to the data folder. Otherwise adds those that the CLI creates: one for
    /// most of its releases, and one for each other channel, with the channel's name.
    fn databases(&self, found: &mut Sources) {
        let paths = match (self.database, self.data) {
            (Some(database), Some(data)) => vec![data.join(database)],
            (Some(database), None) => vec![database.to_owned()],
            (None, Some(data)) => {
                let mut paths = found.entries(data);
                paths.retain(|path| self.is_database(path));
                paths
            }
            (None, None) => Vec::new(),
        };
        for path in paths {
            let Some(metadata) = found.metadata(&path) else {
                continue;
            };
            // The latest writes are in the write-ahead log until they are moved to the database.
            let log = database::beside(&path, "-wal").metadata().ok();
            let modified = |metadata: &Metadata| metadata.modified().ok();
            let newer = log
                .as_ref()
                .filter(|log| modified(log) > modified(&metadata));
            found.add(self.provider, path, newer.unwrap_or(&metadata));
        }
    }

    fn is_database(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        let rest = name.and_then(|name| name.strip_suffix(".db")?.strip_prefix(self.name));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    parent: Option<String>,
    directory: Option<String>,
    /// Milliseconds since the Unix epoch.
    created: Option<i64>,
}

/// All sessions by their ids.
pub(super) type Sessions = HashMap<String, Session>;

/// A message, as in the database and in files.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
struct Message<'a> {
    // Both ids use the spelling of the CLI.
    #[serde(rename = "modelID")]
    model_id: Option<Cow<'a, str>>,
    #[serde(rename = "providerID")]
    provider_id: Option<Cow<'a, str>>,
    time: Option<Times>,
    cost: Option<f64>,
    tokens: Option<Tokens>,
    path: Option<Folders<'a>>,
}

/// Times in milliseconds since the Unix epoch.
#[derive(Deserialize)]
struct Times {
    created: Option<f64>,
    completed: Option<f64>,
}

#[derive(Deserialize)]
struct Folders<'a> {
    #[serde(borrow)]
    cwd: Option<Cow<'a, str>>,
}

/// The figures of a message. Input excludes cache reads and writes. Output excludes reasoning, except for some services
/// in versions such as 1.1.
#[derive(Deserialize)]
struct Tokens {
    total: Option<u64>,
    input: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
    cache: Option<Cache>,
}

#[derive(Deserialize)]
struct Cache {
    read: Option<u64>,
    write: Option<u64>,
}

impl Tokens {
    /// Converts the figures. The CLI writes 0 for figures that its service does not have.
    fn usage(&self) -> Usage {
        let known = |tokens: Option<u64>| tokens.filter(|tokens| *tokens > 0);
        let cache = self.cache.as_ref();
        let read = known(cache.and_then(|cache| cache.read));
        let written = known(cache.and_then(|cache| cache.write));
        let reasoning = self.reasoning.unwrap_or(0);
        // The sum of all figures if output excludes reasoning.
        let beside = [self.input, self.output, read, written, self.reasoning]
            .into_iter()
            .flatten()
            .fold(0, u64::saturating_add);
        let is_beside = self.total.is_some_and(|total| total >= beside);
        let output = |output: u64| {
            if is_beside {
                output.saturating_add(reasoning)
            } else {
                output.max(reasoning)
            }
        };
        Usage::default()
            .input_tokens(self.input)
            .output_tokens(self.output.map(output))
            .cache_read_tokens(read)
            .cache_write_tokens(written)
            .reasoning_tokens(known(self.reasoning))
    }
}

/// Reads a database, or a session's folder.
pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    if source.path.metadata()?.is_dir() {
        read_folder(source, sink)
    } else {
        database::read(source, sink)
    }
}

/// Reads the messages of a session of an older version.
fn read_folder(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    let folder = source.path.as_path();
    let Some(id) = folder.file_name().and_then(|name| name.to_str()) else {
        return Ok(());
    };
    let mut sessions = Sessions::new();
    let storage = folder.parent().and_then(Path::parent);
    if let Some(storage) = storage {
        files_of_session(&storage.join("session"), id, &mut sessions);
    }
    let mut reader = Reader::new(source.provider, sessions, None);
    let mut files: Vec<_> = fs::read_dir(folder)?.flatten().map(|e| e.path()).collect();
    files.sort_unstable();
    for file in files {
        if file.extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        match small_file(&file, LARGEST) {
            Ok(bytes) => {
                sink.diagnostics.bytes += bytes.len() as u64;
                reader.message(id, &bytes, sink);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                sink.diagnostics.oversize_lines += 1;
            }
            Err(_) => sink.diagnostics.unreadable(&file),
        }
    }
    Ok(())
}

/// Reads a session and its ancestors from `session/<project>/<session>.json`.
fn files_of_session(folder: &Path, id: &str, sessions: &mut Sessions) {
    #[derive(Deserialize)]
    struct Written {
        #[serde(rename = "parentID")]
        parent: Option<String>,
        directory: Option<String>,
        time: Option<Times>,
    }
    let projects: Vec<_> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    let mut next = Some(id.to_owned());
    while let Some(id) = next.take() {
        let file = projects.iter().find_map(|project| {
            small_file(&project.path().join(format!("{id}.json")), LARGEST).ok()
        });
        let written = file.and_then(|bytes| serde_json::from_slice::<Written>(&bytes).ok());
        let Some(written) = written.filter(|_| !sessions.contains_key(&id)) else {
            return;
        };
        next.clone_from(&written.parent);
        let session = Session {
            parent: written.parent,
            directory: written.directory,
            created: written.time.and_then(|time| milliseconds(time.created)),
        };
        sessions.insert(id, session);
    }
}

/// State between messages.
pub(super) struct Reader {
    provider: Provider,
    sessions: Sessions,
    /// The only session to read, with its sub-agents.
    only: Option<String>,
    root: Shared,
    model: Shared,
    vendor: Shared,
    directory: Shared,
}

impl Reader {
    fn new(provider: Provider, sessions: Sessions, only: Option<String>) -> Self {
        Self {
            provider,
            sessions,
            only,
            root: Shared::default(),
            model: Shared::default(),
            vendor: Shared::default(),
            directory: Shared::default(),
        }
    }

    /// Returns the topmost ancestor of a session, or the session itself.
    fn root<'a>(&'a self, session: &'a str) -> &'a str {
        let mut root = session;
        // A chain is not longer than the number of sessions, unless it is a cycle.
        for _ in 0..self.sessions.len() {
            match self.sessions.get(root).and_then(|s| s.parent.as_deref()) {
                Some(parent) => root = parent,
                None => break,
            }
        }
        root
    }

    /// Returns the sessions to read, or `None` for all.
    fn wanted(&self) -> Option<Vec<String>> {
        let only = self.only.as_deref()?;
        let below = |id: &&String| self.root(id) == only && *id != only;
        let mut wanted: Vec<_> = self.sessions.keys().filter(below).cloned().collect();
        wanted.push(only.to_owned());
        wanted.sort_unstable();
        Some(wanted)
    }

    /// Processes a message if it has figures.
    fn message(&mut self, session: &str, bytes: &[u8], sink: &mut Sink<'_>) {
        sink.diagnostics.lines += 1;
        if FIGURES.find(bytes).is_none() {
            return;
        }
        let Ok(message) = serde_json::from_slice::<Message<'_>>(bytes) else {
            sink.diagnostics.malformed_lines += 1;
            return;
        };
        let Some(tokens) = message.tokens else {
            return;
        };
        let usage = tokens.usage();
        if usage.total_tokens().is_none_or(|tokens| tokens == 0) {
            // An answer that is being written or was interrupted.
            return;
        }
        let created = message.time.as_ref().and_then(|t| milliseconds(t.created));
        let completed = message
            .time
            .as_ref()
            .and_then(|t| milliseconds(t.completed));
        let at = created.and_then(|created| Timestamp::from_millisecond(created).ok());
        let (Some(created), Some(at)) = (created, at) else {
            sink.diagnostics.malformed_lines += 1;
            return;
        };
        let root = self.root(session).to_owned();
        let known = self.sessions.get(session).cloned().unwrap_or_default();
        let mut record = Record::new(self.provider, self.root.of(&root), at);
        let figures = format!("{created} {completed:?} {usage:?}");
        let texts = [&message.provider_id, &message.model_id].map(|t| t.as_deref().unwrap_or(""));
        record.key = Some(Key::of(self.provider, &[texts[0], texts[1], &figures]));
        record.model = message.model_id.map(|model| self.model.of(&model));
        let vendor = message.provider_id.filter(|vendor| !vendor.is_empty());
        record.vendor = vendor.map(|vendor| self.vendor.of(&vendor));
        let cwd = message.path.and_then(|path| path.cwd);
        record.directory = match (&known.directory, &cwd) {
            (Some(directory), _) => Some(self.directory.of(directory)),
            (None, Some(cwd)) => Some(self.directory.of(cwd)),
            (None, None) => None,
        };
        record.usage = usage;
        record.cost_usd = message.cost.filter(|cost| *cost > 0.0);
        record.subagent = root != session;
        record.copied = known.created.is_some_and(|begun| begun > created);
        sink.record(record);
    }
}

/// Converts milliseconds, which are integers except in hand-made files.
#[allow(
    clippy::cast_possible_truncation,
    reason = "`as` takes the nearest there is"
)]
fn milliseconds(number: Option<f64>) -> Option<i64> {
    number.map(|number| number as i64)
}

#[cfg(test)]
mod tests;
