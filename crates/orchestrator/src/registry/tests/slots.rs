//! Tests of limits, queues and holds.

use super::*;

/// Runs `names` one after another through a single slot. Returns them in the order of their grants.
///
/// Each name is `queue:run`, or `queue:run@group`.
async fn order(limits: Limits, names: &[&str]) -> Vec<String> {
    let registry = start(limits.overall(1));
    let blocker = registry.named("blocker").await;
    let first = blocker.any_slot("first", "blocker").await.unwrap();

    let runs: Vec<Registration> = {
        let mut runs = Vec::new();
        for name in names {
            runs.push(registry.named(name).await);
        }
        runs
    };
    let mut waits = Vec::new();
    for (name, run) in names.iter().zip(&runs) {
        let (place, group) = name.split_once('@').unwrap_or((name, "p"));
        let queue = place.split_once(':').unwrap().0;
        waits.push((*name, Wait::begin(run, group, queue).await));
    }
    let mut order = Vec::new();
    let mut slot = Some(first);
    while let Some(held) = slot.take() {
        drop(held);
        settle().await;
        let mut granted = Vec::new();
        for (at, (_, wait)) in waits.iter_mut().enumerate() {
            if let Some(slot) = wait.poll().await {
                granted.push((at, slot));
            }
        }
        assert!(granted.len() <= 1, "{} at once", granted.len());
        slot = granted.pop().map(|(at, slot)| {
            order.push(waits.remove(at).0.to_owned());
            slot
        });
    }
    assert!(waits.is_empty(), "{} still wait", waits.len());
    order
}

#[tokio::test(start_paused = true)]
async fn queues_take_turns() {
    let names = ["a:1", "a:2", "a:3", "a:4", "b:1", "b:2", "c:1"];
    assert_eq!(
        order(Limits::default(), &names).await,
        ["a:1", "b:1", "c:1", "a:2", "b:2", "a:3", "a:4"]
    );
}

#[tokio::test(start_paused = true)]
async fn between_providers_too_queues_take_turns() {
    let names = ["a:1@q", "a:2@q", "b:1@p", "a:3@r"];
    assert_eq!(
        order(Limits::default(), &names).await,
        ["a:1@q", "b:1@p", "a:2@q", "a:3@r"]
    );
}

