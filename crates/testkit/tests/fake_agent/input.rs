use std::io::Write;

use teamster_testkit::fake_agent::{Script, Stdin};

use crate::fake_agent::{Files, run, start, text};

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
