//! Torn logs, and readers at any moment.

use std::fs;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;
use teamster_api::{RunInfo, RunLogEntry};
use teamster_core::{AgentEvent, LogEntry, RunResult, Text, ToolKind, ToolUse};
use teamster_runner::client::Follow;
use teamster_runner::{AcceptedRun, LogLimits, RunFolder, RunState, Runs, RunsError};

fn text(text: &str) -> RunLogEntry {
    RunLogEntry::Agent(AgentEvent::Text(Text::new(text).message_id("m")).into())
}

fn tool(id: u64, input: &str) -> RunLogEntry {
    let tool = ToolUse::new(
        "Bash",
        id.to_string(),
        ToolKind::Execute,
        Value::from(input),
    );
    RunLogEntry::Agent(AgentEvent::ToolUse(Box::new(tool)).into())
}

fn done() -> RunLogEntry {
    let done = teamster_core::Done::new(Box::new(RunResult::default()));
    RunLogEntry::Agent(LogEntry::from(AgentEvent::Done(done)))
}

pub(crate) fn accept(runs: &Runs, id: &str) -> AcceptedRun {
    runs.accept(&RunInfo::new(id, "claude"), LogLimits::default())
        .unwrap()
}

/// Returns the numbers and types of the log's entries after `after`.
fn entries(run: &RunFolder, after: u64) -> Vec<(u64, String)> {
    let mut reader = run.log(after).unwrap();
    let mut entries = Vec::new();
    while let Some(line) = reader.next_line().unwrap() {
        entries.push((line.seq(), line.type_name()));
    }
    entries
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A killed writer leaves any part of its last lines, and a power failure any bytes after them.
    #[test]
    fn a_log_is_whole_up_to_any_cut(
        sizes in prop::collection::vec(0_usize..3_000, 1..30),
        cut in 0.0_f64..1.0,
        garbage in prop::option::of(prop::collection::vec(any::<u8>(), 1..40)),
        after in 0_u64..40,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let runs = Runs::at(dir.path());
        let mut run = accept(&runs, "r");
        for (id, size) in (1..).zip(&sizes) {
            run.log.push(tool(id, &"x".repeat(*size)));
        }
        run.log.flush().unwrap();
        drop(run);

        let file = dir.path().join("r/events.ndjson");
        let mut bytes = fs::read(&file).unwrap();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
        bytes.truncate((bytes.len() as f64 * cut) as usize);
        let whole = bytes.split(|byte| *byte == b'\n').skip(1).count() as u64;
        bytes.extend(garbage.into_iter().flatten().filter(|byte| *byte != b'\n'));
        fs::write(&file, bytes).unwrap();

        // A reader sees exactly the complete entries, before and after the end is appended.
        let run = runs.find("r").unwrap();
        let seen: Vec<_> = entries(&run, 0).into_iter().map(|(seq, _)| seq).collect();
        prop_assert_eq!(&seen, &(1..=whole).collect::<Vec<_>>());
        for _ in 0..2 {
            prop_assert_eq!(run.settle().unwrap(), RunState::Ended);
            let seen = entries(&run, 0);
            let numbers: Vec<_> = seen.iter().map(|(seq, _)| *seq).collect();
            prop_assert_eq!(numbers, (1..=whole + 2).collect::<Vec<_>>());
            let kinds: Vec<_> = seen.iter().map(|(_, kind)| &**kind).collect();
            prop_assert_eq!(&kinds[kinds.len() - 2..], ["error", "done"]);
            let rest: Vec<_> = seen.into_iter().filter(|(seq, _)| *seq > after).collect();
            prop_assert_eq!(entries(&run, after), rest);
        }
    }

    /// A pruned log has one `reset` for the removed entries, and no gap.
    #[test]
    fn a_log_that_grows_too_large_loses_its_older_half(
        sizes in prop::collection::vec(0_usize..2_000, 1..120),
        every in 1_usize..10,
        after in 0_u64..120,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let runs = Runs::at(dir.path());
        let mut limits = LogLimits::default();
        limits.bytes = 8_000;
        let mut run = runs.accept(&RunInfo::new("r", "claude"), limits).unwrap();
        let folder = run.folder.clone();
        // A reader from the start misses nothing although files are replaced.
        let mut early = folder.log(0).unwrap();
        let mut seen = Vec::new();
        for (id, size) in (1..).zip(&sizes) {
            run.log.push(tool(id, &"x".repeat(*size)));
            if id % every as u64 == 0 {
                run.log.flush().unwrap();
                while let Some(line) = early.next_line().unwrap() {
                    seen.push((line.seq(), line.type_name()));
                }
            }
        }
        run.log.push(done());
        run.log.flush().unwrap();
        while let Some(line) = early.next_line().unwrap() {
            seen.push((line.seq(), line.type_name()));
        }
        let count = sizes.len() as u64 + 1;
        // A reader may fall behind a prune, and then gets a `reset` for the gap.
        let first_after = |seen: &[(u64, String)]| seen.windows(2).all(|pair| {
            pair[1].0 == pair[0].0 + 1 || pair[1].1 == "reset"
        });
        prop_assert!(first_after(&seen), "{seen:?}");
        prop_assert_eq!(seen.last().unwrap(), &(count, "done".to_owned()));

        let late = entries(&folder, after);
        let whole = entries(&folder, 0);
        let resets = whole.iter().filter(|(_, kind)| kind == "reset").count();
        prop_assert!(resets <= 1 && (resets == 0 || whole[0].1 == "reset"));
        prop_assert!(resets == 1 || whole[0].0 == 1);
        let numbers: Vec<_> = whole.iter().map(|(seq, _)| *seq).collect();
        prop_assert_eq!(&numbers, &(numbers[0]..=count).collect::<Vec<_>>());
        let rest: Vec<_> = whole.into_iter().filter(|(seq, _)| *seq > after).collect();
        prop_assert_eq!(late, rest);
        prop_assert!(fs::metadata(dir.path().join("r/events.ndjson")).unwrap().len() < 14_000);
    }
}

