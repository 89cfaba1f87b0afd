//! The store: its location, clock and execution of queries.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use sqlx::any::{AnyArguments, AnyRow};
use sqlx::pool::PoolConnection;
use sqlx::query::Query;
use sqlx::{Any, AnyConnection, AnyPool};
use teamster_core::time::epoch_ms;
use tokio::sync::watch;

use crate::error::explain;
use crate::location::Location;
use crate::{StoreError, existing, open};

/// Default time that a session is kept after its last use: 7 days.
pub const DEFAULT_SESSION_TTL: Duration = Duration::from_hours(7 * 24);

/// Sessions by conversation, and the history of runs.
///
/// Clones are handles to the same store and share one connection. Several processes may open the same store.
///
/// Every write is one statement, so after a crash each row has either its old or its new content. Every call fails if
/// the database fails.
#[derive(Clone)]
pub struct Store {
    pub(crate) pool: AnyPool,
    location: Arc<Location>,
    session_ttl: Duration,
    clock: Clock,
    /// Number of batches of recorders that are not written yet.
    unwritten: Arc<watch::Sender<usize>>,
}

/// Returns the time in milliseconds since the Unix epoch.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

teamster_core::debug_fields!(Store |it| {
    location: it.location.to_string(),
    session_ttl: it.session_ttl,
});

impl Store {
    /// Opens a store, or creates it. Creates or updates its tables. Any number of processes may do so at once.
    ///
    /// | `url` | Store |
    /// |---|---|
    /// | a path, `sqlite:PATH`, `sqlite:///absolute/path` | an SQLite file, created for this user alone if missing |
    /// | `sqlite::memory:` | memory, dropped with the last handle |
    /// | `postgres://USER:PASSWORD@HOST:PORT/DATABASE` | a server, with the feature `postgres`. `?sslmode=verify-full` requires TLS, `?options=-csearch_path%3DNAME` selects a schema. Missing parts come from `PGHOST`, `PGUSER`, `PGPASSWORD`, … and `~/.pgpass` |
    ///
    /// # Errors
    ///
    /// Fails if the location cannot be opened, is not a database, or belongs to another program or to a newer version
    /// of this one. It is not changed then. See [`StoreError`].
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let location = Location::parse(url)?;
        let pool = open::open(&location).await?;
        Ok(Self::new(pool, location))
    }

    /// Opens a store as [`open`](Self::open) does, with a time limit for a server that does not answer or a file that
    /// another program keeps locked.
    ///
    /// # Errors
    ///
    /// [`StoreError::Slow`] after the time limit; otherwise as [`open`](Self::open).
    pub async fn open_within(url: &str, at_most: Duration) -> Result<Self, StoreError> {
        let location = Location::parse(url)?;
        match tokio::time::timeout(at_most, open::open(&location)).await {
            Ok(pool) => Ok(Self::new(pool?, location)),
            Err(_) => Err(StoreError::Slow {
                doing: "open",
                location: location.to_string(),
                seconds: at_most.as_secs(),
            }),
        }
    }

    /// Opens an existing store for reading. Creates no file, folder or table.
    ///
    /// A write-protected file or medium can be read too. Memory always exists, and is empty.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if there is no store; otherwise as [`open`](Self::open).
    pub async fn open_existing(url: &str) -> Result<Self, StoreError> {
        let location = Location::parse(url)?;
        let pool = existing::open(&location).await?;
        Ok(Self::new(pool, location))
    }

    fn new(pool: AnyPool, location: Location) -> Self {
        Self {
            pool,
            location: Arc::new(location),
            session_ttl: DEFAULT_SESSION_TTL,
            clock: Arc::new(epoch_ms),
            unwritten: Arc::new(watch::Sender::new(0)),
        }
    }

    /// Sets the time that a session is kept after its last use. Default: [`DEFAULT_SESSION_TTL`].
    #[must_use]
    pub fn session_ttl(mut self, ttl: Duration) -> Self {
        self.session_ttl = ttl;
        self
    }

    /// Sets the clock, which returns milliseconds since the Unix epoch. Default: the system clock. For tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Returns the location as text for a person, without a password.
    pub fn location(&self) -> String {
        self.location.to_string()
    }

    /// Closes all connections of all clones. SQLite then moves its journal to the file.
    ///
    /// Waits for pending writes of a [`Recorder`](crate::Recorder) first, for at most 10 s. Without a recorder, nothing
    /// is lost if this is not called.
    pub async fn close(&self) {
        self.settled(open::PATIENCE).await;
        self.pool.close().await;
    }

    /// Waits for pending writes as [`close`](Self::close) does, and closes all connections but those to a file, which stay
    /// open until the process ends. For the end of a process: it need not wait for the disk. The next one that opens the
    /// file continues its journal.
    pub async fn leave(&self) {
        self.settled(open::PATIENCE).await;
        if matches!(*self.location, Location::File(_)) {
            // Never dropped: a connection on its way back to the pool is closed with the runtime, and one in the pool with
            // that.
            let last: Pin<Box<dyn Future<Output = ()> + Send + '_>> = Box::pin(async move {
                std::mem::forget(self.pool.acquire().await);
            });
            last.await;
            // Later calls fail at once. Only the future would wait for the connection.
            drop(self.pool.close());
        } else {
            self.pool.close().await;
        }
    }

    /// Waits until recorders have no pending writes. Returns `false` after the time limit.
    pub(crate) async fn settled(&self, at_most: Duration) -> bool {
        let mut unwritten = self.unwritten.subscribe();
        let settled =
            tokio::time::timeout(at_most, unwritten.wait_for(|unwritten| *unwritten == 0)).await;
        settled.is_ok()
    }

    /// Counts a batch as unwritten until the guard is dropped.
    pub(crate) fn begin_write(&self) -> Unwritten {
        self.unwritten.send_modify(|unwritten| *unwritten += 1);
        Unwritten(Arc::clone(&self.unwritten))
    }

    async fn borrow(&self) -> Result<Borrowed, sqlx::Error> {
        Ok(Borrowed {
            connection: Some(self.pool.acquire().await?),
            // A memory database is lost with its connection.
            reusable: matches!(*self.location, Location::Memory),
            is_remote: matches!(*self.location, Location::Server { .. }),
        })
    }

    /// Returns the time in milliseconds since the Unix epoch.
    pub(crate) fn now(&self) -> u64 {
        (self.clock)()
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.session_ttl
    }

    /// Converts an error of the database.
    pub(crate) fn failed(&self, doing: &'static str, error: &sqlx::Error) -> StoreError {
        StoreError::Query {
            doing,
            location: self.location(),
            reason: explain(error),
        }
    }

    /// Executes a statement and returns the number of changed rows.
    pub(crate) fn execute<'a>(
        &'a self,
        doing: &'static str,
        query: Query<'a, Any, AnyArguments>,
    ) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            let done = async {
                let mut borrowed = self.borrow().await?;
                let done = query.execute(borrowed.connection()?).await;
                borrowed.answered(done)
            };
            match done.await {
                Ok(done) => Ok(done.rows_affected()),
                Err(error) => Err(self.failed(doing, &error)),
            }
        })
    }

    pub(crate) fn fetch<'a>(
        &'a self,
        doing: &'static str,
        query: Query<'a, Any, AnyArguments>,
    ) -> StoreFuture<'a, Vec<AnyRow>> {
        Box::pin(async move {
            let rows = async {
                let mut borrowed = self.borrow().await?;
                let rows = query.fetch_all(borrowed.connection()?).await;
                borrowed.answered(rows)
            };
            rows.await.map_err(|error| self.failed(doing, &error))
        })
    }
}

