//! Property tests with random agents, policies and stops.

use std::sync::Arc;
use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::json;
use teamster_core::{AgentError, ChangeKind, ErrorCode, ErrorKind, RunEvent, RunStatus, ToolKind};
use teamster_orchestrator::{Action, AfterSideEffects, Limits, OrchestratorConfig};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use crate::common::*;

#[derive(Debug, Clone)]
enum Does {
    Text(u8),
    Session(u8),
    Tool {
        kind: ToolKind,
        result: Option<bool>,
        denied: bool,
    },
    Changes,
    Waits(u64),
}

#[derive(Debug, Clone)]
enum Ends {
    Well,
    Fails(ErrorKind, Option<u64>),
    Dies(ErrorKind),
    BreaksOff,
    NoDone,
    Panics,
    Hangs,
}

#[derive(Debug, Clone)]
struct Play {
    does: Vec<Does>,
    ends: Ends,
    stop_takes: u64,
}

#[derive(Debug, Clone)]
struct Stop {
    at: u64,
    how: u8,
}

#[derive(Debug, Clone)]
struct Case {
    /// The provider of each candidate, and the scripts of its runs.
    candidates: Vec<(u8, Vec<Play>)>,
    announces: [bool; 2],
    resume: bool,
    retries: u32,
    max_attempts: Option<u32>,
    max_elapsed: Option<u64>,
    max_wait: u64,
    actions: Vec<(ErrorKind, Action)>,
    then_end: bool,
    turns: Option<u32>,
    stop: Option<Stop>,
    new_session: bool,
}

fn kinds() -> impl Strategy<Value = ErrorKind> {
    prop::sample::select(vec![
        ErrorKind::RateLimit,
        ErrorKind::Quota,
        ErrorKind::Overloaded,
        ErrorKind::Network,
        ErrorKind::Auth,
        ErrorKind::Timeout,
        ErrorKind::Internal,
        ErrorKind::Invalid,
        ErrorKind::MaxTurns,
        ErrorKind::SessionNotFound,
    ])
}

fn does() -> impl Strategy<Value = Does> {
    let tools = prop::sample::select(vec![
        ToolKind::Read,
        ToolKind::Search,
        ToolKind::Edit,
        ToolKind::Execute,
        ToolKind::Mcp,
    ]);
    prop_oneof![
        3 => any::<u8>().prop_map(Does::Text),
        2 => (0..3_u8).prop_map(Does::Session),
        3 => (tools, option::of(any::<bool>()), prop::bool::weighted(0.2))
            .prop_map(|(kind, result, denied)| Does::Tool { kind, result, denied }),
        1 => Just(Does::Changes),
        2 => (0..5000_u64).prop_map(Does::Waits),
    ]
}

fn plays() -> impl Strategy<Value = Play> {
    let waits = prop::sample::select(vec![0, 1, 500, 30_000, 200_000, 400_000]);
    let ends = prop_oneof![
        3 => Just(Ends::Well),
        8 => (kinds(), option::of(waits)).prop_map(|(kind, after)| Ends::Fails(kind, after)),
        2 => kinds().prop_map(Ends::Dies),
        1 => Just(Ends::BreaksOff),
        1 => Just(Ends::NoDone),
        1 => Just(Ends::Panics),
        1 => Just(Ends::Hangs),
    ];
    let stops = prop::sample::select(vec![0, 10, 20_000, 50_000]);
    (vec(does(), 0..6), ends, stops).prop_map(|(does, ends, stop_takes)| Play {
        does,
        ends,
        stop_takes,
    })
}