#[test]
fn first_delta_is_written_at_once_and_close_ones_are_joined() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = accept(&Runs::at(dir.path()), "r");
    run.log.push(text("a"));
    assert!(run.log.unwritten_bytes() > 0);
    assert_eq!(run.log.due(), None);
    run.log.push(text("b"));
    run.log.push(text("c"));
    assert_eq!(run.log.flush().unwrap().seq, 1);
    let due = run.log.due().unwrap();
    assert!(due <= std::time::Instant::now() + Duration::from_millis(100));
    // The first delta of the next message does not wait either and keeps its place.
    run.log.push(RunLogEntry::Agent(
        AgentEvent::Text(Text::new("x").message_id("n")).into(),
    ));
    run.log.push(text("d"));
    // Any other entry ends the wait.
    run.log.push(tool(1, ""));
    run.log.push(text("e"));
    run.log.push(text("f"));
    run.log.end_frame();
    run.log.push(text("g"));
    assert!(run.log.due().unwrap() > due);
    run.log.end_frame();
    assert_eq!(run.log.flush().unwrap().seq, 8);
    let text = fs::read_to_string(dir.path().join("r/events.ndjson")).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|it| serde_json::from_str(it).unwrap())
        .collect();
    let texts: Vec<_> = lines
        .iter()
        .map(|it| it["text"].as_str().unwrap_or("tool"))
        .collect();
    assert_eq!(texts, ["a", "bc", "x", "d", "tool", "e", "f", "g"]);
}

#[test]
fn the_result_of_a_killed_run_is_recovered_from_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::at(dir.path());
    let mut run = accept(&runs, "r");
    let session = teamster_core::SessionStarted::new("s-1").model("m-1");
    run.log.push(RunLogEntry::Agent(
        AgentEvent::SessionStarted(Box::new(session)).into(),
    ));
    run.log.push(text("so far"));
    run.log.push(tool(7, ""));
    run.log.flush().unwrap();
    let folder = run.folder.clone();
    assert_eq!(folder.settle().unwrap(), RunState::Live);
    drop(run);
    let end = block_on(Follow::end(folder)).unwrap().unwrap();
    let RunLogEntry::Agent(entry) = end.entry().unwrap() else {
        panic!("{end:?}");
    };
    let AgentEvent::Done(done) = entry.event else {
        panic!("{entry:?}");
    };
    assert_eq!(done.result.text, "so far");
    assert_eq!(done.result.session_id.as_deref(), Some("s-1"));
    assert_eq!(done.result.model.as_deref(), Some("m-1"));
    assert_eq!(done.result.open_tool_ids, ["7".into()]);
    assert_eq!(done.result.status, teamster_core::RunStatus::Incomplete);
    assert_eq!(entry.run_id.as_deref(), Some("r"));
}

