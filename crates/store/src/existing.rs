//! Opening an existing store without creating anything.

use std::fs;
use std::io;

use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyPool, Row};

use crate::StoreError;
use crate::error::explain;
use crate::location::Location;
use crate::open::{
    cannot_open, explain_io, give_back, has_tables, migrate, pool, reach, up_to_date,
};

pub(crate) async fn open(location: &Location) -> Result<AnyPool, StoreError> {
    sqlx::any::install_default_drivers();
    let failed = |error: &sqlx::Error| cannot_open(location, explain(error));
    let options = location.options().map_err(|error| failed(&error))?;
    if let Location::File(path) = location {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                let error = io::Error::from(io::ErrorKind::IsADirectory);
                return Err(cannot_open(location, explain_io(&error)));
            }
            // A process that was killed before it created the tables leaves an empty file.
            Ok(found) if found.len() == 0 => return Err(missing(location)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(missing(location)),
            Err(error) => return Err(cannot_open(location, explain_io(&error))),
            Ok(_) => {}
        }
    }
    let pool_of = pool(location, options.clone());
    let ready = async {
        match location {
            Location::Memory => {
                let connection = pool_of.acquire().await;
                let mut connection = connection.map_err(|error| failed(&error))?;
                migrate(&mut connection, location).await.map(|()| true)
            }
            Location::Server { .. } => {
                let mut connection = reach(&pool_of, &options, location).await?;
                check(&mut connection, location).await?;
                give_back(connection);
                Ok(true)
            }
            Location::File(_) => {
                let connection = pool_of.acquire().await;
                let mut connection = connection.map_err(|error| failed(&error))?;
                // The journal needs two files beside the database, also for reading.
                let readable = sqlx::query("SELECT count(*) FROM sqlite_master")
                    .fetch_one(&mut *connection)
                    .await
                    .and_then(|row| row.try_get::<i64, _>(0));
                match readable {
                    Err(error) if is_protected(&error) => Ok(false),
                    // The check reports any other problem.
                    _ => check(&mut connection, location).await.map(|()| true),
                }
            }
        }
    };
    match ready.await {
        Ok(true) => return Ok(pool_of),
        Ok(false) => pool_of.close().await,
        Err(error) => {
            pool_of.close().await;
            return Err(error);
        }
    }
    // A file that cannot be written does not change while it is read. Its journal is not read, and may have its last
    // entries, or all of them.
    if has_journal(location) {
        let reason = "its journal (`-wal`) cannot be read where nothing can be written; copy both files to a folder that \
                      can be written";
        return Err(cannot_open(location, reason.into()));
    }
    let options = location.immutable().map_err(|error| failed(&error))?;
    let pool_of = pool(location, options);
    let ready = async {
        let connection = pool_of.acquire().await;
        let mut connection = connection.map_err(|error| failed(&error))?;
        check(&mut connection, location).await
    };
    match ready.await {
        Ok(()) => Ok(pool_of),
        Err(error) => {
            pool_of.close().await;
            Err(error)
        }
    }
}

/// Checks that the tables exist and have the current version.
async fn check(
    connection: &mut PoolConnection<Any>,
    location: &Location,
) -> Result<(), StoreError> {
    if up_to_date(connection, location).await? {
        return Ok(());
    }
    if matches!(location, Location::File(_)) && !has_tables(connection, location).await? {
        return Err(missing(location));
    }
    let asked = sqlx::query("SELECT run_id FROM teamster_runs LIMIT 1");
    match asked.fetch_optional(&mut **connection).await {
        Ok(_) => {
            let reason = "its tables are not those of this version of the program; a run that is kept \
                          in it brings them up to date";
            Err(cannot_open(location, reason.into()))
        }
        // No such table: either the creator was killed before, or the schema is empty.
        Err(sqlx::Error::Database(error))
            if matches!(error.code().as_deref(), Some("42P01" | "1")) =>
        {
            Err(missing(location))
        }
        Err(error) => Err(cannot_open(location, explain(&error))),
    }
}

fn missing(location: &Location) -> StoreError {
    StoreError::Missing {
        location: location.to_string(),
    }
}

fn has_journal(location: &Location) -> bool {
    let Location::File(path) = location else {
        return false;
    };
    let mut journal = path.clone().into_os_string();
    journal.push("-wal");
    fs::metadata(journal).is_ok_and(|found| found.len() > 0)
}

/// Returns whether SQLite failed because it cannot write: `CANTOPEN` or `READONLY`.
fn is_protected(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else {
        return false;
    };
    let code = error.code().unwrap_or_default();
    code.parse::<u32>()
        .is_ok_and(|code| matches!(code & 0xff, 8 | 14))
}
