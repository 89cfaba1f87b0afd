//! Stopping: first gracefully, then by force, and always completely.

use std::fs;
use std::time::{Duration, Instant};

use teamster_core::provider::{Launch, Signal as StopSignal, StopStep};
use teamster_core::{AbortHandle, ErrorCode, ErrorKind, RunStatus};
use teamster_process::StartObserver;
use teamster_testkit::events::assert_types;
use teamster_testkit::fake_agent::{Report, Script, Signal, Spawn, SpawnKind, Text};
use teamster_testkit::proc;

use crate::engine::{
    END, LIMIT, LONG, Run, Scratch, Story, agent, finish, finish_after, next, wait_for, wait_until,
};

/// Returns the script of an agent that prints its process id and never ends.
fn endless(scratch: &Scratch) -> Script {
    with_pid(scratch).line(r#"{"t":"working"}"#).forever()
}

fn with_pid(scratch: &Scratch) -> Script {
    Script::new().report(scratch.path("report"))
}

fn pid(scratch: &Scratch) -> u32 {
    Report::read(scratch.path("report")).unwrap().pid
}

/// Starts a run, waits for its first event, stops it and reads to the end.
async fn stopped(run: Run, stop: impl FnOnce(AbortHandle)) -> Story {
    let mut stream = run.start();
    let first = next(&mut stream).await;
    stop(stream.abort_handle());
    finish_after(vec![first], stream).await
}

fn assert_aborted(story: &Story) {
    assert_eq!(story.result.status, RunStatus::Aborted);
    assert!(story.result.aborted);
    assert_eq!(story.error().code, ErrorCode::Aborted);
    assert_eq!(story.error().kind, ErrorKind::Aborted);
}

#[tokio::test]
async fn abort_ends_the_agent_with_sigterm() {
    let scratch = Scratch::new();
    let story = stopped(agent(&endless(&scratch)), |handle| handle.abort()).await;
    assert_aborted(&story);
    assert_eq!(story.result.exit_signal.as_deref(), Some("SIGTERM"));
    assert_eq!(story.result.text, "working");
    assert!(!proc::is_alive(pid(&scratch)));
}

#[tokio::test]
async fn an_agent_that_floods_after_the_stop_fills_no_memory() {
    let scratch = Scratch::new();
    let flooded = scratch.path("flooded");
    let line = format!(r#"{{"t":"{}"}}"#, "x".repeat(1000));
    let flood = Script::new()
        .line(Text::from(line).repeat(40_000))
        .touch(&flooded)
        .forever();
    let script = with_pid(&scratch)
        .on_signal(Signal::Term, flood)
        .line(r#"{"t":"working"}"#)
        .forever();
    let mut stream = agent(&script)
        .config(|config| config.term_grace = LONG)
        .start();
    let first = next(&mut stream).await;
    let handle = stream.abort_handle();
    handle.abort();
    let story = tokio::spawn(finish_after(vec![first], stream));
    wait_for(&flooded).await;
    handle.kill();
    let story = story.await.unwrap();
    assert_aborted(&story);
    let text = story.result.text.len();
    assert!((1000..9 << 20).contains(&text), "{text} bytes of 40 MB");
    assert_eq!(story.result.diagnostics.malformed, 1, "a part is left out");
    let notices = story.notices();
    let [notice] = notices.as_slice() else {
        panic!("{notices:?}");
    };
    assert!(
        notice.starts_with("the CLI printed 4") && notice.ends_with(" the end of them is left out"),
        "{notice}"
    );
    assert!(!proc::is_alive(pid(&scratch)));
}

/// The CLI failed, and its Node.js never prints the requested version.
#[tokio::test]
async fn abort_does_not_wait_for_the_version_of_node() {
    let scratch = Scratch::new();
    let engines = r#"{"engines": {"node": ">=22.19.0"}}"#;
    fs::write(scratch.path("package.json"), engines).unwrap();
    let asked = scratch.path("asked");
    // `sleep` is a program that a shim of a version manager starts.
    let node = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] || {{ echo 'Node.js v20.20.2' >&2; exit 1; }}\n\
         sleep 1000 & echo $! > '{0}.new'; mv '{0}.new' '{0}'; wait\n",
        asked.display()
    );
    proc::write_program(&scratch.path("node"), &node).unwrap();
    let cli = scratch.path("cli.mjs");
    proc::write_program(&cli, "#!/usr/bin/env node\n").unwrap();
    let path = format!("{}:/usr/bin:/bin", scratch.path("").display());
    let stream = Run::of(Launch::default())
        .config(|config| config.program = Some(cli))
        .launch(|launch| launch.env.push(("PATH".into(), path)))
        .start();
    let handle = stream.abort_handle();
    let story = tokio::spawn(finish(stream));
    wait_for(&asked).await;
    let asked = scratch.pid("asked");
    handle.abort();
    assert_aborted(&story.await.unwrap());
    assert!(proc::wait_gone(asked.pid(), LIMIT));
}

#[tokio::test]
async fn cancelling_the_callers_token_aborts() {
    let scratch = Scratch::new();
    let run = agent(&endless(&scratch));
    let token = run.params.cancel.clone();
    let story = stopped(run, |_| token.cancel()).await;
    assert_aborted(&story);
    assert!(!proc::is_alive(pid(&scratch)));
}

#[tokio::test]
async fn abort_before_start_never_spawns() {
    let stream = never_started(agent(&Script::new().line(END))).start();
    stream.abort();
    let story = finish(stream).await;
    assert_types(&story.events, "error done");
    assert_aborted(&story);
}

#[tokio::test]
async fn a_stream_that_is_never_polled_never_spawns() {
    let stream = never_started(agent(&Script::new().line(END))).start();
    // Processes are started in order: the first one would have been started before this one.
    let later = agent(&Script::new().line(END)).finish().await;
    assert_eq!(later.result.status, RunStatus::Completed);
    drop(stream);
}

/// Makes the run fail the test when its process starts.
fn never_started(run: Run) -> Run {
    run.config(|config| {
        let started = |process: &_| panic!("started: {process:?}");
        config.on_start = Some(StartObserver::new(started));
    })
}

#[tokio::test]
async fn an_agent_that_ignores_sigterm_is_killed() {
    let scratch = Scratch::new();
    let script = Script::new()
        .ignore([Signal::Term, Signal::Int, Signal::Hup])
        .report(scratch.path("report"))
        .line(r#"{"t":"never"}"#)
        .forever();
    let run = agent(&script).config(|config| config.term_grace = Duration::from_millis(200));
    let start = Instant::now();
    let story = stopped(run, |handle| handle.abort()).await;
    assert_aborted(&story);
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert_eq!(story.result.exit_signal.as_deref(), Some("SIGKILL"));
    assert!(!proc::is_alive(pid(&scratch)));
}

#[tokio::test]
async fn agent_gets_its_grace_and_its_last_output_is_read() {
    let scratch = Scratch::new();
    let cleaned = scratch.path("cleaned");
    let answer = Script::new()
        .sleep(Duration::from_millis(200))
        .touch(&cleaned)
        .line(r#"{"t":" and cleaned"}"#)
        .exit(7);
    let script = Script::new()
        .on_signal(Signal::Term, answer)
        .line(r#"{"t":"working"}"#)
        .forever();
    let run = agent(&script).config(|config| config.term_grace = LONG);
    let story = stopped(run, |handle| handle.abort()).await;
    assert_aborted(&story);
    assert!(cleaned.exists());
    assert_eq!(story.result.text, "working and cleaned");
    assert_eq!(story.result.exit_code, Some(7));
}

#[tokio::test]
async fn the_last_output_of_an_aborted_agent_is_read_completely() {
    // Fills the pipe in one write and exits.
    let line = format!(r#"{{"t":"{}"}}"#, "x".repeat(999));
    let answer = Script::new().line(Text::from(line).repeat(900)).exit(0);
    let script = Script::new()
        .on_signal(Signal::Term, answer)
        .line(r#"{"t":""}"#)
        .forever();
    for _ in 0..5 {
        let run = agent(&script).config(|config| config.term_grace = LONG);
        let story = stopped(run, |handle| handle.abort()).await;
        assert_aborted(&story);
        assert_eq!(story.result.text.len(), 999 * 900);
    }
}

#[tokio::test]
async fn a_provider_can_begin_with_its_own_signal_to_the_agent_alone() {
    let scratch = Scratch::new();
    let child = Spawn::new(SpawnKind::Child)
        .pid_file(scratch.path("child"))
        .script(
            Script::new()
                .on_signal(
                    Signal::Int,
                    Script::new().touch(scratch.path("child interrupted")),
                )
                .forever(),
        );
    let answer = Script::new().line(r#"{"end":true}"#).exit(0);
    let script = Script::new()
        .on_signal(Signal::Int, answer)
        .ignore([Signal::Term])
        .spawn(child)
        .line(r#"{"t":"working"}"#)
        .forever();
    let run = agent(&script).launch(|launch| {
        launch.stop_first = Some(StopStep {
            signal: StopSignal::Interrupt,
            grace: LONG,
        });
    });
    let story = stopped(run, |handle| handle.abort()).await;
    assert_aborted(&story);
    assert_types(&story.events, "text turn_end error done");
    assert_eq!(story.result.exit_code, Some(0));
    assert!(!proc::is_alive(scratch.pid("child").pid()));
    assert!(!scratch.path("child interrupted").exists());
}

#[tokio::test]
async fn kill_is_at_once() {
    let scratch = Scratch::new();
    let script = Script::new()
        .on_signal(Signal::Term, Script::new().touch(scratch.path("asked")))
        .report(scratch.path("report"))
        .line(r#"{"t":"never"}"#)
        .forever();
    let patient = |run: Run| run.config(|config| config.term_grace = Duration::MAX);
    let story = stopped(patient(agent(&script)), |handle| handle.kill()).await;
    assert_aborted(&story);
    assert_eq!(story.result.exit_signal.as_deref(), Some("SIGKILL"));

    // Also during a graceful stop.
    let asked = scratch.path("asked");
    let story = stopped(patient(agent(&script)), |handle| {
        handle.abort();
        tokio::spawn(async move {
            wait_for(&asked).await;
            handle.kill();
        });
    })
    .await;
    assert_aborted(&story);
    assert!(!proc::is_alive(pid(&scratch)));
}

#[tokio::test]
async fn abort_twice_is_harmless() {
    let scratch = Scratch::new();
    let story = stopped(agent(&endless(&scratch)), |handle| {
        handle.abort();
        handle.abort();
        tokio::spawn(async move { handle.abort() });
    })
    .await;
    assert_aborted(&story);
}

#[tokio::test]
async fn abort_after_the_end_is_harmless() {
    let mut stream = agent(&Script::new().line(END)).start();
    let handle = stream.abort_handle();
    let mut events = Vec::new();
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    handle.abort();
    handle.kill();
    assert_eq!(Story::of(events).result.status, RunStatus::Completed);
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn abort_after_the_end_of_the_agent_keeps_the_result() {
    let scratch = Scratch::new();
    let run = agent(&with_pid(&scratch).line(END).forever())
        .config(|config| config.exit_grace = Some(Duration::MAX));
    let story = stopped(run, |handle| handle.abort()).await;
    assert_eq!(story.result.status, RunStatus::Completed);
    assert!(!proc::is_alive(pid(&scratch)));
}

#[tokio::test]
async fn dropping_the_stream_stops_the_run() {
    let scratch = Scratch::new();
    let cleaned = scratch.path("cleaned");
    let script = with_pid(&scratch)
        .on_signal(Signal::Term, Script::new().touch(&cleaned).exit(0))
        .line(r#"{"t":"working"}"#)
        .forever();
    let mut stream = agent(&script)
        .config(|config| config.term_grace = LONG)
        .start();
    next(&mut stream).await;
    drop(stream);
    let pid = pid(&scratch);
    wait_until(|| !proc::is_alive(pid)).await;
    assert!(cleaned.exists(), "it had its grace");
}

#[test]
fn dropping_the_runtime_kills_the_run_and_the_stream_still_ends() {
    let scratch = Scratch::new();
    let script = Script::new()
        .ignore([Signal::Term])
        .spawn(Spawn::new(SpawnKind::Setsid).pid_file(scratch.path("tool")))
        .report(scratch.path("report"))
        .line(r#"{"t":"working"}"#)
        .forever();
    for flavor in ["current", "multi"] {
        let runtime = match flavor {
            "current" => tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build(),
            _ => tokio::runtime::Runtime::new(),
        };
        let runtime = runtime.unwrap();
        let mut stream = agent(&script).start();
        let first = runtime.block_on(next(&mut stream));
        drop(runtime);
        assert!(!proc::is_alive(pid(&scratch)), "{flavor}");
        assert!(proc::wait_gone(scratch.pid("tool").pid(), LIMIT));
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let story = runtime.block_on(finish_after(vec![first], stream));
        assert_eq!(story.result.status, RunStatus::Failed);
        assert_eq!(story.error().kind, ErrorKind::Internal);
        assert_eq!(story.result.text, "working");
        fs::remove_file(scratch.path("report")).unwrap();
        fs::remove_file(scratch.path("tool")).unwrap();
    }
}
