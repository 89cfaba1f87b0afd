//! What the owner of runs sees of those that wait and of those whose machine is silent, and what it can delete.

use std::sync::Arc;
use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::Context;
use futures_core::stream::BoxStream;
use serde_json::json;
use teamster_api::history::ForgetRuns;
use teamster_api::{
    Change, Command, FileManifest, Placement, ProblemCode, QueueReason, Reply, RunHandle,
    RunService, RunSpec, RunSummary, ServiceError, Spec, ViewState,
};
use teamster_core::RunStatus;
use teamster_fleet::FleetRuns;
use teamster_testkit::run_service::claude_that;
use tokio::time::{Instant, timeout};

use super::large::MEASURES;
use super::machine::{LIMIT, Machine, block_on, jetstream, runs};
use super::roles::{client, fleet, operator, server};

fn id(run: &str) -> ForgetRuns {
    let mut request = ForgetRuns::default();
    request.ids = vec![run.to_owned()];
    request
}

/// Submits a run, and cancels it before a worker takes it.
async fn cancelled(service: &dyn RunService, run: &str, spec: RunSpec) {
    service.start(run, spec.into()).await.unwrap();
    let cancel = Command::Cancel { kill: false };
    assert_eq!(service.send(run, cancel).await.unwrap(), Reply::Done);
}

/// Returns the newest message of a subject.
async fn newest(context: &Context, stream: &str, subject: &str) -> Option<(HeaderMap, usize)> {
    let stream = context.get_stream(stream).await.unwrap();
    let message = stream.direct_get_last_for_subject(subject).await.ok()?;
    Some((message.headers, message.payload.len()))
}

#[test]
fn a_submitter_deletes_its_files_and_not_its_logs() {
    let Some(server) = server() else { return };
    block_on(async {
        let op = operator(&server).await;
        let anns = FleetRuns::new(&fleet(&server, "ann", "ann").await);
        let (_client, context) = client(&server, "op").await;
        let mut parts = Vec::new();
        for run in ["one", "two"] {
            let manifest = FileManifest::of("notes", b"private");
            assert_eq!(anns.offer(run, manifest).await.unwrap(), [0]);
            let part = b"private".to_vec();
            anns.write_part(run, "notes", 0, part).await.unwrap();
            cancelled(&anns, run, RunSpec::new("claude", "hello")).await;
            let log = format!("tm.log.ann.{run}");
            context
                .publish(log, "line".into())
                .await
                .unwrap()
                .await
                .unwrap();
            let files = context.get_stream("TM_FILE").await.unwrap();
            let subjects = files.info_with_subjects(format!("tm.file.ann.{run}.>"));
            let mut subjects = subjects.await.unwrap();
            while let Some(subject) = super::next(&mut subjects).await {
                parts.push(subject.unwrap().0);
            }
        }
        assert_eq!(parts.len(), 4, "{parts:?}");
        let began = Instant::now();
        let mut request = id("one");
        request.ids.push("two".to_owned());
        let forgotten = anns.forget(request).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(3));
        assert_eq!((forgotten.runs, forgotten.logs), (2, 0));
        for part in parts {
            let (_, bytes) = newest(&context, "TM_FILE", &part).await.unwrap();
            assert_eq!(bytes, 0, "{part}");
        }
        // The log is there for 7 days, and so is the mark that the id was used.
        assert!(newest(&context, "TM_LOG", "tm.log.ann.one").await.is_some());
        let marker = newest(&context, "KV_tm_runs", "$KV.tm_runs.ann.one").await;
        let marker = marker.unwrap().0;
        assert_eq!(marker.get("Nats-TTL").unwrap().as_str(), "604800");
        let spec = Spec::from(RunSpec::new("claude", "hello"));
        let refused = anns.start("one", spec).await.unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::RunExists), "{refused}");
        // An operator deletes both.
        let ops = FleetRuns::new(&op);
        cancelled(&ops, "three", RunSpec::new("claude", "hello")).await;
        let log = "tm.log.op.three";
        context
            .publish(log, "line".into())
            .await
            .unwrap()
            .await
            .unwrap();
        let forgotten = ops.forget(id("three")).await.unwrap();
        assert_eq!((forgotten.runs, forgotten.logs), (1, 1));
        assert_eq!(newest(&context, "TM_LOG", log).await, None);
        // A watcher deletes nothing.
        cancelled(&anns, "four", RunSpec::new("claude", "hello")).await;
        let watched = FleetRuns::new(&fleet(&server, "eve", "ann").await);
        let refused = watched.forget(id("four")).await.unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::InsufficientScope));
        assert!(anns.resolve("four").await.is_ok());
    });
}

