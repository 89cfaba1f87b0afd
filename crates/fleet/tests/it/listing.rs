//! Lists of runs whose records change meanwhile.

use teamster_api::{RunQuery, RunService};
use teamster_fleet::{Fleet, FleetOptions, FleetRuns};
use tokio::task::JoinSet;

use super::machine::{block_on, runs, submit};

const RUNS: usize = 8;
/// The number of connections that change records.
const WRITERS: usize = 3;
/// Before a list was counted again at its end, 1 of 20 lacked a run.
const LISTS: usize = 80;

#[test]
fn every_list_has_all_runs_while_their_records_change() {
    let server = server_or_skip!();
    block_on(async {
        let (_fleet, service) = runs(&server, 0).await;
        let ids: Vec<_> = (0..RUNS).map(|number| format!("run-{number}")).collect();
        for id in &ids {
            submit(&service, id).await;
        }
        let mut writers = JoinSet::new();
        for writer in 0..WRITERS {
            let options = FleetOptions::new(&server.url, "ann");
            let fleet = Fleet::connect(options).await.unwrap();
            let ids: Vec<_> = ids.iter().skip(writer).step_by(WRITERS).cloned().collect();
            writers.spawn(async move {
                let runs = FleetRuns::new(&fleet);
                for title in 0_u32.. {
                    for id in &ids {
                        runs.rename(id, Some(title.to_string())).await.unwrap();
                    }
                }
            });
        }
        for list in 0..LISTS {
            let listed = service.list(RunQuery::default()).await.unwrap().runs;
            let mut listed: Vec<_> = listed.iter().map(|run| &*run.info.run_id).collect();
            listed.sort_unstable();
            assert_eq!(listed, ids, "list {list}");
        }
        // They still write.
        assert!(writers.try_join_next().is_none());
    });
}

#[test]
fn an_empty_list_takes_one_consumer() {
    let server = server_or_skip!();
    block_on(async {
        let (_fleet, service) = runs(&server, 0).await;
        let client = async_nats::connect(&server.url).await.unwrap();
        let mut requests = client.subscribe("$JS.API.CONSUMER.CREATE.>").await.unwrap();
        client.flush().await.unwrap();
        let listed = service.list(RunQuery::default()).await.unwrap().runs;
        assert!(listed.is_empty(), "{listed:?}");
        let end = "$JS.API.CONSUMER.CREATE.end";
        client.publish(end, "".into()).await.unwrap();
        let first = super::next(&mut requests).await.unwrap().subject;
        assert!(first.contains("KV_tm_runs"), "{first}");
        assert_eq!(&*super::next(&mut requests).await.unwrap().subject, end);
    });
}
