//! Sessions whose folder is removed.

use std::fs;
use std::io::ErrorKind;
use std::time::Duration;

use teamster_core::RunStatus;
use teamster_runner::{Command, RefusalCode, Reply};
use tokio::time::timeout;

use crate::live::{Live, Scripted, waits};

/// Time in which what should take seconds must end.
const LIMIT: Duration = Duration::from_mins(1);

async fn assert_ends(live: Live, agent: &Scripted) {
    let finished = timeout(LIMIT, live.work).await.unwrap().unwrap();
    assert_eq!(finished.log.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(finished.result.status, RunStatus::Failed);
    let message = &finished.result.errors[0].message;
    assert!(message.contains("its folder was removed"), "{message}");
    assert_eq!(agent.calls().last().unwrap(), "[close]");
}

/// At rest before its first turn, with a log that is empty, and in a turn.
#[tokio::test]
async fn a_session_whose_folder_is_removed_ends_with_its_agent() {
    for is_in_turn in [false, true] {
        let agent = Scripted::new("claude", [waits()]);
        let live = Live::start(&[&agent], |_| {});
        if is_in_turn {
            live.begin("a").await;
        }
        fs::remove_dir_all(live.folder.path()).unwrap();
        assert_ends(live, &agent).await;
    }
}

#[tokio::test]
async fn prompt_that_comes_with_the_removal_begins_no_turn() {
    let agent = Scripted::new("claude", [waits()]);
    let live = Live::start(&[&agent], |_| {});
    fs::remove_dir_all(live.folder.path()).unwrap();
    // The session sees both at once.
    let prompt = Command::Send {
        prompt: "a".to_owned(),
        images: Vec::new(),
        from: None,
        key: None,
        trace: None,
    };
    let reply = timeout(LIMIT, live.control.carry_out(prompt))
        .await
        .unwrap();
    let Reply::Refused { code, .. } = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(code, RefusalCode::Ending);
    assert_ends(live, &agent).await;
    assert!(!agent.calls().contains(&"a".to_owned()));
}
