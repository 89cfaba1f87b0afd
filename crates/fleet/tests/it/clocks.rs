//! Workers whose clocks are an hour wrong, and what they report about their agents.

use std::fs;
use std::net::TcpListener;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use teamster_api::{Placement, RunHandle};
use teamster_core::RunStatus;
use teamster_fleet::FindingVerdict;
use tokio::time::{interval, timeout};

use super::chaos::clock::Clock;
use super::machine::{
    LIMIT, Machine, Shared, block_on, end, jetstream, read, runs, submit, until_workers,
};
use super::placement::spec;

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
const HOUR: i64 = 3600;
/// The largest error of the server's time on a busy machine, in milliseconds.
const NEAR: u64 = 2000;

/// Returns the time in milliseconds since the Unix epoch.
fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

#[test]
fn worker_with_wrong_clock_loses_nothing_and_is_named() {
    let server = server_or_skip!();
    let clocks = [HOUR, -HOUR].map(|difference| {
        let folder = tempfile::tempdir().unwrap();
        let clock = Clock::build(folder.path())?;
        clock.jump(difference);
        Some((folder, clock))
    });
    let [Some((_first, ahead)), Some((_second, behind))] = clocks else {
        eprintln!("skipped: a clock that is wrong, which needs Linux and a C compiler");
        return;
    };
    let shared = Shared::new();
    let began = now();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let machines = [("w1", &ahead, HOUR), ("w2", &behind, -HOUR)].map(|(name, clock, off)| {
            let variables = clock.variables();
            let machine = Machine::with(&server, name, &shared.agent(), None, &variables);
            (name, machine, off)
        });
        until_workers(&fleet, 2).await;
        let findings = fleet.check().await.unwrap();
        let status = fleet.status().await.unwrap();
        for (worker, (name, machine, off)) in status.workers.iter().zip(&machines) {
            let ahead = worker.clock_ms.unwrap();
            assert!((ahead - off * 1000).abs() < 5000, "{name}: {ahead}");
            let what = format!("clock of {name}");
            let finding = findings.iter().find(|finding| finding.what == what);
            assert_eq!(finding.unwrap().verdict, FindingVerdict::Warning);
            let notices = fs::read_to_string(machine.notices()).unwrap();
            assert!(
                notices.contains("the clock of this machine is 3"),
                "{notices}"
            );
        }
        let own = findings.iter().find(|finding| finding.what == "clock");
        assert_eq!(own.unwrap().verdict, FindingVerdict::Good);
        let is_now = |time: u64| began <= time + NEAR && time <= now() + NEAR;
        let mut started = Vec::new();
        for (name, ..) in &machines {
            let placed = spec(|spec| spec.placement = Placement::machine(*name));
            let run = RunHandle::start(service.clone(), *name, placed).await;
            started.push(run.unwrap());
        }
        shared.until_count(2);
        for run in &started {
            let summary = run.view().await.unwrap().summary;
            assert!(is_now(summary.info.accepted_at_ms));
            // Not the time of the last write, which is that of a file and so of the kernel, whose clock is right.
            assert!(is_now(summary.live.clone().unwrap().since), "{summary:?}");
        }
        shared.go();
        let records = jetstream(&server).await;
        let records = records.get_stream("KV_tm_runs").await.unwrap();
        for (run, (name, machine, _)) in started.iter().zip(&machines) {
            assert_eq!(end(run).await, RunStatus::Completed);
            assert_eq!(read(run).await, machine.shown(name).unwrap());
            let record = format!("$KV.tm_runs.ann.{name}");
            let mut times = Vec::new();
            let until = tokio::time::Instant::now() + LIMIT;
            while times.len() < 4 && tokio::time::Instant::now() < until {
                let record = records.direct_get_last_for_subject(&*record).await.unwrap();
                let json: serde_json::Value = serde_json::from_slice(&record.payload).unwrap();
                times = ["queued", "claimed", "started", "ended"]
                    .iter()
                    .filter_map(|step| json["times"][step].as_u64())
                    .collect();
            }
            assert_eq!(times.len(), 4, "{times:?}");
            // Of an ended run: before that, the time is that of a file, whose clock is right here.
            let summary = run.view().await.unwrap().summary;
            assert!(is_now(summary.changed_at_ms.unwrap()), "{summary:?}");
            assert!(summary.duration_ms.unwrap() < 600_000, "{summary:?}");
            let is_later = |pair: &[u64]| pair[0] <= pair[1] + NEAR;
            assert!(times.windows(2).all(is_later), "{times:?}");
            assert!(times.iter().all(|time| is_now(*time)), "{times:?}");
        }
        assert_eq!(shared.count(), 2);
        // The clock is right again.
        ahead.jump(0);
        let mut looks = interval(LOOK_EVERY);
        let is_right = async {
            while fleet.workers().await.unwrap()[0].clock_ms.is_some() {
                looks.tick().await;
            }
        };
        timeout(LIMIT, is_right).await.unwrap();
    });
}

#[test]
fn worker_reports_versions_of_agents_and_calls_nothing_back() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    // Made by hand: what Claude Code prints for `--version`.
    let version = "#!/bin/sh\n[ \"$1\" = --version ] && echo '2.1.197 (Claude Code)' && exit\n";
    let agent = shared.agent().replace("#!/bin/sh\n", version);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let mut machine = Machine::start(&server, "w1", &agent);
        until_workers(&fleet, 1).await;
        let mut looks = interval(LOOK_EVERY);
        let found = async {
            loop {
                looks.tick().await;
                let worker = fleet.workers().await.unwrap().remove(0);
                let mut agents = worker.agents.into_iter();
                let claude = agents.find(|agent| agent.id == "claude").unwrap();
                if let Some(version) = claude.version {
                    return (version, claude.ready);
                }
            }
        };
        let found = timeout(LIMIT, found).await.unwrap();
        assert_eq!(found, ("2.1.197".to_owned(), true));
        // Only the server does that to which a run was submitted, as far as its owner allows the address.
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let called = spec(|spec| spec.callback = Some(url));
        let called = RunHandle::start(service.clone(), "called", called).await;
        assert_eq!(end(&called.unwrap()).await, RunStatus::Completed);
        let other = submit(&service, "other").await;
        assert_eq!(end(&other).await, RunStatus::Completed);
        machine.drain();
        let heard = listener.accept().map(drop).map_err(|error| error.kind());
        assert_eq!(heard, Err(std::io::ErrorKind::WouldBlock));
    });
}
