//! Tests of registration, phases and aborts.

use super::*;

#[tokio::test(start_paused = true)]
async fn runs_are_listed_in_order_until_they_are_dropped() {
    let registry = start(Limits::default());
    let c = registry.named("c").await;
    let _a = registry.named("a").await;
    let _b = registry.named("b").await;
    let ids = |runs: Vec<ActiveRun>| runs.iter().map(|run| run.run_id.to_string()).collect();
    let all: Vec<String> = ids(registry.active().await);
    assert_eq!(all, ["c", "a", "b"]);
    assert!(registry.is_active("c").await);

    drop(c);
    assert!(!registry.is_active("c").await);
    let rest: Vec<String> = ids(registry.active().await);
    assert_eq!(rest, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn an_id_is_refused_while_it_is_active_and_no_longer() {
    let registry = start(Limits::default());
    let first = registry.named("x").await;
    let again = registry
        .register("x".into(), "q", None, AbortHandle::default())
        .await;
    let error = again.unwrap_err();
    assert_eq!(error, RegisterError::AlreadyActive("x".into()));
    assert!(error.to_string().contains("`x`"));
    // The refused registration does not affect the first one.
    assert_eq!(registry.run("x").await.provider, "p");

    drop(first);
    let _second = registry.named("x").await;
    assert!(registry.is_active("x").await);
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_owner_panics_is_removed() {
    let registry = start(Limits::default().overall(1));
    let run = registry.named("x").await;
    let owner = tokio::spawn(async move {
        let _slot = run.any_slot("p", "").await.unwrap();
        panic!("on purpose");
    });
    assert!(owner.await.unwrap_err().is_panic());
    assert!(!registry.is_active("x").await);
    assert!(registry.is_idle().await);
}

#[tokio::test(start_paused = true)]
async fn a_registration_that_is_not_taken_is_removed() {
    let registry = start(Limits::default());
    let mut asked = Box::pin(registry.register("x".into(), "p", None, AbortHandle::default()));
    let begun = std::future::poll_fn(|cx| Poll::Ready(asked.as_mut().poll(cx).is_pending()));
    assert!(begun.await);
    settle().await;
    assert!(registry.is_active("x").await);
    drop(asked);
    assert!(registry.is_idle().await);
}

#[tokio::test(start_paused = true)]
async fn abort_reaches_the_run_and_no_other() {
    let registry = start(Limits::default());
    let (x, y) = (AbortHandle::default(), AbortHandle::default());
    let _x = registry.register("x".into(), "p", None, x.clone()).await;
    let _y = registry.register("y".into(), "p", None, y.clone()).await;

    assert!(!registry.abort("z").await);
    assert!(registry.abort("x").await);
    assert!(x.is_aborted());
    assert!(!y.is_aborted());
    assert_eq!(registry.phase("x").await, RunPhase::Stopping);
    assert_eq!(registry.phase("y").await, RunPhase::Queued);

    assert_eq!(registry.abort_all().await, 2);
    assert!(y.is_aborted());
}

#[tokio::test(start_paused = true)]
async fn the_time_of_a_phase_is_when_it_began() {
    let registry = start(Limits::default());
    let run = registry.named("x").await;
    advance(10).await;
    run.update(Update::Phase(RunPhase::Running));
    let seen = registry.run("x").await;
    assert_eq!((seen.phase, seen.since_ms), (RunPhase::Running, T0 + 10));
    assert_eq!(seen.started_ms, T0);

    advance(10).await;
    run.update(Update::Phase(RunPhase::Running));
    assert_eq!(registry.run("x").await.since_ms, T0 + 10);

    run.update(Update::Phase(RunPhase::InTool));
    assert_eq!(registry.run("x").await.since_ms, T0 + 20);

    advance(5).await;
    run.update(Update::WaitingUntil(T0 + 1000));
    let seen = registry.run("x").await;
    assert_eq!((seen.phase, seen.since_ms), (RunPhase::Waiting, T0 + 25));
    assert_eq!(seen.until_ms, Some(T0 + 1000));

    run.update(Update::Phase(RunPhase::Starting));
    assert_eq!(registry.run("x").await.until_ms, None);
}

#[tokio::test(start_paused = true)]
async fn an_aborted_run_is_stopping_for_any_later_phase() {
    let registry = start(Limits::default());
    let abort = AbortHandle::default();
    let run = registry
        .register("x".into(), "p", None, abort.clone())
        .await
        .unwrap();
    run.update(Update::Phase(RunPhase::Running));
    assert_eq!(registry.phase("x").await, RunPhase::Running);
    abort.abort();
    advance(3).await;
    assert_eq!(registry.phase("x").await, RunPhase::Stopping);
    run.update(Update::Phase(RunPhase::InTool));
    let seen = registry.run("x").await;
    assert_eq!((seen.phase, seen.since_ms), (RunPhase::Stopping, T0 + 3));
}

#[tokio::test(start_paused = true)]
async fn attempts_and_sessions_are_reported() {
    let registry = start(Limits::default());
    let run = registry
        .register(
            "x".into(),
            "claude",
            Some("opus".into()),
            AbortHandle::default(),
        )
        .await
        .unwrap();
    run.update(Update::Session {
        session_id: "s1".into(),
        model: None,
    });
    let seen = registry.run("x").await;
    assert_eq!(seen.model.as_deref(), Some("opus"));
    assert_eq!(seen.session_id.as_deref(), Some("s1"));
    assert_eq!(seen.attempt, 1);

    run.update(Update::Attempt {
        attempt: 2,
        provider: "codex".into(),
        model: None,
        session_id: None,
    });
    let seen = registry.run("x").await;
    assert_eq!((seen.attempt, seen.provider.as_str()), (2, "codex"));
    assert_eq!((seen.model, seen.session_id), (None, None));

    run.update(Update::Session {
        session_id: "s2".into(),
        model: Some("gpt".into()),
    });
    let seen = serde_json::to_value(registry.run("x").await).unwrap();
    assert_eq!(
        seen,
        serde_json::json!({
            "runId": "x", "provider": "codex", "model": "gpt", "sessionId": "s2", "attempt": 2,
            "phase": "queued", "sinceMs": T0, "startedMs": T0,
        })
    );
}

#[test]
fn a_phase_is_called_the_same_everywhere() {
    use RunPhase::*;
    for phase in [Queued, OnHold, Starting, Running, InTool, Waiting, Stopping] {
        assert_eq!(serde_json::to_value(phase).unwrap(), phase.as_str());
    }
}

#[test]
fn registry_without_its_runtime_returns_at_once() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .unwrap()
    };
    let first = runtime();
    let registry = first.block_on(async { start(Limits::default()) });
    let (run, slot) = first.block_on(async {
        let run = registry.named("x").await;
        let slot = run.any_slot("p", "").await.unwrap();
        (run, slot)
    });
    drop(first);
    runtime().block_on(async {
        assert!(!registry.is_active("x").await);
        assert!(!registry.abort("x").await);
        assert_eq!(registry.abort_all().await, 0);
        assert_eq!(registry.active().await, []);
        assert_eq!(registry.holds().await, []);
        registry.hold("p", u64::MAX, why());
        assert_eq!(registry.held("p").await, None);
        run.update(Update::Phase(RunPhase::Running));
        assert_eq!(run.any_slot("p", "").await.unwrap_err(), Gone);
        let refused = registry.register("y".into(), "p", None, AbortHandle::default());
        assert_eq!(refused.await.unwrap_err(), RegisterError::Gone(Gone));
    });
    drop((run, slot));
}

#[tokio::test(start_paused = true)]
async fn the_task_ends_with_the_last_handle() {
    let clock = test_clock(T0);
    let seen = Arc::downgrade(&clock);
    let registry = Registry::start(Limits::default(), clock);
    let run = registry.named("x").await;
    drop(registry);
    settle().await;
    assert!(seen.upgrade().is_some(), "a registration is a handle");
    drop(run);
    settle().await;
    assert!(seen.upgrade().is_none(), "the task owned the clock");
}
