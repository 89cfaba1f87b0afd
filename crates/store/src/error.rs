//! Errors of the store. Messages include the next step.

use std::io;

use sqlx::migrate::MigrateError;

use crate::column::printable;
use crate::turns::turn_parts;

/// An error of the store.
///
/// Messages contain no password: of a server's URL they have only host, port and database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The path or URL of a database is invalid.
    #[error("not a database: {reason}")]
    Url {
        /// The reason, and the expected form.
        reason: String,
    },
    /// The database cannot be opened.
    #[error("cannot open the store {location}: {reason}")]
    Open {
        /// The store.
        location: String,
        /// The reason, and the next step.
        reason: String,
    },
    /// There is no store at this location, and none was created; see
    /// [`Store::open_existing`](crate::Store::open_existing).
    #[error("no store at {location}")]
    Missing {
        /// The location.
        location: String,
    },
    /// A newer version of this program has changed the database's tables.
    #[error(
        "the store {location} has tables of version {found}, and this program knows version {known}: \
         use the newer program, or another store"
    )]
    Newer {
        /// The store.
        location: String,
        /// The version of the tables.
        found: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// The database belongs to another program, and nothing was changed in it.
    #[error(
        "{location} is a database of another program (it has the table `{}`): name another file",
        printable(table)
    )]
    Foreign {
        /// The store.
        location: String,
        /// Name of one of its tables.
        table: String,
    },
    /// A key, an id or a text cannot be stored.
    #[error("invalid {what}: {reason}")]
    Invalid {
        /// The kind of value.
        what: &'static str,
        /// The reason.
        reason: String,
    },
    /// A run with this id exists.
    #[error("run {} already exists: give each run its own id", printable(run_id))]
    RunExists {
        /// The id.
        run_id: String,
    },
    /// The run cannot be ended, because it was never begun or has ended.
    #[error("run {} cannot end: it never began, or has ended", printable(run_id))]
    NotRunning {
        /// The id.
        run_id: String,
    },
    /// More than one run has an id with this prefix.
    #[error("{}", ambiguous(prefix, candidates, *more))]
    Ambiguous {
        /// The requested id or prefix.
        prefix: String,
        /// Ids with this prefix, newest first, at most 5.
        candidates: Vec<String>,
        /// True if there are more candidates.
        more: bool,
    },
    /// Another process was beginning the session of a key for the whole time limit.
    #[error(
        "process {pid} on {} is beginning the session of {}, which was not known within {seconds} s: wait for it, or \
         use another key",
        printable(host),
        printable(key)
    )]
    SessionBeginning {
        /// The key, as text.
        key: String,
        /// Name of the other process's machine.
        host: String,
        /// Id of the other process.
        pid: u32,
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// The database refused a request.
    #[error("cannot {doing} in the store {location}: {reason}")]
    Query {
        /// The operation.
        doing: &'static str,
        /// The store.
        location: String,
        /// The reason, and the next step.
        reason: String,
    },
    /// The database did not answer in time. The operation may have been executed.
    #[error("the store {location} did not {doing} within {seconds} s: is something blocking it?")]
    Slow {
        /// The operation.
        doing: &'static str,
        /// The store.
        location: String,
        /// The time limit, in seconds.
        seconds: u64,
    },
}

impl StoreError {
    pub(crate) fn invalid(what: &'static str, reason: impl Into<String>) -> Self {
        Self::Invalid {
            what,
            reason: reason.into(),
        }
    }
}

impl StoreError {
    /// Returns the detached session of which all candidates of an ambiguous id are turns.
    pub fn session(&self) -> Option<&str> {
        match self {
            Self::Ambiguous {
                prefix,
                candidates,
                more,
            } => session_of(prefix, candidates, *more),
            _ => None,
        }
    }
}

fn session_of<'a>(prefix: &str, candidates: &'a [String], more: bool) -> Option<&'a str> {
    let mut sessions = candidates.iter().map(|id| turn_parts(id));
    let (session, _) = sessions.next()??;
    let is_same = |other: Option<(&str, &str)>| other.is_some_and(|(other, _)| other == session);
    // Unlisted candidates of a shortened id may be turns of another session.
    let is_known = !more || session == prefix;
    (is_known && session.starts_with(prefix) && sessions.all(is_same)).then_some(session)
}

fn ambiguous(prefix: &str, candidates: &[String], has_more: bool) -> String {
    let listed = candidates.join(", ");
    let listed = printable(&listed);
    let more = if has_more { " and more" } else { "" };
    match session_of(prefix, candidates, has_more) {
        Some(session) => format!(
            "{} is a session, whose turns are runs: name one of {listed}{more}",
            printable(session)
        ),
        None => format!(
            "more than one run begins with `{}`: {listed}{more}",
            printable(prefix)
        ),
    }
}

/// Explains an error of SQLite or PostgreSQL, with the next step if its code is known. The lowest byte of an extended
/// SQLite code is its primary code.
pub(crate) fn explain(error: &sqlx::Error) -> String {
    const TLS: &str = "check `sslmode` and `sslrootcert` in the URL";
    let hint = match error {
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            let sqlite = code.parse::<u32>().ok().filter(|_| code.len() != 5);
            match (sqlite.map(|code| code & 0xff), &*code) {
                (Some(5 | 6), _) => {
                    "another program keeps it locked; try again, or end that program"
                }
                (Some(8), _) => "make the file and its folder writable, or name another file",
                (Some(10), _) => "the disk or the file system failed",
                (Some(11), _) => "the file is damaged; move it away, and a new one is made",
                (Some(13), _) => "make room on the disk",
                (Some(14), _) => "name a file in a folder that can be written",
                (Some(26), _) => "name another file, or move this one away",
                (None, "28P01" | "28000") => "correct the user name or the password in the URL",
                (None, "3D000") => "create the database, or correct its name in the URL",
                (None, "42501") => {
                    "grant the user the right to create tables in this schema, or name another \
                     schema: ?options=-csearch_path%3DNAME"
                }
                (None, "3F000") => "create the schema, or correct `search_path` in the URL",
                (None, "53300") => "the server has no free connection; retry later",
                _ => "",
            }
        }
        // An invalid certificate is reported as a read error.
        sqlx::Error::Io(io) if io.kind() == io::ErrorKind::InvalidData => TLS,
        sqlx::Error::Io(_) => "is the server running there, and can it be reached?",
        sqlx::Error::Tls(_) => TLS,
        sqlx::Error::PoolTimedOut => "is the database busy or gone?",
        _ => "",
    };
    let what = match error {
        // The driver's own text is prefixed with "error returned from database".
        sqlx::Error::Database(database) => database.message().to_owned(),
        sqlx::Error::Io(io) => io.to_string(),
        sqlx::Error::PoolTimedOut => "no connection came free in time".to_owned(),
        other => other.to_string(),
    };
    if hint.is_empty() {
        what
    } else {
        format!("{what}; {hint}")
    }
}

pub(crate) fn explain_migration(error: &MigrateError) -> String {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => explain(error),
        MigrateError::VersionMismatch(version) => format!(
            "its tables were made by another build of this program (version {version} differs); \
             use that build, or another store"
        ),
        other => other.to_string(),
    }
}

/// Returns whether another process has locked the SQLite file.
pub(crate) fn is_busy(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(database) = error else {
        return false;
    };
    let code = database.code().unwrap_or_default();
    code.parse::<u32>()
        .is_ok_and(|code| matches!(code & 0xff, 5 | 6))
}
