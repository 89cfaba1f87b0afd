//! Opening a database and migrating its tables.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType};
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, Connection, Row, SqlSafeStr};

use crate::StoreError;
use crate::error::{explain, explain_migration, is_busy};
use crate::location::Location;

/// All versions of the tables, oldest first. Both databases use the same SQL.
const MIGRATIONS: &[(i64, &str, &str)] =
    &[(1, "tables", include_str!("../migrations/0001_tables.sql"))];

/// Table of the applied migrations. Its name is specific, because a PostgreSQL database may be shared with other
/// programs that use sqlx.
const TABLE: &str = "teamster_migrations";

/// Time limit of waiting for a server or a lock.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Time limit of the check that a server's connection can be reused. After it the next caller gets a new connection.
const SIGN_OF_LIFE: Duration = Duration::from_secs(1);

/// Time after which a separate connection attempt finds out why a server is slow. Most servers take less, TLS included.
const ASKED_WHY_AFTER: Duration = Duration::from_millis(500);

pub(crate) async fn open(location: &Location) -> Result<AnyPool, StoreError> {
    // A program that also uses sqlx gets the same drivers if it calls this too.
    sqlx::any::install_default_drivers();
    let failed = |error: &sqlx::Error| cannot_open(location, explain(error));
    let options = location.options().map_err(|error| failed(&error))?;
    let pool = pool(location, options.clone());
    let ready = async {
        match location {
            Location::Memory => {
                let mut connection = pool.acquire().await.map_err(|error| failed(&error))?;
                migrate(&mut connection, location).await
            }
            Location::File(path) => {
                make_file(path).map_err(|error| cannot_open(location, explain_io(&error)))?;
                let mut connection = pool.acquire().await.map_err(|error| failed(&error))?;
                migrate_file(&mut connection, location).await
            }
            Location::Server { .. } => {
                let mut connection = reach(&pool, &options, location).await?;
                let ready = migrate(&mut connection, location).await;
                if ready.is_ok() {
                    give_back(connection);
                } else {
                    // The connection may hold the lock of a failed migration, which ends with it.
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

/// Creates a pool of one connection.
///
/// The statements of a store take far less time than opening a second connection, which takes some hundred
/// milliseconds with TLS. The pool would open it before the first one is returned.
pub(crate) fn pool(location: &Location, options: AnyConnectOptions) -> AnyPool {
    let pool = AnyPoolOptions::new()
        .max_connections(1)
        // The first caller may wait for a lock for its whole time limit, and so may the next one.
        .acquire_timeout(3 * PATIENCE);
    let pool = match location {
        // A memory database lives as long as its connection.
        Location::Memory => pool.idle_timeout(None).max_lifetime(None),
        Location::File(_) => for_file(pool),
        Location::Server { .. } => pool,
    };
    pool.connect_lazy_with(options)
}

/// Opens the first connection to a server.
pub(crate) async fn reach(
    pool: &AnyPool,
    options: &AnyConnectOptions,
    location: &Location,
) -> Result<PoolConnection<Any>, StoreError> {
    let failed = |error: &sqlx::Error| cannot_open(location, explain(error));
    let mut acquiring = Box::pin(pool.acquire());
    if let Ok(first) = tokio::time::timeout(ASKED_WHY_AFTER, &mut acquiring).await {
        return first.map_err(|error| failed(&error));
    }
    // The pool retries an unreachable server and loses the reason.
    let connecting = AnyConnection::connect_with(options);
    let connection = tokio::time::timeout(PATIENCE, connecting)
        .await
        .map_err(|_| {
            let reason = "the server did not answer in time; can it be reached?";
            cannot_open(location, reason.into())
        })?
        .map_err(|error| failed(&error))?;
    let _ = connection.close().await;
    acquiring.await.map_err(|error| failed(&error))
}

/// Returns the connection of a server to its pool.
///
/// The pool pings the server in the background before it accepts the connection, without a time limit. It has no other
/// connection to lend meanwhile. So a server that hangs at this moment would leave the pool without a connection.
pub(crate) fn give_back(mut connection: PoolConnection<Any>) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        // The pool needs a runtime as well. Without one, close the connection.
        drop(connection.detach());
        return;
    };
    let returned = connection.return_to_pool();
    // After the time limit the connection is closed with the future.
    runtime.spawn(tokio::time::timeout(SIGN_OF_LIFE, returned));
}

fn for_file(pool: AnyPoolOptions) -> AnyPoolOptions {
    pool.after_connect(|connection, _| {
        Box::pin(async move {
            // A commit survives the death of every process. A power failure may cost the last commits, but
            // not the database. FULL would cost an fsync for each write of a run, to protect a line of
            // history.
            let patience = format!("PRAGMA busy_timeout = {}", PATIENCE.as_millis());
            // The first one to open a file that was left reads its whole journal. Default: 1000 pages of 4 KiB.
            let journal = "PRAGMA wal_autocheckpoint = 200";
            // What is deleted, such as a prompt, is overwritten and not only marked as free.
            let deletion = "PRAGMA secure_delete = ON";
            for pragma in [&*patience, "PRAGMA synchronous = NORMAL", journal, deletion] {
                // The pool would retry a failure and lose the reason. The first use of a file that is not a
                // database returns it.
                let _ = sqlx::raw_sql(sqlx::AssertSqlSafe(pragma.to_owned()))
                    .execute(&mut *connection)
                    .await;
            }
            Ok(())
        })
    })
}

/// Creates the file and its folder for this user alone. SQLite gives the files that it creates beside it (`-wal`,
/// `-shm`) the same permissions. Existing files are not changed.
fn make_file(path: &Path) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder)?;
    }
    if path.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory));
    }
    let mut options = fs::OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Creates or updates the tables. Another process may do the same at this moment.
