//! Tests of consumers that read slowly, late or never.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use teamster_core::{RunStatus, ToolKind};
use teamster_orchestrator::{Limits, RunRequest};
use teamster_testkit::mock_runtime::{MockRuntime, Script};

use crate::common::*;

fn talks(pieces: usize) -> Script {
    (0..pieces).fold(Script::new(), |script, n| script.text(format!("{n} ")))
}

fn counted(request: RunRequest) -> (RunRequest, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let heard = count.clone();
    let request = request.on_event(move |_| {
        heard.fetch_add(1, Ordering::SeqCst);
    });
    (request, count)
}

#[tokio::test(start_paused = true)]
async fn slow_consumer_gets_every_event_in_order() {
    let claude = mock("claude", [talks(2000)]);
    let (request, count) = counted(request(&[&claude]));
    let mut run = orchestrator().start(request);
    settle().await;
    tokio::time::sleep(secs(10)).await;
    // The run waits for its consumer, so the number of waiting events is bounded.
    let waiting = count.load(Ordering::SeqCst);
    assert!((256..=384).contains(&waiting), "{waiting}");
    let mut seen = Vec::new();
    while let Some(event) = run.next().await {
        seen.push(brief(&event));
        if seen.len() % 100 == 0 {
            tokio::time::sleep(ms(10)).await;
        }
    }
    let pieces: Vec<_> = (0..2000).map(|n| format!("{n} ")).collect();
    let text = pieces.concat();
    let chunks = (0..2000).map(|n| format!("chunk {n} "));
    let expected: Vec<_> = ["start claude", "attempt 1 claude"]
        .map(str::to_owned)
        .into_iter()
        .chain(chunks)
        .chain([format!("message {text}"), "end success".to_owned()])
        .collect();
    assert_eq!(seen, expected);
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_consumer_sleeps_can_be_stopped() {
    for way in ["abort", "by id", "budget", "drop"] {
        let script = talks(1000)
            .tool_use("Bash", "t", ToolKind::Execute, json!({}))
            .wait_for_abort();
        let claude = mock("claude", [script]);
        let orchestrator = limited(Limits::default().overall(1));
        let mut request = request(&[&claude]);
        if way == "budget" {
            request.budget.time = Some(secs(60));
        }
        let run = orchestrator.start(request);
        claude.wait_for_runs(1).await;
        tokio::time::sleep(secs(30)).await;
        assert_eq!(claude.active(), 1);
        let mut kept = None;
        match way {
            "abort" => {
                run.abort();
                kept = Some(run);
            }
            "by id" => {
                assert!(orchestrator.abort("r").await);
                kept = Some(run);
            }
            "budget" => kept = Some(run),
            _ => drop(run),
        }
        tokio::time::sleep(secs(31)).await;
        // Although no event was read.
        assert_over(&orchestrator, &[&claude]).await;
        let Some(run) = kept else { continue };
        let events = events(run).await;
        let status = outcome(&events).result.status;
        let expected = match way {
            "budget" => RunStatus::Failed,
            _ => RunStatus::Aborted,
        };
        assert_eq!(status, expected, "{way}");
        // All earlier text is there, because the agent was never ahead of its consumer.
        let text = messages(&events).concat();
        assert!(text.starts_with("0 1 2 "), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn grace_of_a_hanging_runtime_ends_while_the_consumer_sleeps() {
    let claude = mock("claude", [talks(1000).hang()]);
    let orchestrator = limited(Limits::default().overall(1));
    let run = orchestrator.start(request(&[&claude]));
    claude.wait_for_runs(1).await;
    settle().await;
    run.abort();
    tokio::time::sleep(secs(31)).await;
    assert_over(&orchestrator, &[&claude]).await;
    assert_eq!(story(run).await.last().unwrap(), "end aborted");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_read_to_its_end_was_not_aborted() {
    let claude = Arc::new(MockRuntime::new("claude").run_by(|_| Script::new().text("x")));
    let orchestrator = orchestrator();
    for _ in 0..20 {
        let mut run = orchestrator.start(request(&[&claude]));
        let abort = run.abort_handle();
        while run.next().await.is_some() {}
        drop(run);
        assert!(!abort.is_aborted());
    }
}

#[tokio::test(start_paused = true)]
async fn an_outcome_is_given_once_and_after_it_nothing() {
    let claude = mock("claude", [Script::new().text("x")]);
    let mut run = orchestrator().start(request(&[&claude]));
    while run.next().await.is_some() {}
    assert_eq!(run.next().await, None);
    assert_eq!(run.outcome().await.result.status, RunStatus::Aborted);
}
