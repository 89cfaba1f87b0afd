//! Runs on workers, while workers, runners, agents, submitters and servers are killed and stopped at random.
//!
//! The test does it for some seconds; `.ci/fleet chaos` for as long as wanted. The seed decides what is done to
//! which process when; what the processes do at that moment is up to the machine.

mod check;
pub(crate) mod clock;
pub(crate) mod cluster;
mod disk;
mod faults;
pub(crate) mod processes;
mod proxy;
mod squeeze;
pub(crate) mod submit;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_nats::ConnectOptions;
use teamster_fleet::{
    Fleet, FleetLimits, FleetLogin, FleetOptions, FleetRole, FleetUser, server_accounts,
};
use teamster_testkit::proc::wait_until;
use tokio::time::{Instant, sleep};

use super::contract::{git, limits, repository};
use super::machine::block_on;
use clock::Clock;
use disk::Disk;
use faults::Faults;
use proxy::Links;
use squeeze::Squeeze;

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
    /// What is not done, of [`DONE`].
    without: BTreeSet<String>,
    /// An older program of the workers, which are replaced one by one.
    older: Option<PathBuf>,
}

/// What is done unless the plan has it in `without`: a small disk of one server becomes full, the clock of the first
/// worker jumps, messages of logs age out, the limits of logs and files become small, each process has a user with a role,
/// a part of the runs brings a branch and a file back.
const DONE: [&str; 6] = ["disk", "clock", "ages", "limits", "roles", "files"];

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
        let without = values.get("without").copied().unwrap_or("disk");
        let without = without.split(',').filter(|what| !what.is_empty());
        let without: BTreeSet<_> = without.map(str::to_owned).collect();
        for what in &without {
            assert!(DONE.contains(&&**what), "{what} is none of {DONE:?}");
        }
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
            without,
            older: values.get("older").map(PathBuf::from),
        }
    }

    fn has(&self, what: &str) -> bool {
        assert!(DONE.contains(&what));
        !self.without.contains(what)
    }

    /// What must have happened at least once.
    fn expected(&self) -> Vec<&'static str> {
        let mut all = vec![
            "worker killed",
            "worker stopped",
            "worker upgraded",
            "runner killed",
            "agent killed",
            "submitter killed",
            "connections cut",
            "server killed",
            "server stopped",
            "server killed, with the others",
        ];
        for (what, counts) in [
            ("disk", &["disk filled"][..]),
            ("clock", &["clock changed"]),
            (
                "ages",
                &[
                    "age of logs shortened",
                    "messages of logs gone",
                    "readers with a reset",
                ],
            ),
            (
                "limits",
                &[
                    "limit of logs lowered",
                    "limit of files lowered",
                    "results left out",
                ],
            ),
            ("roles", &["user with a role"]),
            ("files", &["results read whole"]),
        ] {
            if self.has(what) {
                all.extend(counts);
            }
        }
        if self.messages > 0.0 {
            all.extend([
                "message lost",
                "message late",
                "message repeated",
                "request doubled",
                "answer 10164",
                "answer 10071",
            ]);
        }
        if self.older.is_some() {
            all.push("worker replaced by a newer version");
        }
        all
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
    let disk = if plan.has("disk") {
        Disk::mount(&root.join("disk"))
    } else {
        None
    };
    if plan.has("disk") && disk.is_none() {
        eprintln!("not done: a full disk, because none can be mounted here");
    }
    let owners: Vec<_> = (0..plan.submitters)
        .map(|number| format!("owner{number}"))
        .collect();
    let users = users(plan, &owners);
    let accounts = if users.is_empty() {
        String::new()
    } else {
        server_accounts("TEAM", &users)
    };
    let nodes = cluster::start(program, root, &accounts, |number| match &disk {
        Some(disk) if number == 0 => disk.place.join("data"),
        _ => root.join(format!("n{number}/data")),
    });
    let ports: Vec<_> = nodes.iter().map(|node| node.port).collect();
    let urls: Vec<_> = ports
        .iter()
        .map(|port| format!("nats://127.0.0.1:{port}"))
        .collect();
    let url = urls.join(",");
    let mut sizes = limits();
    sizes.file_bytes = Some(256 << 20);
    make_streams(&login(&url, OPERATOR), &sizes).await;
    make_repository(root);
    if !plan.has("files") {
        fs::remove_file(root.join(submit::COMMIT)).unwrap();
    }
    let clock = if plan.has("clock") {
        Clock::build(root)
    } else {
        None
    };
    if plan.has("clock") && clock.is_none() {
        eprintln!("not done: a clock that jumps, which needs Linux and a C compiler");
    }
    let older: Vec<processes::Older> = (0..plan.workers)
        .map(|_| Arc::new(Mutex::new(plan.older.clone())))
        .collect();
    let (mut workers, mut submitters, mut links) = (Vec::new(), Vec::new(), Vec::new());
    for (number, older) in older.iter().enumerate() {
        let seed = plan.seed.wrapping_add(number as u64);
        let (link, url) = Links::start(seed, plan.messages, &ports).await;
        links.push(link);
        let clock = clock.clone().filter(|_| number == 0);
        let url = login(&url, &format!("w{number}"));
        workers.push(processes::worker(
            root, number, &url, plan.seed, plan.dies, clock, older,
        ));
    }
    for (number, owner) in owners.iter().enumerate() {
        let seed = plan.seed.wrapping_add(1_000 + number as u64);
        let (link, url) = Links::start(seed, plan.messages, &ports).await;
        links.push(link);
        let url = login(&url, owner);
        submitters.push(processes::submitter(
            root, owner, &url, plan.seed, plan.every,
        ));
    }
    let mut faults = Faults::new(plan.seed, root.to_owned(), nodes, workers, submitters);
    (faults.links, faults.disk, faults.clock) = (links, disk, clock);
    faults.older = older;
    let squeeze = Squeeze::start(&url, plan.seed, [plan.has("ages"), plan.has("limits")]);
    let begin = Instant::now();
    let until = begin + Duration::from_secs(plan.seconds);
    let mut replaced = 0;
    while Instant::now() < until {
        // One after the other, between the first and the last quarter.
        let at = begin.elapsed().as_secs_f64() / Duration::from_secs(plan.seconds).as_secs_f64();
        let part = f64::from(u32::try_from(replaced + 1).unwrap())
            / f64::from(u32::try_from(plan.workers + 1).unwrap());
        if plan.older.is_some() && replaced < plan.workers && at > part {
            faults.replace(replaced);
            replaced += 1;
        }
        let pause = faults.chance.between([0, plan.pause]);
        sleep(Duration::from_millis(pause)).await;
        faults.one();
    }
    faults.end();
    for (what, count) in squeeze.end().await {
        *faults.counts.entry(what).or_default() += count;
    }
    let began = Instant::now();
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
    let mut wrong: Vec<_> = found.iter().flat_map(check::judge).collect();
    faults.counts.insert("user with a role", users.len());
    let counted =
        |is: &dyn Fn(&check::Found) -> bool| found.iter().filter(|found| is(found)).count();
    let left_out = counted(&|found| found.is_left_out);
    let whole = counted(&|found| matches!(found.files, Some(Ok(()))));
    let resets = counted(&|found| found.live.contains("\"type\":\"reset\""));
    let more = [
        ("results left out", left_out),
        ("results read whole", whole),
        ("readers with a reset", resets),
    ];
    faults.counts.extend(more);
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
    let is_missing = |what: &&str| faults.counts.get(*what).is_none_or(|count| *count == 0);
    let never: Vec<_> = plan.expected().into_iter().filter(is_missing).collect();
    eprintln!("never done: {never:?}");
    for line in refusals(root) {
        wrong.push(format!("a role lacks a permission: {line}"));
    }
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

