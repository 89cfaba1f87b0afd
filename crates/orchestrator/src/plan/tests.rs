use teamster_core::ErrorCode;

use super::*;

fn who(providers: &[&str]) -> Vec<PlanCandidate> {
    let who = providers.iter().map(|provider| PlanCandidate {
        sessions: Sessions::OfGroup((*provider).to_owned()),
        can_resume: true,
    });
    who.collect()
}

fn plan(providers: &[&str], set: impl FnOnce(&mut RetryPolicy)) -> Plan {
    let mut policy = RetryPolicy {
        jitter: false,
        ..RetryPolicy::default()
    };
    set(&mut policy);
    Plan::new(policy, who(providers))
}

fn error(kind: ErrorKind, after_ms: Option<u64>) -> AgentError {
    AgentError::new(ErrorCode::CliError, kind, "x").retry_after_ms(after_ms)
}

fn standing(error: &AgentError) -> AttemptState<'_> {
    AttemptState {
        error,
        attempted: true,
        session: None,
        changed: None,
        elapsed: Duration::ZERO,
        now_ms: 1000,
    }
}

fn again(candidate: usize, ms: u64, resume: bool) -> Next {
    Next::Try {
        candidate,
        delay: Duration::from_millis(ms),
        resume,
    }
}

#[test]
fn a_delay_has_precedence_over_a_date() {
    let mut error = error(ErrorKind::RateLimit, Some(7));
    error.resets_at_ms = Some(5000);
    assert_eq!(wanted_wait(&error, 1000), Some(Duration::from_millis(7)));
    error.retry_after_ms = None;
    assert_eq!(wanted_wait(&error, 1000), Some(Duration::from_secs(4)));
    assert_eq!(wanted_wait(&error, 9000), Some(Duration::ZERO));
    error.resets_at_ms = None;
    assert_eq!(wanted_wait(&error, 1000), None);
}

#[test]
fn a_hold_is_waited_for_according_to_the_policy() {
    let ms = Duration::from_millis;
    let quota = error(ErrorKind::Quota, None);
    let throttled = error(ErrorKind::RateLimit, None);
    let most = |policy: &mut RetryPolicy| policy.max_wait = ms(10);
    let (alone, two) = (plan(&["a"], most), plan(&["a", "b"], most));
    for (plan, error, left, waits) in [
        (&alone, &quota, 10, true),
        (&alone, &quota, 11, false),
        (&two, &quota, 1, false),
        (&two, &throttled, 10, true),
        (&two, &throttled, 11, false),
    ] {
        assert_eq!(
            plan.wait_for_hold(error, ms(left)),
            waits,
            "{error:?} {left}"
        );
    }
    // The run does not wait for permanent throttling if there is another candidate.
    let mut stays = throttled.clone();
    stays.retryable = false;
    assert!(!two.wait_for_hold(&stays, ms(1)));
    let ends = plan(&["a"], |policy| {
        policy.actions.insert(ErrorKind::Quota, Action::End);
    });
    assert!(!ends.wait_for_hold(&quota, ms(1)));
}

#[test]
fn last_candidate_of_the_provider_is_preferred_after_a_change() {
    let (id, failed): (Id, _) = ("s".into(), error(ErrorKind::Auth, None));
    let now = AttemptState {
        session: Some(&id),
        changed: Some("the agent had used `X`"),
        ..standing(&failed)
    };
    let mut two = plan(&["a", "b", "a"], |_| {});
    assert_eq!(two.after(now), again(2, 0, true));
    assert_eq!(two.current(), 2);
    // The run would not have continued anyway.
    assert_eq!(two.after(now), Next::End(None));
    let mut other = plan(&["a", "b"], |_| {});
    let why = Next::End(Some((
        NotRetried::SideEffects,
        "not started over, because the agent had used `X`; the session can be resumed".into(),
    )));
    assert_eq!(other.after(now), why);
}

