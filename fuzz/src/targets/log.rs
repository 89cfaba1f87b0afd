//! The log of a run whose runner was killed, with any bytes in it: how it is read, and how it is completed.

use std::fs;
use std::sync::{Arc, LazyLock, Mutex};

use teamster_api::{LogLine, RunInfo};
use teamster_core::provider::Exit;
use teamster_core::{CliProvider, ExecuteParams};
use teamster_providers::Providers;
use teamster_runner::{LogLimits, RunFolder, RunLogReader, RunState, Runs};
use teamster_testkit::mutate::Mutator;
use teamster_testkit::replay::replay_run;

use super::Target;
use crate::harness::hash;

/// Name of the log in a run's folder.
const LOG: &str = "events.ndjson";
const ID: &str = "fuzz";

static FOLDER: LazyLock<Mutex<(tempfile::TempDir, RunFolder)>> = LazyLock::new(|| {
    // In memory, where the system has that.
    let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let root = root.unwrap_or_else(|error| panic!("no folder: {error}"));
    let runs = Runs::at(root.path());
    let accepted = runs.accept(&RunInfo::new(ID, "fuzz"), LogLimits::default());
    let accepted = accepted.unwrap_or_else(|error| panic!("no run: {error}"));
    Mutex::new((root, accepted.folder))
});

/// Input that begins as a log is one. Other input is the output of a CLI, whose log is changed.
pub fn target() -> Target {
    let id = provider().info().id;
    Target::new(
        "log",
        &[&format!("fixtures/{id}"), "fuzz/seeds/log"],
        |data| {
            let log = if data.starts_with(br#"{"seq":"#) {
                data.to_vec()
            } else {
                Mutator::new(hash(data)).change(&log_of(data))
            };
            recover(&log);
        },
    )
}

/// Returns any CLI, for a log of its events.
fn provider() -> Arc<dyn CliProvider> {
    let first = Providers::builtin().first();
    first.unwrap_or_else(|| panic!("no provider"))
}

/// Returns the log of a run with this output.
fn log_of(output: &[u8]) -> Vec<u8> {
    let params = ExecuteParams::new("hi");
    let replay = replay_run(&*provider(), &params, [output], Exit::default());
    let mut log = Vec::new();
    for (number, event) in replay.events.iter().enumerate() {
        let mut entry = teamster_core::LogEntry::from(event.clone());
        entry.seq = number as u64 + 1;
        entry.run_id = Some(ID.into());
        log.extend(serde_json::to_vec(&entry).unwrap_or_default());
        log.push(b'\n');
    }
    log
}

fn recover(log: &[u8]) {
    let folder = FOLDER
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let file = folder.1.path().join(LOG);
    fs::write(&file, log).unwrap_or_else(|error| panic!("{error}"));
    let before = lines(&folder.1);
    let state = folder.1.settle().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(state, RunState::Ended);
    let after = lines(&folder.1);
    // What could be read before is still there, and only an end was added. Of a damaged end the result is lost.
    assert!(
        after.starts_with(&before),
        "{} became {}",
        shown(&before),
        shown(&after)
    );
    let last = folder.1.last_line();
    let last = last.unwrap_or_else(|error| panic!("{error}"));
    assert!(
        last.is_some_and(|line| line.is_end()),
        "no end: {}",
        shown(&after)
    );
    let settled = fs::read(&file).unwrap_or_default();
    assert_eq!(folder.1.settle().ok(), Some(RunState::Ended));
    assert!(
        fs::read(&file).unwrap_or_default() == settled,
        "a complete log was changed"
    );
    if !is_in_order(&settled) {
        return;
    }
    assert!(
        after.last().is_some_and(LogLine::is_end),
        "readers get no end: {}",
        shown(&after)
    );
    // From any entry on, a reader gets the same.
    let middle = after[after.len() / 2].seq();
    let later: Vec<_> = after.iter().filter(|line| line.seq() > middle).collect();
    let reader = folder.1.log(middle);
    let found = read(reader.unwrap_or_else(|error| panic!("{error}")));
    assert_eq!(found.iter().collect::<Vec<_>>(), later);
}

/// Returns whether every line has a number, which is larger than that before it.
fn is_in_order(log: &[u8]) -> bool {
    let lines = log
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let mut last = Some(0);
    for line in lines {
        let seq = LogLine::seq_of(line);
        if last.is_none() || seq <= last {
            return false;
        }
        last = seq;
    }
    true
}

fn shown(lines: &[LogLine]) -> String {
    let lines = lines
        .iter()
        .map(|line| String::from_utf8_lossy(line.json()));
    lines.collect::<Vec<_>>().join("\n")
}

fn lines(folder: &RunFolder) -> Vec<LogLine> {
    read(folder.log(0).unwrap_or_else(|error| panic!("{error}")))
}

fn read(mut reader: RunLogReader) -> Vec<LogLine> {
    let mut lines: Vec<LogLine> = Vec::new();
    while let Some(line) = reader.next_line().unwrap_or_else(|error| panic!("{error}")) {
        assert!(
            lines.last().is_none_or(|last| last.seq() <= line.seq()),
            "numbers go back"
        );
        lines.push(line);
    }
    lines
}
