//! Many workers and many queued runs: what a fleet needs of its servers. The workers are real, and their machines are in
//! memory: no agent, no runner. `.ci/fleet simulate` runs it; as a test, it is small.

use std::env;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use teamster_api::{RunHandle, RunService, RunSpec};
use teamster_core::{AgentEvent, RunStatus, Text};
use teamster_fleet::{Fleet, FleetOptions, FleetRuns, PresentAgent, Worker, WorkerConfig};
use teamster_host::Host;
use teamster_providers::Providers;
use teamster_testkit::run_service::{MemoryService, Step};
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::chaos::cluster::{self, Node};
use super::chaos::make_streams;
use super::chaos::processes::mebibytes;
use super::contract::limits;
use super::machine::{block_on, until_workers};
use super::server::program_or_reason;

/// The variable with what a process of the simulation does.
const WHAT: &str = "TEAMSTER_SIMULATION_PROCESS";
/// The number of runs that are submitted at once.
const AT_ONCE: usize = 16;
/// The number of workers in a process.
const TOGETHER: usize = 100;
/// Time for which the fleet is watched while nothing is to be done.
const IDLE: Duration = Duration::from_secs(5);

/// Reads a number of `TEAMSTER_SIMULATE`, such as `workers=300 runs=10000`.
fn number(name: &str, default: usize) -> usize {
    let text = env::var("TEAMSTER_SIMULATE").unwrap_or_default();
    let mut parts = text
        .split_whitespace()
        .filter_map(|part| part.split_once('='));
    let value = parts
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.parse());
    value.map_or(default, Result::unwrap)
}

/// A process of the simulation. It is killed when this is dropped.
struct Process(Child);

