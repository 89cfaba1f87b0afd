//! Tests of runtimes and callbacks that misbehave.

use std::sync::{Arc, Mutex};

use teamster_core::{
    AgentError, AgentRuntime, Capabilities, ErrorCode, ErrorKind, EventStream, ExecuteParams, Id,
    Outcome, RunStatus,
};
use teamster_orchestrator::{Accepted, Budget, Candidate, RunObserver, RunRequest};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use crate::common::*;

/// A runtime that panics before it returns a stream.
struct PanicsAtOnce(Capabilities);

impl AgentRuntime for PanicsAtOnce {
    fn id(&self) -> &'static str {
        "broken"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    fn execute(&self, _: ExecuteParams) -> EventStream {
        panic!("as it should")
    }
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_panics_at_once_is_given_up() {
    let broken = Arc::new(PanicsAtOnce(Capabilities::none()));
    let codex = mock("codex", [Script::new().text("x")]);
    let orchestrator = orchestrator();
    let mut alone = RunRequest::new(broken.clone(), ExecuteParams::new(PROMPT));
    alone.id = Some("r".into());
    let events = events(orchestrator.start(alone.clone())).await;
    assert_eq!(
        briefs(&events),
        ["start broken", "error Internal", "end error"]
    );
    let done = outcome(&events);
    assert_eq!(done.error.unwrap().message, "the runtime panicked");
    assert_eq!(
        done.attempts[0].error.as_ref().unwrap().message,
        "the runtime panicked"
    );
    // The attempt never began, so the prompt can be sent to another candidate.
    let two = alone.fallback(Candidate::new(codex.clone(), ExecuteParams::new(PROMPT)));
    assert_eq!(
        story(orchestrator.start(two)).await,
        [
            "start broken",
            "fallback 2 Internal +0 codex",
            "chunk x",
            "message x",
            "end success"
        ]
    );
    assert_over(&orchestrator, &[&codex]).await;
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_panics_on_the_way_ends_the_run_well() {
    let claude = mock(
        "claude",
        [Script::new()
            .tool_use(
                "Read",
                "t",
                teamster_core::ToolKind::Read,
                serde_json::json!({}),
            )
            .panic("as it should")],
    );
    let orchestrator = orchestrator();
    let events = events(orchestrator.start(request(&[&claude]))).await;
    assert_eq!(
        briefs(&events),
        [
            "start claude",
            "tool t",
            "tool-end t error 0",
            "error Internal",
            "end error"
        ]
    );
    assert_over(&orchestrator, &[&claude]).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_done_ends_the_run_well() {
    let claude = mock("claude", [Script::new().text("ha").breaks_off()]);
    let orchestrator = orchestrator();
    let mut request = request(&[&claude]);
    request.retry.retries = 0;
    let events = events(orchestrator.start(request)).await;
    assert_eq!(
        briefs(&events),
        [
            "start claude",
            "chunk ha",
            "message ha",
            "error Protocol",
            "end error"
        ]
    );
    assert_eq!(outcome(&events).answer(), Some("ha"));
    assert_over(&orchestrator, &[&claude]).await;
}

#[derive(Default)]
struct Log {
    heard: Mutex<Vec<String>>,
    panics: bool,
}

impl Log {
    fn heard(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    async fn hear(&self, line: String) {
        self.heard.lock().unwrap().push(line);
        tokio::task::yield_now().await;
        assert!(!self.panics, "as it should");
    }
}

#[async_trait::async_trait]
impl RunObserver for Log {
    async fn accepted(&self, run: Accepted<'_>) {
        self.hear(format!(
            "accepted {} {} {} {}",
            run.run_id,
            run.provider,
            run.params.prompt,
            run.at_ms - T0
        ))
        .await;
    }

    async fn session(&self, run_id: &Id, provider: &str, session_id: &Id) {
        self.hear(format!("session {run_id} {provider} {session_id}"))
            .await;
    }

    async fn ended(&self, outcome: &Outcome) {
        self.hear(format!("ended {}", outcome.result.status.as_str()))
            .await;
    }
}

fn observed(request: &mut RunRequest, panics: bool) -> Arc<Log> {
    let log = Arc::new(Log {
        panics,
        ..Log::default()
    });
    request.observer = Some(log.clone());
    log
}

#[tokio::test(start_paused = true)]
async fn an_observer_is_called_in_order_and_may_panic() {
    for panics in [false, true] {
        let claude = mock(
            "claude",
            [Script::new()
                .session("a")
                .session("b")
                .failed(error(ErrorKind::Auth))],
        );
        let codex = mock(
            "codex",
            [Script::new()
                .text("x")
                .adjust(|result| result.session_id = Some("only at the end".into()))],
        );
        let orchestrator = orchestrator();
        let mut request = request(&[&claude, &codex]);
        let log = observed(&mut request, panics);
        let done = outcome(&events(orchestrator.start(request)).await);
        assert_eq!(done.result.status, RunStatus::Completed);
        assert_eq!(
            log.heard(),
            [
                "accepted r claude do it 0",
                "session r claude a",
                "session r claude b",
                "session r codex only at the end",
                "ended completed"
            ]
        );
        assert_over(&orchestrator, &[&claude, &codex]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_is_not_informed_of_a_session_that_never_was() {
    let claude = mock("claude", [fails(ErrorKind::NotFound)]);
    let mut request = request(&[&claude]);
    request.candidates[0].params.new_session_id = Some("wished".into());
    let log = observed(&mut request, false);
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(log.heard(), ["accepted r claude do it 0", "ended failed"]);
    // The outcome has no session to resume.
    assert_eq!(done.session_id, None);
}

#[tokio::test(start_paused = true)]
async fn an_observer_hears_of_the_end_though_unread() {
    let claude = mock("claude", [Script::new().session("s").wait_for_abort()]);
    let orchestrator = orchestrator();
    let mut request = request(&[&claude]);
    let log = observed(&mut request, false);
    let run = orchestrator.start(request);
    claude.wait_for_runs(1).await;
    settle().await;
    drop(run);
    settle().await;
    assert_eq!(
        log.heard(),
        [
            "accepted r claude do it 0",
            "session r claude s",
            "ended aborted"
        ]
    );
    assert_over(&orchestrator, &[&claude]).await;
}

#[tokio::test(start_paused = true)]
async fn observer_without_a_run_start_gets_no_run_end() {
    let claude = mock("claude", [Script::new().wait_for_abort()]);
    let orchestrator = orchestrator();
    let first = orchestrator.start(request(&[&claude]));
    settle().await;
    // A run whose id is in use.
    let mut taken = request(&[&claude]);
    let log = observed(&mut taken, false);
    let refused = events(orchestrator.start(taken)).await;
    assert_eq!(
        briefs(&refused),
        ["start claude", "error Invalid", "end error"]
    );
    let message = outcome(&refused).error.unwrap().message;
    assert!(message.contains("`r`"), "{message}");
    assert!(orchestrator.is_run_active("r").await);
    drop(first);
    settle().await;
    // A run with an invalid budget.
    let mut zero = request(&[&claude]);
    zero.observer = Some(log.clone());
    zero.budget.turns = Some(0);
    events(orchestrator.start(zero)).await;
    // A run without a candidate.
    let mut empty = request(&[&claude]);
    empty.observer = Some(log.clone());
    empty.candidates.clear();
    let none = events(orchestrator.start(empty)).await;
    assert_eq!(briefs(&none), ["start ", "error Invalid", "end error"]);
    assert_eq!(log.heard(), [""; 0]);
    assert_over(&orchestrator, &[&claude]).await;
}

#[tokio::test(start_paused = true)]
async fn a_callback_may_panic() {
    let claude = mock("claude", [Script::new().text("x")]);
    let orchestrator = orchestrator();
    let request = request(&[&claude]).on_event(|_| panic!("as it should"));
    assert_eq!(
        story(orchestrator.start(request)).await,
        ["start claude", "chunk x", "message x", "end success"]
    );
    assert_over(&orchestrator, &[&claude]).await;
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_cannot_be_is_refused() {
    type Set = fn(&mut Budget);
    let cases: [(Set, &str); 7] = [
        (|b| b.usd = Some(0.0), "budget.usd"),
        (|b| b.usd = Some(-1.0), "budget.usd"),
        (|b| b.usd = Some(f64::NAN), "budget.usd"),
        (|b| b.usd = Some(f64::INFINITY), "budget.usd"),
        (|b| b.tokens = Some(0), "budget.tokens"),
        (|b| b.turns = Some(0), "budget.turns"),
        (|b| b.time = Some(std::time::Duration::ZERO), "budget.time"),
    ];
    for (set, what) in cases {
        let claude = mock("claude", [Script::new()]);
        let mut request = request(&[&claude]);
        set(&mut request.budget);
        let events = events(orchestrator().start(request)).await;
        assert_eq!(
            briefs(&events),
            ["start claude", "error Invalid", "end error"]
        );
        let error = outcome(&events).error.unwrap();
        assert_eq!(error.parameter(), Some(what));
        assert_eq!(claude.runs().len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn parameters_that_the_provider_refuses_are_not_tried_again() {
    let mut runtime = MockRuntime::new("claude");
    runtime.capabilities_mut().images = false;
    let claude = Arc::new(runtime.run(Script::new()));
    let mut request = request(&[&claude]);
    request.candidates[0].params.prompt = String::new();
    let events = events(orchestrator().start(request)).await;
    assert_eq!(
        briefs(&events),
        ["start claude", "error Invalid", "end error"]
    );
    let done = outcome(&events);
    assert_eq!(done.attempts.len(), 1);
    assert_eq!(done.result.errors[0].code, ErrorCode::InvalidParams);
}

/// An observer whose calls never return.
struct Stuck;

#[async_trait::async_trait]
impl RunObserver for Stuck {
    async fn accepted(&self, _: Accepted<'_>) {
        std::future::pending::<()>().await;
    }

    async fn session(&self, _: &Id, _: &str, _: &Id) {
        std::future::pending::<()>().await;
    }

    async fn ended(&self, _: &Outcome) {
        std::future::pending::<()>().await;
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_observer_does_not_delay_the_end_of_a_stopped_run() {
    let claude = mock("claude", [Script::new().session("a").wait_for_abort()]);
    let orchestrator = orchestrator();
    let mut request = request(&[&claude]);
    request.observer = Some(Arc::new(Stuck));
    let run = orchestrator.start(request);
    let abort = run.abort_handle();
    let outcome = tokio::spawn(run.outcome());
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    abort.abort();
    let done = outcome.await.unwrap();
    assert_eq!(done.result.status, RunStatus::Aborted);
    // The observer hung in `accepted`, and then in `ended`.
    assert_eq!(done.duration_ms, 8000);
    assert_over(&orchestrator, &[&claude]).await;
}

/// A runtime that refuses the parameters before anything is started, with an error of this kind.
struct Refuses(Arc<MockRuntime>, ErrorKind);

impl AgentRuntime for Refuses {
    fn id(&self) -> &'static str {
        "refuses"
    }

    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn check(&self, _: &ExecuteParams) -> Result<(), AgentError> {
        let message = "effort: it has none";
        Err(AgentError::new(ErrorCode::InvalidParams, self.1, message))
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        self.0.execute(params)
    }
}

#[tokio::test(start_paused = true)]
async fn candidate_without_the_session_is_refused_before_the_start() {
    let claude = mock("claude", [Script::new()]);
    let other = mock("other", []);
    let orchestrator = orchestrator();
    let mut request = request(&[&claude]);
    let refuses = Arc::new(Refuses(other.clone(), ErrorKind::Invalid));
    request
        .candidates
        .push(Candidate::new(refuses, ExecuteParams::new("x")));
    let done = orchestrator.start(request).outcome().await;
    let error = done.error.unwrap();
    assert_eq!(
        (error.kind, &*error.message),
        (ErrorKind::Invalid, "effort: it has none")
    );
    assert_eq!(done.attempts.len(), 0);
    assert!(claude.runs().is_empty() && other.runs().is_empty());
}

#[test]
fn request_with_an_invalid_candidate_or_budget_is_refused_ahead() {
    let claude = mock("claude", []);
    let other = |kind| {
        let refuses = Arc::new(Refuses(mock("other", []), kind));
        Candidate::new(refuses, ExecuteParams::new("x"))
    };
    let mut request = request(&[&claude]);
    let refused = |request: &RunRequest| request.check().err().map(|error| error.message);
    assert_eq!(refused(&request), None);
    let own = Some("effort: it has none");
    request.candidates.push(other(ErrorKind::Invalid));
    assert_eq!(refused(&request).as_deref(), own);
    request.candidates.swap(0, 1);
    assert_eq!(refused(&request).as_deref(), own);
    // A fallback may go on after such a first attempt.
    request.candidates[0] = other(ErrorKind::Auth);
    assert_eq!(refused(&request), None);
    request.budget = Budget::default().turns(0);
    assert_eq!(
        refused(&request).as_deref(),
        Some("budget.turns: it must be more than 0; leave it out for no limit")
    );
    assert!(claude.runs().is_empty());
}

#[test]
fn a_session_goes_to_no_other_provider() {
    let codex = mock("codex", []);
    let mut params = ExecuteParams::new("x");
    assert!(Candidate::for_other_provider(codex.clone(), &params).is_ok());
    params.session_id = Some("s".into());
    let error = Candidate::for_other_provider(codex, &params).unwrap_err();
    assert!(
        error.message.contains("does not know the session"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_hangs_does_not_hold_up_a_run_for_ever() {
    let claude = mock("claude", [Script::new().session("a").text("x")]);
    let orchestrator = orchestrator();
    let mut request = request(&[&claude]);
    request.observer = Some(Arc::new(Stuck));
    let done = orchestrator.start(request).outcome().await;
    assert_eq!(done.result.status, RunStatus::Completed);
    assert_eq!(done.answer(), Some("x"));
    assert_over(&orchestrator, &[&claude]).await;
}
