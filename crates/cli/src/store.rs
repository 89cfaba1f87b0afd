//! The store of a command about it.

use anyhow::{Context, bail};
use teamster::store::{Store, StoreError};
use teamster_host::store_location;

use crate::args::StoreArgs;
use crate::words;

/// Opens the store for a command about it. Returns `None` if the user's default store does not exist yet.
pub(crate) async fn open(args: &StoreArgs) -> anyhow::Result<Option<Store>> {
    let location = store_location(args.url.as_deref())
        .context("no store: set one with --store or TEAMSTER_STORE (`off` turns it off)")?;
    match Store::open_existing(&location).await {
        Ok(store) => Ok(Some(store)),
        Err(missing @ StoreError::Missing { .. }) if args.url.is_none() => {
            let missing = words::printable(&missing.to_string());
            crate::report::note(&format!("{missing}: the first `teamster run` creates it"));
            Ok(None)
        }
        Err(missing @ StoreError::Missing { .. }) => {
            bail!("{missing}: correct --store or TEAMSTER_STORE")
        }
        Err(error) => Err(error.into()),
    }
}
