//! Property tests of the stream's grammar for random agents, policies and commands.

use proptest::prelude::*;
use serde_json::json;
use teamster_core::{AgentRuntime, RunEvent, RunResult, RunStatus, TextLedger, ToolKind};

use super::*;
use crate::{Action, AfterSideEffects};

#[derive(Debug, Clone)]
enum Step {
    Session(u8),
    Text(Option<u8>),
    Retract(u8),
    Use(u8, ToolKind),
    Result(u8),
    Denied(u8),
    Usage(u8),
    Error(ErrorKind),
    Delay(u8),
    Notice,
    TurnEnd,
}

#[derive(Debug, Clone)]
enum End {
    Completed,
    Failed(ErrorKind),
    TimedOut,
    Incomplete,
    BreaksOff,
    Panics,
    Waits,
}

fn kind() -> impl Strategy<Value = ErrorKind> {
    prop_oneof![
        3 => Just(ErrorKind::Network),
        1 => Just(ErrorKind::RateLimit),
        1 => Just(ErrorKind::Quota),
        1 => Just(ErrorKind::Auth),
        1 => Just(ErrorKind::Invalid),
        1 => Just(ErrorKind::Budget),
        1 => Just(ErrorKind::Internal),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let tool = prop_oneof![Just(ToolKind::Read), Just(ToolKind::Execute)];
    prop_oneof![
        1 => (0..3_u8).prop_map(Step::Session),
        4 => proptest::option::of(0..3_u8).prop_map(Step::Text),
        1 => (0..3_u8).prop_map(Step::Retract),
        2 => (0..3_u8, tool).prop_map(|(id, kind)| Step::Use(id, kind)),
        2 => (0..3_u8).prop_map(Step::Result),
        1 => (0..3_u8).prop_map(Step::Denied),
        1 => (0..9_u8).prop_map(Step::Usage),
        1 => kind().prop_map(Step::Error),
        1 => (0..4_u8).prop_map(Step::Delay),
        1 => Just(Step::Notice),
        1 => Just(Step::TurnEnd),
    ]
}

/// Returns an ending. With `kept`, it follows the grammar of a stream.
fn end(kept: bool) -> impl Strategy<Value = End> {
    let broken = u32::from(!kept);
    prop_oneof![
        1 => Just(End::Completed),
        5 => kind().prop_map(End::Failed),
        1 => Just(End::TimedOut),
        1 => Just(End::Incomplete),
        broken => Just(End::BreaksOff),
        broken => Just(End::Panics),
        1 => Just(End::Waits),
    ]
}

/// Returns a script, and whether it ends by itself.
fn script(kept: bool) -> impl Strategy<Value = (Script, bool)> {
    (proptest::collection::vec(step(), 0..8), end(kept)).prop_map(|(steps, end)| {
        let script = steps
            .into_iter()
            .fold(Script::new(), |script, step| match step {
                Step::Session(id) => script.session(format!("s{id}")),
                Step::Text(None) => script.text("t "),
                Step::Text(Some(id)) => script.text_in(format!("m{id}"), format!("m{id} ")),
                Step::Retract(id) => script.retract(format!("m{id}")),
                Step::Use(id, kind) => script.tool_use("tool", format!("t{id}"), kind, json!({})),
                Step::Result(id) => script.tool_result(format!("t{id}"), "ok"),
                Step::Denied(id) => script.permission_denied("tool", format!("t{id}"), "no"),
                Step::Usage(tokens) => {
                    script.usage(teamster_core::Usage::default().output_tokens(u64::from(tokens)))
                }
                Step::Error(kind) => script.error(error(kind)),
                Step::Delay(time) => script.delay(seconds(time.into())),
                Step::Notice => script.notice(teamster_core::NoticeLevel::Info, "n"),
                Step::TurnEnd => script.event(teamster_core::TurnEnd::new(false).cost_usd(0.1)),
            });
        let stops = !matches!(end, End::Waits);
        let script = match end {
            End::Completed => script,
            End::Failed(kind) => script.failed(error(kind)),
            End::TimedOut => script.timed_out(error(ErrorKind::Timeout)),
            End::Incomplete => script.incomplete(),
            End::BreaksOff => script.breaks_off(),
            End::Panics => script.panic("scripted panic"),
            End::Waits => script.wait_for_abort().stop_takes(seconds(2)),
        };
        (script, stops)
    })
}

#[derive(Debug, Clone)]
struct Case {
    scripts: [Vec<Script>; 3],
    candidates: usize,
    retries: u32,
    end_after_changes: bool,
    wait: bool,
    tokens: Option<u64>,
    time: Option<u64>,
    /// Time of a stop in seconds, and whether it is forced.
    abort: Option<(u64, bool)>,
}

fn case() -> impl Strategy<Value = Case> {
    let scripts = || proptest::collection::vec(script(false).prop_map(|(script, _)| script), 0..3);
    (
        [scripts(), scripts(), scripts()],
        1..4_usize,
        0..3_u32,
        any::<bool>(),
        any::<bool>(),
        proptest::option::of(0..20_u64),
        proptest::option::of(0..20_u64),
        proptest::option::of((0..10_u64, any::<bool>())),
    )
        .prop_map(
            |(scripts, candidates, retries, end_after_changes, wait, tokens, time, abort)| Case {
                scripts,
                candidates,
                retries,
                end_after_changes,
                wait,
                tokens,
                time,
                abort,
            },
        )
}

async fn play(case: Case) {
    let names = ["claude", "claude", "codex"];
    let runtimes: Vec<_> = (names.into_iter().zip(case.scripts))
        .map(|(name, scripts)| mock(name, scripts))
        .collect();
    let mut request = request(&runtimes[0]);
    for runtime in &runtimes[1..case.candidates] {
        request = request.fallback(candidate(runtime));
    }
    request.retry.retries = case.retries;
    if case.end_after_changes {
        request.retry.side_effects.then = AfterSideEffects::End;
    }
    if case.wait {
        request.retry.actions.insert(ErrorKind::Auth, Action::Wait);
        request.retry.max_wait = Duration::ZERO;
    }
    request.budget.tokens = case.tokens;
    // A script may wait for a stop.
    let most = case.time.unwrap_or(1000);
    request.budget.time = Some(seconds(most));
    let (sender, ended) = std::sync::mpsc::channel();
    request = request.on_event(move |event| {
        if let RunEvent::End(outcome) = event {
            sender.send(outcome.clone()).unwrap();
        }
    });
    let events = orchestrator().execute(request);
    if let Some((after, force)) = case.abort {
        let handle = events.abort_handle();
        tokio::spawn(async move {
            tokio::time::sleep(seconds(after)).await;
            if force {
                handle.kill();
            } else {
                handle.abort();
            }
        });
    }
    let events = all(events).await;
    let result = result(&events);
    assert_eq!(result.aborted, result.status == RunStatus::Aborted);
    let Ok(mut outcome) = ended.try_recv() else {
        // The run was stopped before it was polled.
        assert_eq!(result.status, RunStatus::Aborted);
        return;
    };
    // An answer that equals the whole text is stored once.
    (outcome.result.final_message).get_or_insert_with(|| outcome.result.text.clone());
    let mut done = result.clone();
    (done.final_message).get_or_insert_with(|| result.text.clone());
    assert_eq!(done, outcome.result, "{:#?}", short(&events));
    assert_eq!(outcome.is_success(), outcome.error.is_none());
    // The messages are those of the stream, by its ids.
    let mut ledger = TextLedger::default();
    for event in &events {
        ledger.event(event);
    }
    let mut of_stream = RunResult::default().text(ledger.text());
    of_stream.pieces = ledger.text_pieces();
    assert_eq!(
        result.messages(),
        of_stream.messages(),
        "{:#?}",
        short(&events)
    );
    for runtime in &runtimes {
        assert_eq!(runtime.active(), 0);
    }
}

/// Reads a stream that is stopped at some time.
async fn stopped(events: EventStream, abort: Option<u64>) -> Vec<AgentEvent> {
    if let Some(after) = abort {
        let handle = events.abort_handle();
        tokio::spawn(async move {
            // Not at the exact time of another event.
            tokio::time::sleep(seconds(after) + Duration::from_millis(500)).await;
            handle.abort();
        });
    }
    all(events).await
}

/// Compares one attempt with and without an orchestrator.
async fn once(script: Script, abort: Option<u64>) {
    let alone = mock("claude", [script.clone()]).execute(ExecuteParams::new("do it"));
    let mut request = request(&mock("claude", [script]));
    request.retry.retries = 0;
    request.retry.max_wait = Duration::ZERO;
    let orchestrated = stopped(orchestrator().execute(request), abort).await;
    assert_eq!(json(&orchestrated), json(&stopped(alone, abort).await));
}

fn tokio() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn every_stream_has_its_grammar(case in case()) {
        tokio().block_on(play(case));
    }

    #[test]
    fn a_run_with_one_attempt_is_that_of_its_runtime(
        (script, stops) in script(true),
        abort in proptest::option::of(0..10_u64),
    ) {
        let abort = if stops { abort } else { Some(abort.unwrap_or(3)) };
        tokio().block_on(once(script, abort));
    }
}
