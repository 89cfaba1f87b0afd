//! The logs of the ticks, whichever loops were killed.

use std::collections::HashSet;
use std::fs;

use serde_json::Value;
use teamster_runner::{RunState, Runs};

use crate::soak::truth::Truth;
use crate::soak::world::World;

/// So many ticks have a log that is kept.
const KEPT: usize = 100;

/// Each log is numbered without gaps and has one end, and each of the last ticks has its log.
pub(crate) fn check(world: &World, truth: &mut Truth) {
    let runs = Runs::at(world.path("home/.local/state/teamster/runs"));
    let mut found = HashSet::new();
    for run in runs.list().unwrap() {
        // The last reader gives an end to what no later loop has.
        assert_eq!(run.settle().unwrap(), RunState::Ended);
        let text = fs::read_to_string(run.path().join("events.ndjson")).unwrap();
        let entries: Vec<Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let numbers: Vec<_> = entries.iter().filter_map(|it| it["seq"].as_u64()).collect();
        let wanted: Vec<_> = (1..=entries.len() as u64).collect();
        truth.must(numbers == wanted, || format!("{}: {numbers:?}", run.id()));
        let ends: Vec<_> = (entries.iter().enumerate())
            .filter(|(_, entry)| entry["type"] == "done")
            .map(|(at, _)| at + 1)
            .collect();
        truth.must(ends == [entries.len()], || {
            format!("{}: ends at {ends:?} of {}", run.id(), entries.len())
        });
        truth.count("logs of ticks");
        found.insert(run.id().to_owned());
    }
    let text = fs::read_to_string(world.orchestrator("ticks.jsonl")).unwrap_or_default();
    let ticks = text.lines().rev().take(KEPT - 1);
    for tick in ticks.filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        // One whose loop was killed before it had begun its log has none.
        let id = tick["run_id"].as_str().unwrap_or_default();
        let has_one = found.contains(id) || tick["result"] == "killed";
        truth.must(has_one, || format!("no log: {tick}"));
    }
}