/// The user who makes the streams.
const OPERATOR: &str = "operator";

/// Returns the users of all processes, whose passwords are their names; none without roles.
fn users(plan: &Plan, owners: &[String]) -> Vec<FleetUser> {
    if !plan.has("roles") {
        return Vec::new();
    }
    let workers = (0..plan.workers).map(|number| (format!("w{number}"), FleetRole::Worker));
    let submitters = owners
        .iter()
        .map(|owner| (owner.clone(), FleetRole::Submitter));
    let operator = [(OPERATOR.to_owned(), FleetRole::Operator)];
    let all = workers.chain(submitters).chain(operator);
    all.map(|(name, role)| {
        FleetUser::new(&*name, role, FleetLogin::Password(name.clone())).unwrap()
    })
    .collect()
}

/// Returns the addresses with a user.
pub(crate) fn login(url: &str, user: &str) -> String {
    url.replace("nats://", &format!("nats://{user}:{user}@"))
}

/// Connects as the operator, without the library. Servers that were just started again do not listen yet.
async fn client(url: &str) -> async_nats::Client {
    let until = Instant::now() + ELECTION;
    loop {
        let options = ConnectOptions::new();
        let options = options.user_and_password(OPERATOR.to_owned(), OPERATOR.to_owned());
        let urls: Vec<_> = url.split(',').collect();
        match options.connect(urls).await {
            Ok(client) => return client,
            Err(error) if Instant::now() > until => panic!("{error}"),
            Err(_) => sleep(Duration::from_millis(200)).await,
        }
    }
}

/// Returns what the servers have refused to a user. Each shows it in its log.
fn refusals(root: &Path) -> BTreeSet<String> {
    let logs = (0..3).map(|number| fs::read_to_string(root.join(format!("n{number}/log"))));
    let text: String = logs.map(Result::unwrap_or_default).collect();
    // A stream that has no leader is looked for by all.
    let is_refusal = |line: &&str| line.contains("Violation") && !line.contains(".STREAM.INFO.");
    let lines = text.lines().filter(is_refusal);
    let refused = lines.map(|line| {
        line.split_once("] ")
            .map_or(line, |(_, text)| text)
            .to_owned()
    });
    refused.take(20).collect()
}

/// Makes the repository of all runs with files, and writes its commit down.
fn make_repository(root: &Path) {
    let folder = repository(root);
    fs::write(folder.join(".gitignore"), submit::FILE).unwrap();
    git(&folder, "add .");
    git(&folder, "commit -qm two");
    let commit = git(&folder, "rev-parse HEAD");
    fs::write(root.join(submit::COMMIT), commit).unwrap();
}

/// Makes the streams, once the servers can.
pub(crate) async fn make_streams(url: &str, limits: &FleetLimits) {
    let until = Instant::now() + ELECTION;
    loop {
        let made = async {
            let fleet = Fleet::connect(FleetOptions::new(url, OPERATOR)).await?;
            fleet.init(limits).await
        };
        match made.await {
            Ok(()) => return,
            Err(error) if Instant::now() > until => panic!("{error}"),
            Err(_) => sleep(Duration::from_millis(200)).await,
        }
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
