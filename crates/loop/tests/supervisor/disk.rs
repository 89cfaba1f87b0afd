//! Invalid files on disk, and files that cannot be written.

use std::fs::{self, File};

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use serde_json::json;
use teamster_api::agents::{AgentState, Command, ErrorCode, Event};
use teamster_loop::supervisor::Error;
use teamster_testkit::proc::{is_alive, wait_until};

use crate::supervisor::LIMIT;
use crate::supervisor::company::{Company, GOOD, keeping, of, settings};

#[test]
fn unreadable_state_starts_no_loop() {
    let company = Company::new([("a", GOOD), ("b", GOOD)]);
    let supervisor = company.supervise_with(&keeping()).unwrap();
    let pid = company.running("a");
    company.running("b");
    company.ask(Command::Stop(of("b"))).unwrap();
    company.wait("b", |it| it.state == AgentState::Stopped);
    supervisor.end();
    let file = company.own("supervisor.json");
    let text = fs::read_to_string(&file).unwrap();
    let starts = company.starts("b");

    let later = text.replace("\"version\": 1", "\"version\": 2");
    for wrong in [&text[..text.len() / 2], &*later] {
        fs::write(&file, wrong).unwrap();
        let error = company.supervise_with(&settings()).err().unwrap();
        assert!(matches!(error, Error::State { .. }), "{error}");
        assert_eq!(fs::read_to_string(&file).unwrap(), wrong);
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let error = company.supervise_with(&settings()).err().unwrap();
    assert!(matches!(error, Error::State { .. }), "{error}");
    assert!(is_alive(pid));
    assert_eq!(company.starts("b"), starts);

    // The file is removed by hand. Running loops are still found.
    fs::remove_dir(&file).unwrap();
    let supervisor = company.supervise();
    assert_eq!(company.running("a"), pid);
    company.running("b");
    supervisor.end();
    assert_eq!(company.starts("a"), [pid]);
}

#[test]
fn changed_configuration_keeps_running_loops() {
    let company = Company::new([("a", GOOD), ("b", GOOD)]);
    let supervisor = company.supervise_with(&keeping()).unwrap();
    let pids = ["a", "b"].map(|id| company.running(id));
    supervisor.end();
    let state = company.state();
    let other = company.config().with_file_name("other.json");
    fs::write(&other, r#"{"agents": [{"id": "a"}]}"#).unwrap();
    let error = company.supervise_by(&other, &settings()).err().unwrap();
    assert!(matches!(error, Error::OtherState { .. }), "{error}");
    assert!(pids.iter().all(|pid| is_alive(*pid)));
    assert_eq!(company.state(), state);

    // The second configuration replaces the first.
    fs::rename(&other, company.config()).unwrap();
    fs::rename(company.config(), &other).unwrap();
    let supervisor = company.supervise_by(&other, &settings()).unwrap();
    supervisor.event(|it| matches!(it, Event::Stopped { agent } if agent == "b"));
    assert!(is_alive(pids[0]));
    supervisor.end();
    assert_eq!(company.starts("a"), [pids[0]]);
}

#[test]
fn an_unsaved_stop_is_reported_and_saved_later() {
    let company = Company::new([("a", GOOD)]);
    let supervisor = company.supervise();
    let pid = company.running("a");
    let file = company.own("supervisor.json");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let error = company.ask(Command::Stop(of("a"))).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Refused {
                code: ErrorCode::NotSaved,
                ..
            }
        ),
        "{error}"
    );
    let status = company.wait("a", |it| it.state == AgentState::Stopped);
    assert!(!status.enabled && !is_alive(pid));
    fs::remove_dir(&file).unwrap();
    // The write is retried without another event.
    assert!(wait_until(LIMIT, || file.is_file()));
    assert_eq!(
        company.state()["agents"]["a"],
        json!({"enabled": false, "restarts": 0, "reason": "stopped", "stoppedInOrder": true})
    );
    company.ask(Command::Start(of("a"))).unwrap();
    company.running("a");
    supervisor.end();
}

#[test]
fn pipes_and_endless_files_are_not_waited_for() {
    let company = Company::new([("log", GOOD), ("others", GOOD), ("endless", GOOD)]);
    let file = |id: &str, name: &str| {
        let folder = company.folder(id).join(".orchestrator");
        fs::create_dir_all(&folder).unwrap();
        folder.join(name)
    };
    mkfifo(&file("log", "agent-loop.log"), Mode::S_IRWXU).unwrap();
    for name in ["last-start.json", "sleep.json"] {
        mkfifo(&file("others", name), Mode::S_IRWXU).unwrap();
        std::os::unix::fs::symlink("/dev/zero", file("endless", name)).unwrap();
    }
    let supervisor = company.supervise();
    company.running("others");
    company.running("endless");
    let status = company.wait("log", |it| it.reason.is_some());
    let reason = status.reason.unwrap();
    assert!(reason.starts_with("not started: cannot write "), "{reason}");
    supervisor.end();
}

#[test]
fn the_supervisor_does_not_rotate_the_log() {
    let company = Company::new([("a", GOOD)]);
    let folder = company.folder("a").join(".orchestrator");
    fs::create_dir(&folder).unwrap();
    let log = File::create(folder.join("agent-loop.log")).unwrap();
    log.set_len(64 << 20).unwrap();
    let supervisor = company.supervise();
    company.running("a");
    supervisor.end();
    assert!(log.metadata().unwrap().len() > 64 << 20);
    assert!(!folder.join("agent-loop.log.1").exists());
}
