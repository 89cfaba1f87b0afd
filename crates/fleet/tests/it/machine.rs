//! A worker as a process with a machine of its own: it has its own state directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use teamster_api::{RunHandle, RunService, RunSpec};
use teamster_core::RunStatus;
use teamster_fleet::{Fleet, FleetOptions, FleetRuns};
use teamster_testkit::proc::wait_until;
use teamster_testkit::run_service::claude_that;
use tempfile::TempDir;
use tokio::time::timeout;

use super::contract::{limits, with_agent};
use super::server::Server;

/// Time limit of what should take seconds.
pub(crate) const LIMIT: Duration = Duration::from_mins(1);

/// What the agent does with a prompt. Each start is counted in a file that all machines share, and the answer comes when there
/// is a file `go`, or the test has failed.
const COUNTS: &str = r#"echo "$$" >> SHARED/count
      init
      n=0
      while [ -d SHARED ] && [ ! -e SHARED/go ]; do
        n=$((n + 1))
        text "step $n" "m$n"
        sleep 0.05
      done
      say done"#;

/// File with the policy of a machine's worker.
const POLICY: &str = "worker.toml";

/// File with the notices of a machine's worker.
const NOTICES: &str = "notices";

/// Files that all machines share.
pub(crate) struct Shared(pub(crate) TempDir);

impl Shared {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// Creates the files of agents that answer at once.
    pub(crate) fn answering() -> Self {
        let shared = Self::new();
        shared.go();
        shared
    }

    pub(crate) fn agent(&self) -> String {
        claude_that(&COUNTS.replace("SHARED", self.0.path().to_str().unwrap()))
    }

    /// Returns how often an agent was started.
    pub(crate) fn count(&self) -> usize {
        fs::read_to_string(self.0.path().join("count")).map_or(0, |text| text.lines().count())
    }

    pub(crate) fn until_count(&self, wanted: usize) {
        assert!(wait_until(LIMIT, || self.count() >= wanted));
    }

    /// Lets the agents end.
    pub(crate) fn go(&self) {
        fs::write(self.0.path().join("go"), "").unwrap();
    }
}

/// A machine with a worker.
pub(crate) struct Machine {
    pub(crate) folder: TempDir,
    name: String,
    url: String,
    pub(crate) worker: Child,
}

impl Machine {
    pub(crate) fn start(server: &Server, name: &str, agent: &str) -> Self {
        Self::dying(server, name, agent, None)
    }

    /// The same, with this policy, and with a store of conversations.
    pub(crate) fn with_policy(server: &Server, name: &str, agent: &str, policy: &str) -> Self {
        Self::of(&server.url, name, agent, Some(policy), None)
    }

    /// The same, with the user of this address.
    pub(crate) fn start_at(url: &str, name: &str, agent: &str) -> Self {
        Self::of(url, name, agent, None, None)
    }

    /// The same, with a worker that is killed before this effect.
    pub(crate) fn dying(server: &Server, name: &str, agent: &str, before: Option<&str>) -> Self {
        Self::of(&server.url, name, agent, None, before)
    }

    /// A machine with all of these.
    pub(crate) fn of(
        url: &str,
        name: &str,
        agent: &str,
        policy: Option<&str>,
        before: Option<&str>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        if let Some(policy) = policy {
            fs::write(folder.path().join(POLICY), policy).unwrap();
        }
        let worker = work(folder.path(), url, name, agent, before);
        Self {
            folder,
            name: name.to_owned(),
            url: url.to_owned(),
            worker,
        }
    }

    /// The same, with these variables, and a directory that runs may name.
    pub(crate) fn with(
        server: &Server,
        name: &str,
        agent: &str,
        directory: Option<&Path>,
        variables: &[(&str, &str)],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = command(folder.path(), &server.url, name, agent);
        command.args(directory).envs(variables.iter().copied());
        let notices = fs::File::create(folder.path().join(NOTICES)).unwrap();
        command.stderr(notices);
        Self {
            worker: command.spawn().unwrap(),
            folder,
            name: name.to_owned(),
            url: server.url.clone(),
        }
    }

    /// The file with the notices of a worker that was started [with](Self::with) variables.
    pub(crate) fn notices(&self) -> PathBuf {
        self.folder.path().join(NOTICES)
    }

