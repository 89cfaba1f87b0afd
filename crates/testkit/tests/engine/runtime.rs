//! One runtime value with many runs on any executor.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use teamster_core::{AgentRuntime, ErrorKind, ExecuteParams, RunStatus};
use teamster_testkit::events::assert_types;
use teamster_testkit::fake_agent::{Report, Script, Spawn, SpawnKind, Text};
use teamster_testkit::proc;

use crate::engine::private_files::with_secret;
use crate::engine::{
    END, Scratch, Story, agent, block_on, collect, finish, helper, next, wait_until,
};

fn short() -> Script {
    Script::new()
        .line(r#"{"s":"session"}"#)
        .line(Text::from(r#"{"t":"{n} "}"#).repeat(100))
        .line(END)
}

fn assert_good(story: &Story) {
    assert_eq!(story.result.status, RunStatus::Completed);
    assert_eq!(story.events.len(), 103);
    let numbers: Vec<_> = story.result.text.split_whitespace().collect();
    assert!(numbers.iter().map(|n| n.parse::<u32>().unwrap()).eq(0..100));
    assert_eq!(story.result.exit_code, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runtime_runs_fifty_agents_at_once() {
    let run = agent(&short());
    let runtime = Arc::new(run.runtime());
    assert_eq!(runtime.id(), "fake");
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let stream = runtime.execute(ExecuteParams::new("prompt"));
            tokio::spawn(finish(stream))
        })
        .collect();
    for task in tasks {
        assert_good(&task.await.unwrap());
    }
}

#[tokio::test]
async fn single_threaded_runtime_drives_a_run() {
    assert_good(&agent(&short()).finish().await);
}

#[test]
fn a_run_needs_no_tokio_runtime_of_the_callers() {
    for _ in 0..3 {
        assert_good(&block_on(collect(Vec::new(), agent(&short()).start())));
    }
}

#[tokio::test]
async fn a_panic_in_a_decoder_ends_its_run_and_no_other() {
    let scratch = Scratch::new();
    let script = Script::new()
        .spawn(Spawn::new(SpawnKind::Setsid).pid_file(scratch.path("tool")))
        .line(r#"{"t":"before"}"#)
        .line(r#"{"panic":0}"#)
        .line(r#"{"t":"after"}"#)
        .forever();
    let story = agent(&script).finish().await;
    assert_types(&story.events, "text error done");
    assert_eq!(story.error().kind, ErrorKind::Internal);
    assert_eq!(story.result.status, RunStatus::Failed);
    assert_eq!(story.result.text, "before");
    assert!(!proc::is_alive(scratch.pid("tool").pid()));
    assert_good(&agent(&short()).finish().await);
}

#[tokio::test]
async fn a_panic_of_a_decoder_at_the_end_is_reported_too() {
    let script = Script::new()
        .line(r#"{"t":"before"}"#)
        .line(r#"{"panic":1}"#)
        .line(END);
    let story = agent(&script).finish().await;
    assert_types(&story.events, "text turn_end error done");
    assert_eq!(story.error().kind, ErrorKind::Internal);
    assert_ne!(story.result.status, RunStatus::Completed);
    assert_eq!(story.result.text, "before");
}

/// Hosts an engine: an agent and its tool that never end.
pub(crate) fn be_host(scratch: &Path, die_with_parent: bool) {
    let spawn = Spawn::new(SpawnKind::Child).pid_file(scratch.join("tool"));
    let script = Script::new()
        .spawn(spawn)
        .report(scratch.join("report"))
        .line(r#"{"t":"working"}"#)
        .forever();
    block_on(async {
        let mut stream = agent(&script)
            .config(|config| config.die_with_parent = die_with_parent)
            .start();
        stream.next().await.unwrap();
        let report = Report::read(scratch.join("report")).unwrap();
        fs::write(scratch.join("agent"), report.pid.to_string()).unwrap();
        stream.result().await;
    });
}

#[tokio::test]
async fn dying_with_the_parent_is_not_dying_with_a_thread() {
    // It was started from a thread that ends immediately, and keeps running.
    let scratch = Scratch::new();
    let go = scratch.path("go");
    let script = Script::new()
        .line(r#"{"t":"x"}"#)
        .wait_for_file(&go)
        .line(END);
    let mut stream = agent(&script)
        .config(|config| config.die_with_parent = true)
        .start();
    let handle = tokio::runtime::Handle::current();
    let (stream_back, first) = tokio::task::spawn_blocking(move || {
        thread::spawn(move || {
            let first = handle.block_on(next(&mut stream));
            (stream, first)
        })
        .join()
        .unwrap()
    })
    .await
    .unwrap();
    assert_eq!(first.type_name(), "text");
    fs::write(go, "").unwrap();
    let result = stream_back.result().await;
    assert_eq!(result.status, RunStatus::Completed);
    assert_eq!(result.exit_code, Some(0));
}

#[test]
fn two_hundred_runs_leave_no_descriptor_and_no_process() {
    let scratch = Scratch::new();
    let status = helper::role("soak", &scratch.path("")).status().unwrap();
    assert!(status.success());
    assert_eq!(fs::read_to_string(scratch.path("soak")).unwrap(), "same");
}

/// Runs in a separate process, because other tests have descriptors and children too.
pub(crate) fn soak(scratch: &Path) {
    let me = std::process::id();
    let descriptors = || fs::read_dir("/proc/self/fd").unwrap().count();
    let children = || -> usize {
        fs::read_dir("/proc/self/task")
            .unwrap()
            .map(|task| {
                let tid = task.unwrap().file_name();
                let file = format!("/proc/{me}/task/{}/children", tid.display());
                fs::read_to_string(file)
                    .unwrap_or_default()
                    .split_whitespace()
                    .count()
            })
            .sum()
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let once = |n: usize| {
            let mut run = agent(&Script::new().line(END));
            match n % 4 {
                0 => run = agent(&Script::new().line(END).forever()),
                1 => run = agent(&Script::new().spawn(SpawnKind::Setsid).line(END)),
                2 => run.config.program = Some("/nowhere/cli".into()),
                _ => {}
            }
            if n.is_multiple_of(2) {
                run = with_secret(run);
            }
            run.config.exit_grace = Some(std::time::Duration::from_millis(10));
            run.config.drain_grace = std::time::Duration::from_millis(10);
            run.config.queue_memory_bytes = n;
            run
        };
        once(3).finish().await;
        let before = (descriptors(), children());
        for n in 0..200 {
            let stream = once(n).start();
            if n % 10 == 9 {
                let mut stream = stream;
                next(&mut stream).await;
                drop(stream);
            } else if n % 10 == 4 {
                // Dropped while it is being started.
                let mut stream = stream;
                let _ = tokio::time::timeout(std::time::Duration::ZERO, stream.next()).await;
                drop(stream);
            } else {
                finish(stream).await;
            }
        }
        wait_until(|| (descriptors(), children()) == before).await;
    });
    fs::write(scratch.join("soak"), "same").unwrap();
}
