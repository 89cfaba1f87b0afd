//! Ids that no run has.

use std::fs;

use teamster_api::{ProblemCode, RunService};
use teamster_fleet::{Fleet, FleetOptions, FleetRuns};

use super::chaos::{cluster, make_streams};
use super::contract::limits;
use super::machine::block_on;
use super::server::program_or_reason;

/// A copy of the records may be behind, so the leader decides: nothing is waited for.
#[test]
fn unknown_id_in_a_cluster_is_read_once() {
    let Some(program) = program_or_reason() else {
        return;
    };
    let root = tempfile::tempdir().unwrap();
    let nodes = cluster::start(&program, root.path(), "trace: true\n", |number| {
        root.path().join(format!("n{number}/data"))
    });
    let url = format!("nats://127.0.0.1:{}", nodes[0].port);
    let reads = |id: &str| {
        let read = format!("<<- [PUB $JS.API.DIRECT.GET.KV_tm_runs.$KV.tm_runs.ann.{id} ");
        let logs = (0..3).map(|number| root.path().join(format!("n{number}/log")));
        let texts = logs.map(|log| fs::read_to_string(log).unwrap());
        texts.map(|text| text.matches(&read).count()).sum::<usize>()
    };
    block_on(async {
        make_streams(&url, &limits()).await;
        let fleet = Fleet::connect(FleetOptions::new(&url, "ann")).await;
        let runs = FleetRuns::new(&fleet.unwrap());
        let mut counts = Vec::new();
        for number in 0..5 {
            let id = format!("nobody-{number}");
            let refused = runs.show(&id).await.unwrap_err();
            // The servers may still elect leaders.
            if refused.code == Some(ProblemCode::RunNotFound) {
                counts.push(reads(&id));
            }
        }
        assert!(counts.contains(&1), "{counts:?}");
    });
}
