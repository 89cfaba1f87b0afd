//! Runners and readers that are killed at every change on disk, and full disks.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use serde_json::Value;
use teamster_api::{KeptSpec, KeptTexts, RunInfo, RunLogEntry, RunSpec};
use teamster_core::{AgentEvent, ExecuteParams, RunResult, RunStatus, ToolKind, ToolUse};
use teamster_orchestrator::{Orchestrator, OrchestratorConfig, RunRequest};
use teamster_runner::step::Step;
use teamster_runner::{LogLimits, OnLostLog, RunRecorder, RunState, Runs, SessionLocks};
use teamster_testkit::mock_runtime::{MockRuntime, Script};
use teamster_testkit::proc::wait_until;

/// Variables of the victim process: the folder of its runs, its action, and the number of the change on disk
/// before which it aborts.
const ROOT: &str = "TEAMSTER_TEST_ROOT";
const ACTION: &str = "TEAMSTER_TEST_ACTION";
const KILL_AT: &str = "TEAMSTER_TEST_KILL_AT";
const ENTRIES: u64 = 12;

fn tool(id: u64, bytes: usize) -> RunLogEntry {
    let input = Value::from("x".repeat(bytes));
    let tool = ToolUse::new("Bash", id.to_string(), ToolKind::Execute, input);
    RunLogEntry::Agent(AgentEvent::ToolUse(Box::new(tool)).into())
}

fn done() -> RunLogEntry {
    let done = teamster_core::Done::new(Box::new(RunResult::default()));
    RunLogEntry::Agent(AgentEvent::Done(done).into())
}

/// Victim process of the other tests, which start it with variables. Prints the announced positions. Does
/// nothing as a plain test.
#[test]
fn victim() {
    let Some(root) = env::var_os(ROOT) else {
        return;
    };
    let runs = Runs::at(&root);
    let mut out = std::io::stdout();
    let mut announce = |what: &str| writeln!(out, "announced {what}").unwrap();
    match env::var(ACTION).unwrap().as_str() {
        "write" => {
            let locks = SessionLocks::at(Path::new(&root).with_extension("sessions"));
            let mut session = ExecuteParams::new("x");
            session.session_id = Some("s".to_owned());
            let mut writer = locks.writer("claude");
            writer.begin(&session).unwrap();
            let mut limits = LogLimits::default();
            limits.bytes = 25_000;
            let info = RunInfo::new("r", "claude");
            let spec = KeptSpec::new(RunSpec::new("claude", "x").into(), KeptTexts::All);
            let mut run = runs.accept_spec(&info, &spec, limits).unwrap();
            announce("0");
            for id in 1..=ENTRIES {
                run.log.push(tool(id, 5_000));
                announce(&run.log.flush().unwrap().seq.to_string());
            }
            run.log.push(done());
            announce(&run.log.flush().unwrap().seq.to_string());
            run.log.sync().unwrap();
            run.folder.close_socket();
        }
        "settle" => {
            assert_eq!(runs.find("r").unwrap().settle().unwrap(), RunState::Ended);
        }
        "remove" => {
            assert!(runs.find("r").unwrap().remove().unwrap());
        }
        other => panic!("{other}"),
    }
    announce("end");
}

/// Outcome of a victim process.
#[derive(Debug)]
struct Killed {
    /// Change on disk before which it was killed. `None` if it ended first.
    at: Option<String>,
    /// Last announcement.
    announced: Option<String>,
}

/// Starts a victim process with this action and kills it at the change with this number.
fn kill_at(root: &Path, action: &str, number: u64) -> Killed {
    let output = Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "killed::victim",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(ROOT, root)
        .env(ACTION, action)
        .env(KILL_AT, number.to_string())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let after = |word: &str| {
        // The test harness writes to the same line.
        let mut found = text.lines().filter_map(|line| line.split_once(word));
        found.next_back().map(|(_, what)| what.trim().to_owned())
    };
    let killed = Killed {
        at: after("killed at "),
        announced: after("announced "),
    };
    let ended = killed.announced.as_deref() == Some("end");
    assert!(ended || killed.at.is_some(), "{action} at {number}: {text}");
    killed
}