#[test]
fn a_large_run_that_is_resubmitted_needs_nothing_of_the_first() {
    let server = server_or_skip!();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let decides = FleetRuns::new(&fleet);
        let spec = RunSpec::new("claude", "x".repeat(1 << 20));
        cancelled(&*service, "run", spec).await;
        let rerun = decides.rerun("run").await.unwrap();
        assert_eq!(rerun.run_id, "run~2");
        assert!(!rerun.accepted.existed);
        assert!(decides.rerun("run").await.unwrap().accepted.existed);
        for (prefix, run) in [("ru", "run"), ("ru~2", "run~2"), ("run~2", "run~2")] {
            let found = service.resolve(prefix).await.unwrap();
            assert_eq!(found.run_id, run, "{prefix}");
        }
        service.forget(id("run")).await.unwrap();
        let _machine = Machine::start(&server, "w1", &claude_that(MEASURES));
        let run = RunHandle::new(service, "run~2");
        let result = timeout(LIMIT, run.result()).await.unwrap().unwrap();
        assert_eq!(result.status, RunStatus::Completed);
        assert!(result.text.parse::<usize>().unwrap() > 1 << 20);
    });
}

/// Publishes to a bucket: `null` is nothing.
pub(crate) async fn put(
    context: &Context,
    subject: &str,
    headers: &[(&str, &str)],
    json: &serde_json::Value,
) {
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        all.insert(*name, *value);
    }
    let payload = match json {
        serde_json::Value::Null => Vec::new(),
        json => serde_json::to_vec(json).unwrap(),
    };
    let sent = context.publish_with_headers(subject.to_owned(), all, payload.into());
    sent.await.unwrap().await.unwrap();
}

/// The presence of a worker whose only slot is in use.
fn busy(worker: &str) -> serde_json::Value {
    json!({
        "worker": worker, "instance": "0".repeat(32), "pools": ["default"],
        "agents": [{ "id": "claude", "ready": true }],
        "machine": "0".repeat(32), "slots": 1, "running": 1, "drains": false, "version": "1",
        "permissions": [], "specVersion": 1,
    })
}

type Changes = BoxStream<'static, Result<Change, ServiceError>>;

async fn next_run(changes: &mut Changes) -> Arc<RunSummary> {
    loop {
        let change = timeout(LIMIT, super::next(changes)).await.unwrap();
        if let Change::Run { run } = change.unwrap().unwrap() {
            return run;
        }
    }
}

