//! The engine with real, hostile processes.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

mod container;
mod drain;
mod end;
mod framing;
mod helper;
mod hooks;
mod launch;
mod mcp;
mod mcp_names;
mod private_files;
mod private_home;
mod provider;
mod recorded;
mod recording;
mod runtime;
mod session;
mod soak;
mod stdin;
mod stop;
mod tree;
mod watchdog;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use teamster_core::provider::{Launch, RecordFiles, grammar};
use teamster_core::{
    AgentError, AgentEvent, AgentRuntime, Capabilities, ErrorCode, ErrorKind, EventStream,
    ExecuteParams, Notice, RunResult, RunStatus,
};
use teamster_process::{CliRuntime, RuntimeConfig};
use teamster_testkit::events::{assert_types, payloads};
use teamster_testkit::fake_agent::Script;
use teamster_testkit::proc;

use provider::Fake;

/// Long enough for a loaded machine. Only a failing test waits for it.
const LIMIT: Duration = Duration::from_mins(1);
/// The CLI's own end of a successful run.
const END: &str = r#"{"end":false}"#;

/// A prepared run.
#[derive(Clone)]
struct Run {
    provider: Fake,
    config: RuntimeConfig,
    params: ExecuteParams,
}

/// Prepares a run of the fake agent with this script.
fn agent(script: &Script) -> Run {
    let mut run = Run::of(Launch::default());
    let [(name, value)] = script.env().unwrap();
    run.provider.launch.env.push((name.into(), value));
    run.config.program = Some(env!("CARGO_BIN_EXE_teamster-fake-agent").into());
    run
}

/// Prepares a run of a shell with this script.
fn shell(script: &str) -> Run {
    let mut run = Run::of(Launch {
        args: vec!["-c".into(), script.into()],
        ..Launch::default()
    });
    run.config.program = Some("/bin/sh".into());
    run
}

impl Run {
    fn of(launch: Launch) -> Self {
        Self {
            provider: Fake {
                launch,
                capabilities: Capabilities::none(),
                choose_session_id: false,
                record: None,
                native: Vec::new(),
                add_dirs: Arc::default(),
                reads_images: false,
                images: Arc::default(),
            },
            config: RuntimeConfig::default(),
            params: ExecuteParams::new("prompt"),
        }
    }

    fn config(mut self, change: impl FnOnce(&mut RuntimeConfig)) -> Self {
        change(&mut self.config);
        self
    }

    fn launch(mut self, change: impl FnOnce(&mut Launch)) -> Self {
        change(&mut self.provider.launch);
        self
    }

    /// Adds a record of lines with figures in this file.
    fn record(mut self, file: &Path) -> Self {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let folder = file.parent().unwrap();
        self.provider.record = Some(RecordFiles::new(folder, vec![name], &["\"figure\""]));
        self
    }

    fn params(mut self, change: impl FnOnce(&mut ExecuteParams)) -> Self {
        change(&mut self.params);
        self
    }

    fn runtime(&self) -> CliRuntime<Fake> {
        CliRuntime::with_config(self.provider.clone(), self.config.clone())
    }

    fn start(self) -> EventStream {
        self.runtime().execute(self.params)
    }

    /// Runs to the end.
    async fn finish(self) -> Story {
        finish(self.start()).await
    }
}

/// Outcome of a run.
struct Story {
    events: Vec<AgentEvent>,
    result: RunResult,
}

/// Reads a stream to its end, which must exist, and checks its grammar.
async fn finish(stream: EventStream) -> Story {
    finish_after(Vec::new(), stream).await
}

/// The same for a stream of which these events were read.
async fn finish_after(events: Vec<AgentEvent>, stream: EventStream) -> Story {
    tokio::time::timeout(LIMIT, collect(events, stream))
        .await
        .expect("the stream should have ended")
}

async fn collect(mut events: Vec<AgentEvent>, mut stream: EventStream) -> Story {
    while let Some(event) = stream.next().await {
        events.push(event);
    }
    Story::of(events)
}

/// Returns the next event, which must exist.
async fn next(stream: &mut EventStream) -> AgentEvent {
    tokio::time::timeout(LIMIT, stream.next())
        .await
        .expect("an event should have come")
        .expect("the stream has ended")
}

impl Story {
    fn of(events: Vec<AgentEvent>) -> Self {
        grammar::check(&events).unwrap();
        let Some(AgentEvent::Done(done)) = events.last() else {
            panic!("the last event is not `done`");
        };
        let result = (*done.result).clone();
        Self { events, result }
    }

    fn codes(&self) -> Vec<ErrorCode> {
        self.result.errors.iter().map(|error| error.code).collect()
    }

    fn notices(&self) -> Vec<&str> {
        let notices = payloads::<Notice>(&self.events);
        notices.map(|notice| notice.message.as_str()).collect()
    }

    /// Returns the only error.
    fn error(&self) -> &AgentError {
        let [error] = &self.result.errors[..] else {
            panic!("{:?}", self.result.errors);
        };
        error
    }
}

/// Returns the only error of a run that must not start.
async fn refused(run: Run) -> (ErrorCode, ErrorKind, String) {
    let story = run.finish().await;
    assert_types(&story.events, "error done");
    assert_eq!(story.result.status, RunStatus::Failed);
    let error = story.error();
    (error.code, error.kind, error.message.clone())
}

/// Blocks on a future with a minimal executor.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::park(),
        }
    }
}

/// A directory for the files of a test.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Waits for the process id in this file. The process is killed if the test fails.
    fn pid(&self, name: &str) -> proc::KillOnDrop {
        let pid = proc::wait_pid_file(&self.path(name), LIMIT).expect("no pid file");
        proc::KillOnDrop::new(pid)
    }
}

/// Waits until the file exists, without blocking the runtime.
async fn wait_for(path: &Path) {
    wait_until(|| path.exists()).await;
}

/// Waits without blocking the runtime.
async fn wait_until(mut condition: impl FnMut() -> bool) {
    let deadline = tokio::time::Instant::now() + LIMIT;
    while !condition() {
        assert!(
            tokio::time::Instant::now() < deadline,
            "it should have happened by now"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Advances the clock of the engine, which runs on the test's own thread.
async fn let_pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// A limit that the test reaches.
const SHORT: Duration = Duration::from_millis(400);
/// A limit that must not be reached although the machine is loaded.
const LONG: Duration = Duration::from_secs(50);
