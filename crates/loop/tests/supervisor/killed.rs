//! Wakes, killed supervisors, and takeover by the next one.

use std::fs;
use std::process::{Child, Command as Process};
use std::time::Duration;

use serde_json::json;
use teamster_api::agents::{AgentState, Command, Selection};
use teamster_loop::supervisor::offline_status;
use teamster_process::{ProcessIdentity, ProcessSignal};
use teamster_testkit::proc::{is_alive, wait_gone, wait_until};

use crate::supervisor::LIMIT;
use crate::supervisor::company::{Company, GOOD, keeping, numbers, of};
use crate::supervisor::stand_ins;

/// Supervisor in a process of its own, which is killed on drop.
struct Supervisor(Child);

impl Supervisor {
    fn start(company: &Company) -> Self {
        let mut command = stand_ins::supervisor(company.config());
        let supervisor = Self(command.spawn().unwrap());
        let pid = supervisor.0.id();
        assert!(wait_until(LIMIT, || {
            let status = company.ask(Command::Status);
            status.is_ok_and(|it| it.supervisor.is_some_and(|it| it.pid == pid))
        }));
        supervisor
    }

    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        // The process has ended already in a passing test.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_wake_reaches_the_loop_and_not_its_group() {
    let company = Company::new([("a", "")]);
    company.configure(&json!({"agents": [{"id": "a", "runtime": "claude", "chrome": true}]}));
    let supervisor = company.supervise_with(&stand_ins::wakeable()).unwrap();
    let pid = company.running("a");
    let output = || fs::read_to_string(company.folder("a").join("output")).unwrap_or_default();
    assert!(wait_until(LIMIT, || output().contains("ready\n")));
    assert!(
        output().starts_with("RUNTIME=claude\nCHROME=1\n"),
        "{}",
        output()
    );
    for count in 1..=2 {
        company.ask(Command::Wake(of("a"))).unwrap();
        assert!(wait_until(LIMIT, || output().matches("woken").count() == count));
    }
    assert_eq!(company.running("a"), pid);
    let text = output();
    let child = text.lines().find_map(|line| line.strip_prefix("child "));
    let child = child.unwrap().parse().unwrap();
    assert!(is_alive(child), "the group was woken too");
    supervisor.end();
    assert!(output().ends_with("woken\nended\n"), "{}", output());
    assert!(wait_gone(child, LIMIT));
}

#[test]
fn an_early_wake_does_not_kill_a_loop() {
    // The loop has no handler, so SIGUSR1 would kill it.
    let company = Company::new([("a", GOOD)]);
    let supervisor = company.supervise();
    for _ in 0..20 {
        company.ask(Command::Restart(of("a"))).unwrap();
        let status = company.wait("a", |it| it.state == AgentState::Running);
        company.ask(Command::Wake(Selection::all())).unwrap();
        let group = Process::new("kill")
            .args(["-USR1", &status.pid.unwrap().to_string()])
            .status();
        assert!(group.unwrap().success());
    }
    company.running("a");
    assert_eq!(company.agent("a").restarts, 0);
    supervisor.end();
}

#[test]
fn the_next_supervisor_adopts_the_loops_of_a_killed_one() {
    let company = Company::new([("a", GOOD), ("b", GOOD), ("off", GOOD)]);
    let first = Supervisor::start(&company);
    let pids = [company.running("a"), company.running("b")];
    company.running("off");
    company.ask(Command::Stop(of("off"))).unwrap();
    company.wait("off", |it| it.state == AgentState::Stopped);
    let off = company.starts("off");
    first.kill();
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    // Without a supervisor the status comes from files.
    let config = teamster_loop::supervisor::Config::read(&company.config()).unwrap();
    let status = offline_status(&config);
    assert_eq!(status.supervisor, None);
    assert_eq!(status.agents[0].pid, Some(pids[0]));
    assert_eq!(status.agents[2].state, AgentState::Stopped);

    let second = Supervisor::start(&company);
    for (id, pid) in ["a", "b"].into_iter().zip(pids) {
        let status = company.wait(id, |it| it.state == AgentState::Running);
        assert_eq!(
            (status.pid, status.adopted, status.restarts),
            (Some(pid), true, 0)
        );
        assert_eq!(company.starts(id), [pid]);
    }
    assert_eq!(company.starts("off"), off);
    // An adopted loop is restarted after a crash and stopped on request like any other.
    let process = ProcessIdentity::of(pids[0]).unwrap();
    process.signal(ProcessSignal::Kill).unwrap();
    company.wait("a", |it| it.pid.is_some_and(|pid| pid != pids[0]));
    let new = company.running("a");
    let status = company.agent("a");
    assert_eq!((status.adopted, status.restarts), (false, 1));
    company.ask(Command::Stop(of("b"))).unwrap();
    company.wait("b", |it| it.state == AgentState::Stopped);
    assert!(!is_alive(pids[1]));

    let own = ProcessIdentity::of(second.0.id()).unwrap();
    own.signal(ProcessSignal::Terminate).unwrap();
    assert!(wait_gone(own.pid(), LIMIT));
    assert!(!is_alive(new));
}