#[test]
fn an_id_is_taken_once_and_cannot_leave_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::at(dir.path());
    drop(accept(&runs, "r"));
    let again = runs.accept(&RunInfo::new("r", "claude"), LogLimits::default());
    assert!(matches!(again, Err(RunsError::Exists { .. })), "{again:?}");
    for id in ["", ".", "..", "a/b", ".x", "a\n"] {
        let refused = runs.accept(&RunInfo::new(id, "claude"), LogLimits::default());
        assert!(
            matches!(refused, Err(RunsError::InvalidId { .. })),
            "{id:?}"
        );
        assert!(
            matches!(runs.find(id), Err(RunsError::NotFound { .. })),
            "{id:?}"
        );
    }
    assert_eq!(runs.list().unwrap().len(), 1);
}

/// Replaces a line of the log, from 1.
fn replace_line(run: &RunFolder, number: usize, with: &[u8]) {
    let path = run.path().join("events.ndjson");
    let log = fs::read(&path).unwrap();
    let mut lines: Vec<_> = log.split_inclusive(|byte| *byte == b'\n').collect();
    lines[number - 1] = with;
    fs::write(&path, lines.concat()).unwrap();
}

#[test]
fn damaged_lines_are_one_entry_and_nothing_else_is_lost() {
    // Made by hand: what a damaged disk, an editor and another program leave.
    for damage in [
        &b"garbage\n"[..],
        b"\n",
        b"{\"seq\":3,\"type\":\"text\",\"te\n",
        b"{\"seq\":3,\"atMs\":1,\"type\":\"text\",\"text\":\"\xff\"}\n",
        b"{\"seq\":3}\n",
        b"one\ntwo\n",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let runs = Runs::at(dir.path());
        let mut run = accept(&runs, "r");
        for id in 1..=5 {
            run.log.push(tool(id, "x"));
        }
        run.log.push(done());
        run.log.flush().unwrap();
        let folder = run.folder.clone();
        drop(run);
        replace_line(&folder, 3, damage);
        let all = entries(&folder, 0);
        let types: Vec<_> = all.iter().map(|(seq, name)| (*seq, &**name)).collect();
        assert_eq!(
            types,
            [
                (1, "tool_use"),
                (2, "tool_use"),
                (3, "damaged"),
                (4, "tool_use"),
                (5, "tool_use"),
                (6, "done")
            ],
            "{damage:?}"
        );
        // From any entry on, the rest is the same.
        for after in 1..6_usize {
            assert_eq!(
                entries(&folder, after as u64),
                all[after..],
                "{damage:?} {after}"
            );
        }
        let followed = block_on(async {
            let mut follow = Follow::new(folder.clone(), 0).unwrap();
            let mut seen = Vec::new();
            while let Some(line) = follow.next().await.unwrap() {
                let entry = line.entry().unwrap();
                assert_eq!(entry.seq(), line.seq());
                seen.push((line.seq(), line.type_name()));
            }
            seen
        });
        assert_eq!(followed, all);
    }
}

#[test]
fn damage_before_an_entry_is_not_reported_to_its_reader() {
    let dir = tempfile::tempdir().unwrap();
    let mut run = accept(&Runs::at(dir.path()), "r");
    for id in 1..=5 {
        run.log.push(tool(id, "x"));
    }
    run.log.flush().unwrap();
    let folder = run.folder.clone();
    drop(run);
    // Made by hand: an empty line after the first entry, and none with the number 4.
    replace_line(&folder, 4, b"");
    let file = folder.path().join("events.ndjson");
    let log = fs::read_to_string(&file).unwrap();
    fs::write(&file, log.replacen('\n', "\n\n", 1)).unwrap();
    let all = entries(&folder, 0);
    let numbers: Vec<_> = all.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(numbers, [1, 2, 3, 5]);
    for (at, after) in numbers.into_iter().enumerate() {
        assert_eq!(entries(&folder, after), all[at + 1..], "{after}");
    }
}

