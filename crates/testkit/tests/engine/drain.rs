//! The agent never waits for the consumer, and no output is lost.

use std::collections::HashSet;
use std::fmt::Display;
use std::fs;
use std::path::Path;

use teamster_core::provider::EventsOn;
use teamster_core::{AgentEvent, ErrorCode, RunStatus};
use teamster_testkit::events::assert_types;
use teamster_testkit::fake_agent::{Flood, Report, Script, Spawn, SpawnKind, Stream, Text};
use teamster_testkit::proc;

use crate::engine::{END, Scratch, agent, finish, helper, next, wait_for, wait_until};

const LINES: usize = 50_000;
const LINE_BYTES: usize = 1000;

/// Returns a line for each number that becomes an event and is not kept in memory.
fn numbered(bytes: usize) -> Text {
    Text::from(line("{n}", bytes))
}

fn line(n: impl Display, bytes: usize) -> String {
    format!(r#"{{"n":"{n}","x":"{}"}}"#, "x".repeat(bytes))
}

fn number(event: &AgentEvent) -> Option<usize> {
    let AgentEvent::Unknown(event) = event else {
        return None;
    };
    let value: serde_json::Value = serde_json::from_str(event.native.get()).unwrap();
    value["n"].as_str()?.parse().ok()
}

/// Returns a memory figure of a process in bytes, such as `VmRSS` or `VmHWM`.
fn memory(pid: &str, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

/// Returns the number of bytes that a process has written.
fn written(pid: u32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    io.lines()
        .find_map(|line| line.strip_prefix("wchar: "))
        .map_or(0, |bytes| bytes.parse().unwrap())
}

#[test]
fn a_slow_consumer_loses_nothing_of_50_mb_and_memory_is_bounded() {
    let scratch = Scratch::new();
    let status = helper::role("slow consumer", &scratch.path(""))
        .status()
        .unwrap();
    assert!(status.success());
    let read = |name| fs::read_to_string(scratch.path(name)).unwrap();
    assert_eq!(read("distinct"), LINES.to_string());
    assert_eq!(read("in order"), "true");
    let stalled: u64 = read("stalled").parse().unwrap();
    let peak: u64 = read("peak").parse().unwrap();
    println!("growth while stalled: {stalled} bytes, at most: {peak} bytes");
    assert!(stalled < 24 << 20, "{stalled} bytes without a reader");
    assert!(peak < 32 << 20, "{peak} bytes at most");
}

/// Reads one event, pauses until the agent has written everything and is gone, and reads the rest.
pub(crate) fn be_slow(scratch: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (go, pid) = (scratch.join("go"), scratch.join("pid"));
        let script = Script::new()
            .report(&pid)
            // Loses the output that does not fit in the pipe at its end.
            .lossy_stdout()
            .line(numbered(LINE_BYTES).repeat(LINES as u64))
            .line(END)
            .wait_for_file(&go);
        let before = memory("self", "VmRSS");
        let mut stream = agent(&script).start();
        let mut seen = vec![number(&next(&mut stream).await).unwrap()];
        let agent = Report::read(&pid).unwrap().pid;
        let lines: usize = (0..LINES).map(|n| line(n, LINE_BYTES).len() + 1).sum();
        let all = (lines + END.len() + 1) as u64 + fs::metadata(&pid).unwrap().len();
        wait_until(|| written(agent) >= all).await;
        fs::write(go, "").unwrap();
        wait_until(|| !proc::is_alive(agent)).await;
        let stalled = memory("self", "VmRSS").saturating_sub(before);
        let mut result = None;
        while let Some(event) = stream.next().await {
            seen.extend(number(&event));
            if let AgentEvent::Done(done) = event {
                result = Some(done.result);
            }
        }
        let peak = memory("self", "VmHWM").saturating_sub(before);
        assert_eq!(result.unwrap().status, RunStatus::Completed);
        let say = |name: &str, what: String| fs::write(scratch.join(name), what).unwrap();
        say(
            "distinct",
            seen.iter().collect::<HashSet<_>>().len().to_string(),
        );
        say("in order", seen.is_sorted().to_string());
        say("stalled", stalled.to_string());
        say("peak", peak.to_string());
    });
}

