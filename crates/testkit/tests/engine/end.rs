//! Ends of runs. The agent's own end, its exit and the end of its pipes are separate.

use std::time::{Duration, Instant};

use teamster_core::{ErrorCode, ErrorKind, RunStatus};
use teamster_testkit::events::assert_types;
use teamster_testkit::fake_agent::{Pipe, Script, Signal, Spawn, SpawnKind, Stream, Text};
use teamster_testkit::proc;

use crate::engine::{END, LONG, Run, Scratch, agent};

const GRACE: Duration = Duration::from_millis(300);

fn short_exit_grace(run: Run) -> Run {
    run.config(|config| config.exit_grace = Some(GRACE))
}

#[tokio::test]
async fn an_end_without_the_agents_word_is_never_success() {
    let story = agent(&Script::new().line(r#"{"t":"half"}"#)).finish().await;
    assert_types(&story.events, "text error done");
    assert_eq!(story.result.status, RunStatus::Incomplete);
    assert_eq!(story.result.exit_code, Some(0));
    assert_eq!(story.error().code, ErrorCode::StreamEndedEarly);
}

#[tokio::test]
async fn agent_that_retries_a_wrong_key_is_stopped_at_once() {
    let script = Script::new().line(r#"{"retry":"auth"}"#).sleep(LONG);
    let story = agent(&script).finish().await;
    assert_types(&story.events, "retry error done");
    assert_eq!(story.result.status, RunStatus::Failed);
    assert_eq!(story.error().kind, ErrorKind::Auth);
    assert_eq!(
        story.error().message,
        "the key is wrong; the CLI's own retries were cut short, as they would fail too"
    );
}

#[tokio::test]
async fn an_exit_code_after_a_good_result_is_no_failure() {
    for script in [
        Script::new().line(END).exit(3),
        Script::new().line(END).abort(),
    ] {
        let story = agent(&script).finish().await;
        assert_types(&story.events, "turn_end done");
        assert_eq!(story.result.status, RunStatus::Completed);
    }
    let story = agent(&Script::new().line(END).exit(3)).finish().await;
    assert_eq!(story.result.exit_code, Some(3));
}

#[tokio::test]
async fn a_failure_without_a_word_is_one_error_with_code_or_signal() {
    let story = agent(&Script::new().line(r#"{"t":"x"}"#).exit(4))
        .finish()
        .await;
    assert_eq!(story.codes(), [ErrorCode::CliExitError]);
    assert!(story.error().message.contains("code 4"));
    assert_eq!(story.result.status, RunStatus::Failed);

    let story = agent(&Script::new().kill_self(Signal::Kill)).finish().await;
    assert_eq!(story.codes(), [ErrorCode::CliExitError]);
    assert!(story.error().message.contains("SIGKILL"));
    assert_eq!(story.result.exit_signal.as_deref(), Some("SIGKILL"));
    assert_eq!(story.result.exit_code, None);
}

#[tokio::test]
async fn stderr_of_a_failing_agent_is_the_evidence() {
    let script = Script::new()
        .line(Text::from("Please log in first").to(Stream::Stderr))
        .exit(1);
    let story = agent(&script).finish().await;
    assert_types(&story.events, "error done");
    assert_eq!(story.error().code, ErrorCode::CliStderr);
    assert_eq!(story.error().kind, ErrorKind::Auth);
    assert_eq!(story.error().message, "Please log in first");
    assert_eq!(
        story.result.stderr.as_deref(),
        Some("Please log in first\n")
    );
}

#[tokio::test]
async fn lingering_agent_is_stopped_after_its_result_without_failure() {
    let script = Script::new().line(r#"{"t":"x"}"#).line(END).forever();
    let start = Instant::now();
    let story = short_exit_grace(agent(&script)).finish().await;
    assert!(start.elapsed() >= GRACE);
    assert_types(&story.events, "text turn_end done");
    assert_eq!(story.result.status, RunStatus::Completed);
    assert_eq!(story.result.exit_signal.as_deref(), Some("SIGTERM"));
}

#[tokio::test]
async fn the_runtimes_exit_grace_overrides_the_providers() {
    let script = Script::new()
        .line(END)
        .sleep(Duration::from_secs(1))
        .exit(5);
    let patient = agent(&script).launch(|launch| launch.exit_grace = Some(LONG));
    assert_eq!(patient.clone().finish().await.result.exit_code, Some(5));
    let story = short_exit_grace(patient).finish().await;
    assert_eq!(story.result.exit_signal.as_deref(), Some("SIGTERM"));
}

#[tokio::test]
async fn an_agent_that_closes_its_stdout_and_lives_on_is_stopped() {
    let script = Script::new().line(END).close(Pipe::Stdout).forever();
    let story = short_exit_grace(agent(&script)).finish().await;
    assert_eq!(story.result.status, RunStatus::Completed);

    let script = Script::new()
        .line(r#"{"t":"half"}"#)
        .close(Pipe::Stdout)
        .forever();
    let story = short_exit_grace(agent(&script)).finish().await;
    assert_eq!(story.codes(), [ErrorCode::StreamEndedEarly]);
    assert_eq!(story.result.status, RunStatus::Incomplete);
}

#[tokio::test]
async fn an_agent_that_expects_more_is_left_alone_until_it_has_ended() {
    let script = Script::new()
        .line(r#"{"t":"one "}"#)
        .line(r#"{"end":false,"more":true}"#)
        .sleep(GRACE * 3)
        .line(r#"{"t":"two"}"#)
        .line(END);
    let story = short_exit_grace(agent(&script)).finish().await;
    assert_eq!(story.result.status, RunStatus::Completed);
    assert_eq!(story.result.text, "one two");
    assert_eq!(story.result.exit_code, Some(0));
}

#[tokio::test]
async fn a_grandchild_that_holds_the_pipe_does_not_hang_the_run() {
    let scratch = Scratch::new();
    let holder = Spawn::new(SpawnKind::Setsid)
        .pid_file(scratch.path("holder"))
        .clear_env();
    let script = Script::new().spawn(holder).line(r#"{"t":"x"}"#).line(END);
    let start = Instant::now();
    let story = agent(&script)
        .config(|config| config.drain_grace = GRACE)
        .finish()
        .await;
    let _holder = scratch.pid("holder");
    assert!(start.elapsed() >= GRACE);
    assert_types(&story.events, "text turn_end done");
    assert_eq!(story.result.exit_code, Some(0));
}

#[tokio::test]
async fn grandchild_output_is_read_for_a_limited_time() {
    let scratch = Scratch::new();
    let writer = Spawn::new(SpawnKind::Setsid)
        .pid_file(scratch.path("writer"))
        .script(
            Script::new()
                .line(
                    Text::from(r#"{"t":"."}"#)
                        .repeat(1_000_000)
                        .interval(Duration::from_millis(10)),
                )
                .forever(),
        );
    let start = Instant::now();
    let story = agent(&Script::new().spawn(writer).line(END))
        .config(|config| config.drain_grace = GRACE)
        .finish()
        .await;
    assert!(start.elapsed() >= GRACE * 10);
    assert!(story.result.text.len() > 20, "{}", story.result.text);
    assert!(!proc::is_alive(scratch.pid("writer").pid()));
}

#[tokio::test]
async fn all_output_is_read_after_the_agent_is_gone() {
    // The pipe is full when the agent exits.
    let line = format!(r#"{{"t":"{}"}}"#, "x".repeat(999));
    let script = Script::new().line(Text::from(line).repeat(900)).line(END);
    for _ in 0..5 {
        let story = agent(&script).finish().await;
        assert_eq!(story.result.text.len(), 999 * 900);
        assert_eq!(story.result.status, RunStatus::Completed);
    }
}
