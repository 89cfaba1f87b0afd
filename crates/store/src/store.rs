//! The store itself: where it is, its clock, how it asks.

use std::fmt;
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

/// How long a session is kept after its last use by default: 7 days.
pub const DEFAULT_SESSION_TTL: Duration = Duration::from_hours(7 * 24);

/// Which session belongs to which conversation, and the history of runs.
///
/// A handle: clones are the same store, and share one connection. Several processes may have the same
/// store open.
///
/// Every write is one statement, so after a crash each row is as it was before or as it is
/// after.
#[derive(Clone)]
pub struct Store {
    pub(crate) pool: AnyPool,
    place: Arc<Location>,
    session_ttl: Duration,
    clock: Clock,
    /// How many batches of recorders are not written yet.
    unwritten: Arc<watch::Sender<usize>>,
}

/// Returns the time in milliseconds since the Unix epoch.
pub type Clock = Arc<dyn Fn() -> u64 + Send + Sync>;

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("place", &self.place.to_string())
            .field("session_ttl", &self.session_ttl)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Open a store, or make it. Its tables are brought up to date; any number of processes may do so
    /// at once.
    ///
    /// | `url` | |
    /// |---|---|
    /// | a path, `sqlite:PATH`, `sqlite:///absolute/path` | a file of SQLite, made if it is not there, for this user alone |
    /// | `sqlite::memory:` | gone when the last handle is |
    /// | `postgres://USER:PASSWORD@HOST:PORT/DATABASE` | a server. `?sslmode=verify-full` asks for TLS, `?options=-csearch_path%3DNAME` for a schema. What is not in the URL comes from `PGHOST`, `PGUSER`, `PGPASSWORD`, … and `~/.pgpass` |
    ///
    /// # Errors
    ///
    /// What cannot be opened, is no database, belongs to another program or to a newer version of this
    /// one is refused, and is not changed. See [`StoreError`].
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let place = Location::parse(url)?;
        let pool = open::open(&place).await?;
        Ok(Self::new(pool, place))
    }

    /// The same as [`open`](Self::open), for those who do not want to wait for a server that does not
    /// answer, or for a file that another program keeps locked.
    ///
    /// # Errors
    ///
    /// [`StoreError::Slow`] if it takes longer; else as [`open`](Self::open).
    pub async fn open_within(url: &str, at_most: Duration) -> Result<Self, StoreError> {
        let place = Location::parse(url)?;
        match tokio::time::timeout(at_most, open::open(&place)).await {
            Ok(pool) => Ok(Self::new(pool?, place)),
            Err(_) => Err(StoreError::Slow {
                doing: "open",
                place: place.to_string(),
                seconds: at_most.as_secs(),
            }),
        }
    }

    /// Open a store that is there, for those who want to read it. Nothing is made: no file, no folder, no
    /// table. What can only be read (a file or a medium that is write-protected) can be read; all else
    /// is as with [`open`](Self::open).
    ///
    /// Memory is always there, and empty.
    ///
    /// # Errors
    ///
    /// [`StoreError::Missing`] if there is no store; else as [`open`](Self::open).
    pub async fn open_existing(url: &str) -> Result<Self, StoreError> {
        let place = Location::parse(url)?;
        let pool = existing::open(&place).await?;
        Ok(Self::new(pool, place))
    }

    fn new(pool: AnyPool, place: Location) -> Self {
        Self {
            pool,
            place: Arc::new(place),
            session_ttl: DEFAULT_SESSION_TTL,
            clock: Arc::new(epoch_ms),
            unwritten: Arc::new(watch::Sender::new(0)),
        }
    }

    /// How long a session is kept after its last use [default: [`DEFAULT_SESSION_TTL`]].
    #[must_use]
    pub fn session_ttl(mut self, ttl: Duration) -> Self {
        self.session_ttl = ttl;
        self
    }

    /// Take the time from this clock, in milliseconds since the Unix epoch, and not by that of the
    /// system. For tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Where it is, for a person: without a password.
    pub fn place(&self) -> String {
        self.place.to_string()
    }

    /// Close all connections, of all clones. SQLite then moves what is in the journal to the file.
    ///
    /// What a [`Recorder`](crate::Recorder) has still to write is waited for before, for some seconds at
    /// most. Without one nothing is lost by not closing.
    pub async fn close(&self) {
        self.settled(open::PATIENCE).await;
        self.pool.close().await;
    }

    /// Waits until recorders have nothing left to write, and returns whether that is so.
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
            // Memory is gone with its connection.
            reusable: matches!(*self.place, Location::Memory),
            is_remote: matches!(*self.place, Location::Server { .. }),
        })
    }

    /// The time in milliseconds since the Unix epoch.
    pub(crate) fn now(&self) -> u64 {
        (self.clock)()
    }

    pub(crate) fn ttl(&self) -> Duration {
        self.session_ttl
    }

    /// Make an error of one of the database.
    pub(crate) fn failed(&self, doing: &'static str, error: &sqlx::Error) -> StoreError {
        StoreError::Query {
            doing,
            place: self.place(),
            reason: explain(error),
        }
    }

    /// Executes, and returns how many rows were changed.
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

    /// All rows.
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

/// A batch that is not written yet.
pub(crate) struct Unwritten(Arc<watch::Sender<usize>>);

impl Drop for Unwritten {
    fn drop(&mut self) {
        self.0.send_modify(|unwritten| *unwritten -= 1);
    }
}

/// The connection, for one statement.
///
/// If the answer is not waited for, the server or the disk may never give it. The pool would wait for it
/// before it lent the connection again, so such a one is dropped, and the next gets a fresh one.
struct Borrowed {
    connection: Option<PoolConnection<Any>>,
    reusable: bool,
    is_remote: bool,
}

impl Borrowed {
    fn connection(&mut self) -> Result<&mut AnyConnection, sqlx::Error> {
        // It is there until this is dropped.
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
            // The pool takes it.
            _ => {}
        }
    }
}

/// Boxed, because the compiler cannot see of sqlx's own futures that a task may have them.
pub(crate) type StoreFuture<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;
