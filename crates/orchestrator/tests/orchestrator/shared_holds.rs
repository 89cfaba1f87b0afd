//! Tests of holds and slots of accounts that several processes share.

use std::future::pending;
use std::sync::{Arc, Mutex};

use teamster_core::{ErrorCode, ErrorKind, RunStatus, Usage};
use teamster_orchestrator::{
    Budget, Candidate, Held, Permit, RunRequest, SharedBudget, SharedHolds,
};
use teamster_testkit::mock_runtime::{MockRuntime, Script};
use tokio::sync::Semaphore;

use crate::common::*;
use crate::limits::{busy, start};

/// Holds that several orchestrators share, as several processes do.
#[derive(Default)]
struct Shared(Mutex<Vec<Held>>);

#[async_trait::async_trait]
impl SharedHolds for Shared {
    async fn holds(&self, candidate: &Candidate) -> Vec<Held> {
        let mut holds = self.0.lock().unwrap().clone();
        holds.retain(|held| held.provider == candidate.provider());
        holds
    }

    async fn hold(&self, _: &Candidate, held: &Held) {
        self.0.lock().unwrap().push(held.clone());
    }
}

/// Holds that cannot be read or written.
struct Broken;

#[async_trait::async_trait]
impl SharedHolds for Broken {
    async fn holds(&self, _: &Candidate) -> Vec<Held> {
        pending().await
    }

    async fn hold(&self, _: &Candidate, _: &Held) {
        panic!("the database is gone");
    }
}

fn sharing(mocks: &[&Arc<MockRuntime>], holds: &Arc<impl SharedHolds + 'static>) -> RunRequest {
    let holds: Arc<dyn SharedHolds> = holds.clone();
    request(mocks).holds(holds)
}

