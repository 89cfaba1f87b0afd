use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use teamster_testkit::fake_agent::{Script, Signal};

use crate::fake_agent::{Files, run, start};

#[test]
fn an_ignored_signal_does_not_protect_from_another() {
    let mut agent = start(&Script::new().ignore([Signal::Term]).line("up").forever());
    assert_eq!(agent.read_stdout(3), "up\n");
    agent.signal(Signal::Term);
    agent.signal(Signal::Hup);
    assert_eq!(agent.end().signal(), Some(1));
}

#[test]
fn the_script_continues_beside_an_answer() {
    let files = Files::new();
    let mut agent = start(
        &Script::new()
            .on_signal(Signal::Usr1, Script::new().line("heard"))
            .on_signal(Signal::Usr2, Script::new())
            .line("up")
            .wait_for_file(files.path("go"))
            .line("end"),
    );
    assert_eq!(agent.read_stdout(3), "up\n");
    for _ in 0..3 {
        agent.signal(Signal::Usr2);
        agent.signal(Signal::Usr1);
        assert_eq!(agent.read_stdout(6), "heard\n");
    }
    files.write("go", "");
    assert_eq!(agent.rest_of_stdout(), "end\n");
    assert!(agent.end().success());
}

#[test]
fn a_slow_answer_does_not_hold_up_the_next_signal() {
    let slow = Script::new().line("slow").forever();
    let script = Script::new()
        .on_signal(Signal::Int, slow)
        .on_signal(Signal::Term, Script::new().exit(8))
        .line("up")
        .forever();
    let mut agent = start(&script);
    assert_eq!(agent.read_stdout(3), "up\n");
    agent.signal(Signal::Int);
    assert_eq!(agent.read_stdout(5), "slow\n");
    agent.signal(Signal::Term);
    assert_eq!(agent.end().code(), Some(8));
}

#[test]
fn a_later_step_replaces_the_answer() {
    let script = Script::new()
        .ignore([Signal::Term])
        .kill_self(Signal::Term)
        .on_signal(Signal::Term, Script::new().exit(9))
        .kill_self(Signal::Term)
        .forever();
    assert_eq!(run(&script).status.code(), Some(9));
}

#[test]
fn an_answer_waits_for_the_end_of_a_long_line() {
    use teamster_testkit::fake_agent::BigLine;

    let mut agent = start(
        &Script::new()
            .on_signal(Signal::Int, Script::new().line("result").exit(0))
            .big_line(BigLine::new(1_000_000))
            .sleep(Duration::from_secs(20)),
    );
    assert_eq!(agent.read_stdout(1), "x");
    agent.signal(Signal::Int);
    assert_eq!(
        agent.rest_of_stdout(),
        format!("{}\nresult\n", "x".repeat(999_999))
    );
    assert!(agent.end().success());
}
