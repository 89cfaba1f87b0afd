//! The lock that allows one writer per agent session, across processes.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use teamster::{ErrorKind, RunStatus};
use teamster_testkit::proc::{wait_gone, wait_until};

use super::requests::{command, detach, log};
use crate::cli::chat::Agent;
use crate::cli::{LIMIT, done};

/// The session of a run, once it is known.
fn session(agent: &Agent, id: &str) -> String {
    let log = agent
        .path("state")
        .join(format!("teamster/runs/{id}/events.ndjson"));
    let mut found = None;
    assert!(wait_until(LIMIT, || {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        let mut lines = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        found = lines.find_map(|line: Value| {
            let session = (line["type"] == "session").then(|| line["sessionId"].as_str())?;
            session.map(str::to_owned)
        });
        found.is_some()
    }));
    found.unwrap()
}

#[test]
fn a_session_in_use_is_resumed_by_no_one_else() {
    let agent = Agent::new();
    let id = detach(&agent, &["wait"]);
    let session = session(&agent, &id);
    let starts = agent.starts().len();
    for args in [
        &["run", "claude", "more", "--resume", &session][..],
        &["run", "-d", "claude", "more", "--resume", &session],
        &["chat", "claude", "--resume", &session],
    ] {
        let refused = command(&agent, args);
        assert_eq!((refused.code, &*refused.stdout), (Some(2), ""), "{args:?}");
        for word in [&*id, &session, "stop it", "fork"] {
            refused.stderr_has(word);
        }
    }
    assert_eq!(agent.starts().len(), starts);

    // Without its holder it is free, however that ended.
    kill(Pid::from_raw(agent.parent().cast_signed()), Signal::SIGKILL).unwrap();
    assert!(wait_gone(agent.parent(), LIMIT));
    let resumed = command(
        &agent,
        &["run", "-d", "claude", "more", "--resume", &session],
    );
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    let second = resumed.stdout.trim_end();
    assert_eq!(command(&agent, &["wait", second]).code, Some(0));
    let third = detach(&agent, &["more", "--resume", &session]);
    assert_eq!(command(&agent, &["wait", &third]).code, Some(0));
    let locks = agent.path("state").join("teamster/sessions");
    assert!(wait_until(LIMIT, || std::fs::read_dir(&locks)
        .unwrap()
        .next()
        .is_none()));
}

#[test]
fn a_session_that_answers_nothing_has_failed() {
    let agent = Agent::new();
    // It prints nothing, as the CLI does beside another process of its session.
    let id = detach(&agent, &["silence", "--resume", "s"]);
    assert_eq!(command(&agent, &["wait", &id]).code, Some(1));
    let result = done(&log(&agent, &id));
    assert_eq!(result.status, RunStatus::Failed);
    assert_eq!(result.errors[0].kind, ErrorKind::Protocol);
}
