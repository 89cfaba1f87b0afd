//! Limits of accounts that other processes know.

use std::any::Any;
use std::time::Duration;

use teamster_core::sync::caught;
use tokio::time::timeout;

use crate::{Candidate, Held};

/// Time that a call may delay an attempt.
const LIMIT: Duration = Duration::from_secs(3);

/// Permission to use an account during an attempt, which ends when it is dropped.
pub type Permit = Box<dyn Any + Send + Sync>;

/// Limits that accounts have reached, shared with other processes, for example by a database.
///
/// A run reads them before each attempt and acts on them as on its orchestrator's own holds: it waits, falls back or
/// ends, by its policy. A limit that a service reports together with its end is added. Each of these calls may
/// take 3 s; one that is late or panics changes nothing.
/// [`Orchestrator::release`](crate::Orchestrator::release) does not end a shared hold.
#[async_trait::async_trait]
pub trait SharedHolds: Send + Sync {
    /// Returns the holds on the account of this candidate, for any model.
    async fn holds(&self, candidate: &Candidate) -> Vec<Held>;

    /// Waits until an attempt with the account of this candidate may start, such as for a slot, or while another process
    /// renews its login. What it returns is dropped at the end of the attempt. By default it may start at once.
    ///
    /// The run waits without a limit of its own, but for that of its attempts
    /// ([`RetryPolicy::max_elapsed`](crate::RetryPolicy::max_elapsed)).
    async fn may_start(&self, candidate: &Candidate) -> Option<Permit> {
        let _ = candidate;
        None
    }

    /// Adds a hold on the account of this candidate. A hold that ends later stays as it is.
    async fn hold(&self, candidate: &Candidate, held: &Held);
}

/// Waits until an attempt with the account of a candidate may start.
pub(crate) async fn may_start(shared: &dyn SharedHolds, candidate: &Candidate) -> Option<Permit> {
    caught(async { shared.may_start(candidate).await })
        .await
        .flatten()
}

/// Returns the holds on the account of a candidate, as holds on its group.
pub(crate) async fn holds_on(shared: &dyn SharedHolds, candidate: &Candidate) -> Vec<Held> {
    // The call itself may panic, too.
    let holds = caught(async { shared.holds(candidate).await });
    let mut holds = timeout(LIMIT, holds)
        .await
        .ok()
        .flatten()
        .unwrap_or_default();
    for held in &mut holds {
        candidate.group().clone_into(&mut held.provider);
    }
    holds
}

/// Adds a hold on the account of a candidate.
pub(crate) async fn add(shared: &dyn SharedHolds, candidate: &Candidate, held: &Held) {
    // Without it, the next run asks the service itself.
    let _ = timeout(LIMIT, caught(async { shared.hold(candidate, held).await })).await;
}
