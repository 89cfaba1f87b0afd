//! Limits of accounts that the processes of this store share.

use std::ffi::OsString;
use std::fmt;

use futures_core::future::BoxFuture;
use teamster_orchestrator::{Candidate, Held, SharedHolds};
use teamster_providers::Providers;
use teamster_providers::doctor::login_in;
use teamster_store::Store;

use crate::params::CLEAN_ENV;
use crate::{environment, login};

/// Salt of the marks. The store is its user's own: it needs no secret.
const SALT: &[u8] = b"teamster account";

/// The holds in a store, by the login of an agent.
pub(crate) struct StoredHolds {
    store: Store,
    providers: Providers,
    /// The agent has a few of this process's variables only.
    clean_env: bool,
}

impl fmt::Debug for StoredHolds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredHolds")
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl StoredHolds {
    pub(crate) fn new(store: Store, providers: Providers, clean_env: bool) -> Self {
        Self {
            store,
            providers,
            clean_env,
        }
    }

    /// Returns the mark of the login that this candidate uses; `None` for an agent that is not known.
    fn account(&self, candidate: &Candidate) -> Option<String> {
        let provider = self.providers.get(candidate.provider())?;
        let variable = |name: &str| -> Option<OsString> {
            if let Some(own) = candidate.params.env.get(name) {
                return Some(own.into());
            }
            let inherits = !self.clean_env || CLEAN_ENV.contains(&name);
            inherits.then(|| environment::variable(name)).flatten()
        };
        let info = provider.info();
        let from = login_in(info, &variable).from;
        let machine = machine();
        Some(login::mark(
            SALT,
            &machine,
            info.id,
            from.as_deref(),
            &variable,
        ))
    }
}

/// Returns the name of this machine: several may use one store on a server.
fn machine() -> String {
    let name = nix::unistd::gethostname().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

impl SharedHolds for StoredHolds {
    fn holds<'a>(&'a self, candidate: &'a Candidate) -> BoxFuture<'a, Vec<Held>> {
        Box::pin(async move {
            let Some(account) = self.account(candidate) else {
                return Vec::new();
            };
            // Without the store, the service itself is asked.
            self.store.holds(Some(&account)).await.unwrap_or_default()
        })
    }

    fn hold<'a>(&'a self, candidate: &'a Candidate, held: &'a Held) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(account) = self.account(candidate) {
                // The next run asks the service itself.
                let _ = self.store.hold(&account, held).await;
            }
        })
    }
}
