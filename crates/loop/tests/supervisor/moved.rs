//! Agents with new ids or directories, and folders with several paths.

use std::fs;

use serde_json::{Value, json};
use teamster_api::agents::{AgentState, AgentStatus, Command};
use teamster_testkit::proc::{is_alive, wait_until};

use crate::supervisor::LIMIT;
use crate::supervisor::company::{Company, GOOD, keeping, settings};

/// Loop that ends slowly.
const SLOW: &str = "trap 'sleep 0.1; exit 0' TERM\nwhile :; do sleep 0.02; done\n";

/// Applies `change` and its configuration, once with a running supervisor and once without. `check` gets the
/// process ids of the loops before the change.
fn both_ways(change: impl Fn(&Company) -> Value, check: impl Fn(&Company, [u32; 2])) {
    for reload in [true, false] {
        let company = Company::new([("a", SLOW), ("b", SLOW)]);
        let supervisor = company.supervise_with(&keeping()).unwrap();
        let before = ["a", "b"].map(|id| company.running(id));
        let supervisor = if reload {
            company.configure(&change(&company));
            company.ask(Command::Reload).unwrap();
            supervisor
        } else {
            supervisor.end();
            company.configure(&change(&company));
            company.supervise_with(&keeping()).unwrap()
        };
        check(&company, before);
        let status = company.ask(Command::Status).unwrap();
        assert_eq!(status.agents.len(), 2, "{status:?}");
        // The kept loops are ended by the next supervisor.
        supervisor.end();
        company.supervise().end();
    }
}

/// Waits until the agent has a new loop in this folder. Returns its process id.
fn restarted(company: &Company, id: &str, folder: &str, before: [u32; 2]) -> u32 {
    let has_another = |it: &AgentStatus| {
        let another = it.pid.filter(|pid| !before.contains(pid));
        it.state == AgentState::Running && another.is_some()
    };
    let status = company.wait(id, has_another);
    assert_eq!((status.restarts, status.adopted), (0, false), "{status:?}");
    let pid = status.pid.unwrap();
    assert!(wait_until(LIMIT, || company.starts(folder).last() == Some(&pid)));
    pid
}

#[test]
fn renamed_agent_in_the_same_directory_has_its_own_loop() {
    both_ways(
        |_| json!({"agents": [{"id": "new", "workingDir": "agents/a"}, {"id": "b"}]}),
        |company, before| {
            let pid = restarted(company, "new", "a", before);
            assert!(!is_alive(before[0]));
            assert_eq!(company.starts("a"), [before[0], pid]);
            assert_eq!(company.starts("b"), before[1..]);
        },
    );
}

#[test]
fn renamed_agent_with_a_moved_directory_has_its_own_loop() {
    both_ways(
        |company| {
            fs::rename(company.folder("a"), company.folder("new")).unwrap();
            json!({"agents": [{"id": "new"}, {"id": "b"}]})
        },
        |company, before| {
            let pid = restarted(company, "new", "new", before);
            assert!(!is_alive(before[0]));
            assert_eq!(company.starts("new"), [before[0], pid]);
        },
    );
}

#[test]
fn agents_that_swap_directories_have_their_own_loops() {
    both_ways(
        |_| {
            json!({"agents": [
                {"id": "a", "workingDir": "agents/b"},
                {"id": "b", "workingDir": "agents/a"},
            ]})
        },
        |company, before| {
            let a = restarted(company, "a", "b", before);
            let b = restarted(company, "b", "a", before);
            assert!(before.iter().all(|pid| !is_alive(*pid)));
            assert_eq!(company.starts("a"), [before[0], b]);
            assert_eq!(company.starts("b"), [before[1], a]);
        },
    );
}

#[test]
fn a_folder_by_another_path_is_the_same_folder() {
    let company = Company::new([("a", GOOD)]);
    let link = tempfile::tempdir().unwrap();
    let other = link.path().join("link");
    std::os::unix::fs::symlink(company.config().parent().unwrap(), &other).unwrap();
    let other = other.join("agents.config.json");
    let supervisor = company.supervise_with(&keeping()).unwrap();
    let pid = company.running("a");
    supervisor.end();
    for config in [&other, &company.config()] {
        let supervisor = company.supervise_by(config, &keeping()).unwrap();
        supervisor.handle.reload();
        supervisor
            .event(|it| matches!(it, teamster_loop::supervisor::Event::Reloaded { agents: 1 }));
        let status = company.agent("a");
        assert_eq!((status.state, status.pid), (AgentState::Running, Some(pid)));
        supervisor.end();
    }
    company.supervise_by(&other, &settings()).unwrap().end();
    assert_eq!(company.starts("a"), [pid]);
}
