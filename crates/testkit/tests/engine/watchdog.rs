//! Time limits of each phase.

use std::fs;
use std::path::Path;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster_core::{AgentError, ErrorCode, ErrorKind, RunStatus, Timeouts};
use teamster_testkit::fake_agent::{Script, Stream, Text};
use teamster_testkit::proc;

use crate::engine::{END, LIMIT, LONG, Run, SHORT, Scratch, agent, helper, next};

fn timeouts(startup: Duration, idle: Duration, tool: Duration) -> Timeouts {
    Timeouts {
        startup: Some(startup),
        idle: Some(idle),
        tool: Some(tool),
    }
}

/// Returns the error of a run that a limit ended.
async fn late(run: Run) -> AgentError {
    let story = run.finish().await;
    assert_eq!(story.result.status, RunStatus::TimedOut);
    assert!(!story.result.aborted);
    assert_eq!(story.error().kind, ErrorKind::Timeout);
    story.error().clone()
}

fn limited(script: &Script, limits: Timeouts) -> Run {
    agent(script).config(|config| config.timeouts = limits)
}

#[tokio::test]
async fn a_silent_agent_hits_the_startup_limit() {
    let script = Script::new()
        .line(Text::from("please log in").to(Stream::Stderr))
        .forever();
    let error = late(limited(&script, timeouts(SHORT, LONG, LONG))).await;
    assert_eq!(error.code, ErrorCode::StartupTimeout);
    assert_eq!(
        error.message,
        "the CLI printed nothing within 400ms of its start; \
         stderr: please log in"
    );
}

#[tokio::test]
async fn silence_while_the_model_works_hits_the_idle_limit() {
    let script = Script::new().line(r#"{"t":"hm"}"#).forever();
    let error = late(limited(&script, timeouts(LONG, SHORT, LONG))).await;
    assert_eq!(error.code, ErrorCode::WatchdogTimeout);
    assert_eq!(
        error.message,
        "the CLI printed nothing for 400ms while the model worked"
    );
}

#[tokio::test]
async fn silence_of_a_tool_hits_the_tool_limit_and_the_error_names_it() {
    let script = Script::new()
        .line(r#"{"u":"1","name":"Read"}"#)
        .line(r#"{"u":"2","name":"Bash"}"#)
        .line(r#"{"r":"1"}"#)
        .forever();
    let limit = SHORT * 2;
    let start = std::time::Instant::now();
    let error = late(limited(&script, timeouts(LONG, SHORT / 4, limit))).await;
    assert!(start.elapsed() >= limit);
    assert_eq!(error.code, ErrorCode::WatchdogTimeout);
    assert_eq!(
        error.message,
        "the CLI printed nothing for 800ms while a tool ran: Bash"
    );
}

#[tokio::test]
async fn the_idle_limit_holds_again_when_the_tool_is_done() {
    let script = Script::new()
        .line(r#"{"u":"1"}"#)
        .sleep(Duration::from_millis(50))
        .line(r#"{"r":"1"}"#)
        .forever();
    let error = late(limited(&script, timeouts(LONG, SHORT, LONG))).await;
    assert!(
        error.message.ends_with("while the model worked"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn silence_of_work_in_the_background_hits_the_tool_limit() {
    let script = Script::new().line(r#"{"end":false,"more":true}"#).forever();
    let error = late(limited(&script, timeouts(LONG, SHORT / 4, SHORT))).await;
    assert!(
        error.message.ends_with("work in the background"),
        "{}",
        error.message
    );
}

#[tokio::test]
async fn every_line_resets_the_limit() {
    let pause = Duration::from_millis(50);
    let limit = Duration::from_secs(1);
    let script = Script::new()
        .line(Text::from(r#"{"t":"{n}"}"#).repeat(25).interval(pause))
        .line(END);
    let start = std::time::Instant::now();
    let story = limited(&script, timeouts(LONG, limit, limit))
        .finish()
        .await;
    assert!(start.elapsed() > limit);
    assert_eq!(story.result.status, RunStatus::Completed);
}

#[tokio::test]
async fn limits_of_run_runtime_and_provider_apply_in_this_order() {
    let script = Script::new().forever();
    let of = |limit| timeouts(limit, LONG, LONG);
    let run = agent(&script).launch(|launch| launch.timeouts = of(SHORT));
    assert_eq!(late(run).await.code, ErrorCode::StartupTimeout);

    let run = agent(&script)
        .launch(|launch| launch.timeouts = of(Duration::MAX))
        .config(|config| config.timeouts = of(SHORT));
    assert_eq!(late(run).await.code, ErrorCode::StartupTimeout);

    let run = agent(&script)
        .launch(|launch| launch.timeouts = of(Duration::ZERO))
        .config(|config| config.timeouts = of(Duration::MAX))
        .params(|params| params.timeouts = of(SHORT));
    let start = std::time::Instant::now();
    assert_eq!(late(run).await.code, ErrorCode::StartupTimeout);
    assert!(start.elapsed() >= SHORT);
}

#[tokio::test]
async fn the_longest_duration_is_no_limit() {
    let script = Script::new().sleep(SHORT).line(END);
    let max = Duration::MAX;
    let story = limited(&script, timeouts(max, max, max)).finish().await;
    assert_eq!(story.result.status, RunStatus::Completed);
}

/// The time limit of the run in the suspended host.
const HOST_LIMIT: Duration = Duration::from_secs(2);

/// Reads an agent while this process is being suspended.
pub(crate) fn be_stopped(scratch: &Path) {
    let script = Script::new()
        .line(r#"{"t":"hm"}"#)
        .wait_for_file(scratch.join("go"))
        .line(END)
        .touch(scratch.join("printed"));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut stream = limited(&script, timeouts(LONG, HOST_LIMIT, HOST_LIMIT)).start();
        next(&mut stream).await;
        fs::write(scratch.join("ready"), "").unwrap();
        let result = stream.result().await;
        fs::write(scratch.join("status"), format!("{:?}", result.status)).unwrap();
    });
}

/// Returns the end of a run whose host was suspended for longer than its limit, as by Ctrl-Z and `fg`. The
/// agent continues either during the suspension or after it.
fn after_an_absence(continues_meanwhile: bool) -> String {
    let scratch = Scratch::new();
    let mut host = helper::role("host that is stopped", &scratch.path(""))
        .spawn()
        .unwrap();
    assert!(proc::wait_until(LIMIT, || scratch.path("ready").exists()));
    let send = |signal| kill(Pid::from_raw(host.id().cast_signed()), signal).unwrap();
    send(Signal::SIGSTOP);
    let go = || fs::write(scratch.path("go"), "").unwrap();
    if continues_meanwhile {
        go();
        assert!(proc::wait_until(LIMIT, || scratch.path("printed").exists()));
    }
    // This is not a wait for a condition, but the suspension itself.
    std::thread::sleep(HOST_LIMIT * 2);
    send(Signal::SIGCONT);
    if !continues_meanwhile {
        go();
    }
    assert!(host.wait().unwrap().success());
    fs::read_to_string(scratch.path("status")).unwrap()
}

#[test]
fn output_during_our_absence_counts() {
    assert_eq!(after_an_absence(true), "Completed");
}

#[test]
fn our_own_absence_is_no_silence_of_the_agent() {
    assert_eq!(after_an_absence(false), "Completed");
}
