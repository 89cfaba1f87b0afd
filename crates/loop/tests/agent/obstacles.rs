//! Obstacles of a loop: files, lost directories, and sessions that cannot be used.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use teamster_core::{AgentError, ErrorCode, ErrorKind};
use teamster_loop::Control;
use tokio::time::{Instant, sleep};

use crate::agent::{Agent, agent_loop, costs, failed, in_order, read};

#[tokio::test(start_paused = true)]
async fn a_flag_is_taken_after_its_obstacle_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, control) = (Agent::default(), Control::new());
    let agent_loop = agent_loop(directory.path(), agent, control.clone());
    let path = |name: &str| directory.path().join(".orchestrator").join(name);
    // A rename to a directory that is not empty fails.
    let obstacle = path("reset-session.taken");
    fs::create_dir(&obstacle).unwrap();
    fs::write(obstacle.join("x"), "").unwrap();
    fs::write(path("reset-session"), "").unwrap();
    tokio::spawn(async move {
        sleep(Duration::from_secs(200)).await;
        fs::remove_dir_all(obstacle).unwrap();
        sleep(Duration::from_hours(1)).await;
        control.stop();
    });
    agent_loop.run().await.unwrap();
    let log = read(directory.path(), "agent-loop.log");
    // The error is logged once for each tick.
    assert_eq!(
        log.matches(".orchestrator/reset-session: ").count(),
        2,
        "{log}"
    );
    assert_eq!(log.matches("as reset-session requests").count(), 1, "{log}");
    assert!(!path("reset-session").exists());
}

#[tokio::test(start_paused = true)]
async fn a_removed_orchestrator_folder_is_restored() {
    let directory = tempfile::tempdir().unwrap();
    let (agent, control) = (Agent::default(), Control::new());
    let orchestrator = directory.path().join(".orchestrator");
    let agent_loop = agent_loop(directory.path(), agent, control);
    let removed = orchestrator.clone();
    tokio::spawn(async move {
        // The second tick is in progress.
        sleep(Duration::from_millis(121_500)).await;
        fs::remove_dir_all(removed).unwrap();
    });
    agent_loop.ticks_limit(Some(3)).run().await.unwrap();
    let log = read(directory.path(), "agent-loop.log");
    let made = ".orchestrator was removed and is created again";
    assert!(log.contains(made), "{log}");
    // The usage of the second and third tick. The lock was removed with the folder and restored.
    assert_eq!(costs(directory.path()), [1.0, 1.0]);
    assert!(orchestrator.join("loop.lock").exists());
    // The next process needs it.
    assert!(orchestrator.join("session-settings.json").exists());
    assert!(!orchestrator.join("session.json").exists());
}

#[tokio::test(start_paused = true)]
async fn unreadable_skills_do_not_prevent_the_settings_file() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join(".claude")).unwrap();
    fs::write(directory.path().join(".claude/skills"), "").unwrap();
    let agent_loop = agent_loop(directory.path(), Agent::default(), Control::new());
    agent_loop.ticks_limit(Some(1)).run().await.unwrap();
    let log = read(directory.path(), "agent-loop.log");
    assert!(log.contains("] .claude/skills: "), "{log}");
    let settings = read(directory.path(), "session-settings.json");
    assert_eq!(settings.trim().replace([' ', '\n'], ""), r#"{"skills":[]}"#);
}

#[tokio::test(start_paused = true)]
async fn a_new_process_gets_the_full_prompt() {
    let mut at = Vec::new();
    for dies_after in 2..=10 {
        let directory = tempfile::tempdir().unwrap();
        let agent = Agent {
            dies_after: Some(dies_after),
            ..Agent::default()
        };
        let (begun, full) = (agent.begun.clone(), agent.full.clone());
        let agent_loop = agent_loop(directory.path(), agent, Control::new());
        agent_loop.ticks_limit(Some(3)).run().await.unwrap();
        let (begun, full) = (begun.lock().unwrap().clone(), full.lock().unwrap().clone());
        // After this many ticks a new process began.
        if let [0, ticks] = begun[..]
            && ticks > 0
        {
            assert_eq!(full, [1, ticks + 1], "{dies_after}");
            at.push(ticks);
        }
    }
    assert!(at.contains(&1) && at.contains(&2), "{at:?}");
}

#[tokio::test(start_paused = true)]
async fn a_loop_ends_with_the_directory_of_its_agent() {
    let directory = tempfile::tempdir().unwrap();
    let agent = Agent::default();
    let ticks = agent.ticks.clone();
    let agent_loop = agent_loop(directory.path(), agent, Control::new());
    tokio::spawn(async move {
        // The loop is in its first sleep.
        sleep(Duration::from_mins(1)).await;
        directory.close().unwrap();
    });
    let lost = agent_loop.run().await.unwrap_err();
    assert!(
        lost.message.contains("cannot be used: "),
        "{}",
        lost.message
    );
    assert_eq!(*ticks.lock().unwrap(), 1);
}

/// Writes the session file of a loop that was cut off.
fn cut_off(directory: &Path) -> (PathBuf, &'static str) {
    let orchestrator = directory.join(".orchestrator");
    fs::create_dir(&orchestrator).unwrap();
    let file = orchestrator.join("session.json");
    let text = r#"{"runtime": "claude", "session_id": "s", "pid": 1, "updated_at_epoch": 1}"#;
    fs::write(&file, text).unwrap();
    (file, text)
}

#[tokio::test(start_paused = true)]
async fn a_failed_start_keeps_the_session_file() {
    let directory = tempfile::tempdir().unwrap();
    let (file, text) = cut_off(directory.path());
    let not_so = || AgentError::invalid_params("not so");
    let agent = Agent {
        refuses: [not_so(), not_so()].into(),
        ..Agent::default()
    };
    // The start is retried without the session.
    let resumed = agent.resumed.clone();
    let error = agent_loop(directory.path(), agent, Control::new()).run();
    assert_eq!(error.await.unwrap_err().message, "not so");
    assert_eq!(*resumed.lock().unwrap(), [Some("s".into()), None]);
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_available_later_is_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    cut_off(directory.path());
    let mut error = AgentError::invalid_params("not in this minute");
    error.retry_after_ms = Some(42_500);
    let agent = Agent {
        refuses: [error].into(),
        ..Agent::default()
    };
    let resumed = agent.resumed.clone();
    let begun = Instant::now();
    let agent_loop = agent_loop(directory.path(), agent, Control::new());
    agent_loop.ticks_limit(Some(1)).run().await.unwrap();
    assert_eq!(
        *resumed.lock().unwrap(),
        [Some("s".into()), Some("s".into())]
    );
    let waited = begun.elapsed().as_secs();
    assert!((43..50).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn session_with_refused_requests_is_given_up_by_a_live_process() {
    for nameless in [false, true] {
        let directory = tempfile::tempdir().unwrap();
        let refused =
            || AgentError::new(ErrorCode::CliError, ErrorKind::Invalid, "no such tool use");
        let agent = Agent {
            first: in_order([failed(refused()), failed(refused())]),
            nameless,
            ..Agent::default()
        };
        let (resumed, begun) = (agent.resumed.clone(), agent.begun.clone());
        let agent_loop = agent_loop(directory.path(), agent, Control::new());
        agent_loop.ticks_limit(Some(4)).run().await.unwrap();
        assert_eq!(*begun.lock().unwrap(), [0, 2]);
        assert_eq!(*resumed.lock().unwrap(), [None, None]);
        let log = read(directory.path(), "agent-loop.log");
        let why = "starting claude with a new session: the old one failed twice in a row";
        assert!(log.contains(why), "{log}");
    }
}
