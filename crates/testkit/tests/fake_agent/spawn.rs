use std::io::Read;
use std::os::unix::process::CommandExt;

use teamster_testkit::fake_agent::{Report, Script, Signal, Spawn, SpawnKind};
use teamster_testkit::proc;

use crate::fake_agent::{Agent, Files, LIMIT, command, send, start};

/// Spawns one process of this kind, which reports and exits. Returns the reports of the agent and its child.
fn kin(kind: SpawnKind) -> (Report, Report) {
    let files = Files::new();
    let (parent, child) = (files.path("parent"), files.path("child"));
    let spawn = Spawn::new(kind).script(
        Script::new()
            .wait_for_file(files.path("spawned"))
            .report(&child)
            .touch(files.path("reported")),
    );
    let script = Script::new()
        .spawn(spawn)
        .touch(files.path("spawned"))
        .report(&parent)
        .wait_for_file(files.path("reported"));
    assert!(
        Agent(command(&script).process_group(0).spawn().unwrap())
            .end()
            .success()
    );
    let reports = (Report::read(parent).unwrap(), Report::read(child).unwrap());
    assert!(proc::wait_gone(reports.1.pid, LIMIT));
    reports
}

#[test]
fn a_child_is_in_the_group() {
    let (parent, child) = kin(SpawnKind::Child);
    assert_eq!(child.ppid, parent.pid);
    assert_eq!(child.pgid, parent.pgid);
    assert_eq!(child.sid, parent.sid);
    assert_eq!(child.env, parent.env);
}

#[test]
fn a_group_is_its_own_in_the_session() {
    let (parent, child) = kin(SpawnKind::Group);
    assert_eq!(child.ppid, parent.pid);
    assert_eq!(child.pgid, child.pid);
    assert_eq!(child.sid, parent.sid);
}

#[test]
fn a_setsid_child_has_its_own_session() {
    let (parent, child) = kin(SpawnKind::Setsid);
    assert_eq!(child.ppid, parent.pid);
    assert_eq!(child.pgid, child.pid);
    assert_eq!(child.sid, child.pid);
}

#[test]
fn a_daemon_has_another_session_and_another_parent() {
    let (parent, child) = kin(SpawnKind::Daemon);
    assert_ne!(child.ppid, parent.pid);
    assert_ne!(child.pgid, parent.pgid);
    assert_ne!(child.sid, parent.sid);
    assert_ne!(child.sid, child.pid, "the one in between made the session");
    assert_eq!(child.env, parent.env);
}

#[test]
fn the_environment_can_be_dropped() {
    for kind in [SpawnKind::Child, SpawnKind::Daemon] {
        let files = Files::new();
        let report = files.path("report");
        let child = Script::new().report(&report).exit(0);
        let mut agent = start(
            &Script::new()
                .spawn(Spawn::new(kind).clear_env().script(child))
                .wait_for_file(&report),
        );
        assert!(agent.end().success());
        assert!(Report::read(&report).unwrap().env.is_empty());
    }
}

#[test]
fn a_spawned_process_is_ready_when_the_step_ends() {
    let files = Files::new();
    let spawn = Spawn::new(SpawnKind::Daemon)
        .pid_file(files.path("pid"))
        .script(
            Script::new()
                .ignore([Signal::Term])
                .on_signal(Signal::Int, Script::new().exit(0))
                .forever(),
        );
    assert!(start(&Script::new().spawn(spawn)).end().success());
    let pid = std::fs::read_to_string(files.path("pid")).unwrap();
    let stray = proc::KillOnDrop::new(pid.trim().parse().unwrap());
    send(stray.pid(), Signal::Term);
    assert!(proc::is_alive(stray.pid()));
    send(stray.pid(), Signal::Int);
    assert!(proc::wait_gone(stray.pid(), LIMIT));
}

#[test]
fn a_signal_ignored_by_the_agent_ends_its_child() {
    let files = Files::new();
    let spawn = Spawn::new(SpawnKind::Child).pid_file(files.path("pid"));
    let mut agent = start(
        &Script::new()
            .ignore([Signal::Term])
            .spawn(spawn)
            .line("up")
            .forever(),
    );
    assert_eq!(agent.read_stdout(3), "up\n");
    let child = files.pid("pid");
    send(child.pid(), Signal::Term);
    assert!(proc::wait_gone(child.pid(), LIMIT));
    agent.signal(Signal::Term);
    assert!(agent.is_running());
}

#[test]
fn a_pipe_need_not_be_held() {
    for kind in [SpawnKind::Setsid, SpawnKind::Daemon] {
        let files = Files::new();
        let spawn = Spawn::new(kind)
            .hold_pipes(false)
            .pid_file(files.path("pid"));
        let mut agent = start(&Script::new().spawn(spawn).line("result"));
        assert_eq!(agent.rest_of_stdout(), "result\n");
        let mut stderr = Vec::new();
        agent
            .stderr
            .take()
            .unwrap()
            .read_to_end(&mut stderr)
            .unwrap();
        assert!(agent.end().success());
        assert!(proc::is_alive(files.pid("pid").pid()));
    }
}

#[test]
fn a_spawned_process_has_no_stdin_of_the_agent() {
    use teamster_testkit::fake_agent::Stdin;

    let child = Script::new().stdin(Stdin::to_eof().echo());
    let mut agent = start(
        &Script::new()
            .spawn(Spawn::new(SpawnKind::Child).script(child))
            .forever(),
    );
    let echo = "{\"type\":\"stdin\",\"bytes\":0,\"text\":\"\"}\n";
    assert_eq!(
        agent.read_stdout(echo.len()),
        echo,
        "although the agent's stdin is open"
    );
}