#[tokio::test(start_paused = true)]
async fn quota_of_another_process_is_not_asked_again() {
    let shared = Arc::new(Shared::default());
    let until = T0 + 3_600_000;
    let used_up = error(ErrorKind::Quota).resets_at_ms(until);
    let a = mock("a", [Script::new().failed(used_up.clone())]);
    let first = start(&orchestrator(), sharing(&[&a], &shared))
        .outcome()
        .await;
    assert_eq!(first.error().unwrap().kind, ErrorKind::Quota);
    assert_eq!(*shared.0.lock().unwrap(), [Held::new("a", until, used_up)]);

    // Another orchestrator falls back, or ends at once with the time.
    let (a, b) = (mock("a", []), mock("b", [Script::new()]));
    let second = start(&orchestrator(), sharing(&[&a, &b], &shared));
    assert_eq!(second.outcome().await.provider, "b");
    let third = start(&orchestrator(), sharing(&[&a], &shared))
        .outcome()
        .await;
    let refused = third.error().unwrap();
    assert_eq!(refused.code, ErrorCode::ProviderOnHold);
    assert_eq!(refused.resets_at_ms, Some(until));
    assert_eq!(a.runs().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn rate_limit_of_another_process_is_waited_for() {
    let shared = Arc::new(Shared::default());
    let throttled = error(ErrorKind::RateLimit).retry_after_ms(30_000);
    shared
        .0
        .lock()
        .unwrap()
        .push(Held::new("a", T0 + 30_000, throttled));
    let began = tokio::time::Instant::now();
    let a = mock("a", [Script::new()]);
    let run = start(&orchestrator(), sharing(&[&a], &shared))
        .outcome()
        .await;
    assert_eq!(run.attempts.len(), 1);
    assert_eq!((a.runs()[0].started - began).as_millis(), 30_000);
}

#[tokio::test(start_paused = true)]
async fn limit_without_a_time_is_not_shared() {
    let shared = Arc::new(Shared::default());
    let a = mock("a", [fails(ErrorKind::Quota)]);
    start(&orchestrator(), sharing(&[&a], &shared))
        .outcome()
        .await;
    assert_eq!(*shared.0.lock().unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn holds_that_cannot_be_shared_delay_a_run_by_seconds() {
    let began = tokio::time::Instant::now();
    let throttled = error(ErrorKind::RateLimit).retry_after_ms(100);
    let a = mock("a", [Script::new().failed(throttled), Script::new()]);
    let run = start(&orchestrator(), sharing(&[&a], &Arc::new(Broken)));
    assert_eq!(run.outcome().await.result.status, RunStatus::Completed);
    let starts: Vec<_> = (a.runs().iter())
        .map(|run| (run.started - began).as_secs())
        .collect();
    assert_eq!(starts, [3, 6]);
}

/// Holds whose writing never ends.
struct Slow;

#[async_trait::async_trait]
impl SharedHolds for Slow {
    async fn holds(&self, _: &Candidate) -> Vec<Held> {
        Vec::new()
    }

    async fn hold(&self, _: &Candidate, _: &Held) {
        pending::<()>().await;
    }
}

#[tokio::test(start_paused = true)]
async fn limit_holds_at_once_in_its_process() {
    let a = mock("a", [fails_for(ErrorKind::Quota, 3_600_000)]);
    let orchestrator = orchestrator();
    let slow = Arc::new(Slow);
    let first = start(&orchestrator, sharing(&[&a], &slow));
    a.wait_for_runs(1).await;
    tokio::time::sleep(secs(1)).await;
    let second = start(&orchestrator, sharing(&[&a], &slow)).outcome().await;
    assert_eq!(second.error().unwrap().code, ErrorCode::ProviderOnHold);
    assert_eq!(first.outcome().await.attempts.len(), 1);
    assert_eq!(a.runs().len(), 1);
}

/// An account with one slot for all processes.
struct OneSlot(Arc<Semaphore>, Shared);

impl OneSlot {
    fn new() -> Arc<Self> {
        Arc::new(Self(Arc::new(Semaphore::new(1)), Shared::default()))
    }
}

#[async_trait::async_trait]
impl SharedHolds for OneSlot {
    async fn holds(&self, candidate: &Candidate) -> Vec<Held> {
        self.1.holds(candidate).await
    }

    async fn may_start(&self, _: &Candidate) -> Option<Permit> {
        let permit: Permit = Box::new(self.0.clone().acquire_owned().await.unwrap());
        Some(permit)
    }

    async fn hold(&self, candidate: &Candidate, held: &Held) {
        self.1.hold(candidate, held).await;
    }
}

#[tokio::test(start_paused = true)]
async fn limit_reached_while_a_run_waits_for_the_account_counts() {
    let slot = OneSlot::new();
    let used_up = error(ErrorKind::Quota).resets_at_ms(T0 + 3_600_000);
    let a = mock("a", [Script::new().delay(secs(1)).failed(used_up)]);
    let b = mock("b", [Script::new()]);
    let first = start(&orchestrator(), sharing(&[&a], &slot));
    a.wait_for_runs(1).await;
    let second = start(&orchestrator(), sharing(&[&a, &b], &slot));
    assert_eq!(first.outcome().await.attempts.len(), 1);
    let second = second.outcome().await;
    assert_eq!((&*second.provider, second.attempts.len()), ("b", 1));
    assert_eq!(a.runs().len(), 1);
    assert_eq!(slot.0.available_permits(), 1);
}

#[tokio::test(start_paused = true)]
async fn run_that_waits_for_the_account_ends_with_its_shared_budget() {
    let slot = OneSlot::new();
    let used = Usage::default().output_tokens(10);
    let spending = Script::new().delay(secs(3)).result_usage(used).completed();
    let b = mock("b", [spending]);
    let a = mock("a", []);
    let budget = Budget::default().shared(SharedBudget::tokens(10));
    let spends = start(&orchestrator(), request(&[&b]).budget(budget.clone()));
    let _taken = slot.0.acquire().await.unwrap();
    let waits = start(&orchestrator(), sharing(&[&a], &slot).budget(budget));
    assert_eq!(spends.outcome().await.error(), None);
    let waited = waits.outcome().await;
    assert_eq!(waited.error().unwrap().code, ErrorCode::BudgetExceeded);
    assert_eq!((waited.duration_ms, a.runs().len()), (3000, 0));
}

#[tokio::test(start_paused = true)]
async fn slot_of_an_account_is_free_at_the_end_of_an_attempt() {
    let slot = OneSlot::new();
    let a = busy("a");
    let first = start(&orchestrator(), sharing(&[&a], &slot));
    a.wait_for_runs(1).await;
    let aborted = start(&orchestrator(), sharing(&[&a], &slot));
    let second = start(&orchestrator(), sharing(&[&a], &slot));
    settle().await;
    aborted.abort();
    assert_eq!(aborted.outcome().await.result.status, RunStatus::Aborted);
    assert_eq!(first.outcome().await.duration_ms, 1000);
    assert_eq!(second.outcome().await.duration_ms, 2000);
    assert_eq!((a.max_active(), a.runs().len()), (1, 2));
    assert_eq!(slot.0.available_permits(), 1);
}