#[test]
fn killed_supervisors_never_run_an_agent_twice() {
    let company = Company::new([("a", GOOD), ("b", GOOD), ("c", GOOD)]);
    for round in 0..40 {
        let mut command = stand_ins::supervisor(company.config());
        let supervisor = Supervisor(command.spawn().unwrap());
        // Usually in the middle of its start.
        std::thread::sleep(Duration::from_millis(5 + round));
        supervisor.kill();
    }
    let supervisor = company.supervise();
    for id in ["a", "b", "c"] {
        let pid = company.running(id);
        let mut alive = company.starts(id);
        alive.retain(|pid| is_alive(*pid));
        assert_eq!(alive, [pid], "{id}");
    }
    supervisor.end();
    for id in ["a", "b", "c"] {
        assert!(company.starts(id).iter().all(|pid| !is_alive(*pid)));
    }
}

#[test]
fn a_process_that_only_has_the_same_id_is_left_alone() {
    let company = Company::new([("a", GOOD)]);
    let stranger = Process::new("sleep").arg("1000").spawn().unwrap();
    let mut stranger = Supervisor(stranger);
    let supervisor = company.supervise();
    supervisor.end();
    let mut state = company.state();
    let before = company.starts("a");
    let start_time = ProcessIdentity::of(stranger.0.id()).unwrap().start_time();
    state["agents"]["a"]["process"] = json!({
        "pid": stranger.0.id(),
        "startTime": start_time.unwrap() - 1,
        "startedAtMs": 1,
        "workingDir": company.folder("a"),
    });
    fs::write(company.own("supervisor.json"), state.to_string()).unwrap();
    let supervisor = company.supervise();
    let pid = company.running("a");
    assert_ne!(pid, stranger.0.id());
    assert_eq!(company.starts("a").len(), before.len() + 1);
    supervisor.end();
    assert!(stranger.0.try_wait().unwrap().is_none());
}

#[test]
fn a_loop_of_another_supervisor_is_taken_over() {
    let company = Company::new([("a", GOOD), ("b", GOOD)]);
    let folder = company.folder("a");
    fs::create_dir(folder.join(".orchestrator")).unwrap();
    let mut other = Process::new("/bin/sh");
    other.arg("loop.sh").current_dir(&folder);
    let other = Supervisor(
        std::os::unix::process::CommandExt::process_group(&mut other, 0)
            .spawn()
            .unwrap(),
    );
    let pid = other.0.id();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    // In the format of other supervisors.
    let text = format!(
        "{{\n  \"epoch_ms\": {},\n  \"pid\": {pid}\n}}",
        now.unwrap().as_millis()
    );
    fs::write(folder.join(".orchestrator/last-start.json"), text).unwrap();
    assert!(wait_until(LIMIT, || company.starts("a") == [pid]));

    let supervisor = company.supervise();
    company.running("b");
    assert_eq!(company.running("a"), pid);
    assert!(company.agent("a").adopted);
    company.ask(Command::Restart(of("a"))).unwrap();
    company.wait("a", |it| it.pid.is_some_and(|new| new != pid));
    assert!(!is_alive(pid));
    let new = company.running("a");
    assert_eq!(company.starts("a"), [pid, new]);
    supervisor.end();
}

#[test]
fn changes_without_a_supervisor_are_applied_at_the_next_start() {
    let company = Company::new([("stays", GOOD), ("changes", GOOD), ("goes", GOOD)]);
    let supervisor = company.supervise_with(&keeping()).unwrap();
    let pids = ["stays", "changes", "goes"].map(|id| company.running(id));
    supervisor.end();
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    company.configure(&json!({"agents": [
        {"id": "stays", "role": "another"},
        {"id": "changes", "runtime": "claude"},
    ]}));
    let supervisor = company.supervise();
    assert!(wait_gone(pids[2], LIMIT));
    company.wait("changes", |it| it.pid.is_some_and(|pid| pid != pids[1]));
    assert_eq!(company.running("stays"), pids[0]);
    assert!(!is_alive(pids[1]));
    supervisor.end();
}

#[test]
fn leftovers_of_a_loop_are_ended_even_if_its_agent_was_removed() {
    // The mark of processes that a loop has started.
    const MARKED: &str = "start=$(cut -d ' ' -f 22 /proc/$$/stat)\n\
        TEAMSTER_RUN_ID=$$-$start-1 sleep 1000 &\n\
        echo $! >>children\n\
        while :; do sleep 0.02; done\n";

    let company = Company::new([("a", MARKED), ("goes", MARKED)]);
    let supervisor = company.supervise_with(&keeping()).unwrap();
    let left = ["a", "goes"].map(|id| {
        let pid = company.running(id);
        let children = company.folder(id).join("children");
        assert!(wait_until(LIMIT, || !numbers(&children).is_empty()));
        (pid, numbers(&children)[0])
    });
    supervisor.end();
    for (pid, child) in left {
        let process = ProcessIdentity::of(pid).unwrap();
        process.signal(ProcessSignal::Kill).unwrap();
        assert!(wait_gone(pid, LIMIT));
        assert!(is_alive(child));
    }
    company.configure(&json!({"agents": [{"id": "a"}]}));
    let supervisor = company.supervise();
    for (_, child) in left {
        assert!(wait_gone(child, LIMIT));
    }
    supervisor.end();
}