/// Guard of a batch that is not written yet.
pub(crate) struct Unwritten(Arc<watch::Sender<usize>>);

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.0.send_modify(|unwritten| *unwritten -= 1);
    }
}

/// The connection, borrowed for one statement.
///
/// If the caller stops waiting for an answer, the server or the disk may never give it. The pool would wait for it
/// before it lends the connection again. So such a connection is dropped, and the next borrower gets a new one.
struct Borrowed {
    connection: Option<PoolConnection<Any>>,
    reusable: bool,
    is_remote: bool,
}

impl Borrowed {
    fn connection(&mut self) -> Result<&mut AnyConnection, sqlx::Error> {
        // Present until the drop.
        self.connection
            .as_deref_mut()
            .ok_or(sqlx::Error::PoolClosed)
    }

    fn answered<T>(&mut self, answer: Result<T, sqlx::Error>) -> Result<T, sqlx::Error> {
        self.reusable |= matches!(
            answer,
            Ok(_) | Err(sqlx::Error::Database(_) | sqlx::Error::RowNotFound)
        );
        answer
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        match self.connection.take() {
            Some(connection) if !self.reusable => drop(connection.detach()),
            Some(connection) if self.is_remote => open::give_back(connection),
            // Dropping the connection returns it to the pool.
            _ => {}
        }
    }
}

/// A boxed future, because the compiler cannot prove that sqlx's own futures are `Send` in a task.
pub(crate) type StoreFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;
