use std::io::{ErrorKind, Write};
use std::time::Duration;

use teamster_testkit::fake_agent::{Pipe, Script, Stdin};
use teamster_testkit::proc::wait_until;

use crate::fake_agent::{Files, run, start, text};

#[test]
fn stdin_is_not_read_unless_asked() {
    let files = Files::new();
    let mut agent = start(&Script::new().line("up").wait_for_file(files.path("go")));
    let mut stdin = agent.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&vec![b'x'; 1_000_000]));
    assert_eq!(agent.read_stdout(3), "up\n");
    assert!(!writer.is_finished(), "more than a pipe holds");
    files.write("go", "");
    assert!(agent.end().success());
    assert_eq!(
        writer.join().unwrap().unwrap_err().kind(),
        ErrorKind::BrokenPipe
    );
}

#[test]
fn stdin_is_read_to_its_end_and_saved() {
    let files = Files::new();
    let input = b"prompt\n\xff".repeat(50_000);
    let mut agent = start(
        &Script::new()
            .stdin(Stdin::to_eof().save(files.path("in")))
            .line("read"),
    );
    agent.stdin.take().unwrap().write_all(&input).unwrap();
    assert_eq!(agent.rest_of_stdout(), "read\n");
    assert_eq!(std::fs::read(files.path("in")).unwrap(), input);
}

#[test]
fn stdin_is_read_line_by_line() {
    let script = Script::new()
        .stdin(Stdin::line().echo())
        .stdin(Stdin::line().echo())
        .stdin(Stdin::to_eof().echo());
    let mut agent = start(&script);
    let mut stdin = agent.stdin.take().unwrap();
    stdin.write_all(b"\"a\"\n").unwrap();
    let first = "{\"type\":\"stdin\",\"bytes\":4,\"text\":\"\\\"a\\\"\\n\"}\n";
    assert_eq!(agent.read_stdout(first.len()), first, "while stdin is open");
    stdin.write_all(b"b\n\xffc").unwrap();
    drop(stdin);
    assert_eq!(
        agent.rest_of_stdout(),
        "{\"type\":\"stdin\",\"bytes\":2,\"text\":\"b\\n\"}\n\
         {\"type\":\"stdin\",\"bytes\":2,\"text\":\"\u{fffd}c\"}\n"
    );
}

#[test]
fn the_end_of_stdin_can_be_ignored() {
    let mut agent = start(&Script::new().stdin(Stdin::forever().echo()).line("never"));
    drop(agent.stdin.take());
    let echo = "{\"type\":\"stdin\",\"bytes\":0,\"text\":\"\"}\n";
    assert_eq!(agent.read_stdout(echo.len()), echo);
    assert!(agent.is_running());
}

#[test]
fn a_closed_stdin_breaks_the_writer() {
    let mut agent = start(&Script::new().close(Pipe::Stdin).line("closed").forever());
    assert_eq!(agent.read_stdout(7), "closed\n");
    let stdin = agent.stdin.as_mut().unwrap();
    let mut error = None;
    // A process that another test is starting holds the other end until its `exec`.
    let broken = wait_until(Duration::from_secs(30), || {
        error = stdin.write_all(b"x").err();
        error.is_some()
    });
    assert!(broken);
    assert_eq!(error.unwrap().kind(), ErrorKind::BrokenPipe);
    assert!(agent.is_running());
}

#[test]
fn a_file_gates_the_script() {
    let files = Files::new();
    let mut agent = start(
        &Script::new()
            .line("1")
            .wait_for_file(files.path("go"))
            .line("2"),
    );
    assert_eq!(agent.read_stdout(2), "1\n");
    assert!(agent.is_running());
    files.write("go", "");
    assert_eq!(agent.rest_of_stdout(), "2\n");
}

#[test]
fn a_second_run_can_differ() {
    let files = Files::new();
    let marker = files.path("marker");
    let script = Script::new()
        .if_exists(&marker, Script::new().line("better").exit(0))
        .write_file(&marker, "content")
        .exit(1);
    assert_eq!(run(&script).status.code(), Some(1));
    assert_eq!(std::fs::read_to_string(&marker).unwrap(), "content");
    let second = run(&script);
    assert_eq!(second.status.code(), Some(0));
    assert_eq!(text(&second.stdout), "better\n");
    let left: Vec<_> = std::fs::read_dir(marker.parent().unwrap())
        .unwrap()
        .collect();
    assert_eq!(left.len(), 1, "no half-written file is left");
}
