//! Input of the agent.

use std::time::Duration;

use teamster_core::provider::Stdin;
use teamster_core::{AgentEvent, RunStatus};
use teamster_testkit::events::assert_types;
use teamster_testkit::fake_agent::{Pipe, Script, Stdin as Read, Text};

use crate::engine::{END, Scratch, Story, agent};

async fn with_input(script: Script, stdin: Stdin) -> Story {
    agent(&script)
        .launch(|launch| launch.stdin = stdin)
        .finish()
        .await
}

/// Returns more bytes than any pipe holds.
fn large() -> Vec<u8> {
    (0..3_000_000_u32).map(|n| b'a' + (n % 26) as u8).collect()
}

#[tokio::test]
async fn closed_stdin_is_at_its_end() {
    let script = Script::new().stdin(Read::to_eof().echo()).line(END);
    let story = with_input(script, Stdin::Closed).await;
    assert_eq!(story.result.status, RunStatus::Completed);
    let AgentEvent::Unknown(line) = &story.events[0] else {
        panic!("{:?}", story.events[0]);
    };
    assert_eq!(line.native.get(), r#"{"type":"stdin","bytes":0,"text":""}"#);
}

#[tokio::test]
async fn bytes_arrive_completely_before_the_end() {
    for bytes in [Vec::new(), b"prompt \xff\n".to_vec(), large()] {
        let scratch = Scratch::new();
        let file = scratch.path("stdin");
        let script = Script::new().stdin(Read::to_eof().save(&file)).line(END);
        let story = with_input(script, Stdin::Bytes(bytes.clone())).await;
        assert_eq!(story.result.status, RunStatus::Completed);
        assert!(std::fs::read(file).unwrap() == bytes);
    }
}

#[tokio::test]
async fn open_stdin_stays_open_until_the_agent_reports_its_end() {
    let script = Script::new()
        .stdin(Read::line().echo())
        .line(END)
        .stdin(Read::to_eof());
    let story = with_input(script, Stdin::Open(b"turn\n".to_vec())).await;
    assert_eq!(story.result.status, RunStatus::Completed);
    // It exited after the end of its input.
    assert_eq!(story.result.exit_code, Some(0));

    let script = Script::new().line("{}").stdin(Read::to_eof()).line(END);
    let story = agent(&script)
        .launch(|launch| launch.stdin = Stdin::Open(b"turn\n".to_vec()))
        .config(|config| config.timeouts.idle = Some(Duration::from_secs(1)))
        .finish()
        .await;
    assert_eq!(story.result.status, RunStatus::TimedOut);
}

#[tokio::test]
async fn an_agent_that_never_reads_does_not_hang_the_run() {
    let story = with_input(Script::new().line(END), Stdin::Bytes(large())).await;
    assert_eq!(story.result.status, RunStatus::Completed);
}

#[tokio::test]
async fn input_and_output_flow_at_the_same_time() {
    // It writes more than a pipe holds before it reads more than a pipe holds.
    let scratch = Scratch::new();
    let file = scratch.path("stdin");
    let line = format!(r#"{{"t":"{}"}}"#, "x".repeat(1000));
    let script = Script::new()
        .line(Text::from(line).repeat(3000))
        .stdin(Read::to_eof().save(&file))
        .line(END);
    let story = with_input(script, Stdin::Bytes(large())).await;
    assert_eq!(story.result.status, RunStatus::Completed);
    assert_eq!(story.result.text.len(), 3_000_000);
    assert!(std::fs::read(file).unwrap() == large());
}

#[tokio::test]
async fn input_that_is_not_taken_is_no_error() {
    let script = Script::new()
        .close(Pipe::Stdin)
        .line(r#"{"t":"no thanks"}"#)
        .line(END);
    let story = with_input(script, Stdin::Bytes(large())).await;
    assert_types(&story.events, "text turn_end done");
    assert_eq!(story.result.status, RunStatus::Completed);
}
