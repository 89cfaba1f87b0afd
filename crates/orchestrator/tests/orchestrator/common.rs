//! Shared test helpers.

use std::sync::Arc;
use std::time::Duration;

use teamster_core::{
    AgentError, ErrorCode, ErrorKind, ExecuteParams, Id, Next, Outcome, RunEvent, RunStatus,
};
use teamster_orchestrator::{
    Candidate, Clock, Limits, Orchestrator, OrchestratorConfig, Run, RunRequest,
};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

/// Start time of every test, in milliseconds since the Unix epoch.
pub(crate) const T0: u64 = 1_700_000_000_000;
pub(crate) const PROMPT: &str = "do it";

/// Creates a clock that follows Tokio's time.
pub(crate) fn clock() -> Clock {
    let start = tokio::time::Instant::now();
    Arc::new(move || T0 + u64::try_from(start.elapsed().as_millis()).unwrap())
}

pub(crate) fn config() -> OrchestratorConfig {
    let mut config = OrchestratorConfig::default();
    config.clock = clock();
    config
}

pub(crate) fn orchestrator() -> Orchestrator {
    Orchestrator::new(config()).unwrap()
}

pub(crate) fn limited(limits: Limits) -> Orchestrator {
    let mut config = config();
    config.limits = limits;
    Orchestrator::new(config).unwrap()
}

pub(crate) fn mock(provider: &str, scripts: impl IntoIterator<Item = Script>) -> Arc<MockRuntime> {
    let mock = MockRuntime::new(provider);
    for script in scripts {
        mock.add(script);
    }
    Arc::new(mock)
}

/// Creates a request for the run `r` with these runtimes, without jitter.
pub(crate) fn request(mocks: &[&Arc<MockRuntime>]) -> RunRequest {
    let mut request = RunRequest::new(mocks[0].clone(), ExecuteParams::new(PROMPT));
    for mock in &mocks[1..] {
        let params = ExecuteParams::new(PROMPT);
        request = request.fallback(Candidate::new((*mock).clone(), params));
    }
    request.retry.jitter = false;
    request.id = Some("r".into());
    request
}

pub(crate) fn error(kind: ErrorKind) -> AgentError {
    AgentError::new(ErrorCode::CliError, kind, format!("{kind:?}"))
}

pub(crate) fn fails(kind: ErrorKind) -> Script {
    Script::new().failed(error(kind))
}

/// Creates a script that fails with a delay for the retry.
pub(crate) fn fails_for(kind: ErrorKind, ms: u64) -> Script {
    Script::new().failed(error(kind).retry_after_ms(ms))
}

/// Creates a runtime whose every run plays this script.
pub(crate) fn always(provider: &str, script: Script) -> Arc<MockRuntime> {
    Arc::new(MockRuntime::new(provider).run(script).repeat_last())
}

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Lets all tasks run that do not wait for time.
pub(crate) async fn settle() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

pub(crate) async fn events(mut run: Run) -> Vec<RunEvent> {
    let mut events = Vec::new();
    while let Some(event) = run.next().await {
        events.push(event);
    }
    check(&events);
    events
}

/// Asserts the properties of every run.
pub(crate) fn check(events: &[RunEvent]) {
    let shown = || events.iter().map(brief).collect::<Vec<_>>();
    let count = |name: &str| events.iter().filter(|e| e.type_name() == name).count();
    assert_eq!(count("run:start"), 1, "{:?}", shown());
    assert_eq!(count("run:end"), 1, "{:?}", shown());
    assert_eq!(events[0].type_name(), "run:start", "{:?}", shown());
    let Some(RunEvent::End(end)) = events.last() else {
        panic!("the end is not last: {:?}", shown());
    };
    let failed = !matches!(end.result.status, RunStatus::Completed | RunStatus::Aborted);
    assert_eq!(count("run:error"), usize::from(failed), "{:?}", shown());
    assert_eq!(end.error.is_none(), end.is_success());
    let begun: Vec<_> = (events.iter())
        .filter_map(|event| match event {
            RunEvent::Attempt {
                attempt,
                provider,
                resumes,
                ..
            } => Some((*attempt as usize, provider, resumes.is_some())),
            _ => None,
        })
        .collect();
    let attempts: Vec<_> = (end.attempts.iter().enumerate())
        .map(|(index, attempt)| (index + 1, &attempt.provider, attempt.resumed))
        .collect();
    assert_eq!(begun, attempts, "{:?}", shown());
    let mut open: Vec<&Id> = Vec::new();
    for event in events {
        match event {
            RunEvent::ToolStart { tool_id, .. } => open.push(tool_id),
            RunEvent::ToolEnd { tool_id, .. } => {
                let at = open.iter().position(|id| *id == tool_id);
                open.remove(at.unwrap_or_else(|| panic!("ended twice: {:?}", shown())));
            }
            RunEvent::Retry { .. } | RunEvent::Fallback { .. } | RunEvent::End(_) => {
                assert!(open.is_empty(), "not ended: {open:?} {:?}", shown());
            }
            _ => {}
        }
        assert_eq!(event.run_id(), events[0].run_id());
    }
}

