//! Databases for tests. Each test has its own.

use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sqlx::{AnyConnection, Connection};
use teamster_store::Store;
use tempfile::TempDir;

/// A new, empty database.
pub(crate) struct Database {
    url: String,
    /// Removed with the database.
    _folder: TempDir,
}

impl Database {
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("store.db").display());
        Self {
            url,
            _folder: folder,
        }
    }

    /// Creates a schema on the server. Returns `None`, with a note on stderr, if there is no server.
    pub(crate) async fn postgres() -> Option<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let Ok(server) = std::env::var("TEAMSTER_TEST_POSTGRES") else {
            not_run("PostgreSQL: TEAMSTER_TEST_POSTGRES is not set (.ci/postgres sets it)");
            return None;
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let schema = format!("test_{}_{number}", std::process::id());
        execute(&server, &format!("CREATE SCHEMA {schema}")).await;
        Some(Self {
            url: with_parameter(&server, &format!("options=-csearch_path%3D{schema}")),
            _folder: tempfile::tempdir().unwrap(),
        })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn is_sqlite(&self) -> bool {
        self.url.starts_with("sqlite:")
    }

    pub(crate) async fn open(&self) -> Store {
        Store::open(&self.url).await.unwrap()
    }

    /// Opens the store with a clock that stands still until it is set.
    pub(crate) async fn open_at(&self, ms: u64) -> (Store, Arc<AtomicU64>) {
        let clock = Arc::new(AtomicU64::new(ms));
        let read = Arc::clone(&clock);
        let store = self
            .open()
            .await
            .clock(move || read.load(Ordering::Relaxed));
        (store, clock)
    }

    /// Executes a statement directly, not through the store.
    pub(crate) async fn execute(&self, sql: &str) {
        execute(&self.url, sql).await;
    }
}

/// Prints a note to stderr directly, because the output of `eprintln!` in a passing test is not shown.
pub(crate) fn not_run(what: &'static str) {
    static PRINTED: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    if PRINTED.lock().unwrap().insert(what) {
        let text = format!("\nNOT RUN: the tests with {what}\n");
        io::stderr().write_all(text.as_bytes()).unwrap();
    }
}

pub(crate) fn with_parameter(url: &str, parameter: &str) -> String {
    let separator = if url.contains('?') { '&' } else { '?' };
    format!("{url}{separator}{parameter}")
}

pub(crate) async fn execute(url: &str, sql: &str) {
    sqlx::any::install_default_drivers();
    let mut connection = AnyConnection::connect(url).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()))
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
}

/// Defines the same test for each database: `name::sqlite` and `name::postgres`.
macro_rules! on_each_database {
    ($($(#[$meta:meta])* async fn $name:ident($database:ident) $body:block)*) => {$(
        $(#[$meta])*
        mod $name {
            #[allow(unused_imports, reason = "not every module has all of them")]
            use super::*;

            async fn check($database: $crate::support::Database) $body

            #[tokio::test(flavor = "multi_thread")]
            async fn sqlite() {
                check($crate::support::Database::sqlite()).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn postgres() {
                if let Some(database) = $crate::support::Database::postgres().await {
                    check(database).await;
                }
            }
        }
    )*};
}
