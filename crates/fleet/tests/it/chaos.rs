//! Runs on workers, while workers, runners, agents, submitters and servers are killed and stopped at random.
//!
//! The test does it for some seconds; `cargo xtask fleet chaos` for as long as wanted. The seed decides what is done to
//! which process when; what the processes do at that moment is up to the machine.

mod check;
mod clock;
pub(crate) mod cluster;
mod disk;
mod faults;
pub(crate) mod processes;
mod proxy;
pub(crate) mod submit;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use teamster_fleet::{Fleet, FleetOptions};
use teamster_testkit::proc::wait_until;
use tokio::time::{Instant, sleep};

use super::contract::limits;
use super::machine::block_on;
use clock::Clock;
use disk::Disk;
use faults::Faults;
use proxy::Links;

/// Time within which all records must be at rest after the last fault.
const REST: Duration = Duration::from_mins(1);
/// Time in which the servers must have elected leaders.
const ELECTION: Duration = Duration::from_mins(1);

/// What is done, and for how long.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    seconds: u64,
    workers: usize,
    submitters: usize,
    seed: u64,
    /// Pause between two faults at most, in milliseconds.
    pause: u64,
    /// Pause between two runs of a submitter at most, in milliseconds.
    every: u64,
    /// The probability with which a worker dies before an effect.
    dies: f64,
    /// The probability with which a message of a process is lost, late or repeated.
    messages: f64,
    /// A small disk of one server becomes full.
    disk: bool,
    /// The clock of the first worker jumps.
    clock: bool,
    /// Messages of logs are kept for so many seconds only, if it is not 0.
    forget: u64,
}

impl Plan {
    /// Reads `TEAMSTER_CHAOS`, such as `seconds=60 workers=3`. The default is that of a test.
    fn from_env() -> Self {
        let text = env::var("TEAMSTER_CHAOS").unwrap_or_default();
        let values: BTreeMap<_, _> = text
            .split_whitespace()
            .filter_map(|part| part.split_once('='))
            .collect();
        let number = |name: &str, default: u64| {
            values
                .get(name)
                .map_or(default, |value| value.parse().unwrap())
        };
        let part = |name: &str, default: f64| {
            values
                .get(name)
                .map_or(default, |value| value.parse().unwrap())
        };
        let size = |name, default| usize::try_from(number(name, default)).unwrap();
        Self {
            seconds: number("seconds", 12),
            workers: size("workers", 2),
            submitters: size("submitters", 2),
            seed: number("seed", u64::from(std::process::id())),
            pause: number("pause", 1200),
            every: number("every", 2000),
            dies: part("dies", 0.02),
            messages: part("messages", 0.005),
            disk: number("disk", 0) > 0,
            clock: number("clock", 1) > 0,
            forget: number("forget", 0),
        }
    }
}

#[test]
fn runs_survive_kills_of_everything() {
    let Some(program) = super::server::program_or_reason() else {
        return;
    };
    let plan = Plan::from_env();
    eprintln!("{plan:?}");
    let root = tempfile::tempdir().unwrap();
    let kept = block_on(play(&plan, &program, root.path()));
    if !kept.is_empty() {
        // What is there helps to find the cause.
        eprintln!("kept: {}", root.keep().display());
        panic!(
            "seed {}: {} violations:\n{}",
            plan.seed,
            kept.len(),
            kept.join("\n")
        );
    }
}