impl Process {
    fn start(root: &Path, test: &str, what: String) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .args(["--exact", test, "--ignored", "--nocapture"])
            .env(WHAT, what)
            .env("XDG_STATE_HOME", root.join("state"))
            .env("TEAMSTER_STORE", "off");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }

    fn mebibytes(&self) -> u64 {
        mebibytes(self.0.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn messages(nodes: &[Node]) -> [u64; 2] {
    nodes
        .iter()
        .map(Node::messages)
        .fold([0, 0], |all, one| [all[0] + one[0], all[1] + one[1]])
}

/// Returns a number that is not large.
fn float(number: impl TryInto<u32>) -> f64 {
    number.try_into().map_or(f64::NAN, f64::from)
}

/// Prints how many messages there were for each of a number of things: those of clients, and those among the servers.
fn report(what: &str, before: [u64; 2], after: [u64; 2], count: u64) {
    let each = |number: usize| float(after[number] - before[number]) / float(count);
    eprintln!(
        "{what}: {:.1} messages to the servers and {:.1} from them",
        each(0),
        each(1)
    );
}

#[test]
fn many_workers_drain_a_long_queue() {
    let Some(program) = program_or_reason() else {
        return;
    };
    let (workers, runs) = (number("workers", 10), number("runs", 50));
    let root = tempfile::tempdir().unwrap();
    let nodes = cluster::start(&program, root.path(), "", |number| {
        root.path().join(format!("n{number}/data"))
    });
    let urls: Vec<_> = nodes
        .iter()
        .map(|node| format!("nats://127.0.0.1:{}", node.port))
        .collect();
    let url = urls.join(",");
    block_on(async {
        make_streams(&url, &limits()).await;
        let before = messages(&nodes);
        sleep(IDLE).await;
        report(
            "each second without workers",
            before,
            messages(&nodes),
            IDLE.as_secs(),
        );
        // All are queued before the first worker is there.
        let (before, began) = (messages(&nodes), Instant::now());
        let mut submitter =
            Process::start(root.path(), "simulate::submits", format!("{url} 0 {runs}"));
        let mut largest = 0;
        while submitter.0.try_wait().unwrap().is_none() {
            largest = largest.max(submitter.mebibytes());
            sleep(Duration::from_millis(100)).await;
        }
        assert!(submitter.0.wait().unwrap().success());
        eprintln!(
            "{runs} runs queued in {:.1} s, by a process of {largest} MiB",
            began.elapsed().as_secs_f64()
        );
        report("each submission", before, messages(&nodes), runs as u64);
        let (before, began) = (messages(&nodes), Instant::now());
        let mut processes = Vec::new();
        for first in (0..workers).step_by(TOGETHER) {
            let count = TOGETHER.min(workers - first);
            let what = format!("{url} {first} {count}");
            processes.push(Process::start(root.path(), "simulate::works", what));
        }
        let fleet = Fleet::connect(FleetOptions::new(&url, "ann"))
            .await
            .unwrap();
        let ended = wait_until_ended(&url, runs).await;
        let drained = began.elapsed().as_secs_f64();
        let [from, of_runs] = [messages(&nodes), before];
        eprintln!(
            "{workers} workers have drained {ended} runs in {drained:.1} s, {:.0} a second",
            float(ended) / drained
        );
        report("each run", of_runs, from, runs as u64);
        until_workers(&fleet, workers).await;
        let before = messages(&nodes);
        sleep(IDLE).await;
        report(
            "each second without work",
            before,
            messages(&nodes),
            IDLE.as_secs(),
        );
        let memory: Vec<_> = processes.iter().map(Process::mebibytes).collect();
        eprintln!("{TOGETHER} workers of one process: {memory:?} MiB");
        let memory: Vec<_> = nodes.iter().map(Node::mebibytes).collect();
        eprintln!("servers: {memory:?} MiB");
        // With all workers there.
        let few = 20.min(runs);
        let (before, began) = (messages(&nodes), Instant::now());
        let what = format!("{url} {runs} {few}");
        let mut submitter = Process::start(root.path(), "simulate::submits", what);
        assert!(submitter.0.wait().unwrap().success());
        let ended = wait_until_ended(&url, runs + few).await;
        eprintln!(
            "{few} more runs have ended {:.1} s after the first was submitted",
            began.elapsed().as_secs_f64()
        );
        report("each of them", before, messages(&nodes), few as u64);
        assert_eq!(ended, runs + few);
        let service: Arc<dyn RunService> = Arc::new(FleetRuns::new(&fleet));
        let result = RunHandle::new(service, "run-0").result().await.unwrap();
        assert_eq!(result.status, RunStatus::Completed, "{:?}", result.errors);
    });
}

/// Waits until so many records are ended.
async fn wait_until_ended(url: &str, wanted: usize) -> usize {
    let client = async_nats::connect(url.split(',').collect::<Vec<_>>())
        .await
        .unwrap();
    let jetstream = async_nats::jetstream::new(client);
    let records = jetstream.get_stream_no_info("KV_tm_runs").await.unwrap();
    // Servers of a busy machine may answer too late.
    while !(jetstream.get_stream("TM_WORK").await)
        .is_ok_and(|queue| queue.cached_info().state.messages == 0)
    {
        sleep(Duration::from_millis(500)).await;
    }
    let is_ended = |json: &[u8]| {
        let record: Value = serde_json::from_slice(json).unwrap_or_default();
        record["state"] == "ended"
    };
    let mut number = 0;
    while number < wanted {
        let subject = format!("$KV.tm_runs.ann.run-{number}");
        let record = records.direct_get_last_for_subject(subject).await;
        if record.is_ok_and(|record| is_ended(&record.payload)) {
            number += 1;
        } else {
            sleep(Duration::from_millis(100)).await;
        }
    }
    number
}

/// Returns what the variable has: the address, the first number, and the count.
fn what() -> (String, usize, usize) {
    let what = env::var(WHAT).unwrap();
    let [url, first, count] = &*what.split(' ').collect::<Vec<_>>() else {
        panic!("{what}");
    };
    (
        (*url).to_owned(),
        first.parse().unwrap(),
        count.parse().unwrap(),
    )
}

#[test]
#[ignore = "a process of the simulation, which starts it"]
fn submits() {
    let (url, first, count) = what();
    block_on(async {
        let fleet = Fleet::connect(FleetOptions::new(url, "ann")).await.unwrap();
        let service: Arc<dyn RunService> = Arc::new(FleetRuns::new(&fleet));
        let mut submissions = JoinSet::new();
        for number in first..first + count {
            if submissions.len() == AT_ONCE {
                submissions.join_next().await.unwrap().unwrap();
            }
            let service = service.clone();
            submissions.spawn(async move {
                let spec = RunSpec::new("claude", "x".repeat(500));
                let start = || {
                    let id = format!("run-{number}");
                    RunHandle::start(service.clone(), id, spec.clone())
                };
                // Repeated, it is the same run. Servers of a busy machine may answer too late.
                while let Err(error) = start().await {
                    assert!(error.retryable, "{error}");
                }
            });
        }
        while let Some(submitted) = submissions.join_next().await {
            submitted.unwrap();
        }
    });
}

#[test]
#[ignore = "a process of the simulation, which starts it"]
fn works() {
    let (url, first, count) = what();
    block_on(async {
        let host = Host::new(Providers::builtin());
        let mut workers = JoinSet::new();
        for number in first..first + count {
            let name = format!("w{number}");
            let fleet = Fleet::connect(FleetOptions::new(&url, &name))
                .await
                .unwrap();
            let worker = Worker::new(&fleet, &host, WorkerConfig::new(name)).unwrap();
            let machine = MemoryService::new(["claude"], |_| {
                let step =
                    |number| Step::Emit(AgentEvent::Text(Text::new(format!("step {number}"))));
                (0..10).map(step).collect()
            });
            machine.have_owners();
            let agents = vec![PresentAgent::new("claude")];
            let worker = worker.with_runs(Arc::new(machine), agents);
            workers.spawn(worker.run(std::future::pending()));
        }
        let ended = workers.join_next().await;
        panic!("a worker has ended: {ended:?}");
    });
}