/// Asserts that the log of an ended run has no gap and one end, and that no announced entry is lost.
fn assert_whole(root: &Path, announced: u64, when: &str) {
    let log = fs::read_to_string(root.join("r/events.ndjson")).unwrap();
    assert!(log.ends_with('\n'), "{when}");
    let parse = |line| serde_json::from_str(line).unwrap();
    let lines: Vec<Value> = log.lines().map(parse).collect();
    let first = lines[0]["seq"].as_u64().unwrap();
    assert!(first == 1 || lines[0]["type"] == "reset", "{when}");
    for (line, seq) in lines.iter().zip(first..) {
        assert_eq!(line["seq"], seq, "{when}");
    }
    let of_type = |name: &str| lines.iter().filter(|line| line["type"] == name).count();
    let end = lines.last().unwrap();
    assert_eq!(
        (&end["type"], of_type("done")),
        (&Value::from("done"), 1),
        "{when}"
    );
    let newest = end["seq"].as_u64().unwrap();
    if of_type("error") == 0 {
        assert_eq!(newest, ENTRIES + 1, "{when}");
    } else {
        assert_eq!(of_type("error"), 1, "{when}");
        assert!(
            newest >= announced + 2,
            "{when}: {announced} announced, {newest} there"
        );
        assert!(
            announced <= ENTRIES,
            "{when}: a log that had its end got another"
        );
    }
}

/// Completes the log with many concurrent readers.
fn settle(root: &Path) {
    let run = Runs::at(root).find("r").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                // The run counts as live while another reader completes the log.
                let ended = || run.settle().unwrap() == RunState::Ended;
                assert!(wait_until(Duration::from_mins(1), ended));
            });
        }
    });
}

/// Kills a runner and returns its last announced number, or `None` if there is no run.
fn killed_run(root: &Path, at: u64) -> Option<u64> {
    let killed = kill_at(root, "write", at);
    Runs::at(root).find("r").ok()?;
    Some(
        killed
            .announced
            .as_deref()
            .map_or(0, |it| it.parse().unwrap_or(ENTRIES + 1)),
    )
}

/// Kills runners, readers and removers at each of their changes on disk. Returns the names of these changes.
fn campaign(root: &Path) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut kills = 0;
    let mut number = 0;
    let mut fresh = || {
        number += 1;
        root.join(number.to_string())
    };
    // Kill a runner.
    for at in 1.. {
        let root = fresh();
        let when = format!("a runner killed at {at}");
        let killed = kill_at(&root, "write", at);
        let Some(step) = killed.at else { break };
        kills += 1;
        let when = format!("{when}, {step}");
        let announced = killed.announced.map(|it| it.parse::<u64>().unwrap());
        seen.insert(step);
        let runs = Runs::at(&root);
        if runs.find("r").is_ok() {
            settle(&root);
            assert_whole(&root, announced.unwrap_or(0), &when);
        } else {
            assert_eq!(announced, None, "{when}: an accepted run is lost");
            assert_eq!(runs.list().unwrap().len(), 0, "{when}");
            // Another run can use the id after the leftovers are removed.
            let _ = fs::remove_dir_all(&root);
            drop(
                runs.accept(&RunInfo::new("r", "claude"), LogLimits::default())
                    .unwrap(),
            );
        }
        // The session is not locked.
        let mut session = ExecuteParams::new("x");
        session.session_id = Some("s".to_owned());
        let locks = SessionLocks::at(root.with_extension("sessions"));
        locks.writer("claude").begin(&session).unwrap();
    }
    // Kill a reader of a run whose runner was killed within an entry or after one.
    for runner in [15, 16, 21] {
        for at in 1.. {
            let root = fresh();
            let announced = killed_run(&root, runner).unwrap();
            let Some(step) = kill_at(&root, "settle", at).at else {
                break;
            };
            kills += 1;
            let when = format!("a reader killed at {at}, {step}, of a runner killed at {runner}");
            seen.insert(step);
            settle(&root);
            assert_whole(&root, announced, &when);
        }
    }
    // Kill a process that removes the run.
    for at in 1.. {
        let root = fresh();
        killed_run(&root, 20).unwrap();
        let Some(step) = kill_at(&root, "remove", at).at else {
            assert_eq!(Runs::at(&root).ids().unwrap().len(), 0);
            break;
        };
        kills += 1;
        seen.insert(step);
        let runs = Runs::at(&root);
        if let Ok(run) = runs.find("r") {
            settle(&root);
            assert!(run.remove().unwrap());
        }
        assert_eq!(runs.ids().unwrap().len(), 0);
    }
    assert!(kills >= 50, "{kills}");
    seen
}