#[test]
fn a_reader_of_changes_sees_why_a_run_waits_now() {
    let server = server_or_skip!();
    block_on(async {
        let (_fleet, service) = runs(&server, 0).await;
        let context = jetstream(&server).await;
        let spec = RunSpec::new("claude", "hello");
        service.start("run", spec.into()).await.unwrap();
        let mut spec = RunSpec::new("claude", "hello");
        spec.placement = Placement::machine("w9");
        service.start("other", spec.into()).await.unwrap();
        let mut changes = service.changes();
        let Change::Snapshot { runs, .. } = super::next(&mut changes).await.unwrap().unwrap()
        else {
            panic!("expected a snapshot first")
        };
        let reasons = runs.iter().map(|run| run.queue.clone().unwrap().reason);
        assert_eq!(
            reasons.collect::<Vec<_>>(),
            [QueueReason::MachineAbsent, QueueReason::NoMachine]
        );
        put(&context, "$KV.tm_workers.=here.w1", &[], &busy("w1")).await;
        let run = next_run(&mut changes).await;
        let queue = run.queue.clone().unwrap();
        assert_eq!(
            (&*run.info.run_id, queue.reason),
            ("run", QueueReason::NoSlot)
        );
        assert_eq!(run.state, ViewState::Queued);
        put(&context, "$KV.tm_workers.=here.w9", &[], &busy("w9")).await;
        let run = next_run(&mut changes).await;
        let queue = run.queue.clone().unwrap();
        assert_eq!(
            (&*run.info.run_id, queue.reason),
            ("other", QueueReason::NoSlot)
        );
    });
}

#[test]
fn runs_of_a_cut_off_machine_are_asked_and_shown_as_unknown() {
    const RUNS: u32 = 4;
    /// Time in which a machine must answer.
    const LOOK: Duration = Duration::from_secs(5);
    let server = server_or_skip!();
    block_on(async {
        let (_fleet, service) = runs(&server, 0).await;
        let client = async_nats::connect(&server.url).await.unwrap();
        let context = async_nats::jetstream::new(client.clone());
        // The server has not noticed that the machine is gone: it still delivers to it.
        let _silent = client.subscribe("tm.ctl.>").await.unwrap();
        let worker = "$KV.tm_workers.=here.w1";
        put(&context, worker, &[], &busy("w1")).await;
        let spec = serde_json::to_value(Spec::from(RunSpec::new("claude", "hello"))).unwrap();
        for run in 0..RUNS {
            let record = json!({
                "version": Spec::VERSION, "state": "started", "worker": "w1", "pool": "default",
                "claim": { "instance": "0".repeat(32), "nonce": "1".repeat(32) },
                "provider": "claude", "spec": spec, "times": { "queued": 1, "started": 2 },
            });
            put(
                &context,
                &format!("$KV.tm_runs.ann.run-{run}"),
                &[],
                &record,
            )
            .await;
        }
        let mut changes = service.changes();
        let snapshot = super::next(&mut changes).await.unwrap().unwrap();
        let Change::Snapshot { runs, .. } = snapshot else {
            panic!("expected a snapshot first")
        };
        assert!(runs.iter().all(|run| run.state == ViewState::Running));
        let marker = [("KV-Operation", "DEL")];
        put(&context, worker, &marker, &json!(null)).await;
        let began = Instant::now();
        for _ in 0..RUNS {
            assert_eq!(next_run(&mut changes).await.state, ViewState::Unknown);
        }
        assert!(began.elapsed() < 2 * LOOK, "{:?}", began.elapsed());
    });
}

#[test]
fn runs_are_counted_without_their_contents() {
    let server = server_or_skip!();
    block_on(async {
        let (fleet, _service) = runs(&server, 0).await;
        let context = jetstream(&server).await;
        for (run, state, queue) in [
            ("a", "queued", "tm.work.gpu.claude.n"),
            ("b", "queued", "tm.host.w3.bob.b"),
            ("c", "started", "tm.work.gpu.claude.n"),
        ] {
            let headers = [("Tm-State", state), ("Tm-Queue", queue), ("Tm-Queued", "1")];
            let subject = format!("$KV.tm_runs.bob.{run}");
            put(&context, &subject, &headers, &json!("not read")).await;
        }
        let status = fleet.status().await.unwrap();
        assert_eq!((status.runs["queued"], status.runs["started"]), (2, 1));
        let queues = status.queues.iter().map(|queue| {
            assert!(queue.oldest_ms > 1_000_000_000_000, "{queue:?}");
            (queue.pool.as_deref(), queue.machine.as_deref())
        });
        let queues: Vec<_> = queues.collect();
        assert_eq!(queues, [(None, Some("w3")), (Some("gpu"), None)]);
    });
}
