use std::io::{BufRead, BufReader, Read};
use std::time::{Duration, Instant};

use teamster_testkit::fake_agent::{BigLine, Flood, Pipe, Script, Stream, Text};

use crate::fake_agent::{Files, run, start, text};

/// The default size of a pipe.
const PIPE: usize = 64 * 1024;

#[test]
fn lines_half_lines_and_broken_bytes_are_exact() {
    let output = run(&Script::new()
        .line(r#"{"n":"{n}"}"#)
        .raw("half")
        .raw(b"\xff\x00")
        .line("")
        .line(Text::from("oops").to(Stream::Stderr)));
    assert_eq!(output.stdout, b"{\"n\":\"{n}\"}\nhalf\xff\x00\n");
    assert_eq!(output.stderr, b"oops\n");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_half_line_leaves_at_once() {
    let mut agent = start(&Script::new().raw("{\"ha").forever());
    assert_eq!(agent.read_stdout(4), "{\"ha");
}

#[test]
fn repeats_are_counted_and_complete() {
    let line = Text::from(r#"{"n":{n},"again":{n}}"#).repeat(300_000);
    let output = run(&Script::new().line(line));
    let lines: Vec<&str> = text(&output.stdout).lines().collect();
    assert_eq!(lines.len(), 300_000);
    assert_eq!(lines[0], r#"{"n":0,"again":0}"#);
    assert_eq!(lines[299_999], r#"{"n":299999,"again":299999}"#);
}

#[test]
fn repeats_may_have_pauses_between() {
    let started = Instant::now();
    let output = run(&Script::new().raw(
        Text::from("{n};")
            .repeat(4)
            .interval(Duration::from_millis(10)),
    ));
    assert_eq!(text(&output.stdout), "0;1;2;3;");
    assert!(started.elapsed() >= Duration::from_millis(30));
}

#[test]
fn no_repeats_write_nothing() {
    assert_eq!(
        run(&Script::new().line(Text::from("a").repeat(0))).stdout,
        b""
    );
}

#[test]
fn a_big_line_has_its_size() {
    let line = BigLine::new(3_000_001).prefix("<").suffix(">").fill('y');
    let output = run(&Script::new().big_line(line));
    assert_eq!(output.stdout.len(), 3_000_004);
    assert!(output.stdout.starts_with(b"<yy"));
    assert!(output.stdout.ends_with(b"yy>\n"));
}

#[test]
#[cfg(target_os = "linux")]
fn a_big_line_is_not_held_in_memory() {
    let mut agent = start(
        &Script::new()
            .big_line(BigLine::new(100_000_000))
            .line("end")
            .forever(),
    );
    let mut stdout = BufReader::with_capacity(1 << 20, agent.stdout.take().unwrap());
    assert_eq!(stdout.skip_until(b'\n').unwrap(), 100_000_001);
    stdout.skip_until(b'\n').unwrap();
    let status = std::fs::read_to_string(format!("/proc/{}/status", agent.id())).unwrap();
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < 20_000, "{peak} kB");
}

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
fn a_closed_stream_ends_and_the_agent_lives_on() {
    let files = Files::new();
    let mut agent = start(
        &Script::new()
            .line("last")
            .close(Pipe::Stdout)
            .close(Pipe::Stderr)
            .line("without a reader")
            .wait_for_file(files.path("go"))
            .exit(6),
    );
    assert_eq!(agent.rest_of_stdout(), "last\n");
    assert_eq!(agent.stderr.as_mut().unwrap().read(&mut [0]).unwrap(), 0);
    assert!(agent.is_running());
    files.write("go", "");
    assert_eq!(agent.end().code(), Some(6));
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
fn an_ordinary_agent_waits_for_a_slow_reader() {
    let mut agent = start(&Script::new().line(Text::from("{n}").repeat(100_000)));
    assert_eq!(agent.read_stdout(2), "0\n");
    assert!(agent.is_running());
    assert_eq!(agent.rest_of_stdout().lines().count(), 99_999);
    assert!(agent.end().success());
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
