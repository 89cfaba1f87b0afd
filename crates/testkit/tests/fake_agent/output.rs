use std::io::Read;

use teamster_testkit::fake_agent::{BigLine, Flood, Script, Stream, Text};

use crate::fake_agent::{Files, run, start, text};

/// The default size of a pipe.
const PIPE: usize = 64 * 1024;

#[test]
fn a_flood_goes_to_stderr_and_has_its_size() {
    let output = run(&Script::new()
        .flood(200_001)
        .flood(Flood::new(64).to(Stream::Stdout)));
    assert_eq!(output.stderr.len(), 200_001);
    assert_eq!(text(&output.stdout), format!("{}\n", "~".repeat(63)));
}

#[test]
fn a_flood_that_is_unread_blocks_the_script() {
    let mut agent = start(&Script::new().line("before").flood(1_000_000).line("after"));
    assert_eq!(agent.read_stdout(7), "before\n");
    let mut stderr = Vec::new();
    assert!(agent.is_running());
    agent
        .stderr
        .take()
        .unwrap()
        .read_to_end(&mut stderr)
        .unwrap();
    assert_eq!(stderr.len(), 1_000_000);
    assert_eq!(agent.rest_of_stdout(), "after\n");
}

#[test]
fn a_concurrent_flood_lets_the_script_go_on() {
    let mut agent = start(
        &Script::new()
            .flood(Flood::new(1_000_000).concurrent())
            .line("on"),
    );
    assert_eq!(agent.read_stdout(3), "on\n");
    assert!(
        agent.is_running(),
        "the end of the script waits for the flood"
    );
    let mut stderr = Vec::new();
    agent
        .stderr
        .take()
        .unwrap()
        .read_to_end(&mut stderr)
        .unwrap();
    assert_eq!(stderr.len(), 1_000_000);
    assert!(agent.end().success());
}

#[test]
fn an_exit_does_not_wait_for_a_concurrent_flood() {
    let flood = Flood::new(1_000_000).concurrent();
    assert_eq!(
        start(&Script::new().flood(flood).exit(4)).end().code(),
        Some(4)
    );
}

#[test]
fn a_reader_who_has_gone_does_not_matter() {
    let files = Files::new();
    let mut agent = start(
        &Script::new()
            .wait_for_file(files.path("go"))
            .line(Text::from("line {n}").repeat(100_000))
            .touch(files.path("survived"))
            .exit(7),
    );
    drop(agent.stdout.take());
    files.write("go", "");
    assert_eq!(agent.end().code(), Some(7));
    assert!(files.path("survived").exists());
}

#[test]
fn a_reader_who_has_gone_may_end_it() {
    let files = Files::new();
    let mut agent = start(
        &Script::new()
            .exit_on_epipe(9)
            .wait_for_file(files.path("go"))
            .line("anybody?")
            .touch(files.path("survived")),
    );
    drop(agent.stdout.take());
    files.write("go", "");
    assert_eq!(agent.end().code(), Some(9));
    assert!(!files.path("survived").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn a_lossy_agent_drops_bytes_that_the_pipe_does_not_take() {
    let mut agent = start(
        &Script::new()
            .lossy_stdout()
            .line(r#"{"type":"system"}"#)
            .big_line(BigLine::new(400_000))
            .line(r#"{"type":"result"}"#),
    );
    assert_eq!(agent.end().code(), Some(0), "it ends without a reader");
    let stdout = agent.rest_of_stdout();
    // The capacity depends on how the writes fill the pipe's pages.
    assert!(
        (PIPE / 2..=PIPE).contains(&stdout.len()),
        "{}",
        stdout.len()
    );
    assert!(stdout.starts_with("{\"type\":\"system\"}\nxxx"));
    assert!(!stdout.contains("result"));
}

#[test]
fn a_lossy_agent_with_a_reader_writes_on_while_it_waits() {
    let files = Files::new();
    let mut agent = start(
        &Script::new()
            .lossy_stdout()
            .big_line(BigLine::new(400_000))
            .line("end")
            .wait_for_file(files.path("go")),
    );
    assert_eq!(agent.read_stdout(400_005).len(), 400_005);
    files.write("go", "");
    assert_eq!(agent.rest_of_stdout(), "");
    assert!(agent.end().success());
}
