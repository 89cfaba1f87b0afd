//! From a name to a database whose tables are those that this program knows.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType};
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, Connection, Row, SqlSafeStr};

use crate::StoreError;
use crate::error::{explain, explain_migration, is_busy};
use crate::location::Location;

/// Every version of the tables, oldest first. Both databases get the same text.
const MIGRATIONS: &[(i64, &str, &str)] = &[
    (
        1,
        "sessions and runs",
        include_str!("../migrations/0001_sessions_and_runs.sql"),
    ),
    (2, "errors", include_str!("../migrations/0002_errors.sql")),
];

/// Which migrations a database has had. A name of its own, because a PostgreSQL database may be shared
/// with other programs that use sqlx.
const TABLE: &str = "teamster_migrations";

/// How long to wait for a server and for a lock.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// How long a server may take to say that a connection can be lent again. If it takes longer the next one
/// is a new one, so nothing is lost.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// How long a server may take before it is asked why. Most take less, TLS included.
const ASKED_WHY_AFTER: Duration = Duration::from_millis(500);

pub(crate) async fn open(place: &Location) -> Result<AnyPool, StoreError> {
    // Those of a program that uses sqlx too are the same ones, if it calls this too.
    sqlx::any::install_default_drivers();
    let failed = |error: &sqlx::Error| cannot_open(place, explain(error));
    let options = place.options().map_err(|error| failed(&error))?;
    let pool = pool(place, options.clone());
    let ready = async {
        match place {
            Location::Memory => {
                let mut connection = pool.acquire().await.map_err(|error| failed(&error))?;
                migrate(&mut connection, place).await
            }
            Location::File(path) => {
                make_file(path).map_err(|error| cannot_open(place, explain_io(&error)))?;
                let mut connection = pool.acquire().await.map_err(|error| failed(&error))?;
                migrate_file(&mut connection, place).await
            }
            Location::Server { .. } => {
                let mut connection = reach(&pool, &options, place).await?;
                let ready = migrate(&mut connection, place).await;
                if ready.is_ok() {
                    give_back(connection);
                } else {
                    // It may hold the lock of a migration that failed, which ends with it.
                    let _ = connection.close().await;
                }
                ready
            }
        }
    };
    if let Err(error) = ready.await {
        pool.close().await;
        return Err(error);
    }
    Ok(pool)
}

/// One connection. What a store is asked takes far less time than to open a second one (with TLS some
/// hundred milliseconds), which the pool would do before the first has come back to it.
pub(crate) fn pool(place: &Location, options: AnyConnectOptions) -> AnyPool {
    let pool = AnyPoolOptions::new()
        .max_connections(1)
        // Who is first may wait for a lock for all of its patience, and then the next one.
        .acquire_timeout(3 * PATIENCE);
    let pool = match place {
        // The database is that of its connection.
        Location::Memory => pool.idle_timeout(None).max_lifetime(None),
        Location::File(_) => for_file(pool),
        Location::Server { .. } => pool,
    };
    pool.connect_lazy_with(options)
}

/// The first connection to a server.
pub(crate) async fn reach(
    pool: &AnyPool,
    options: &AnyConnectOptions,
    place: &Location,
) -> Result<PoolConnection<Any>, StoreError> {
    let failed = |error: &sqlx::Error| cannot_open(place, explain(error));
    let mut acquiring = Box::pin(pool.acquire());
    if let Ok(first) = tokio::time::timeout(ASKED_WHY_AFTER, &mut acquiring).await {
        return first.map_err(|error| failed(&error));
    }
    // The pool tries a server that is not there again and again, and loses the reason.
    let connecting = AnyConnection::connect_with(options);
    let connection = tokio::time::timeout(PATIENCE, connecting)
        .await
        .map_err(|_| {
            let reason = "the server did not answer in time; can it be reached?";
            cannot_open(place, reason.into())
        })?
        .map_err(|error| failed(&error))?;
    let _ = connection.close().await;
    acquiring.await.map_err(|error| failed(&error))
}

/// Give the connection to a server back to its pool.
///
/// The pool asks the server for a sign of life before it takes it, in the background, and waits for that
/// forever. It has no other connection to lend meanwhile, so a server that is stopped at this moment
/// would leave it without any.
pub(crate) fn give_back(mut connection: PoolConnection<Any>) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        // The pool needs one too. Without, the connection is closed.
        drop(connection.detach());
        return;
    };
    let returned = connection.return_to_pool();
    // Who does not answer in time is closed with the future.
    runtime.spawn(tokio::time::timeout(SIGN_OF_LIFE, returned));
}

fn for_file(pool: AnyPoolOptions) -> AnyPoolOptions {
    pool.after_connect(|connection, _| {
        Box::pin(async move {
            // What was committed survives the death of every process; a failure of the power may
            // cost the last commits, but never the database. FULL would cost an fsync for each of
            // the writes of a run, and what could be lost is a line of history.
            let patience = format!("PRAGMA busy_timeout = {}", PATIENCE.as_millis());
            for pragma in [&*patience, "PRAGMA synchronous = NORMAL"] {
                // The pool would retry and lose the reason: the first use of a file
                // that is no database returns it.
                let _ = sqlx::raw_sql(sqlx::AssertSqlSafe(pragma.to_owned()))
                    .execute(&mut *connection)
                    .await;
            }
            Ok(())
        })
    })
}

