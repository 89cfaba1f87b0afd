//! Location of the store of sessions and runs.

use std::time::Duration;

use teamster_api::ServiceError;
use teamster_store::{Store, StoreError};
use tokio::time::timeout;

use crate::environment::{self, STORE_VARIABLE};
use crate::machine::failure;
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

/// The store that a service reads.
#[derive(Debug, Clone, Default)]
pub(crate) enum Source {
    /// The user's, which is opened for each call.
    #[default]
    OfUser,
    /// This one, which the caller closes; `None` if there is none.
    Given(Option<Store>),
}

impl Source {
    /// Calls `read` with the store; with `None` if it does not exist yet or is turned off.
    pub(crate) async fn with<T>(
        &self,
        read: impl AsyncFnOnce(Option<&Store>) -> Result<T, ServiceError>,
    ) -> Result<T, ServiceError> {
        if let Self::Given(store) = self {
            return read(store.as_ref()).await;
        }
        let store = match location(None) {
            Some(location) => match Store::open_existing(&location).await {
                Err(StoreError::Missing { .. }) => None,
                opened => Some(opened.map_err(|error| failure(&error.into()))?),
            },
            None => None,
        };
        let done = read(store.as_ref()).await;
        if let Some(store) = &store {
            close(store).await;
        }
        done
    }
}

/// Closes the store within two seconds. Recorded data is safe even if that fails.
pub async fn close(store: &Store) {
    // After the time limit, the end of the process closes the connections.
    let _ = timeout(CLOSING, store.close()).await;
}

/// [Leaves](Store::leave) the store to the end of this process, within two seconds.
pub(crate) async fn leave(store: &Store) {
    let _ = timeout(CLOSING, store.leave()).await;
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
