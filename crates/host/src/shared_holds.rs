//! What the processes of a store share of an account: limits that it has reached, its slots, and the renewal of its login.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use teamster_core::time::{epoch_ms, millis};
use teamster_core::{CliInfo, ExecuteParams};
use teamster_orchestrator::{Candidate, Held, Permit, SharedHolds};
use teamster_providers::Providers;
use teamster_providers::doctor::{login_in, token_expiry};
use teamster_store::{Conversation, SessionOrLock, Store, StoreError};
use tokio::time::{Instant, sleep};

use crate::{Host, environment, login};

/// Salt of the marks. The store is its user's own: it needs no secret.
const SALT: &[u8] = b"teamster account";

/// Name of the locks of logins that are renewed. No channel and no agent has it.
const RENEWAL: &str = "=login";
/// Name of the locks of slots.
const SLOT: &str = "=slot";
/// Interval of looks for a free slot.
const SLOT_CHECK: Duration = Duration::from_millis(500);
/// Time before the end of a token within which CLIs renew it, and a minute to start in. Gemini CLI renews it 5 minutes
/// before (`eagerRefreshThresholdMillis` of google-auth-library). Earlier, runs would wait for nothing.
const RENEWED_BEFORE: Duration = Duration::from_mins(6);
/// Time after the end of a token from which on its CLI is taken not to use it, such as one with a key in its settings:
/// otherwise each of its runs would hold the others back. A login that is used has a newer token.
const UNUSED_AFTER: Duration = Duration::from_hours(30 * 24);
/// Time for which others wait until the login is renewed: the CLI may start no request, or renew it later.
const RENEWAL_LIMIT: Duration = Duration::from_secs(20);
/// Interval of looks at the file of the login.
const RENEWAL_CHECK: Duration = Duration::from_millis(100);

struct AccountLogin {
    /// Its mark in the store.
    mark: String,
    info: &'static CliInfo,
    /// The variable or file that has it.
    from: Option<String>,
    expires_at_ms: Option<u64>,
}

/// Returns whether the token of a login that ends at this time, in milliseconds since the Unix epoch, is renewed by the
/// next request, so that runs wait for each other.
pub fn is_token_ending(expires_at_ms: u64, now_ms: u64) -> bool {
    let soon = now_ms.saturating_add(millis(RENEWED_BEFORE));
    let unused = now_ms.saturating_sub(millis(UNUSED_AFTER));
    (unused..=soon).contains(&expires_at_ms)
}

/// Returns whether an agent with these parameters may renew its login when it is started.
pub(crate) fn is_login_ending(info: &CliInfo, params: &ExecuteParams, clean_env: bool) -> bool {
    let variable = |name: &str| environment::of_agent(params, clean_env, name);
    let ends = login_in(info, &variable).expires_at_ms;
    ends.is_some_and(|at| is_token_ending(at, epoch_ms()))
}

impl AccountLogin {
    /// Returns whether the file has another token now, or none.
    fn is_renewed(&self) -> bool {
        let file = self.from.as_deref().map(Path::new);
        file.and_then(|file| token_expiry(self.info, file)) != self.expires_at_ms
    }
}

/// The holds in a store, by the login of an agent.
pub(crate) struct StoredHolds {
    store: Store,
    providers: Providers,
    /// The agent has a few of this process's variables only.
    clean_env: bool,
    /// Numbers of slots, by the name of the account.
    slots: BTreeMap<String, u32>,
}

teamster_core::debug_fields!(StoredHolds { store });

impl StoredHolds {
    pub(crate) fn new(host: &Host, store: Store, clean_env: bool) -> Self {
        // A run that names an account is refused if the file cannot be used.
        let accounts = host.accounts().unwrap_or_default().into_iter();
        Self {
            store,
            providers: host.providers().clone(),
            clean_env,
            slots: accounts
                .filter_map(|it| Some((it.name, it.slots?)))
                .collect(),
        }
    }

    /// Returns the login that this candidate uses; `None` for an agent that is not known.
    fn login(&self, candidate: &Candidate) -> Option<AccountLogin> {
        let provider = self.providers.get(candidate.provider())?;
        let variable = |name: &str| environment::of_agent(&candidate.params, self.clean_env, name);
        let info = provider.info();
        let found = login_in(info, &variable);
        let from = found.from.as_deref();
        Some(AccountLogin {
            mark: login::mark(SALT, &machine(), info.id, from, &variable),
            info,
            expires_at_ms: found.expires_at_ms,
            from: found.from,
        })
    }

    /// Waits for one of the account's slots, which all processes share.
    async fn slot(&self, candidate: &Candidate, login: &AccountLogin) -> Option<Permit> {
        let slots = *self.slots.get(candidate.account.as_deref()?)?;
        let account = Conversation::new().channel(SLOT).user(&*login.mark);
        loop {
            for number in 0..slots {
                let key = account.clone().thread(number.to_string()).with(SLOT);
                match self.store.session_or_lock(&key, Duration::ZERO).await {
                    Ok(SessionOrLock::Lock(lock)) => return Some(Box::new(lock)),
                    Err(StoreError::SessionBeginning { .. }) => {}
                    // Without the store, there are no limits.
                    _ => return None,
                }
            }
            sleep(SLOT_CHECK).await;
        }
    }

    /// Waits while another process renews a login that ends. If none does, the others wait for this one.
    async fn renewal(&self, login: AccountLogin) {
        let account = Conversation::new().channel(RENEWAL).user(&*login.mark);
        let key = account.with(RENEWAL);
        // Without the store, or if the first one takes too long, nothing waits.
        let Ok(SessionOrLock::Lock(lock)) = self.store.session_or_lock(&key, RENEWAL_LIMIT).await
        else {
            return;
        };
        if login.is_renewed() {
            // By the process that had the lock before.
            return;
        }
        // This one starts; the others wait until its CLI has renewed the login.
        tokio::spawn(async move {
            let until = Instant::now() + RENEWAL_LIMIT;
            while !login.is_renewed() && Instant::now() < until {
                sleep(RENEWAL_CHECK).await;
            }
            drop(lock);
        });
    }
}

/// Returns the name of this machine: several may use one store on a server.
fn machine() -> String {
    let name = nix::unistd::gethostname().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[async_trait::async_trait]
impl SharedHolds for StoredHolds {
    async fn holds(&self, candidate: &Candidate) -> Vec<Held> {
        let Some(login) = self.login(candidate) else {
            return Vec::new();
        };
        // Without the store, the service itself is asked.
        self.store
            .holds(Some(&login.mark))
            .await
            .unwrap_or_default()
    }

    async fn may_start(&self, candidate: &Candidate) -> Option<Permit> {
        let login = self.login(candidate)?;
        let slot = self.slot(candidate, &login).await;
        let ends = login.expires_at_ms;
        if ends.is_some_and(|at| is_token_ending(at, epoch_ms())) {
            self.renewal(login).await;
        }
        slot
    }

    async fn hold(&self, candidate: &Candidate, held: &Held) {
        if let Some(login) = self.login(candidate) {
            // The next run asks the service itself.
            let _ = self.store.hold(&login.mark, held).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_is_renewed_near_its_end_and_for_a_month_after() {
        let minutes = |minutes: u64| minutes * 60_000;
        let now_ms = minutes(1_000_000);
        assert!(!is_token_ending(now_ms + minutes(7), now_ms));
        assert!(is_token_ending(now_ms + minutes(5), now_ms));
        assert!(is_token_ending(now_ms - minutes(29 * 24 * 60), now_ms));
        assert!(!is_token_ending(now_ms - minutes(31 * 24 * 60), now_ms));
    }
}