/// Make the file, and the folder that it is in, for the user alone. SQLite gives the files that it makes
/// beside it (`-wal`, `-shm`) the same permissions. What is there already stays as it is.
fn make_file(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    if path.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// See that the tables are there. Another process may be doing the same at this moment.
async fn migrate_file(connection: &mut AnyConnection, place: &Location) -> Result<(), StoreError> {
    if up_to_date(connection, place).await? {
        return Ok(());
    }
    let failed = |error: &sqlx::Error| cannot_open(place, explain(error));
    // Before anything is changed.
    has_tables(connection, place).await?;
    write_ahead(connection)
        .await
        .map_err(|error| failed(&error))?;
    // sqlx has no lock for migrations of SQLite. This one waits for its turn, and then finds the work
    // of the other done.
    let mut transaction = connection
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(|error| failed(&error))?;
    migrate(&mut transaction, place).await?;
    transaction.commit().await.map_err(|error| failed(&error))
}

/// Whether a file has tables. Those of another program are refused.
pub(crate) async fn has_tables(
    connection: &mut AnyConnection,
    place: &Location,
) -> Result<bool, StoreError> {
    let failed = |error: &sqlx::Error| cannot_open(place, explain(error));
    let tables = sqlx::query("SELECT name FROM sqlite_master WHERE type = 'table'")
        .fetch_all(&mut *connection)
        .await
        .map_err(|error| failed(&error))?;
    let tables = tables
        .iter()
        .map(|row| row.try_get::<String, _>(0))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| failed(&error))?;
    if let Some(table) = tables.first()
        && !tables.iter().any(|table| table == TABLE)
    {
        return Err(StoreError::Foreign {
            place: place.to_string(),
            table: table.clone(),
        });
    }
    Ok(!tables.is_empty())
}

/// Readers do not wait for the writer then, nor it for them. The file keeps it.
///
/// SQLite does not wait for its turn here, so several that open a new file at once have to.
async fn write_ahead(connection: &mut AnyConnection) -> Result<(), sqlx::Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let switched = sqlx::query("PRAGMA journal_mode = WAL")
            .fetch_one(&mut *connection)
            .await;
        match switched {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            // Where memory cannot be shared (some network file systems) it stays at the old journal,
            // which works too.
            other => return other.map(drop),
        }
    }
}

pub(crate) async fn migrate(
    connection: &mut AnyConnection,
    place: &Location,
) -> Result<(), StoreError> {
    if up_to_date(connection, place).await? {
        return Ok(());
    }
    // Not by sqlx's `Migrator`: a future of that is not known to be `Send`.
    let failed = |error: &MigrateError| cannot_open(place, explain_migration(error));
    let applied = async {
        // On a server only one process at a time. It holds the lock until its connection is closed.
        connection.lock().await?;
        connection.ensure_migrations_table(TABLE).await?;
        let applied = connection.list_applied_migrations(TABLE).await?;
        for migration in migrations() {
            match applied.iter().find(|a| a.version == migration.version) {
                None => drop(connection.apply(TABLE, &migration).await?),
                Some(other) if other.checksum != migration.checksum => {
                    return Err(MigrateError::VersionMismatch(migration.version));
                }
                Some(_) => {}
            }
        }
        connection.unlock().await
    };
    applied.await.map_err(|error| failed(&error))
}

/// Whether there is nothing to do. Asked first, because the answer costs one query and no lock, and
/// because who may use the tables need not have the right to make some.
pub(crate) async fn up_to_date(
    connection: &mut AnyConnection,
    place: &Location,
) -> Result<bool, StoreError> {
    let applied = match connection.list_applied_migrations(TABLE).await {
        Ok(applied) => applied,
        // No such table, most likely. Any other error recurs in the next step.
        Err(MigrateError::Execute(sqlx::Error::Database(error)))
            if !matches!(error.code().as_deref(), Some("11" | "26")) =>
        {
            return Ok(false);
        }
        Err(error) => return Err(cannot_open(place, explain_migration(&error))),
    };
    let migrations = migrations();
    let known = migrations.iter().map(|migration| migration.version).max();
    let known = known.unwrap_or(0);
    if let Some(newest) = applied.iter().map(|migration| migration.version).max()
        && newest > known
    {
        return Err(StoreError::Newer {
            place: place.to_string(),
            found: newest,
            known,
        });
    }
    let has = |migration: &Migration| {
        applied
            .iter()
            .any(|a| a.version == migration.version && a.checksum == migration.checksum)
    };
    Ok(migrations.iter().all(has))
}

fn migrations() -> Vec<Migration> {
    let migrations = MIGRATIONS.iter();
    migrations
        .map(|&(version, description, sql)| {
            let kind = MigrationType::Simple;
            Migration::new(version, description.into(), kind, sql.into_sql_str(), false)
        })
        .collect()
}

pub(crate) fn cannot_open(place: &Location, reason: String) -> StoreError {
    StoreError::Open {
        place: place.to_string(),
        reason,
    }
}

pub(crate) fn explain_io(error: &io::Error) -> String {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; name a file in a folder that can be written"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "; a part of the path is a file, name another"
        }
        io::ErrorKind::IsADirectory => "; name a file in it",
        io::ErrorKind::StorageFull => "; make room on the disk",
        _ => "",
    };
    format!("{error}{hint}")
}
