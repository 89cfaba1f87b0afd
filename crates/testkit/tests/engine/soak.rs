//! Very many events of one run, and very many runs of one orchestrator: what is kept for one goes with it.

use std::sync::Arc;

use teamster::orchestrator::{Orchestrator, OrchestratorConfig, RunRequest};
use teamster_core::{AgentEvent, ExecuteParams, RunStatus};
use teamster_testkit::fake_agent::{Script, Text};
use teamster_testkit::soak::Soak;

use crate::engine::{END, agent};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_events_of_a_run_leave_nothing() {
    // Up to 10 MiB wait in the queue, more or fewer at any moment.
    let mut soak = Soak::new("events", 20_000, std::process::id()).room_kib(16 * 1024);
    let lines = Text::from(r#"{"n":"{n}"}"#).repeat(soak.count());
    let mut events = agent(&Script::new().line(lines).line(END)).start();
    let (mut read, mut status) = (0, None);
    while let Some(event) = events.next().await {
        match event {
            AgentEvent::Unknown(_) => {
                read += 1;
                soak.done(read);
            }
            AgentEvent::Done(done) => status = Some(done.result.status),
            _ => {}
        }
    }
    assert_eq!((read, status), (soak.count(), Some(RunStatus::Completed)));
    soak.end();
}

#[tokio::test]
async fn many_runs_of_an_orchestrator_leave_nothing() {
    let mut soak = Soak::new("runs of an orchestrator", 30, std::process::id());
    let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
    let runtime = Arc::new(agent(&Script::new().line(END)).runtime());
    for run in 1..=soak.count() {
        let request = RunRequest::new(runtime.clone(), ExecuteParams::new("prompt"));
        let outcome = orchestrator.start(request).outcome().await;
        assert_eq!(outcome.result.status, RunStatus::Completed, "run {run}");
        soak.done(run);
    }
    assert!(orchestrator.active_runs().await.is_empty());
    soak.end();
}
