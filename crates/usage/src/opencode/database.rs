//! Reading of OpenCode's database while the CLI may be writing to it. Nothing is created or written, and no writer has
//! to wait.
//!
//! The latest writes may be in the write-ahead log beside the database, even if no process is alive. There are three
//! cases. Without a log, the database is read as immutable. With the log and its index, the existing index is used.
//! With a log alone, as in a copy, SQLite would have to create an index, so a copy of both files is read.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, SqliteConnection};
use teamster_core::blocking::wait;
use tempfile::TempDir;

use super::{Reader, Session, Sessions};
use crate::source::{Sink, Source};

/// Number of messages that are read at once. In between, the CLI may shorten its log.
const PAGE: i64 = 512;

/// Query of all messages, in the order of insertion.
const ALL: &str = "SELECT rowid, session_id, data FROM message WHERE rowid > ?1 \
                   AND instr(data, '\"tokens\"') > 0 \
                   ORDER BY rowid LIMIT ?2";
/// Query of a session's messages.
const ONE: &str = "SELECT rowid, session_id, data FROM message WHERE rowid > ?1 AND session_id = ?3 \
                   AND instr(data, '\"tokens\"') > 0 \
                   ORDER BY rowid LIMIT ?2";
const SESSIONS: &str = "SELECT id, parent_id, directory, time_created FROM session";

/// Number of attempts to read a database whose files change meanwhile.
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(50);

/// Reads a database.
pub(super) fn read(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    sink.diagnostics.bytes += source.size;
    let mut tries = 1;
    loop {
        // Items of an earlier attempt count only once, because each message has a key.
        match read_once(source, sink) {
            Err(error) if tries < TRIES && error.kind() != io::ErrorKind::NotFound => {
                tries += 1;
                thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

fn read_once(source: &Source, sink: &mut Sink<'_>) -> io::Result<()> {
    let readable = Readable::of(&source.path)?;
    // SQLite works on its own thread without a runtime, and the caller may be within one.
    wait(messages(&readable, source, sink)).map_err(io::Error::other)
}

/// A database as it can be read in its state.
pub(super) struct Readable {
    url: String,
    /// The folder of a copy, which is kept until all is read.
    _copy: Option<TempDir>,
}

impl Readable {
    pub(super) fn of(database: &Path) -> io::Result<Self> {
        let length = |suffix| beside(database, suffix).metadata().map(|m| m.len()).ok();
        let mut copied = None;
        let url = match (length("-wal"), length("-shm")) {
            (Some(_), Some(_)) => url(database, "mode=ro&readonly_shm=1")?,
            (None | Some(0), _) => url(database, "mode=ro&immutable=1")?,
            (Some(_), None) => {
                let folder = copied.insert(tempfile::tempdir()?);
                let copy = folder.path().join("opencode.db");
                fs::copy(database, &copy)?;
                fs::copy(beside(database, "-wal"), beside(&copy, "-wal"))?;
                url(&copy, "mode=ro")?
            }
        };
        Ok(Self { url, _copy: copied })
    }

    pub(super) async fn connect(&self) -> Result<SqliteConnection, sqlx::Error> {
        let options = SqliteConnectOptions::new()
            .filename(&self.url)
            .read_only(true)
            .disable_statement_logging();
        options.connect().await
    }
}

/// Returns the path of a file that SQLite keeps beside a database.
pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut path = OsString::from(database);
    path.push(suffix);
    path.into()
}

/// Returns a database as an SQLite URI with parameters.
fn url(path: &Path, parameters: &str) -> io::Result<String> {
    let path = path
        .to_str()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path is not UTF-8"))?;
    let mut url = String::from("file:");
    for character in path.chars() {
        match character {
            '%' => url.push_str("%25"),
            '?' => url.push_str("%3f"),
            '#' => url.push_str("%23"),
            other => url.push(other),
        }
    }
    Ok(format!("{url}?{parameters}"))
}

async fn messages(
    readable: &Readable,
    source: &Source,
    sink: &mut Sink<'_>,
) -> Result<(), sqlx::Error> {
    let mut connection = readable.connect().await?;
    let sessions = sessions(&mut connection).await?;
    let mut reader = Reader::new(source.provider, sessions, source.session.clone());
    match reader.wanted() {
        None => pages(ALL, None, &mut connection, &mut reader, sink).await?,
        Some(wanted) => {
            for session in &wanted {
                pages(ONE, Some(session), &mut connection, &mut reader, sink).await?;
            }
        }
    }
    connection.close().await
}

async fn sessions(connection: &mut SqliteConnection) -> Result<Sessions, sqlx::Error> {
    type Row = (String, Option<String>, Option<String>, Option<i64>);
    let rows: Vec<Row> = sqlx::query_as(SESSIONS).fetch_all(connection).await?;
    let session = |(id, parent, directory, created)| {
        let session = Session {
            parent,
            directory,
            created,
        };
        (id, session)
    };
    Ok(rows.into_iter().map(session).collect())
}

async fn pages(
    query: &'static str,
    session: Option<&str>,
    connection: &mut SqliteConnection,
    reader: &mut Reader,
    sink: &mut Sink<'_>,
) -> Result<(), sqlx::Error> {
    let mut after = i64::MIN;
    loop {
        let mut page = sqlx::query_as::<_, (i64, String, String)>(query)
            .bind(after)
            .bind(PAGE);
        if let Some(session) = session {
            page = page.bind(session);
        }
        let rows = page.fetch_all(&mut *connection).await?;
        let Some((last, ..)) = rows.last() else {
            return Ok(());
        };
        after = *last;
        for (_, session, data) in &rows {
            reader.message(session, data.as_bytes(), sink);
        }
    }
}
