//! A process that submits runs until it is killed.

use std::env;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use teamster_api::{RunHandle, RunService, RunSpec};
use teamster_core::Stopping;
use teamster_fleet::{Fleet, FleetOptions, FleetRuns};
use teamster_testkit::stand_in::Chance;
use tokio::time::sleep;

use super::processes::{REPOSITORY, append_to};

/// The variable with what is to be done: address, owner, seed, and the longest pause between two runs in milliseconds.
pub(crate) const WHAT: &str = "TEAMSTER_CHAOS_SUBMITS";
/// The file with the runs that were acknowledged.
pub(crate) const ACKNOWLEDGED: &str = "acknowledged";
/// The file with the runs that may have been submitted.
pub(crate) const TRIED: &str = "tried";

/// Returns the id of a run.
pub(crate) fn id(owner: &str, number: usize) -> String {
    format!("{owner}-{number:06}")
}

/// Returns whether a run has a repository, and brings a branch and a file back.
pub(crate) fn has_files(run: &str) -> bool {
    let number = run
        .rsplit('-')
        .next()
        .and_then(|number| number.parse().ok());
    number.is_some_and(|number: u64| number.is_multiple_of(3))
}

/// The file with the commit at which such a run begins. Without it, there is none.
pub(crate) const COMMIT: &str = "commit";

/// The file that such a run brings back.
pub(crate) const FILE: &str = "out.bin";

/// Returns its content.
pub(crate) fn file_of(run: &str) -> Vec<u8> {
    let mut content = format!("{run}\n").repeat(540_000 / (run.len() + 1) + 1);
    content.truncate(540_000);
    content.into_bytes()
}

/// The longest pause before a log is read, in milliseconds.
const LATE: u64 = 6_000;
/// The start of the name of a file with the log of a run as it was read while it was written.
pub(crate) const LIVE: &str = "live-";

/// Returns the description of a run. The repository of all is beside the folder of the process.
pub(crate) fn spec(run: &str) -> RunSpec {
    let mut spec = RunSpec::new("claude", format!("run={run}. Do it."));
    let commit = fs::read_to_string(Path::new("..").join(COMMIT)).unwrap_or_default();
    if !commit.is_empty() && has_files(run) {
        let repository = fs::canonicalize("..").unwrap().join(REPOSITORY);
        let place = serde_json::json!({
            "kind": "repository", "url": format!("file://{}", repository.display()), "commit": commit.trim(),
        });
        spec.prompt = format!("run={run}. With files.");
        spec.workspace = Some(serde_json::from_value(place).unwrap());
        spec.artifacts = vec![FILE.to_owned()];
    }
    spec
}

/// Reads the log of a run as it is written, after a while, into a file.
async fn read_live(handle: RunHandle, run: String, pause: Duration) {
    sleep(pause).await;
    let Ok(mut file) = File::create_new(format!("{LIVE}{run}")) else {
        return;
    };
    let mut log = handle.follow(0);
    while let Some(Ok(line)) = log.next().await {
        let mut text = line.json().to_vec();
        text.push(b'\n');
        file.write_all(&text).unwrap();
    }
}

#[test]
#[ignore = "a process of the chaos, which starts it"]
fn submits() {
    let what = env::var(WHAT).unwrap();
    let [url, owner, seed, pause] = &*what.split(' ').collect::<Vec<_>>() else {
        panic!("{what}");
    };
    let (seed, pause) = (seed.parse().unwrap(), pause.parse().unwrap());
    super::super::machine::block_on(submit(url, owner, seed, pause));
}

async fn submit(url: &str, owner: &str, seed: u64, pause: u64) {
    let done = fs::read_to_string(ACKNOWLEDGED).map_or(0, |text| text.lines().count());
    let [mut tried, mut acknowledged] = [TRIED, ACKNOWLEDGED].map(|name| append_to(name.as_ref()));
    let fleet = loop {
        match Fleet::connect(FleetOptions::new(url, owner)).await {
            Ok(fleet) => break fleet,
            Err(_) => sleep(Duration::from_millis(200)).await,
        }
    };
    let service: Arc<dyn RunService> = Arc::new(FleetRuns::new(&fleet));
    for number in done.. {
        let run = id(owner, number);
        let mut chance = Chance::of(seed, 1, number as u64);
        writeln!(tried, "{run}").unwrap();
        // A repeated start is the same run: until it is acknowledged, and now and then after that.
        let mut more = chance.happens(0.2);
        let handle = loop {
            match RunHandle::start(service.clone(), &run, spec(&run)).await {
                Ok(_) if more => more = false,
                Ok(handle) => break handle,
                Err(error) => {
                    eprintln!("{run}: {error}");
                    sleep(Duration::from_millis(200)).await;
                }
            }
        };
        writeln!(acknowledged, "{run}").unwrap();
        if chance.happens(0.3) {
            // A part of them comes late.
            let longest = if chance.happens(0.5) { LATE } else { 0 };
            let pause = Duration::from_millis(chance.between([0, longest]));
            let reader = RunHandle::new(service.clone(), &*run);
            tokio::spawn(read_live(reader, run.clone(), pause));
        }
        if chance.happens(0.1) {
            sleep(Duration::from_millis(chance.between([0, 1500]))).await;
            let cancelled = handle.cancel(Stopping::kill_if(chance.happens(0.5))).await;
            eprintln!(
                "{run}: cancel: {:?}",
                cancelled.err().map(|error| error.message)
            );
        }
        sleep(Duration::from_millis(chance.between([0, pause]))).await;
    }
}