fn cases() -> impl Strategy<Value = Case> {
    let actions = prop::sample::select(vec![
        Action::Retry,
        Action::Wait,
        Action::FallBack,
        Action::End,
    ]);
    let stop = (
        prop_oneof![Just(0), 0..10_u64, 0..8000_u64, 0..400_000_u64],
        0..5_u8,
    )
        .prop_map(|(at, how)| Stop { at, how });
    let policy = (
        0..4_u32,
        option::of(1..5_u32),
        option::of(0..100_000_u64),
        prop::sample::select(vec![0, 1000, 300_000]),
        vec((kinds(), actions), 0..3),
        any::<bool>(),
    );
    (
        vec((0..2_u8, vec(plays(), 1..4)), 1..4),
        any::<[bool; 2]>(),
        prop::bool::weighted(0.8),
        policy,
        option::of(1..6_u32),
        option::of(stop),
        any::<bool>(),
    )
        .prop_map(
            |(candidates, announces, resume, policy, turns, stop, new_session)| {
                let (retries, max_attempts, max_elapsed, max_wait, actions, then_end) = policy;
                Case {
                    candidates,
                    announces,
                    resume,
                    retries,
                    max_attempts,
                    max_elapsed,
                    max_wait,
                    actions,
                    then_end,
                    turns,
                    stop,
                    new_session,
                }
            },
        )
}

fn script(play: &Play) -> Script {
    let mut script = Script::new().stop_takes(Duration::from_millis(play.stop_takes));
    for (n, does) in play.does.iter().enumerate() {
        let id = format!("t{n}");
        script = match does {
            Does::Text(word) => script.text_in(format!("m{}", word % 3), format!("w{word} ")),
            Does::Session(session) => script.session(format!("s{session}")),
            Does::Tool {
                kind,
                result,
                denied,
            } => {
                script = script.tool_use("X", id.clone(), *kind, json!({}));
                if *denied {
                    script = script.permission_denied("X", id.clone(), "no");
                }
                match result {
                    Some(true) => script.tool_result(id, ""),
                    Some(false) => script.tool_error(id, ""),
                    None => script,
                }
            }
            Does::Changes => script.file_change("x", ChangeKind::Add),
            Does::Waits(ms) => script.delay(Duration::from_millis(*ms)),
        };
    }
    match play.ends {
        Ends::Well => script.completed(),
        Ends::Fails(kind, after) => {
            let mut error = error(kind);
            error.retry_after_ms = after;
            script.failed(error)
        }
        Ends::Dies(kind) => script.failed(AgentError::new(ErrorCode::CliExitError, kind, "died")),
        Ends::BreaksOff => script.incomplete(),
        Ends::NoDone => script.breaks_off(),
        Ends::Panics => script.panic("as it should"),
        Ends::Hangs => script.hang(),
    }
}

/// Returns whether something may have been changed in a run that was played to its end.
fn changed(play: &Play, announces: bool) -> bool {
    let seen = play.does.iter().any(|does| match does {
        Does::Tool { kind, denied, .. } => kind.has_side_effects() && !denied,
        Does::Changes => true,
        _ => false,
    });
    seen || match play.ends {
        Ends::Well | Ends::Fails(..) => false,
        Ends::Dies(_) | Ends::BreaksOff => !announces,
        Ends::NoDone | Ends::Panics | Ends::Hangs => true,
    }
}

fn name(provider: u8) -> &'static str {
    ["a", "b"][usize::from(provider)]
}

