//! Runs that a newer version has submitted.

use serde_json::{Value, json};
use teamster_api::{QueueReason, RunHandle};
use teamster_core::{RunStatus, Stopping};

use super::machine::{Machine, Shared, block_on, end, jetstream, runs, submit, until_workers};
use super::server::Server;
use super::submitter::put;

#[test]
fn run_of_a_newer_version_waits_and_keeps_what_is_unknown() {
    let Some(server) = Server::start() else {
        return;
    };
    let shared = Shared::answering();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let context = jetstream(&server).await;
        // Made by hand: a description and a record with fields that this version does not know.
        let record = json!({
            "version": 99, "state": "queued", "pool": "default", "provider": "claude",
            "spec": { "run": { "provider": "claude", "prompt": "hello", "later": true } },
            "times": { "queued": 1 }, "newer": { "a": [1, 0.5] },
        });
        let queue = "tm.work.default.claude.n";
        let headers = [
            ("Tm-State", "queued"),
            ("Tm-Queue", queue),
            ("Tm-Queued", "1"),
        ];
        let subject = "$KV.tm_runs.ann.run";
        put(&context, subject, &headers, &record).await;
        let hint = context.publish(queue, "ann.run".into()).await.unwrap();
        hint.await.unwrap();
        let _machine = Machine::start(&server, "w1", &shared.agent());
        until_workers(&fleet, 1).await;
        // Its hint comes later, and this run is carried out.
        let other = submit(&service, "other").await;
        assert_eq!(end(&other).await, RunStatus::Completed);
        let run = RunHandle::new(service, "run");
        let summary = run.view().await.unwrap().summary;
        let queue = summary.queue.clone().unwrap();
        assert_eq!(queue.reason, QueueReason::OldVersion, "{queue:?}");
        assert_eq!(shared.count(), 1);
        run.cancel(Stopping::Graceful).await.unwrap();
        let records = context.get_stream("KV_tm_runs").await.unwrap();
        let last = records.direct_get_last_for_subject(subject).await.unwrap();
        let kept: Value = serde_json::from_slice(&last.payload).unwrap();
        assert_eq!(kept["state"], "cancelled");
        for field in ["version", "spec", "newer"] {
            assert_eq!(kept[field], record[field], "{field}");
        }
    });
}