    /// Returns what a worker reports that must not start with this state directory.
    pub(crate) fn refused(folder: &Path, url: &str, name: &str) -> String {
        let mut command = command(folder, url, name, "#!/bin/sh\n");
        let output = command.stderr(Stdio::piped()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }

    /// Kills the worker. Its runs go on.
    pub(crate) fn kill(&mut self) {
        self.worker.kill().unwrap();
        self.worker.wait().unwrap();
    }

    /// Starts a worker again.
    pub(crate) fn restart(&mut self, agent: &str) {
        self.restart_dying(agent, None);
    }

    pub(crate) fn restart_dying(&mut self, agent: &str, before: Option<&str>) {
        self.worker = work(self.folder.path(), &self.url, &self.name, agent, before);
    }

    pub(crate) fn until_dead(&mut self) {
        assert!(wait_until(LIMIT, || self
            .worker
            .try_wait()
            .unwrap()
            .is_some()));
    }

    /// The log of a run of Ann's on this machine.
    pub(crate) fn log(&self, run: &str) -> PathBuf {
        self.log_of("ann", run)
    }

    pub(crate) fn log_of(&self, owner: &str, run: &str) -> PathBuf {
        let runs = self.folder.path().join("state/teamster/runs");
        runs.join(format!("{owner}@{run}")).join("events.ndjson")
    }

    /// The log of a run of Ann's as it is outside of this machine, if it is here.
    pub(crate) fn shown(&self, run: &str) -> Option<Vec<u8>> {
        self.shown_of("ann", run)
    }

    pub(crate) fn shown_of(&self, owner: &str, run: &str) -> Option<Vec<u8>> {
        let log = fs::read_to_string(self.log_of(owner, run)).ok()?;
        assert!(
            log.contains(&format!("\"runId\":\"{owner}@{run}\"")),
            "{log}"
        );
        Some(log.replace(&format!("{owner}@{run}"), run).into_bytes())
    }

    /// Lets the worker end with its runs.
    pub(crate) fn drain(&mut self) {
        let worker = Pid::from_raw(self.worker.id().cast_signed());
        kill(worker, Signal::SIGTERM).unwrap();
        self.until_dead();
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.worker.kill();
        let _ = self.worker.wait();
    }
}

pub(crate) fn work(folder: &Path, url: &str, name: &str, agent: &str, dies: Option<&str>) -> Child {
    let mut command = command(folder, url, name, agent);
    if let Some(before) = dies {
        command.env("WORKER_DIES_BEFORE", before);
    }
    command.spawn().unwrap()
}

fn command(folder: &Path, url: &str, name: &str, agent: &str) -> Command {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(2).unwrap().join("examples/worker");
    let mut command = Command::new(program);
    with_agent(&mut command, folder, agent);
    command.args([url, name]).current_dir(folder);
    let policy = folder.join(POLICY);
    if policy.exists() {
        command.env("WORKER_POLICY", policy);
        command.env("TEAMSTER_STORE", folder.join("store.db"));
    }
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command
}

/// Returns the runs of an owner.
pub(crate) async fn runs_of(server: &Server, owner: &str) -> (Fleet, Arc<dyn RunService>) {
    let options = FleetOptions::new(&server.url, owner);
    let fleet = Fleet::connect(options).await.unwrap();
    let runs = FleetRuns::new(&fleet);
    (fleet, Arc::new(runs))
}

/// Returns the runs of Ann's, after the streams were made and so many workers are there.
pub(crate) async fn runs(server: &Server, workers: usize) -> (Fleet, Arc<dyn RunService>) {
    let (fleet, runs) = runs_of(server, "ann").await;
    fleet.init(&limits()).await.unwrap();
    until_workers(&fleet, workers).await;
    (fleet, runs)
}

/// Connects to the streams of a server without the library.
pub(crate) async fn jetstream(server: &Server) -> Context {
    let client = async_nats::connect(&server.url).await.unwrap();
    async_nats::jetstream::new(client)
}

/// Starts the worker `w1` with this agent, and returns the runs of an owner once it is there.
pub(crate) async fn with_worker(
    server: &Server,
    agent: &str,
) -> (Fleet, Arc<dyn RunService>, Machine) {
    let (fleet, service) = runs(server, 0).await;
    let machine = Machine::start(server, "w1", agent);
    until_workers(&fleet, 1).await;
    (fleet, service, machine)
}

/// Submits a run to the worker `w1` with this agent, which is dead before this effect.
pub(crate) async fn dead_worker(
    server: &Server,
    agent: &str,
    before: &str,
) -> (RunHandle, Machine) {
    let (fleet, service) = runs(server, 0).await;
    let mut machine = Machine::dying(server, "w1", agent, Some(before));
    until_workers(&fleet, 1).await;
    let run = submit(&service, "run").await;
    machine.until_dead();
    (run, machine)
}

/// Submits a run of Claude Code.
pub(crate) async fn submit(service: &Arc<dyn RunService>, id: &str) -> RunHandle {
    let spec = RunSpec::new("claude", "hello");
    let run = RunHandle::start(service.clone(), id, spec).await;
    run.unwrap()
}

pub(crate) async fn until_workers(fleet: &Fleet, workers: usize) {
    let there = async {
        loop {
            match fleet.workers().await {
                Ok(there) if there.len() >= workers => return,
                // Three servers of a busy machine may answer too late.
                Err(error) if !error.retryable => panic!("{error}"),
                _ => {}
            }
        }
    };
    timeout(LIMIT, there).await.unwrap();
}

pub(crate) async fn end(run: &RunHandle) -> RunStatus {
    let result = timeout(LIMIT, run.result()).await.unwrap();
    result.unwrap().status
}

/// Reads a log to its end.
pub(crate) async fn read(run: &RunHandle) -> Vec<u8> {
    let mut log = run.follow(0);
    let mut text = Vec::new();
    let all = async {
        while let Some(line) = log.next().await {
            text.extend_from_slice(line.unwrap().json());
            text.push(b'\n');
        }
    };
    timeout(LIMIT, all).await.unwrap();
    text
}

pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}