#[test]
fn another_account_resumes_a_session_that_it_shares() {
    let (id, failed): (Id, _) = ("s".into(), error(ErrorKind::Quota, None));
    let now = AttemptState {
        session: Some(&id),
        changed: Some("the agent had used `X`"),
        ..standing(&failed)
    };
    let candidate = |sessions| PlanCandidate {
        sessions,
        can_resume: true,
    };
    let shared = || candidate(Sessions::OfProvider("claude".into()));
    let own = candidate(Sessions::OfGroup("claude".into()));
    let who = vec![shared(), own, shared()];
    let mut plan = Plan::new(RetryPolicy::default(), who);
    assert_eq!(plan.after(now), again(2, 0, true));
}

#[test]
fn a_candidate_on_hold_costs_no_attempt() {
    let failed = error(ErrorKind::RateLimit, Some(10_000_000));
    let mut plan = plan(&["a", "b", "c"], |policy| policy.max_attempts = Some(1));
    let held = AttemptState {
        attempted: false,
        ..standing(&failed)
    };
    assert_eq!(plan.after(held), again(1, 0, false));
    assert_eq!(plan.after(held), again(2, 0, false));
    assert_eq!(plan.after(standing(&failed)), Next::End(None));
}

#[test]
fn a_wait_of_the_longest_length_is_allowed() {
    let most = |policy: &mut RetryPolicy| policy.max_wait = Duration::from_millis(10);
    for (kind, after_ms, expected) in [
        (ErrorKind::Quota, 10, again(0, 10, false)),
        (ErrorKind::Quota, 11, Next::End(None)),
        // A limit that has reset and applies all the same is none to wait for.
        (ErrorKind::Quota, 0, Next::End(None)),
        (ErrorKind::RateLimit, 10, again(0, 10, false)),
        (ErrorKind::RateLimit, 11, Next::End(None)),
        (ErrorKind::RateLimit, 0, again(0, 1000, false)),
    ] {
        let failed = error(kind, Some(after_ms));
        let next = plan(&["a"], most).after(standing(&failed));
        assert_eq!(next, expected, "{kind:?} {after_ms}");
    }
    let failed = error(ErrorKind::Network, None);
    let within = |ms| {
        let within = Duration::from_millis(ms);
        plan(&["a"], |policy| policy.max_elapsed = Some(within)).after(standing(&failed))
    };
    assert_eq!(within(1000), again(0, 1000, false));
    assert!(matches!(
        within(999),
        Next::End(Some((NotRetried::OutOfTime, _)))
    ));
}

#[test]
fn waits_that_do_not_help_grow() {
    let failed = error(ErrorKind::Quota, Some(1));
    let mut plan = plan(&["a"], |policy| policy.max_delay = Duration::from_secs(3));
    for ms in [1, 1000, 2000, 3000, 3000] {
        assert_eq!(plan.after(standing(&failed)), again(0, ms, false));
    }
    // Longer delays are exact, and so are those of a hold.
    let long = error(ErrorKind::Quota, Some(4567));
    assert_eq!(plan.after(standing(&long)), again(0, 4567, false));
    let held = AttemptState {
        attempted: false,
        ..standing(&failed)
    };
    assert_eq!(plan.after(held), again(0, 1, false));
}

#[test]
fn times_that_no_clock_can_show_are_no_panic() {
    let failed = error(ErrorKind::Network, None);
    let longest = error(ErrorKind::Network, Some(u64::MAX));
    let mut plan = plan(&["a"], |policy| {
        policy.jitter = true;
        policy.retries = 5;
        policy.base_delay = Duration::MAX;
        policy.max_delay = Duration::MAX;
        policy.max_wait = Duration::MAX;
        policy.max_elapsed = Some(Duration::MAX);
    });
    let late = AttemptState {
        elapsed: Duration::MAX,
        ..standing(&failed)
    };
    for _ in 0..3 {
        assert!(matches!(plan.after(late), Next::Try { .. }));
    }
    assert_eq!(plan.after(standing(&longest)), again(0, u64::MAX, false));
}