/// Returns the number of bytes that this thread has read.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let io = fs::read_to_string("/proc/thread-self/io").unwrap();
    let count = io.lines().find_map(|line| line.strip_prefix("rchar: "));
    count.unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn each_of_many_damaged_lines_is_read_a_few_times_only() {
    const LINES: usize = 50_000;
    let dir = tempfile::tempdir().unwrap();
    let mut run = accept(&Runs::at(dir.path()), "r");
    for id in 1..=3 {
        run.log.push(tool(id, "x"));
    }
    run.log.flush().unwrap();
    let folder = run.folder.clone();
    drop(run);
    // Made by hand: what a damaged disk leaves.
    replace_line(&folder, 2, &b"\n".repeat(LINES));
    let before = bytes_read();
    let types: Vec<_> = entries(&folder, 0)
        .into_iter()
        .map(|(_, name)| name)
        .collect();
    assert_eq!(types, ["tool_use", "damaged", "tool_use"]);
    let read = bytes_read() - before;
    assert!(read < 4 * LINES as u64, "{read}");
}

#[test]
fn a_log_whose_lines_were_moved_gets_an_end() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::at(dir.path());
    let mut run = accept(&runs, "r");
    for entry in [tool(1, "x"), tool(2, "x"), done()] {
        run.log.push(entry);
    }
    run.log.flush().unwrap();
    let folder = run.folder.clone();
    drop(run);
    // Made by hand: the end is first, and the smallest number last.
    let file = folder.path().join("events.ndjson");
    let log = fs::read_to_string(&file).unwrap();
    let moved: Vec<_> = log.lines().rev().map(|line| format!("{line}\n")).collect();
    fs::write(&file, moved.concat()).unwrap();
    assert_eq!(folder.settle().unwrap(), RunState::Ended);
    assert_eq!(entries(&folder, 0).last(), Some(&(5, "done".to_owned())));
}

#[test]
fn the_log_of_a_killed_runner_ends_although_a_line_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let runs = Runs::at(dir.path());
    let mut run = accept(&runs, "r");
    for id in 1..=3 {
        run.log.push(tool(id, "x"));
    }
    run.log.flush().unwrap();
    let folder = run.folder.clone();
    drop(run);
    replace_line(&folder, 2, b"garbage\n");
    assert_eq!(folder.settle().unwrap(), RunState::Ended);
    let types: Vec<_> = entries(&folder, 0)
        .into_iter()
        .map(|(_, name)| name)
        .collect();
    assert_eq!(types, ["tool_use", "damaged", "tool_use", "error", "done"]);
}

#[test]
fn recovery_writes_through_no_link_and_waits_for_no_pipe() {
    for name in ["events.ndjson", "lock", "recovery.lock"] {
        for is_pipe in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let other = dir.path().join("other");
            fs::write(&other, "not a log\n").unwrap();
            let runs = Runs::at(dir.path().join("runs"));
            let mut run = accept(&runs, "r");
            run.log.push(tool(1, "x"));
            run.log.flush().unwrap();
            let folder = run.folder.clone();
            drop(run);
            let file = folder.path().join(name);
            let _ = fs::remove_file(&file);
            if is_pipe {
                nix::unistd::mkfifo(&file, nix::sys::stat::Mode::S_IRWXU).unwrap();
            } else {
                std::os::unix::fs::symlink(&other, &file).unwrap();
            }
            assert!(folder.settle().is_err(), "{name} {is_pipe}");
            assert_eq!(fs::read_to_string(&other).unwrap(), "not a log\n", "{name}");
            // It hides no other run.
            drop(accept(&runs, "s"));
            let ids: Vec<_> = runs
                .list()
                .unwrap()
                .iter()
                .map(|run| run.id().to_owned())
                .collect();
            assert!(ids.contains(&"s".to_owned()), "{name} {is_pipe}");
        }
    }
}

#[test]
fn a_folder_that_is_a_link_is_no_run() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = Runs::at(dir.path().join("elsewhere"));
    drop(accept(&elsewhere, "r"));
    let runs = Runs::at(dir.path().join("runs"));
    drop(accept(&runs, "s"));
    std::os::unix::fs::symlink(elsewhere.root().join("r"), runs.root().join("r")).unwrap();
    assert!(runs.get("r").unwrap().is_none());
    assert_eq!(runs.list().unwrap().len(), 1);
}

#[test]
fn the_path_of_the_folder_may_be_longer_than_that_of_a_socket() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("x".repeat(120)).join("y".repeat(120));
    let run = accept(&Runs::at(root), &"z".repeat(100));
    assert_eq!(run.folder.settle().unwrap(), RunState::Live);
}
