//! What the one worker costs that repairs for all.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::PublishAckFuture;
use bytes::Bytes;
use teamster_core::RunStatus;
use tokio::time::{interval, timeout};

use super::machine::{
    LIMIT, Machine, Shared, block_on, end, jetstream, runs, submit, until_workers,
};
use super::server::{FIGURES, Server};

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Waits until the right to repair was renewed so often since this number: it is at the beginning of each pass. Returns its
/// number, and which process has it.
async fn until_renewed(context: &Context, since: u64, times: usize) -> (u64, Bytes) {
    let workers = context.get_stream("KV_tm_workers").await.unwrap();
    let (mut number, mut holder, mut renewed) = (since, Bytes::new(), 0);
    let mut looks = interval(LOOK_EVERY);
    let renewals = async {
        while renewed < times {
            looks.tick().await;
            let right = workers.direct_get_last_for_subject("$KV.tm_workers.=care");
            if let Ok(right) = right.await
                && right.sequence > number
                && !right.payload.is_empty()
            {
                (number, holder) = (right.sequence, right.payload);
                renewed += 1;
            }
        }
    };
    timeout(LIMIT, renewals).await.unwrap();
    (number, holder)
}

/// Stores records of ended runs of Bob's: `r0`, `r1` and so on. The number MUST be one of hundreds.
pub(crate) async fn store_ended(context: &Context, runs: u64) {
    let mut stored: Vec<PublishAckFuture> = Vec::new();
    for number in 0..runs {
        let mut headers = HeaderMap::new();
        headers.insert("Tm-State", "ended");
        headers.insert("Tm-Queue", "tm.work.default.claude.n");
        headers.insert("Tm-Queued", "1");
        let subject = format!("$KV.tm_runs.bob.r{number}");
        let sent = context.publish_with_headers(subject, headers, "{}".into());
        stored.push(sent.await.unwrap());
        if stored.len() == 100 {
            for stored in stored.drain(..) {
                stored.await.unwrap();
            }
        }
    }
}

/// Waits for five passes of the worker that repairs, with less than their ten seconds in between.
#[test]
fn ended_records_cost_nothing_after_they_were_read_once() {
    const ENDED: u64 = 2000;
    /// Of reports, of the right, and of requests about workers and queues.
    const OTHERS: u64 = 200;
    let Some(server) = Server::start_with(FIGURES) else {
        return;
    };
    let shared = Shared::answering();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let context = jetstream(&server).await;
        store_ended(&context, ENDED).await;
        let before = server.sent();
        let often = [("WORKER_REPAIRS_EVERY_MS", "500")];
        let start = |name| Machine::with(&server, name, &shared.agent(), None, &often);
        let _machines = ["w1", "w2"].map(start);
        until_workers(&fleet, 2).await;
        // The first pass is over.
        let (number, first_holder) = until_renewed(&context, 0, 2).await;
        let first = server.sent();
        assert!(first - before > ENDED, "{}", first - before);
        let (number, holder) = until_renewed(&context, number, 1).await;
        // It does not pass to the other one, which would read all.
        assert_eq!(holder, first_holder);
        // Each look of this test has one answer.
        let looks = 2 * u64::try_from(LIMIT.as_millis() / LOOK_EVERY.as_millis()).unwrap() / 6;
        let second = server.sent() - first;
        assert!(second < OTHERS + looks, "{second} messages");
        // What changes later is repaired.
        let run = submit(&service, "run").await;
        assert_eq!(end(&run).await, RunStatus::Completed);
        let stuck = submit_without_hint(&context).await;
        until_renewed(&context, number, 1).await;
        let stuck = teamster_api::RunHandle::new(service, stuck);
        assert_eq!(end(&stuck).await, RunStatus::Completed);
    });
}

/// Makes the record of a run as a submitter that is killed before the hint. Returns its id.
async fn submit_without_hint(context: &Context) -> &'static str {
    let records = context.get_stream("KV_tm_runs").await.unwrap();
    let last = records.direct_get_last_for_subject("$KV.tm_runs.ann.run");
    let mut json: serde_json::Value = serde_json::from_slice(&last.await.unwrap().payload).unwrap();
    json["state"] = "queued".into();
    for field in ["claim", "worker", "workerMachine", "summary", "result"] {
        json.as_object_mut().unwrap().remove(field);
    }
    let mut headers = HeaderMap::new();
    headers.insert("Tm-State", "queued");
    headers.insert("Tm-Queue", "tm.work.default.claude.n");
    headers.insert("Tm-Queued", "1");
    let subject = "$KV.tm_runs.ann.stuck";
    let sent = context.publish_with_headers(subject, headers, json.to_string().into());
    sent.await.unwrap().await.unwrap();
    "stuck"
}
