use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use teamster_testkit::fake_agent::{Play, Script, Stream};

use crate::fake_agent::{Agent, Files, command, run, text};

const FOUR: &str = "one\ntwo\nthree\nfour";

/// Plays four lines and returns standard output.
fn play(options: impl FnOnce(Play) -> Play) -> String {
    let files = Files::new();
    let play = options(Play::new(files.write("stdout.ndjson", FOUR)));
    let output = run(&Script::new().play(play));
    assert!(output.status.success());
    text(&output.stdout).to_owned()
}

/// Returns each `write` of the agent separately. A datagram socket preserves their boundaries, unlike a pipe.
fn writes(script: &Script, bytes: usize) -> Vec<String> {
    let (reader, stdout) = UnixDatagram::pair().unwrap();
    let mut command = command(script);
    command.stdout(OwnedFd::from(stdout));
    let _agent = Agent(command.spawn().unwrap());
    let mut writes = Vec::new();
    while writes.iter().map(String::len).sum::<usize>() < bytes {
        let mut buffer = [0; 1000];
        let length = reader.recv(&mut buffer).unwrap();
        writes.push(text(&buffer[..length]).to_owned());
    }
    writes
}

#[test]
fn a_file_is_played_as_it_is() {
    let files = Files::new();
    let content = b"{\"a\":1}\r\n\n\xff\xfe\nno newline";
    let file = files.write("stdout.ndjson", content);
    let output = run(&Script::new()
        .play(&file)
        .play(Play::new(&file).to(Stream::Stderr)));
    assert_eq!(output.stdout, content);
    assert_eq!(output.stderr, content);
}

#[test]
fn a_range_of_lines_can_be_played() {
    assert_eq!(play(|play| play.first(2).last(3)), "two\nthree\n");
    assert_eq!(play(|play| play.first(4)), "four");
    assert_eq!(play(|play| play.last(9)), FOUR);
    assert_eq!(play(|play| play.first(5)), "");
}

#[test]
fn garbage_comes_between_lines_only() {
    let garbage = "this line is not JSON\n";
    assert_eq!(
        play(|play| play.garbage_every(2)),
        format!("one\ntwo\n{garbage}three\nfour")
    );
    assert_eq!(
        play(|play| play.first(3).garbage_every(1)),
        format!("three\n{garbage}four")
    );
}

#[test]
fn chunks_ignore_line_ends() {
    let files = Files::new();
    let file = files.write("stdout.ndjson", FOUR);
    let script = Script::new().play(Play::new(file).chunk(5));
    assert_eq!(
        writes(&script, FOUR.len()),
        ["one\nt", "wo\nth", "ree\nf", "our"]
    );
}

#[test]
fn a_delay_sends_each_line_by_itself() {
    let files = Files::new();
    let file = files.write("stdout.ndjson", FOUR);
    let started = Instant::now();
    let script = Script::new().play(Play::new(file).delay(Duration::from_millis(10)));
    assert_eq!(
        writes(&script, FOUR.len()),
        ["one\n", "two\n", "three\n", "four"]
    );
    assert!(started.elapsed() >= Duration::from_millis(30));
}
