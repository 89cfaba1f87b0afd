//! Processes that are stopped by a signal (`SIGSTOP`): a supervisor, a loop.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster_testkit::stand_in::Act;

use crate::agents::company::{Company, pid};

fn send(pid: u32, signal: Signal) {
    kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

#[test]
fn a_stopped_supervisor_and_a_stopped_loop_are_shown_as_such() {
    let company = Company::new(["a"], |plan| plan.turn([Act::DidWork]));
    let supervisor = company.supervise([]);
    let looping = company.asleep("a");

    send(looping, Signal::SIGSTOP);
    let status = company.run(["agents", "status"]);
    assert_eq!((status.code, &*status.stderr), (Some(1), ""));
    let line = status.stdout.lines().nth(1).unwrap();
    assert!(line.contains("suspended"), "{}", status.stdout);
    assert!(line.contains("kill -CONT"), "{}", status.stdout);
    assert_eq!(company.agent("a")["state"], "suspended");
    send(looping, Signal::SIGCONT);
    company.asleep("a");

    supervisor.signal(Signal::SIGSTOP);
    let own = supervisor.pid();
    let not_answering = format!(
        "the supervisor does not answer (pid {own}): the process is stopped; continue it with `kill -CONT {own}`"
    );
    // The status is that of its files.
    let status = company.run(["agents", "status"]);
    assert_eq!(status.code, Some(1));
    assert_eq!(status.stderr, format!("{not_answering}\n"));
    status.stdout_has("sleeping until");
    for command in ["start", "stop", "restart", "wake"] {
        let ended = company.run(["agents", command, "a"]);
        assert_eq!(ended.code, Some(1), "{command}");
        assert_eq!(
            ended.stderr,
            format!("error: {not_answering}\n"),
            "{command}"
        );
    }
    // Nothing of that is done when it continues.
    supervisor.signal(Signal::SIGCONT);
    company.run(["agents", "reload"]).ok();
    assert_eq!(pid(&company.agent("a")), Some(looping));
    supervisor.signal(Signal::SIGSTOP);
    // Without its socket it is no less there.
    std::fs::remove_file(company.path(".teamster/supervisor.sock")).unwrap();
    let ended = company.run(["agents", "reload"]);
    assert_eq!(ended.stderr, format!("error: {not_answering}\n"));
    supervisor.signal(Signal::SIGCONT);
    assert_eq!(pid(&company.agent("a")), Some(looping));
}
