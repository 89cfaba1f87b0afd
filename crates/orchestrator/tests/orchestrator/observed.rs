//! Tests of what an observer gets of a run's log, and what the run gets of it.

use std::sync::{Arc, Mutex};

use teamster_core::{ErrorKind, Id, LifecycleEntry, LogEntry, RunLogEntry, RunStatus};
use teamster_orchestrator::RunObserver;
use teamster_testkit::mock_runtime::Script;

use crate::common::*;

/// An observer that keeps the numbers and types of log entries.
#[derive(Default)]
struct Entries {
    seen: Mutex<Vec<(u64, &'static str)>>,
    panics: bool,
}

impl Entries {
    fn see(&self, seq: u64, name: &'static str) {
        self.seen.lock().unwrap().push((seq, name));
    }
}

#[async_trait::async_trait]
impl RunObserver for Entries {
    fn agent_entry(&self, entry: &LogEntry) {
        assert!(!self.panics, "as it should");
        self.see(entry.seq, entry.event.type_name());
    }

    fn run_entry(&self, entry: &LifecycleEntry) {
        assert!(!self.panics, "as it should");
        self.see(entry.seq, entry.event.type_name());
    }
}

#[tokio::test(start_paused = true)]
async fn observer_gets_each_entry_of_the_log_in_order() {
    let claude = mock("claude", [fails(ErrorKind::Auth)]);
    let codex = mock("codex", [Script::new().session("s").text("x")]);
    let mut request = request(&[&claude, &codex]);
    let entries = Arc::new(Entries::default());
    request.observer = Some(entries.clone());
    let mut log = orchestrator().start_log(request);
    let mut read = Vec::new();
    while let Some(entry) = log.next().await {
        let name = match &entry {
            RunLogEntry::Agent(entry) => entry.event.type_name(),
            RunLogEntry::Run(entry) => entry.event.type_name(),
            _ => "",
        };
        read.push((entry.seq(), name));
    }
    assert_eq!(*entries.seen.lock().unwrap(), read);
    let names: Vec<_> = read.iter().map(|(_, name)| *name).collect();
    for name in ["run:start", "run:fallback", "text", "run:end"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert_eq!(names.last(), Some(&"done"));
}

#[tokio::test(start_paused = true)]
async fn observer_gets_agents_entries_of_a_run_without_them() {
    let claude = mock("claude", [Script::new().text("x")]);
    let mut request = request(&[&claude]);
    let entries = Arc::new(Entries::default());
    request.observer = Some(entries.clone());
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(done.result.status, RunStatus::Completed);
    let seen = entries.seen.lock().unwrap();
    let of_text: Vec<_> = seen.iter().filter(|(_, name)| *name == "text").collect();
    assert_eq!(of_text.len(), 1, "{seen:?}");
    // Derived events are no entries of the log.
    assert!(!seen.iter().any(|(_, name)| name.starts_with("assistant:")));
}

#[tokio::test(start_paused = true)]
async fn observer_gets_nothing_of_a_refused_run() {
    let claude = mock("claude", [Script::new().session("s").wait_for_abort()]);
    let orchestrator = orchestrator();
    let mut log = orchestrator.start_log(request(&[&claude]));
    log.next().await.unwrap();
    // Its id is that of the run above, whose entries these would seem to be.
    let mut second = request(&[&claude]);
    let entries = Arc::new(Entries::default());
    second.observer = Some(entries.clone());
    let refused = orchestrator.start(second).outcome().await;
    assert_eq!(refused.error.unwrap().parameter(), Some("run_id"));
    let seen = entries.seen.lock().unwrap().clone();
    assert!(seen.is_empty(), "{seen:?}");
    log.abort_handle().abort();
    while log.next().await.is_some() {}
}

/// An observer with a variable for the agents.
struct WithVariable;

impl RunObserver for WithVariable {
    fn variables(&self, run_id: &Id) -> Vec<(String, String)> {
        vec![("OF_RUN".into(), run_id.to_string())]
    }
}

#[tokio::test(start_paused = true)]
async fn variables_of_the_observer_are_those_of_all_attempts() {
    let claude = mock("claude", [fails(ErrorKind::Auth)]);
    let codex = mock("codex", [Script::new().text("x")]);
    let mut request = request(&[&claude, &codex]);
    request.candidates[1]
        .params
        .env
        .insert("OF_RUN".into(), "own".into());
    request.observer = Some(Arc::new(WithVariable));
    orchestrator().start(request).outcome().await;
    assert_eq!(claude.runs()[0].params.env["OF_RUN"], "r");
    assert_eq!(codex.runs()[0].params.env["OF_RUN"], "r");
}

#[tokio::test(start_paused = true)]
async fn observer_that_panics_at_each_entry_changes_no_run() {
    let claude = mock("claude", [Script::new().text("x")]);
    let mut request = request(&[&claude]);
    request.observer = Some(Arc::new(Entries {
        panics: true,
        ..Entries::default()
    }));
    let done = orchestrator().start(request).outcome().await;
    assert_eq!(done.answer(), Some("x"));
}
