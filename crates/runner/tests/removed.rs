//! Runs that are removed, and sessions whose folder is.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use teamster_core::RunStatus;
use teamster_runner::{Command, RefusalCode, Reply, Runs, client};
use tokio::time::timeout;

use crate::live::{Live, Scripted, waits};
use crate::log::accept;

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

#[test]
fn a_run_that_has_ended_can_be_removed_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::at(dir.path());
    let run = accept(&runs, "r");
    assert!(!run.folder.clone().remove().unwrap());
    drop(run);
    assert!(runs.find("r").unwrap().remove().unwrap());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn removal_of_an_ended_run_waits_for_its_runner() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::at(dir.path());
    drop(accept(&runs, "r"));
    let run = runs.find("r").unwrap();
    run.settle().unwrap();
    // As of a runner that cleans up.
    let lock = File::open(run.path().join("lock")).unwrap();
    lock.lock().unwrap();
    let mut removal = pin!(client::remove(run.clone()));
    let moment = Duration::from_millis(50);
    assert!(timeout(moment, &mut removal).await.is_err());
    drop(lock);
    assert!(removal.await.unwrap());
    assert!(runs.get("r").unwrap().is_none());
    let live = accept(&runs, "live");
    assert!(!client::remove(live.folder.clone()).await.unwrap());
}

#[test]
fn readers_that_look_at_a_run_do_not_keep_it_from_being_removed() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::at(dir.path());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for run in runs.list().unwrap() {
                    // It may have just been removed.
                    let _ = run.settle();
                }
            }
        });
        let kept = (0..50).filter(|round| {
            let id = format!("r-{round}");
            drop(accept(&runs, &id));
            let run = runs.find(&id).unwrap();
            run.settle().unwrap();
            !run.remove().unwrap()
        });
        let kept = kept.count();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(kept, 0);
    });
}

#[test]
fn leftovers_of_killed_processes_block_no_id_and_no_run() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::at(dir.path());
    // As if a process with the id of this one had been killed, and as earlier versions named them.
    let process = std::process::id();
    for left in [
        ".new-r".to_owned(),
        ".old-r".to_owned(),
        format!(".new-r.{process}.0"),
        format!(".old-r.{process}.0"),
    ] {
        fs::create_dir(dir.path().join(&left)).unwrap();
        fs::write(dir.path().join(&left).join("lock"), "").unwrap();
    }
    drop(accept(&runs, "r"));
    assert!(runs.find("r").unwrap().remove().unwrap());
    assert!(runs.get("r").unwrap().is_none());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 4);
}