fn assert_all(seen: &BTreeSet<String>) {
    let missed: Vec<_> = (Step::ALL.iter().map(|step| format!("{step:?}")))
        .filter(|step| !seen.contains(step))
        .collect();
    assert!(missed.is_empty(), "never killed at {missed:?}");
}

#[test]
fn killed_at_every_change_on_the_disk_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    assert_all(&campaign(dir.path()));
}

/// In-memory file system of a fixed size.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    /// Mounts the file system. Returns `None` if this user may not mount.
    fn mount(bytes: usize) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={bytes},mode=700");
        let mounted = mount(
            Some("tmpfs"),
            dir.path(),
            Some("tmpfs"),
            MsFlags::empty(),
            Some(&*options),
        );
        match mounted {
            Ok(()) => Some(Self(dir)),
            Err(error) => {
                eprintln!("not run on a small tmpfs: mounting one: {error}");
                None
            }
        }
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // A lazy unmount: the file system is freed by its last user.
        let _ = umount2(self.0.path(), MntFlags::MNT_DETACH);
    }
}

#[test]
fn a_full_disk_costs_no_entry_and_leaves_none_torn() {
    let Some(disk) = Tmpfs::mount(128 * 1024) else {
        return;
    };
    let root = disk.0.path();
    let mut run =
        (Runs::at(root).accept(&RunInfo::new("r", "claude"), LogLimits::default())).unwrap();
    let filler = root.join("filler");
    fs::write(&filler, vec![0; 64 * 1024]).unwrap();
    let mut id = 0;
    let refused = loop {
        id += 1;
        assert!(id < 1000);
        run.log.push(tool(id, 3_000));
        if let Err(error) = run.log.flush() {
            break error;
        }
    };
    assert_eq!(refused.kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(run.log.written().seq, id - 1);
    // Readers see the complete entries.
    let mut reader = run.folder.log(0).unwrap();
    let mut seen = 0;
    while let Some(line) = reader.next_line().unwrap() {
        seen = line.seq();
    }
    assert_eq!(seen, id - 1);
    // Further entries arrive. With free space all are written in order.
    run.log.push(tool(id + 1, 3_000));
    assert!(run.log.flush().is_err());
    fs::remove_file(&filler).unwrap();
    run.log.push(done());
    assert_eq!(run.log.flush().unwrap().seq, id + 2);
    while let Some(line) = reader.next_line().unwrap() {
        assert_eq!(line.seq(), seen + 1);
        seen = line.seq();
    }
    assert_eq!(seen, id + 2);
    assert!(reader.has_ended());
}

/// More waits for the disk than the memory that a run may use for that.
#[tokio::test]
async fn run_on_a_full_disk_continues_without_its_log() {
    const MIB: usize = 1 << 20;
    let Some(disk) = Tmpfs::mount(96 * MIB) else {
        return;
    };
    let runs = Runs::at(disk.0.path());
    let run = runs.accept(&RunInfo::new("r", "claude"), LogLimits::default());
    let filler = disk.0.path().join("filler");
    // Fill the disk.
    let _ = fs::write(&filler, vec![0; 96 * MIB]);
    let mut script = Script::new().session("s");
    for id in 0..70 {
        script = script.tool_result(id.to_string(), "x".repeat(MIB));
    }
    let script = script.delay(Duration::from_millis(1)).completed();
    let runtime = MockRuntime::new("claude").run(script);
    let request = RunRequest::new(Arc::new(runtime), ExecuteParams::new("x")).id("r");
    let orchestrator = Orchestrator::new(OrchestratorConfig::default()).unwrap();
    let mut log = orchestrator.start_log(request);
    let mut recorder = RunRecorder::begin(run.unwrap(), log.abort_handle(), OnLostLog::Continue);
    let mut room_at_end = |entry: &RunLogEntry| {
        if let RunLogEntry::Agent(entry) = entry
            && entry.event.type_name() == "done"
        {
            fs::remove_file(&filler).unwrap();
        }
    };
    let mut result = recorder.record(&mut log, &mut room_at_end).await;
    // It was given up, so the later room changes nothing.
    let error = recorder.end(&mut result).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    assert_eq!(result.status, RunStatus::Completed);
    settle(disk.0.path());
    let mut reader = runs.find("r").unwrap().log(0).unwrap();
    while let Some(line) = reader.next_line().unwrap() {
        drop(line);
    }
    assert!(reader.has_ended());
}

#[test]
fn a_run_is_accepted_whole_or_not_at_all_where_the_disk_is_full() {
    let Some(disk) = Tmpfs::mount(64 * 1024) else {
        return;
    };
    let runs = Runs::at(disk.0.path().join("runs"));
    // All amounts of free space, page by page.
    for filled in 0..=16 {
        let filler = disk.0.path().join("filler");
        // The write may fail for lack of space.
        let _ = fs::write(&filler, vec![0; filled * 4096]);
        let accepted = runs.accept(&RunInfo::new("r", "claude"), LogLimits::default());
        let there = runs.list().unwrap().len();
        assert_eq!(there, usize::from(accepted.is_ok()), "{filled}");
        drop(accepted);
        fs::remove_file(&filler).unwrap();
        if let Ok(run) = runs.find("r") {
            assert!(run.remove().unwrap());
        }
        let left = fs::read_dir(runs.root()).map_or(0, Iterator::count);
        assert_eq!(left, 0, "{filled}");
    }
}

#[test]
fn killed_at_every_change_on_a_disk_in_memory() {
    let Some(disk) = Tmpfs::mount(64 << 20) else {
        return;
    };
    assert_all(&campaign(disk.0.path()));
}

/// A runner is killed on a full disk, and a reader has no space for the end. With free space the log is
/// completed.
#[test]
fn killed_on_a_full_disk_a_log_gets_its_end_with_room() {
    let Some(disk) = Tmpfs::mount(512 * 1024) else {
        return;
    };
    for at in (9..60).step_by(3) {
        let root = disk.0.path().join(at.to_string());
        let filler = disk.0.path().join("filler");
        let Some(announced) = killed_run(&root, at) else {
            continue;
        };
        // Fill the disk.
        let _ = fs::write(&filler, vec![0; 512 * 1024]);
        let run = Runs::at(&root).find("r").unwrap();
        let settled = run.settle();
        if let Err(error) = &settled {
            let text = error.to_string();
            assert!(text.contains("space"), "{text}");
            // The announced entries can still be read.
            let mut reader = run.log(0).unwrap();
            let mut newest = 0;
            while let Some(line) = reader.next_line().unwrap() {
                newest = line.seq();
            }
            assert!(newest >= announced);
        }
        fs::remove_file(&filler).unwrap();
        settle(&root);
        assert_whole(&root, announced, &format!("a runner killed at {at}"));
        assert!(run.remove().unwrap());
    }
}

/// Removal needs no free space.
#[test]
fn a_full_disk_can_be_emptied() {
    let Some(disk) = Tmpfs::mount(512 * 1024) else {
        return;
    };
    let root = disk.0.path().join("runs");
    killed_run(&root, 20).unwrap();
    let _ = fs::write(disk.0.path().join("filler"), vec![0; 512 * 1024]);
    assert!(Runs::at(&root).find("r").unwrap().remove().unwrap());
    assert_eq!(Runs::at(&root).ids().unwrap().len(), 0);
}
