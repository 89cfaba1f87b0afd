//! Retention of logs.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use teamster_api::{RunInfo, RunLogEntry};
use teamster_core::{AgentEvent, Done, LogEntry, RunResult, Text};
use teamster_runner::{AcceptedRun, LogLimits, Retention, Runs};

const HOUR: u64 = 3600;

/// Creates a run whose log has this age in hours and at least this size in bytes.
fn run(runs: &Runs, id: &str, hours: u64, bytes: usize, ends: bool) -> AcceptedRun {
    let mut run = (runs.accept(&RunInfo::new(id, "claude"), LogLimits::default())).unwrap();
    let text = Text::new("x".repeat(bytes));
    (run.log).push(RunLogEntry::Agent(AgentEvent::Text(text).into()));
    if ends {
        let done = Done::new(Box::new(RunResult::default()));
        (run.log).push(RunLogEntry::Agent(LogEntry::from(AgentEvent::Done(done))));
    }
    run.log.end_frame();
    run.log.flush().unwrap();
    let written = SystemTime::now() - Duration::from_secs(hours * HOUR);
    let log = File::options()
        .write(true)
        .open(run.folder.path().join("events.ndjson"));
    log.unwrap().set_modified(written).unwrap();
    run
}

fn keep(age_hours: Option<u64>, bytes: Option<u64>) -> Retention {
    let mut keep = Retention::default();
    keep.age = age_hours.map(|hours| Duration::from_secs(hours * HOUR));
    keep.bytes = bytes;
    keep
}

fn left(runs: &Runs, keep: &Retention) -> Vec<String> {
    runs.prune(keep).unwrap();
    runs.ids().unwrap()
}

#[test]
fn old_logs_are_removed_and_then_the_oldest_beyond_the_size() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::at(dir.path().join("runs"));
    // A missing folder is not created.
    assert_eq!(runs.prune(&keep(Some(1), Some(0))).unwrap().logs, 0);
    assert!(!runs.root().exists());
    for (id, hours) in [("a", 100), ("b", 50), ("c", 20), ("d", 10), ("e", 0)] {
        run(&runs, id, hours, 10_000, true);
    }
    assert_eq!(left(&runs, &keep(None, None)), ["a", "b", "c", "d", "e"]);
    assert_eq!(
        left(&runs, &Retention::default()),
        ["a", "b", "c", "d", "e"]
    );
    let bytes = |id: &str| {
        fs::metadata(runs.root().join(id).join("events.ndjson"))
            .unwrap()
            .len()
    };
    let all: u64 = runs.ids().unwrap().iter().map(|id| bytes(id)).sum();
    assert_eq!(left(&runs, &keep(None, Some(all))).len(), 5);
    assert_eq!(left(&runs, &keep(Some(99), None)), ["b", "c", "d", "e"]);
    let pruned = runs.prune(&keep(Some(99), Some(35_000))).unwrap();
    assert_eq!((pruned.logs, pruned.outdated), (1, Vec::new()));
    assert!(pruned.bytes > 10_000);
    assert_eq!(runs.ids().unwrap(), ["c", "d", "e"]);
    // A run that has just ended is kept for its readers.
    assert_eq!(left(&runs, &keep(Some(0), Some(0))), ["e"]);
}

#[test]
fn kept_log_outlives_the_limits_until_its_release() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::at(dir.path().join("runs"));
    assert!(runs.keep("../b").is_err());
    // Before the run is there.
    runs.keep("b").unwrap();
    for id in ["a", "b"] {
        run(&runs, id, 100, 10_000, true);
    }
    assert_eq!(left(&runs, &keep(Some(1), Some(0))), ["b"]);
    runs.release("b").unwrap();
    runs.release("b").unwrap();
    assert_eq!(left(&runs, &keep(Some(1), Some(0))), Vec::<String>::new());
}

#[test]
fn a_live_run_is_kept_and_a_killed_one_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::at(dir.path());
    let live = run(&runs, "live", 10, 100_000, false);
    // Dropping the run releases its lock, as a kill does.
    drop(run(&runs, "killed", 900, 10, false));
    run(&runs, "new", 2, 10, true);
    // A live run counts towards the size, so ended runs exceed the limit.
    assert_eq!(left(&runs, &keep(None, Some(50_000))), ["live", "new"]);
    assert_eq!(left(&runs, &keep(Some(1), Some(0))), ["live"]);
    drop(live);
    let pruned = runs.prune(&keep(Some(1), Some(0))).unwrap();
    assert_eq!(pruned.outdated, ["live"]);
    assert!(runs.ids().unwrap().is_empty());
}

#[test]
fn old_drafts_of_killed_processes_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::at(dir.path());
    let draft = |name: &str, hours: u64| {
        let path = dir.path().join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("run.json"), "{").unwrap();
        let made = SystemTime::now() - Duration::from_secs(hours * HOUR);
        File::open(&path).unwrap().set_modified(made).unwrap();
    };
    draft(".new-a", 2);
    draft(".old-b", 2);
    draft(".new-c", 0);
    runs.prune(&Retention::default()).unwrap();
    let mut left: Vec<_> = fs::read_dir(dir.path())
        .unwrap()
        .map(|it| it.unwrap().file_name().into_string().unwrap())
        .collect();
    left.sort();
    assert_eq!(left, [".new-c", ".prune.lock"]);
}

/// Only one process prunes at a time.
#[test]
fn many_processes_prune_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::at(dir.path());
    for number in 0..50 {
        run(&runs, &format!("r{number:02}"), 10 + 2 * number, 10, true);
    }
    let removed: u64 = std::thread::scope(|scope| {
        let prune = || runs.prune(&keep(Some(21), None)).unwrap().logs;
        let all: Vec<_> = (0..4).map(|_| scope.spawn(prune)).collect();
        all.into_iter().map(|it| it.join().unwrap()).sum()
    });
    let left = runs.ids().unwrap();
    assert_eq!(left.len() as u64 + removed, 50);
    assert_eq!(left.last().map(String::as_str), Some("r05"), "{left:?}");
}