async fn play(case: &Case) {
    let mut mocks: Vec<Arc<MockRuntime>> = Vec::new();
    for (provider, plays) in &case.candidates {
        let mut mock = MockRuntime::new(name(*provider));
        mock.capabilities_mut().announces_tools = case.announces[usize::from(*provider)];
        mock.capabilities_mut().resume = case.resume;
        mock.capabilities_mut().max_turns = false;
        for play in plays {
            mock.add(script(play));
        }
        mocks.push(Arc::new(mock));
    }
    let mut config = OrchestratorConfig::default();
    config.clock = clock();
    config.limits = Limits::default().overall(1);
    let orchestrator = teamster_orchestrator::Orchestrator::new(config).unwrap();
    let mut request = request(&mocks.iter().collect::<Vec<_>>());
    let policy = &mut request.retry;
    policy.retries = case.retries;
    policy.max_attempts = case.max_attempts;
    policy.max_elapsed = case.max_elapsed.map(Duration::from_millis);
    policy.max_wait = Duration::from_millis(case.max_wait);
    policy.actions = case.actions.iter().copied().collect();
    if case.then_end {
        policy.side_effects.then = AfterSideEffects::End;
    }
    request.budget.turns = case.turns;
    // An agent that hangs must be stopped at some time.
    request.budget.time = Some(secs(3600));
    if case.new_session && case.resume {
        for candidate in &mut request.candidates {
            candidate.params.new_session_id = Some("s1".into());
        }
    }
    let (send, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let cancel = request.candidates[0].params.cancel.clone();
    let request = request.on_event(move |event| {
        let _ = send.send(event.clone());
    });
    let mut run = Some(orchestrator.start(request));
    let abort = run.as_ref().unwrap().abort_handle();
    let mut reader = None;
    // The stream is read, except in the case that drops it.
    let drops = case.stop.as_ref().is_some_and(|stop| stop.how == 4);
    if !drops {
        reader = Some(tokio::spawn(events(run.take().unwrap())));
    }
    if let Some(stop) = &case.stop {
        tokio::time::sleep(Duration::from_millis(stop.at)).await;
        match stop.how {
            0 => abort.abort(),
            1 => abort.kill(),
            2 => cancel.cancel(),
            3 => drop(orchestrator.abort("r").await),
            _ => drop(run.take()),
        }
    }
    let mut seen = Vec::new();
    while let Some(event) = heard.recv().await {
        seen.push(event);
    }
    check(&seen);
    if let Some(reader) = reader {
        assert_eq!(reader.await.unwrap(), seen);
    }
    assert_over(&orchestrator, &mocks.iter().collect::<Vec<_>>()).await;
    assert_messages(&seen);
    assert_not_done_twice(case, &mocks, &seen);
}

/// Asserts that the outcome has the messages that were emitted and not retracted.
fn assert_messages(seen: &[RunEvent]) {
    let mut stand: Vec<&str> = Vec::new();
    let mut first = 0;
    for event in seen {
        match event {
            RunEvent::Message { content, .. } => stand.push(content),
            RunEvent::Retry { next, .. } | RunEvent::Fallback { next, .. } => {
                if next.resumes.is_none() {
                    stand.truncate(first);
                }
                first = stand.len();
            }
            _ => {}
        }
    }
    assert_eq!(messages(seen), stand);
}

/// Asserts that the prompt is never sent again after a change, and always before one.
fn assert_not_done_twice(case: &Case, mocks: &[Arc<MockRuntime>], seen: &[RunEvent]) {
    // The candidate of each attempt.
    let mut candidates = Vec::new();
    let mut now = 0;
    let mut last = 1;
    let done = outcome(seen);
    for event in seen {
        match event {
            RunEvent::Retry { next, .. } => {
                if next.attempt > last {
                    candidates.push(now);
                }
                last = next.attempt;
            }
            RunEvent::Fallback { next, .. } => {
                if next.attempt > last {
                    candidates.push(now);
                }
                last = next.attempt;
                // The next candidate of that provider, unless a side effect requires one that can resume.
                now = (now + 1..mocks.len())
                    .find(|n| name(case.candidates[*n].0) == next.provider)
                    .unwrap();
            }
            _ => {}
        }
    }
    if candidates.len() < done.attempts.len() {
        candidates.push(now);
    }
    assert_eq!(candidates.len(), done.attempts.len());
    let mut taken = vec![0; mocks.len()];
    let mut before = false;
    for (n, candidate) in candidates.iter().enumerate() {
        let runs = mocks[*candidate].runs();
        let Some(run) = runs.get(taken[*candidate]) else {
            // The attempt was aborted before it began.
            assert_eq!(n + 1, candidates.len());
            continue;
        };
        let again = run.params.prompt == PROMPT;
        assert_eq!(again, !before, "attempt {n}");
        assert_eq!(done.attempts[n].resumed, before);
        let (provider, plays) = &case.candidates[*candidate];
        // A runtime without a script fails and changes nothing.
        if let Some(play) = plays.get(taken[*candidate]) {
            before |= changed(play, case.announces[usize::from(*provider)]);
        } else {
            // A run that broke off reports the same.
            before |= !case.announces[usize::from(*provider)];
        }
        taken[*candidate] += 1;
    }
    for (mock, taken) in mocks.iter().zip(taken) {
        assert_eq!(mock.runs().len(), taken);
    }
    if case.stop.is_none() {
        assert_ne!(done.result.status, RunStatus::Aborted);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, max_shrink_iters: 4000, ..ProptestConfig::default() })]

    #[test]
    fn every_run_ends_well_and_does_nothing_twice(case in cases()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(play(&case));
    }
}
