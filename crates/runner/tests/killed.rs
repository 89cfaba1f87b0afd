//! Writers that are killed at every step, and disks that are full.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use serde_json::Value;
use teamster_core::{AgentEvent, RunResult, ToolKind, ToolUse};
use teamster_orchestrator::RunLogEntry;
use teamster_runner::{LogLimits, RunInfo, RunState, Runs};
use teamster_testkit::proc::wait_until;

/// The folder of the runs of a process that writes; then come its entries.
const WRITER: &str = "TEAMSTER_TEST_WRITER";
const ENTRIES: u64 = 30;

fn tool(id: u64, bytes: usize) -> RunLogEntry {
    let input = Value::from("x".repeat(bytes));
    let tool = ToolUse::new("Bash", id.to_string(), ToolKind::Execute, input);
    RunLogEntry::Agent(AgentEvent::ToolUse(Box::new(tool)).into())
}

fn done() -> RunLogEntry {
    let done = teamster_core::Done::new(Box::new(RunResult::default()));
    RunLogEntry::Agent(AgentEvent::Done(done).into())
}

/// Does nothing as a test: the others start it with a variable and kill it. Prints what it has announced.
#[test]
fn writer() {
    let Some(root) = env::var_os(WRITER) else {
        return;
    };
    let mut out = std::io::stdout().lock();
    let mut limits = LogLimits::default();
    limits.bytes = 60_000;
    writeln!(out, "announced begin").unwrap();
    let mut run = (Runs::at(root).accept(&RunInfo::new("r", "claude"), limits)).unwrap();
    writeln!(out, "announced accepted").unwrap();
    for id in 1..=ENTRIES {
        run.log.push(tool(id, 5_000));
        let position = run.log.flush().unwrap();
        writeln!(out, "announced {}", position.seq).unwrap();
    }
    run.log.push(done());
    run.log.flush().unwrap();
    writeln!(out, "announced done").unwrap();
}

struct Writer {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Writer {
    fn start(root: &Path) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args([
                "--exact",
                "killed::writer",
                "--nocapture",
                "--test-threads=1",
            ])
            .env(WRITER, root)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// What it has announced next; `None` at its end.
    fn announced(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.lines.read_line(&mut line).unwrap() > 0 {
            // The harness writes to the same line.
            if let Some((_, announced)) = line.trim_end().split_once("announced ") {
                return Some(announced.to_owned());
            }
            line.clear();
        }
        None
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Ended already in a test that passed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Kills a writer after each of its steps, and a while later where `delay` says so. What was announced is there,
/// and the log gets its end once.
fn killed_at_every_step(root: &Path) {
    for step in 0..ENTRIES + 3 {
        let root = root.join(step.to_string());
        let mut writer = Writer::start(&root);
        let mut last = None;
        for _ in 0..=step {
            last = writer.announced();
        }
        let last = last.unwrap();
        // So that it dies at different places on the way to the next step.
        for _ in 0..step % 7 * 3_000 {
            std::hint::spin_loop();
        }
        writer.kill();
        let runs = Runs::at(&root);
        let Ok(run) = runs.find("r") else {
            assert_eq!(last, "begin", "an accepted run is lost");
            assert_eq!(runs.list().unwrap().len(), 0);
            continue;
        };
        // Many readers at once.
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    // Live while another reader writes the end.
                    let ended = || run.settle().unwrap() == RunState::Ended;
                    assert!(wait_until(Duration::from_mins(1), ended));
                });
            }
        });
        let log = fs::read_to_string(root.join("r/events.ndjson")).unwrap();
        assert!(log.ends_with('\n'));
        let lines: Vec<Value> = log
            .lines()
            .map(|it| serde_json::from_str(it).unwrap())
            .collect();
        let first = lines[0]["seq"].as_u64().unwrap();
        assert!(first == 1 || lines[0]["type"] == "reset");
        for (line, seq) in lines.iter().zip(first..) {
            assert_eq!(line["seq"], seq);
        }
        let newest = lines.last().unwrap()["seq"].as_u64().unwrap();
        let of_type = |name: &str| lines.iter().filter(|line| line["type"] == name).count();
        assert_eq!(
            (lines.last().unwrap()["type"].as_str(), of_type("done")),
            (Some("done"), 1)
        );
        let completed = of_type("error") == 0;
        if completed {
            assert_eq!(newest, ENTRIES + 1);
        } else {
            assert_eq!(of_type("error"), 1);
            assert_ne!(last, "done", "an end was appended to a log that had one");
            let announced = last.parse().unwrap_or(0);
            assert!(
                newest >= announced + 2,
                "{announced} was announced, {newest} is there"
            );
        }
    }
}

#[test]
fn a_writer_killed_at_every_step_loses_nothing_that_it_has_announced() {
    let dir = tempfile::tempdir().unwrap();
    killed_at_every_step(dir.path());
}

/// A file system in memory of this size.
struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    /// `None` where this user may not mount one.
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
        // It goes with the last process that uses it.
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
    // Readers see what is whole.
    let mut reader = run.folder.log(0).unwrap();
    let mut seen = 0;
    while let Some(line) = reader.next_line().unwrap() {
        seen = line.seq();
    }
    assert_eq!(seen, id - 1);
    // More entries come meanwhile; with room all are there, in order.
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

#[test]
fn a_run_is_accepted_whole_or_not_at_all_where_the_disk_is_full() {
    let Some(disk) = Tmpfs::mount(64 * 1024) else {
        return;
    };
    let runs = Runs::at(disk.0.path().join("runs"));
    // All sizes of what is left, page by page.
    for filled in 0..=16 {
        let filler = disk.0.path().join("filler");
        // The rest is what the disk does not take.
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
fn killed_writers_on_a_small_disk_in_memory() {
    let Some(disk) = Tmpfs::mount(16 << 20) else {
        return;
    };
    killed_at_every_step(disk.0.path());
}