/// Tests that a queue which is served repeatedly at one provider still has its turn at another.
#[tokio::test(start_paused = true)]
async fn a_turn_at_one_provider_costs_none_at_another() {
    let registry = start(Limits::default().per_provider(1));
    let run = registry.named("x").await;
    let mut p = run.any_slot("p", "b").await.unwrap();
    let mut q = run.any_slot("q", "a").await.unwrap();
    let mut patient = Wait::begin(&run, "p", "a").await;
    for round in 0.. {
        let mut next_p = Wait::begin(&run, "p", "b").await;
        let mut next_q = Wait::begin(&run, "q", "a").await;
        drop(q);
        settle().await;
        q = next_q.poll().await.unwrap();
        drop(p);
        settle().await;
        if patient.poll().await.is_some() {
            break;
        }
        assert!(round < 3, "it waits forever");
        p = next_p.poll().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn the_first_of_a_queue_gets_a_slot_within_its_providers_limit() {
    let registry = start(Limits::default().overall(1));
    let run = registry.named("x").await;
    let slot = run.any_slot("p", "").await.unwrap();
    let mut p = Wait::begin(&run, "p", "").await;
    let mut q = Wait::begin(&run, "q", "").await;
    drop(slot);
    settle().await;
    assert!(q.poll().await.is_none(), "p came before");
    assert!(p.poll().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_hold_is_for_everyone_and_ends_in_time() {
    let registry = start(Limits::default());
    let (a, b) = (registry.named("a").await, registry.named("b").await);
    registry.hold("p", T0 + 1000, why());
    let mut one = Wait::begin(&a, "p", "one").await;
    let mut two = Wait::begin(&b, "p", "two").await;
    // Others do not wait for this one.
    let _q = a.any_slot("q", "one").await.unwrap();

    advance(999).await;
    assert!(one.poll().await.is_none());
    assert!(two.poll().await.is_none());
    let held = registry.held("p").await.unwrap();
    assert_eq!((held.until_ms, &held.reason), (T0 + 1000, &why()));
    assert_eq!(registry.holds().await, [held]);

    advance(1).await;
    assert!(one.poll().await.is_some());
    assert!(two.poll().await.is_some());
    assert_eq!(registry.held("p").await, None);
    assert_eq!(registry.holds().await, []);
}

#[tokio::test(start_paused = true)]
async fn the_longer_hold_stays() {
    let registry = start(Limits::default());
    let run = registry.named("x").await;
    let until = async || registry.held("p").await.map(|held| held.until_ms);
    registry.hold("p", T0, why());
    assert_eq!(until().await, None, "it is over already");
    registry.hold("p", T0 + 100, why());
    let mut wait = Wait::begin(&run, "p", "").await;
    registry.hold("p", T0 + 50, why());
    assert_eq!(until().await, Some(T0 + 100));
    registry.hold("p", T0 + 200, why());
    assert_eq!(until().await, Some(T0 + 200));
    advance(199).await;
    assert!(wait.poll().await.is_none());
    advance(1).await;
    assert!(wait.poll().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_hold_of_days_ends_in_time_too() {
    const DAYS: u64 = 7 * 24 * 3600 * 1000;
    let registry = start(Limits::default());
    let run = registry.named("x").await;
    registry.hold("p", T0 + DAYS, why());
    let now = tokio::time::Instant::now();
    run.any_slot("p", "").await.unwrap();
    assert_eq!(now.elapsed(), Duration::from_millis(DAYS));
    // Computing with the largest time does not overflow.
    registry.hold("p", u64::MAX, why());
    let mut wait = Wait::begin(&run, "p", "").await;
    advance(DAYS).await;
    assert!(wait.poll().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_put_forward_ends_a_hold() {
    let ahead = Arc::new(AtomicU64::new(0));
    let clock = test_clock(T0);
    let shifted = {
        let ahead = ahead.clone();
        Arc::new(move || clock() + ahead.load(Ordering::Relaxed))
    };
    let registry = Registry::start(Limits::default(), shifted);
    let run = registry.named("x").await;
    registry.hold("p", T0 + 3_600_000, why());
    let mut wait = Wait::begin(&run, "p", "").await;
    ahead.store(3_600_000, Ordering::Relaxed);
    advance(60_000).await;
    assert!(wait.poll().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_phase_shows_what_a_run_waits_for() {
    let registry = start(Limits::default().overall(1));
    let (a, b) = (registry.named("a").await, registry.named("b").await);
    let slot = a.any_slot("p", "").await.unwrap();
    assert_eq!(registry.phase("a").await, RunPhase::Starting);

    b.update(Update::Phase(RunPhase::Waiting));
    advance(1).await;
    let mut wait = Wait::begin(&b, "p", "").await;
    let seen = registry.run("b").await;
    assert_eq!((seen.phase, seen.since_ms), (RunPhase::Queued, T0 + 1));

    registry.hold("p", T0 + 10, why());
    let seen = registry.run("b").await;
    assert_eq!(
        (seen.phase, seen.until_ms),
        (RunPhase::OnHold, Some(T0 + 10))
    );
    assert_eq!(seen.since_ms, T0 + 1);
    advance(4).await;
    registry.hold("p", T0 + 20, why());
    let seen = registry.run("b").await;
    assert_eq!(
        (seen.phase, seen.until_ms),
        (RunPhase::OnHold, Some(T0 + 20))
    );
    assert_eq!(seen.since_ms, T0 + 1, "still the same phase");

    advance(15).await;
    let seen = registry.run("b").await;
    assert_eq!((seen.phase, seen.until_ms), (RunPhase::Queued, None));
    assert_eq!(seen.since_ms, T0 + 20);
    // The hold does not apply to an attempt that has begun.
    assert_eq!(registry.phase("a").await, RunPhase::Starting);

    drop(slot);
    settle().await;
    assert!(wait.poll().await.is_some());
    assert_eq!(registry.phase("b").await, RunPhase::Starting);
}

#[tokio::test(start_paused = true)]
async fn cancelled_waiter_leaves_no_trace() {
    let registry = start(Limits::default().overall(1));
    let run = registry.named("x").await;
    let slot = run.any_slot("p", "a").await.unwrap();
    let mut waits = Vec::new();
    for queue in ["a", "a", "b", "c"] {
        waits.push(Wait::begin(&run, "p", queue).await);
    }
    let mut last = waits.pop().unwrap();
    drop(waits);
    drop(slot);
    settle().await;
    drop(last.poll().await.unwrap());
    drop(last);
    assert!(!registry.is_idle().await, "the run is still there");
    drop(run);
    assert!(registry.is_idle().await);
}

#[tokio::test(start_paused = true)]
async fn a_place_that_was_never_polled_is_none() {
    let registry = start(Limits::default().overall(1));
    let run = registry.named("x").await;
    drop(run.any_slot("p", ""));
    let _slot = run.any_slot("p", "").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_was_granted_and_not_taken_goes_to_the_next() {
    let registry = start(Limits::default().overall(1));
    let run = registry.named("x").await;
    let slot = run.any_slot("p", "").await.unwrap();
    let granted = Wait::begin(&run, "p", "").await;
    let mut next = Wait::begin(&run, "p", "").await;
    drop(slot);
    settle().await;
    assert!(next.poll().await.is_none(), "it was granted to the other");
    drop(granted);
    settle().await;
    assert!(next.poll().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn cancelled_waiter_costs_its_queue_no_turn() {
    let registry = start(Limits::default().overall(1));
    let run = registry.named("x").await;
    let slot = run.any_slot("p", "").await.unwrap();
    let gone = Wait::begin(&run, "p", "a").await;
    let mut a = Wait::begin(&run, "p", "a").await;
    let mut b = Wait::begin(&run, "p", "b").await;
    // The registry receives the drop of the slot first.
    drop(slot);
    drop(gone);
    settle().await;
    assert!(b.poll().await.is_none());
    assert!(a.poll().await.is_some());
}

#[test]
fn limits_of_nothing_are_refused_by_name() {
    let refused = |limits: Limits| {
        let error = limits.check().unwrap_err();
        error.parameter().unwrap().to_owned()
    };
    assert_eq!(refused(Limits::default().overall(0)), "limits.overall");
    assert_eq!(
        refused(Limits::default().per_provider(0)),
        "limits.per_provider"
    );
    assert_eq!(
        refused(Limits::default().provider("claude", 0)),
        "limits.provider"
    );
    assert!(Limits::default().overall(1).check().is_ok());
    let read = |json| serde_json::from_str::<Limits>(json);
    let limits = read(r#"{"perProvider":2,"providers":{"codex":1}}"#).unwrap();
    assert_eq!(
        limits,
        Limits::default().per_provider(2).provider("codex", 1)
    );
    assert!(
        read(r#"{"per_provider":2}"#).is_err(),
        "a name that means nothing"
    );
}

/// Tests on real threads that a slot is not lost if it is granted and dropped at the same moment, and that no waiter is
/// granted a slot too early.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn slots_survive_many_threads() {
    const MOST: usize = 3;
    let registry = start(Limits::default().overall(MOST));
    let at_once = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for n in 0..400_u64 {
        let registry = registry.clone();
        let at_once = at_once.clone();
        tasks.push(tokio::spawn(async move {
            let run = registry.named(&n.to_string()).await;
            let queue = (n % 7).to_string();
            if n % 3 == 0 {
                // The waiter is dropped at some moment, possibly while its slot is being granted.
                for _ in 0..n % 50 {
                    let mut wait = Wait(Box::pin(run.any_slot("p", &queue)));
                    drop(wait.poll().await);
                    tokio::task::yield_now().await;
                }
                return;
            }
            let _slot = run.any_slot("p", &queue).await.unwrap();
            let now = at_once.fetch_add(1, Ordering::SeqCst);
            assert!(now < MOST as u64);
            tokio::task::yield_now().await;
            at_once.fetch_sub(1, Ordering::SeqCst);
        }));
    }
    let all = async {
        for task in tasks {
            task.await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_mins(1), all)
        .await
        .expect("a run waits forever");
    assert!(registry.is_idle().await);
}