#[tokio::test]
async fn spilled_entries_come_back_unchanged_with_their_lines() {
    let scratch = Scratch::new();
    let gone = scratch.path("gone");
    let script = Script::new()
        .line(Text::from(r#"{"t":  "{n} \ud83d\ude00"}"#).repeat(20_000))
        .line(END)
        .touch(&gone);
    let mut stream = agent(&script)
        .config(|config| config.queue_memory_bytes = 10_000)
        .params(|params| params.include_native = true)
        .start();
    next(&mut stream).await;
    wait_for(&gone).await;
    let mut entries = Vec::new();
    while let Some(entry) = stream.next_entry().await {
        entries.push(entry);
    }
    assert_eq!(entries.len(), 20_001);
    for (n, entry) in (1..20_000).zip(&entries) {
        assert_eq!(entry.seq, n + 1);
        assert!(entry.at_ms > 0);
        let line = entry.native().unwrap().get();
        assert_eq!(line, format!(r#"{{"t":  "{n} \ud83d\ude00"}}"#));
    }
    let Some(AgentEvent::Done(done)) = entries.last().map(|entry| &entry.event) else {
        panic!("{:?}", entries.last());
    };
    assert_eq!(done.result.status, RunStatus::Completed);
}

#[tokio::test]
async fn more_than_may_wait_on_disk_ends_the_run_with_a_clear_error() {
    let scratch = Scratch::new();
    let script = Script::new()
        .spawn(Spawn::new(SpawnKind::Child).pid_file(scratch.path("pid")))
        .line(numbered(1000).repeat(100_000))
        .line(END);
    let mut stream = agent(&script)
        .config(|config| {
            config.queue_memory_bytes = 100_000;
            config.spill_limit_bytes = 1_000_000;
        })
        .start();
    let first = next(&mut stream).await;
    // The agent ends although its stream is no longer read.
    let agent = scratch.pid("pid");
    wait_until(|| !proc::is_alive(agent.pid())).await;
    let mut story = finish(stream).await;
    story.events.insert(0, first);
    let error = story.error();
    assert_eq!(error.code, ErrorCode::OutputLimit);
    assert!(
        error.message.contains("`spill_limit_bytes`"),
        "{}",
        error.message
    );
    assert_eq!(story.result.status, RunStatus::Failed);
    let numbers: Vec<_> = story.events.iter().filter_map(number).collect();
    assert!(numbers.len() > 1000);
    assert!(numbers.iter().enumerate().all(|(index, n)| index == *n));
    assert_eq!(story.result.diagnostics.lines, numbers.len() as u64);
}

#[tokio::test]
async fn unusable_spill_folder_ends_the_run_with_a_clear_error() {
    let scratch = Scratch::new();
    let script = Script::new()
        .spawn(Spawn::new(SpawnKind::Child).pid_file(scratch.path("pid")))
        .line(numbered(1000).repeat(100_000))
        .line(END);
    let mut stream = agent(&script)
        .config(|config| {
            config.queue_memory_bytes = 100_000;
            config.spill_dir = Some("/nowhere".into());
        })
        .start();
    next(&mut stream).await;
    let agent = scratch.pid("pid");
    wait_until(|| !proc::is_alive(agent.pid())).await;
    let story = finish(stream).await;
    assert_eq!(story.error().code, ErrorCode::OutputLimit);
    assert!(story.error().message.contains("/nowhere"));
}

#[tokio::test]
async fn stderr_is_drained_and_its_end_is_kept() {
    let script = Script::new()
        .flood(Flood::new(10_000_000).concurrent())
        .line(numbered(1000).repeat(3000))
        .flood(Flood::new(3_000_000))
        .line(Text::from("the last words").to(Stream::Stderr))
        .line(END);
    let story = agent(&script)
        .config(|config| config.stderr_tail_bytes = 1000)
        .finish()
        .await;
    assert_eq!(story.result.status, RunStatus::Completed);
    let stderr = story.result.stderr.unwrap();
    assert!(stderr.len() <= 1000 + '…'.len_utf8());
    assert!(stderr.starts_with('…'), "{stderr}");
    assert_eq!(story.result.diagnostics.lines, 3001);
}

#[tokio::test]
async fn stderr_can_carry_the_events_and_stdout_is_then_only_kept() {
    let script = Script::new()
        .flood(Flood::new(3_000_000).to(Stream::Stdout))
        .line("chatter")
        .line(Text::from(r#"{"t":"from stderr"}"#).to(Stream::Stderr))
        .line(Text::from(END).to(Stream::Stderr));
    let story = agent(&script)
        .launch(|launch| launch.events_on = EventsOn::Stderr)
        .finish()
        .await;
    assert_types(&story.events, "text turn_end done");
    assert_eq!(story.result.text, "from stderr");
    assert!(story.result.stderr.unwrap().ends_with("chatter\n"));
}

#[tokio::test]
async fn events_come_as_they_arrive() {
    let scratch = Scratch::new();
    let go = scratch.path("go");
    let script = Script::new()
        .line(r#"{"t":"now"}"#)
        .wait_for_file(&go)
        .line(END);
    let mut stream = agent(&script).start();
    assert_eq!(next(&mut stream).await.type_name(), "text");
    fs::write(go, "").unwrap();
    assert_eq!(next(&mut stream).await.type_name(), "turn_end");
    assert_eq!(next(&mut stream).await.type_name(), "done");
}