async fn migrate_file(
    connection: &mut AnyConnection,
    location: &Location,
) -> Result<(), StoreError> {
    if up_to_date(connection, location).await? {
        return Ok(());
    }
    let failed = |error: &sqlx::Error| cannot_open(location, explain(error));
    // Checked before any change.
    has_tables(connection, location).await?;
    write_ahead(connection)
        .await
        .map_err(|error| failed(&error))?;
    // sqlx has no lock for migrations of SQLite. This transaction waits for other processes, and then finds their
    // migrations applied.
    let mut transaction = connection
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(|error| failed(&error))?;
    migrate(&mut transaction, location).await?;
    transaction.commit().await.map_err(|error| failed(&error))
}

/// Returns whether a file has tables. Refuses those of another program.
pub(crate) async fn has_tables(
    connection: &mut AnyConnection,
    location: &Location,
) -> Result<bool, StoreError> {
    let failed = |error: &sqlx::Error| cannot_open(location, explain(error));
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
            location: location.to_string(),
            table: table.clone(),
        });
    }
    Ok(!tables.is_empty())
}

/// Switches the file to a write-ahead log, so that readers and the writer do not wait for each other. The file keeps
/// this mode.
///
/// SQLite does not wait for a lock here, so processes that open a new file at once have to retry.
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
            // Without shared memory (on some network file systems) the rollback journal stays, which works too.
            other => return other.map(drop),
        }
    }
}

pub(crate) async fn migrate(
    connection: &mut AnyConnection,
    location: &Location,
) -> Result<(), StoreError> {
    if up_to_date(connection, location).await? {
        return Ok(());
    }
    // sqlx's `Migrator` is not used, because its future is not known to be `Send`.
    let failed = |error: &MigrateError| cannot_open(location, explain_migration(error));
    let applied = async {
        // On a server, only one process at a time. The lock is held until the connection is closed.
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

/// Returns whether the tables are up to date. This is checked first, because it costs one query and no lock, and
/// because users of the tables need no right to create some.
pub(crate) async fn up_to_date(
    connection: &mut AnyConnection,
    location: &Location,
) -> Result<bool, StoreError> {
    let applied = match connection.list_applied_migrations(TABLE).await {
        Ok(applied) => applied,
        // Most likely the table is missing. Any other error recurs in the next step.
        Err(MigrateError::Execute(sqlx::Error::Database(error)))
            if !matches!(error.code().as_deref(), Some("11" | "26")) =>
        {
            return Ok(false);
        }
        Err(error) => return Err(cannot_open(location, explain_migration(&error))),
    };
    let known = MIGRATIONS.iter().map(|(version, ..)| *version).max();
    let known = known.unwrap_or(0);
    if let Some(newest) = applied.iter().map(|migration| migration.version).max()
        && newest > known
    {
        return Err(StoreError::Newer {
            location: location.to_string(),
            found: newest,
            known,
        });
    }
    Ok(migrations().iter().all(|migration| {
        applied
            .iter()
            .any(|a| a.version == migration.version && a.checksum == migration.checksum)
    }))
}

fn migrations() -> Vec<Migration> {
    let all = MIGRATIONS.iter().map(|&(version, description, sql)| {
        let kind = MigrationType::Simple;
        Migration::new(version, description.into(), kind, sql.into_sql_str(), false)
    });
    all.collect()
}

pub(crate) fn cannot_open(location: &Location, reason: String) -> StoreError {
    StoreError::Open {
        location: location.to_string(),
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
