//! Location of the store of sessions and runs.

use std::time::Duration;

use teamster_store::Store;
use tokio::time::timeout;

use crate::environment::{self, STORE_VARIABLE};
use crate::state;

/// The time limit for closing the store.
const CLOSING: Duration = Duration::from_secs(2);

/// The default store in the state directory.
const FILE: &str = "teamster/store.db";

/// The value that turns the store off.
const OFF: &str = "off";

/// Returns the location of the store: this one, else `TEAMSTER_STORE`, else the default file. `None` if it is turned off
/// or there is no state directory.
pub fn location(store: Option<&str>) -> Option<String> {
    match named(store) {
        Some(url) if url.is_empty() || url == OFF => None,
        Some(url) => Some(url),
        None => {
            let file = state::file(FILE)?;
            Some(file.to_str()?.to_owned())
        }
    }
}

/// Returns this store, else the one of the environment.
pub(crate) fn named(store: Option<&str>) -> Option<String> {
    let variable = || environment::variable(STORE_VARIABLE)?.into_string().ok();
    store.map(str::to_owned).or_else(variable)
}

/// Closes the store within two seconds. Recorded data is safe even if that fails.
pub async fn close(store: &Store) {
    // After the time limit, the end of the process closes the connections.
    let _ = timeout(CLOSING, store.close()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_can_be_turned_off() {
        for (url, expected) in [("off", None), ("", None), ("/x.db", Some("/x.db"))] {
            assert_eq!(location(Some(url)).as_deref(), expected);
        }
    }
}