/// Returns the events of a run, each as a short text.
pub(crate) async fn story(run: Run) -> Vec<String> {
    briefs(&events(run).await)
}

/// Returns all events except `run:attempt`, which follows from the others.
pub(crate) fn briefs(events: &[RunEvent]) -> Vec<String> {
    let events = events.iter();
    events
        .filter(|event| !matches!(event, RunEvent::Attempt { .. }))
        .map(brief)
        .collect()
}

pub(crate) fn outcome(events: &[RunEvent]) -> Outcome {
    match events.last() {
        Some(RunEvent::End(outcome)) => (**outcome).clone(),
        other => panic!("no end but {other:?}"),
    }
}

pub(crate) fn wire(event: &RunEvent) -> serde_json::Value {
    serde_json::to_value(event).unwrap()
}

/// Returns the messages that were not retracted, from the wire form of the run's end.
pub(crate) fn messages(events: &[RunEvent]) -> Vec<String> {
    let end = wire(events.last().unwrap());
    let payloads = end["result"]["payloads"].as_array().unwrap().iter();
    payloads
        .map(|payload| payload["text"].as_str().unwrap().to_owned())
        .collect()
}

pub(crate) fn brief(event: &RunEvent) -> String {
    let coming = |next: &Next| match &next.resumes {
        Some(session) => format!("{} resumes {session}", next.provider),
        None => next.provider.clone(),
    };
    match event {
        RunEvent::Start { provider, .. } => format!("start {provider}"),
        RunEvent::End(_) => format!("end {}", wire(event)["status"].as_str().unwrap()),
        RunEvent::Error { error, .. } => format!("error {:?}", error.kind),
        RunEvent::Retry {
            reason,
            delay_ms,
            next,
            ..
        } => format!(
            "retry {} {:?} +{delay_ms} {}",
            next.attempt,
            reason.kind,
            coming(next)
        ),
        RunEvent::Fallback {
            reason,
            delay_ms,
            next,
            ..
        } => format!(
            "fallback {} {:?} +{delay_ms} {}",
            next.attempt,
            reason.kind,
            coming(next)
        ),
        RunEvent::Attempt {
            attempt, provider, ..
        } => format!("attempt {attempt} {provider}"),
        RunEvent::Hold {
            group, until_ms, ..
        } => match until_ms {
            Some(until) => format!("hold {group} until {}", until - T0),
            None => format!("hold {group}"),
        },
        RunEvent::ToolStart { tool_id, .. } => format!("tool {tool_id}"),
        RunEvent::ToolEnd {
            tool_id,
            duration_ms,
            is_error,
            ..
        } => {
            let how = if *is_error { "error" } else { "ok" };
            format!("tool-end {tool_id} {how} {duration_ms}")
        }
        RunEvent::Chunk { content, .. } => format!("chunk {content}"),
        RunEvent::Message { content, .. } => format!("message {content}"),
        other => panic!("a new event: {other:?}"),
    }
}

/// Asserts that the run has ended: it is not active, none of its agents is running, and its slot is free.
pub(crate) async fn assert_over(orchestrator: &Orchestrator, mocks: &[&Arc<MockRuntime>]) {
    assert!(!orchestrator.is_run_active("r").await);
    assert_eq!(orchestrator.active_runs().await, []);
    for mock in mocks {
        assert_eq!(mock.active(), 0, "an agent of {mock:?} still runs");
    }
    let after = mock("after", [Script::new().text("free")]);
    let mut request = request(&[&after]);
    request.id = Some("after".into());
    let done = tokio::time::timeout(secs(1), orchestrator.start(request).outcome()).await;
    let done = done.expect("a slot was not given back");
    assert_eq!(done.answer(), Some("free"));
}
