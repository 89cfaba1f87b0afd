//! Location of the store of sessions and runs.

use std::env;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail};
use teamster::store::{Store, StoreError};
use tokio::time::timeout;

use crate::args::{STORE_VARIABLE, StoreArgs};
use crate::words;

/// The time limit for closing the store.
const CLOSING: Duration = Duration::from_secs(2);

/// The default store in the state directory.
const FILE: &str = "teamster/store.db";

/// The value that turns the store off.
const OFF: &str = "off";

/// Returns the location of the store: this one, else `TEAMSTER_STORE`, else the default file. `None` if it is turned off
/// or there is no state directory.
pub(crate) fn location(store: Option<&str>) -> Option<String> {
    match named(store) {
        Some(url) if url.is_empty() || url == OFF => None,
        Some(url) => Some(url),
        None => {
            let file = state_file(FILE)?;
            Some(file.to_str()?.to_owned())
        }
    }
}

/// Returns this store, else the one of the environment.
pub(crate) fn named(store: Option<&str>) -> Option<String> {
    let variable = || env::var(STORE_VARIABLE).ok();
    store.map(str::to_owned).or_else(variable)
}

/// Returns a path in the user's state directory; `None` if there is no such directory.
pub(crate) fn state_file(name: &str) -> Option<PathBuf> {
    file_in(name, |name| env::var_os(name).map(PathBuf::from))
}

/// Returns a path in the state directory of the XDG base directory specification.
fn file_in(name: &str, variable: impl Fn(&str) -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |path: &PathBuf| path.is_absolute();
    let state = variable("XDG_STATE_HOME").filter(absolute).or_else(|| {
        let home = variable("HOME").filter(absolute)?;
        Some(home.join(".local/state"))
    })?;
    Some(state.join(name))
}

/// Opens the store for a command about it. Returns `None` if the user's default store does not exist yet.
pub(crate) async fn open(args: &StoreArgs) -> anyhow::Result<Option<Store>> {
    let location = location(args.url.as_deref())
        .context("no store: set one with --store or TEAMSTER_STORE (`off` turns it off)")?;
    match Store::open_existing(&location).await {
        Ok(store) => Ok(Some(store)),
        Err(missing @ StoreError::Missing { .. }) if args.url.is_none() => {
            let missing = words::printable(&missing.to_string());
            // Without stderr the message cannot be shown.
            let _ = writeln!(
                anstream::stderr(),
                "{missing}: the first `teamster run` creates it"
            );
            Ok(None)
        }
        Err(missing @ StoreError::Missing { .. }) => {
            bail!("{missing}: correct --store or TEAMSTER_STORE")
        }
        Err(error) => Err(error.into()),
    }
}

/// Closes the store within [`CLOSING`]. Recorded data is safe even if that fails.
pub(crate) async fn close(store: &Store) {
    // After the time limit, the end of the process closes the connections.
    let _ = timeout(CLOSING, store.close()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(state: Option<&str>, home: Option<&str>) -> Option<String> {
        let file = file_in(FILE, |name| match name {
            "XDG_STATE_HOME" => state.map(PathBuf::from),
            "HOME" => home.map(PathBuf::from),
            _ => None,
        })?;
        file.to_str().map(str::to_owned)
    }

    #[test]
    fn the_users_own_store() {
        assert_eq!(
            file(Some("/s"), Some("/h")).unwrap(),
            "/s/teamster/store.db"
        );
        assert_eq!(
            file(Some("relative"), Some("/h")).unwrap(),
            "/h/.local/state/teamster/store.db"
        );
        assert_eq!(file(None, Some("relative")), None);
        assert_eq!(file(None, None), None);
    }

    #[test]
    fn a_store_can_be_turned_off() {
        for (url, expected) in [("off", None), ("", None), ("/x.db", Some("/x.db"))] {
            assert_eq!(location(Some(url)).as_deref(), expected);
        }
    }
}
