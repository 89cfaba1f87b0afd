//! What it costs to look at a fleet again and again.

use serde_json::json;
use teamster_fleet::{FleetStatus, StatusReader};
use tokio::time::timeout;

use super::janitor::store_ended;
use super::machine::{LIMIT, block_on, jetstream, runs};
use super::server::{FIGURES, Server};
use super::submitter::put;

#[test]
fn status_that_is_read_again_costs_no_message_for_each_record() {
    const ENDED: u64 = 1000;
    /// Of the answers about workers, holds and the time.
    const OTHERS: u64 = 100;
    let Some(server) = Server::start_with(FIGURES) else {
        return;
    };
    block_on(async {
        let (fleet, _service) = runs(&server, 0).await;
        let context = jetstream(&server).await;
        store_ended(&context, ENDED).await;
        let reader = StatusReader::new(&fleet);
        let before = server.sent();
        let first = reader.status().await.unwrap();
        assert_eq!(first.runs["ended"] as u64, ENDED);
        let read = server.sent();
        assert!(read - before > ENDED, "{}", read - before);
        assert_eq!(reader.status().await.unwrap(), first);
        let again = server.sent() - read;
        assert!(again < OTHERS, "{again} messages");
        // What changes is followed: one is deleted, one is written again, and one is new.
        let subject = |run: &str| format!("$KV.tm_runs.bob.{run}");
        let deleted = [("KV-Operation", "PURGE")];
        put(&context, &subject("r0"), &deleted, &json!(null)).await;
        let put_state = async |run: &str, state: &str| {
            let queue = "tm.work.gpu.claude.n";
            let headers = [("Tm-State", state), ("Tm-Queue", queue), ("Tm-Queued", "1")];
            put(&context, &subject(run), &headers, &json!("not read")).await;
        };
        put_state("r1", "ended").await;
        put_state("new", "queued").await;
        let until = async |is_known: &dyn Fn(&FleetStatus) -> bool| {
            let look = async {
                loop {
                    let status = reader.status().await.unwrap();
                    if is_known(&status) {
                        return status;
                    }
                }
            };
            timeout(LIMIT, look).await.unwrap()
        };
        let status = until(&|status| !status.queues.is_empty()).await;
        assert_eq!(status.runs["ended"] as u64, ENDED - 1);
        assert_eq!(status.queues[0].pool.as_deref(), Some("gpu"));
        assert_eq!(status.queues[0].waiting, 1);
        // The one look of a command has the same.
        let once = fleet.status().await.unwrap();
        assert_eq!((once.runs, once.queues.len()), (status.runs, 1));
        // It starts to work, and another program has ended it.
        put_state("new", "started").await;
        let status = until(&|status| status.queues.is_empty()).await;
        assert_eq!(status.runs["started"], 1);
        put_state("new", "ended").await;
        let status = until(&|status| !status.runs.contains_key("started")).await;
        assert_eq!(status.runs["ended"] as u64, ENDED);
    });
}