async fn play(plan: &Plan, program: &Path, root: &Path) -> Vec<String> {
    let disk = if plan.disk {
        Disk::mount(&root.join("disk"))
    } else {
        None
    };
    if plan.disk && disk.is_none() {
        eprintln!("not done: a full disk, because none can be mounted here");
    }
    let nodes = cluster::start(program, root, |number| match &disk {
        Some(disk) if number == 0 => disk.place.join("data"),
        _ => root.join(format!("n{number}/data")),
    });
    let ports: Vec<_> = nodes.iter().map(|node| node.port).collect();
    let urls: Vec<_> = ports
        .iter()
        .map(|port| format!("nats://127.0.0.1:{port}"))
        .collect();
    let url = urls.join(",");
    make_streams(&url, plan.forget).await;
    let clock = if plan.clock { Clock::build(root) } else { None };
    if plan.clock && clock.is_none() {
        eprintln!("not done: a clock that jumps, which needs Linux and a C compiler");
    }
    let owners: Vec<_> = (0..plan.submitters)
        .map(|number| format!("owner{number}"))
        .collect();
    let (mut workers, mut submitters, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..plan.workers {
        let seed = plan.seed.wrapping_add(number as u64);
        let (link, url) = Links::start(seed, plan.messages, &ports).await;
        links.push(link);
        let clock = clock.clone().filter(|_| number == 0);
        workers.push(processes::worker(
            root, number, &url, plan.seed, plan.dies, clock,
        ));
    }
    for (number, owner) in owners.iter().enumerate() {
        let seed = plan.seed.wrapping_add(1_000 + number as u64);
        let (link, url) = Links::start(seed, plan.messages, &ports).await;
        links.push(link);
        submitters.push(processes::submitter(
            root, owner, &url, plan.seed, plan.every,
        ));
    }
    let mut faults = Faults::new(plan.seed, root.to_owned(), nodes, workers, submitters);
    (faults.links, faults.disk, faults.clock) = (links, disk, clock);
    let until = Instant::now() + Duration::from_secs(plan.seconds);
    while Instant::now() < until {
        let pause = faults.chance.between([0, plan.pause]);
        sleep(Duration::from_millis(pause)).await;
        faults.one();
    }
    let began = Instant::now();
    faults.end();
    let machines: Vec<PathBuf> = faults
        .workers
        .iter()
        .map(|worker| worker.folder.clone())
        .collect();
    // Workers that kill themselves are started again, until all is at rest.
    let looking = check::look(&url, root, &owners, &machines, REST);
    tokio::pin!(looking);
    let found = loop {
        tokio::select! {
            found = &mut looking => break found,
            () = sleep(Duration::from_millis(200)) => faults.revive(),
        }
    };
    let rested = began.elapsed();
    let mut wrong: Vec<_> = found
        .iter()
        .flat_map(|found| check::judge(found, plan.forget == 0))
        .collect();
    let memory: Vec<_> = faults.nodes.iter().map(cluster::Node::mebibytes).collect();
    faults.drain();
    let is_empty = || processes::parts(root).is_empty();
    if !wait_until(Duration::from_secs(20), is_empty) {
        wrong.push(format!("processes are left: {:?}", processes::parts(root)));
    }
    let mut states = BTreeMap::<_, usize>::new();
    for run in &found {
        let status = run.result.as_ref().map_or("", |(status, _)| status);
        let state = run.state.as_deref().unwrap_or("not there");
        *states.entry(format!("{state} {status}")).or_default() += 1;
    }
    for link in &faults.links {
        for (what, count) in &*link.counts.lock().unwrap() {
            *faults.counts.entry(what).or_default() += count;
        }
    }
    eprintln!("done to them: {:?}", faults.counts);
    eprintln!("workers died before: {:?}", deaths(root));
    eprintln!(
        "runs: {states:?}, looked at after {:.0} s",
        rested.as_secs_f64()
    );
    eprintln!("memory of the servers: {memory:?} MiB");
    eprintln!(
        "kills: {}",
        faults.kills() + deaths(root).values().sum::<usize>()
    );
    wrong
}

/// Makes the streams, once the servers can.
pub(crate) async fn make_streams(url: &str, forget: u64) {
    let until = Instant::now() + ELECTION;
    loop {
        let made = async {
            let fleet = Fleet::connect(FleetOptions::new(url, "operator")).await?;
            fleet.init(&limits()).await
        };
        match made.await {
            Ok(()) => break,
            Err(error) if Instant::now() > until => panic!("{error}"),
            Err(_) => sleep(Duration::from_millis(200)).await,
        }
    }
    if forget > 0 {
        let client = async_nats::connect(url.split(',').collect::<Vec<_>>()).await;
        let jetstream = async_nats::jetstream::new(client.unwrap());
        let log = jetstream.get_stream("TM_LOG").await.unwrap();
        let mut config = log.cached_info().config.clone();
        config.max_age = Duration::from_secs(forget);
        config.duplicate_window = config.max_age.min(Duration::from_secs(2));
        jetstream.update_stream(config).await.unwrap();
    }
}

/// Returns before which effects workers have died, and how often.
fn deaths(root: &Path) -> BTreeMap<String, usize> {
    let text = fs::read_to_string(root.join("deaths")).unwrap_or_default();
    let mut deaths = BTreeMap::new();
    for effect in text.lines() {
        *deaths.entry(effect.to_owned()).or_default() += 1;
    }
    deaths
}
