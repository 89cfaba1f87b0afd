//! Reports of runs that this machine has refused, for those who ask why they wait.

use std::collections::HashMap;
use std::sync::Mutex;

use teamster_api::ServiceError;
use teamster_core::sync::lock;
use tokio::time::Instant;

use super::Shared;
use crate::names::RunKey;
use crate::presence::{REFUSED, Refusal};

/// What was reported, and when.
#[derive(Default)]
pub(super) struct Refusals(Mutex<HashMap<RunKey, (String, Instant)>>);

impl Refusals {
    /// Returns whether a refusal is to be reported: it is another one, or the last report is about to pass.
    fn is_new(&self, key: &RunKey, reason: &str) -> bool {
        let mut known = lock(&self.0);
        let now = Instant::now();
        known.retain(|_, (_, at)| now - *at < REFUSED / 2);
        if known.get(key).is_some_and(|(same, _)| same == reason) {
            return false;
        }
        known.insert(key.clone(), (reason.to_owned(), now));
        true
    }
}

/// Reports that a run is not carried out here.
pub(super) async fn report(shared: &Shared, key: &RunKey, error: &ServiceError) {
    if !shared.refusals.is_new(key, &error.message) {
        return;
    }
    shared.notice(key, format!("is not carried out here: {error}"));
    let refusal = Refusal {
        worker: shared.config.name.clone(),
        reason: error.message.clone(),
    };
    shared.fleet.refuse(key, &refusal).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn refusal_that_changes_or_ends_soon_is_reported_again() {
        let refusals = Refusals::default();
        let key = RunKey::new("ann", "r");
        let report = |reason| refusals.is_new(&key, reason);
        assert!(report("a"));
        assert!(!report("a"));
        assert!(report("b"));
        tokio::time::advance(REFUSED / 2).await;
        assert!(report("b"));
    }
}
