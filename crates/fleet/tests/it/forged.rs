//! What a submitter writes past the library: records, hints, files and requests, on a server with roles. A worker takes
//! none of it for true.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{AckPolicy, push};
use async_nats::{Client, HeaderMap, Subject};
use serde_json::{Value, json};
use teamster_api::{
    Placement, ProblemCode, RunHandle, RunInfo, RunService, RunSpec, RunSummary, SessionSpec,
    ViewState,
};
use teamster_core::{ErrorCode, PermissionMode, RunResult, RunStatus, Stopping};
use teamster_fleet::FleetRuns;
use tokio::time::timeout;

use super::machine::{Machine, Shared, block_on, until_workers};
use super::roles::{client, fleet, operator, publishes, server, url};
use super::server::Server;

/// Time in which a worker must end the run that is to end.
const ENDS: Duration = Duration::from_mins(2);

async fn runs_of(server: &Server, owner: &str) -> Arc<dyn RunService> {
    Arc::new(FleetRuns::new(&fleet(server, owner, owner).await))
}

async fn start(service: &Arc<dyn RunService>, id: &str, spec: RunSpec) -> RunHandle {
    RunHandle::start(service.clone(), id, spec).await.unwrap()
}

async fn end(run: &RunHandle) -> Box<RunResult> {
    timeout(ENDS, run.result()).await.unwrap().unwrap()
}

async fn publish(context: &Context, subject: &str, headers: &[(&str, &str)], payload: Vec<u8>) {
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        all.insert(*name, *value);
    }
    let sent = context.publish_with_headers(subject.to_owned(), all, payload.into());
    sent.await.unwrap().await.unwrap();
}

/// Made by hand: the record of a queued run, as `ann` writes it.
fn queued(spec: &Value) -> Value {
    json!({
        "version": 1, "state": "queued", "pool": "default", "provider": "claude",
        "spec": spec, "times": { "queued": 1 },
    })
}

/// Publishes the record of a run, and its hint.
async fn forge(context: &Context, owner: &str, run: &str, record: &Value) {
    let headers = [
        ("Tm-State", "queued"),
        ("Tm-Queued", "1"),
        ("Tm-Queue", "tm.work.default.claude.n"),
    ];
    let subject = format!("$KV.tm_runs.{owner}.{run}");
    publish(
        context,
        &subject,
        &headers,
        serde_json::to_vec(record).unwrap(),
    )
    .await;
    hint(context, &format!("{owner}.{run}")).await;
}

async fn hint(context: &Context, key: &str) {
    publish(context, "tm.work.default.claude.n", &[], key.into()).await;
}

/// Returns the number and the content of the last message of a subject.
async fn last(context: &Context, stream: &str, subject: &str) -> Option<(u64, Vec<u8>)> {
    let stream = context.get_stream_no_info(stream).await.unwrap();
    let message = stream.direct_get_last_for_subject(subject).await.ok()?;
    Some((message.sequence, message.payload.to_vec()))
}

#[test]
fn data_of_one_owner_changes_nothing_of_another() {
    let Some(server) = server() else { return };
    let shared = Shared::answering();
    block_on(async {
        let _op = operator(&server).await;
        let (_, op_context) = client(&server, "op").await;
        let (ann, ann_context) = client(&server, "ann").await;
        // It waits for a pool that has no worker.
        let bobs = runs_of(&server, "bob").await;
        let mut spec = RunSpec::new("claude", "of bob");
        spec.placement = Placement::pool("gpu");
        let bobs_run = start(&bobs, "r1", spec).await;
        assert!(publishes(&op_context, "tm.log.bob.r1").await);
        let targets = [
            ("KV_tm_runs", "$KV.tm_runs.bob.r1"),
            ("TM_LOG", "tm.log.bob.r1"),
        ];
        let mut before = Vec::new();
        for (stream, subject) in targets {
            before.push(last(&op_context, stream, subject).await.unwrap());
        }
        // Another subject in place of a queue.
        for (number, (_, subject)) in targets.into_iter().enumerate() {
            let headers = [
                ("Tm-State", "queued"),
                ("Tm-Queued", "1"),
                ("Tm-Queue", subject),
            ];
            let record = queued(&json!({}));
            let own = format!("$KV.tm_runs.ann.x{number}");
            publish(
                &ann_context,
                &own,
                &headers,
                serde_json::to_vec(&record).unwrap(),
            )
            .await;
        }
        // A number after which there is none.
        let mut record = queued(&json!({ "run": { "provider": "claude", "prompt": "x" } }));
        record["state"] = "lost".into();
        let info = RunInfo::new("x9", "claude");
        record["summary"] = serde_json::to_value(RunSummary::new(info, ViewState::Ended)).unwrap();
        record["summary"]["seq"] = u64::MAX.into();
        let headers = [
            ("Tm-State", "lost"),
            ("Tm-Queued", "1"),
            ("Tm-Queue", "tm.work.default.claude.n"),
        ];
        let json = serde_json::to_vec(&record).unwrap();
        publish(&ann_context, "$KV.tm_runs.ann.x9", &headers, json).await;
        // Files that are none.
        for (number, manifest) in [
            json!({ "name": "../../x", "bytes": 1, "sha256": "0".repeat(64), "partBytes": 524_288, "parts": ["0".repeat(64)] }),
            json!({ "name": "a", "bytes": u64::MAX, "sha256": "0".repeat(64), "partBytes": 0, "parts": [] }),
            json!({ "name": "a", "bytes": 1_u64 << 32, "sha256": "0".repeat(64), "partBytes": 524_288, "parts": vec!["0".repeat(64); 8192] }),
        ]
        .into_iter()
        .enumerate()
        {
            let run = format!("f{number}");
            let json = serde_json::to_vec(&manifest).unwrap();
            publish(&ann_context, &format!("tm.file.ann.{run}.u.x.m"), &[], json).await;
            let spec = json!({ "run": { "provider": "claude", "prompt": "x" } });
            forge(&ann_context, "ann", &run, &queued(&spec)).await;
        }
        // A hint that another's run is in the pool that has workers.
        hint(&ann_context, "bob.r1").await;
        // The server sends a record of hers to where she may not publish.
        let spec = json!({ "run": { "provider": "claude", "prompt": "x" } });
        forge(&ann_context, "ann", "copy", &queued(&spec)).await;
        let copies = "$JS.API.DIRECT.GET.KV_tm_runs.$KV.tm_runs.ann.copy";
        let to = Subject::from("$KV.tm_runs.bob.copy");
        ann.publish_with_reply(copies, to, "".into()).await.unwrap();
        // And answers to her requests.
        for (request, (_, subject)) in ["$KV.tm_runs.ann.answer", "$JS.API.INFO"]
            .into_iter()
            .zip(targets)
        {
            let to = Subject::from(subject);
            ann.publish_with_reply(request, to, "".into())
                .await
                .unwrap();
        }
        ann.flush().await.unwrap();
        hint(&ann_context, "bob.copy").await;
        // The hint of the last one is lost: what repairs it has seen the other records.
        let anns = runs_of(&server, "ann").await;
        let mut spec = RunSpec::new("claude", "hello");
        spec.placement = Placement::pool("other");
        let late = start(&anns, "late", spec).await;
        let queue = op_context.get_stream("TM_WORK").await.unwrap();
        let number = queue.cached_info().state.last_sequence;
        assert!(queue.delete_message(number).await.unwrap());
        let (url, policy) = (
            url(&server, "w1"),
            Some("slots = 4\npools = ['default', 'other']"),
        );
        let mut w1 = Machine::of(&url, "w1", &shared.agent(), policy, None);
        assert_eq!(end(&late).await.status, RunStatus::Completed);
        // The one that was copied is an ordinary run where she may write it.
        let copied = RunHandle::new(anns.clone(), "copy");
        assert_eq!(end(&copied).await.status, RunStatus::Completed);
        let mut after = Vec::new();
        for (stream, subject) in targets {
            after.push(last(&op_context, stream, subject).await.unwrap());
        }
        assert_eq!(after, before);
        assert_eq!(
            bobs_run.view().await.unwrap().summary.state,
            ViewState::Queued
        );
        let gone = bobs.show("copy").await.unwrap_err();
        assert_eq!(gone.code, Some(ProblemCode::RunNotFound));
        for run in ["f0", "f1", "f2"] {
            let view = anns.show(run).await.unwrap();
            assert_eq!(view.summary.state, ViewState::Queued, "{run}");
        }
        w1.drain();
        assert_eq!(shared.count(), 2);
        // Nothing of what was refused counts for the limit of uploads.
        let uploads = w1.folder.path().join("state/teamster/uploads");
        let left = fs::read_dir(uploads).map_or(0, Iterator::count);
        assert_eq!(left, 0);
    });
}

/// Changes the record of a run as its owner can.
async fn tamper(context: &Context, run: &str, change: impl FnOnce(&mut Value)) {
    let stream = context.get_stream_no_info("KV_tm_runs").await.unwrap();
    let subject = format!("$KV.tm_runs.ann.{run}");
    let last = stream.direct_get_last_for_subject(&*subject).await.unwrap();
    let mut record = serde_json::from_slice(&last.payload).unwrap();
    change(&mut record);
    let names = [
        "Tm-State",
        "Tm-Queue",
        "Tm-Queued",
        "Tm-Instance",
        "Tm-Nonce",
    ];
    let headers = names.map(|name| (name, last.headers.get(name).unwrap().as_str()));
    publish(
        context,
        &subject,
        &headers,
        serde_json::to_vec(&record).unwrap(),
    )
    .await;
}

#[test]
fn record_changed_after_the_claim_starts_nothing_forbidden() {
    let Some(server) = server() else { return };
    let shared = Shared::new();
    // Where the agent works is written down.
    let agent = shared
        .agent()
        .replace("echo \"$$\" >>", "pwd > SHARED/pwd; echo \"$$\" >>");
    let agent = agent.replace("SHARED", shared.0.path().to_str().unwrap());
    block_on(async {
        let op = operator(&server).await;
        let (_, ann_context) = client(&server, "ann").await;
        let anns = runs_of(&server, "ann").await;
        let policy = Some("slots = 4\nmax_time = '3s'");
        let url = url(&server, "w1");
        let mut machine = Machine::of(&url, "w1", &agent, policy, Some("step: Start"));
        until_workers(&op, 1).await;
        let changes: [(&str, &str, Value); 6] = [
            ("step: Start", "permission", json!("bypass")),
            ("step: Start", "trusted", json!({ "program": "/bin/sh" })),
            ("step: Start", "trusted", json!({ "env": { "A": "b" } })),
            ("step: Start", "workingDirectory", json!("/")),
            ("Spawn", "permission", json!("bypass")),
            (
                "Spawn",
                "workspace",
                json!({ "kind": "directory", "path": "/" }),
            ),
        ];
        for (number, (before, field, value)) in changes.into_iter().enumerate() {
            if number > 0 {
                machine.restart_dying(&agent, Some(before));
            }
            let run = start(&anns, &format!("r{number}"), RunSpec::new("claude", "x")).await;
            machine.until_dead();
            tamper(&ann_context, run.id(), |record| {
                record["spec"]["run"][field] = value.clone();
            })
            .await;
            machine.restart(&agent);
            let result = end(&run).await;
            assert_eq!(result.status, RunStatus::Failed, "{field} {value}");
            assert_eq!(shared.count(), 0, "{field} {value}");
            machine.kill();
        }
        // What the machine has decided is in its own folder.
        machine.restart_dying(&agent, Some("Spawn"));
        let mut spec = RunSpec::new("claude", "x");
        spec.session_key = Some("key".to_owned());
        let run = start(&anns, "decided", spec).await;
        machine.until_dead();
        tamper(&ann_context, "decided", |record| {
            record["directory"] = "/".into();
            record["maxTimeMs"] = Value::Null;
            record["spec"]["run"]["maxTimeMs"] = 0.into();
        })
        .await;
        machine.restart(&agent);
        // The agent works until there is a file `go`.
        let result = end(&run).await;
        assert_eq!(result.errors[0].code, ErrorCode::BudgetExceeded);
        assert_eq!(shared.count(), 1);
        let directory = fs::read_to_string(shared.0.path().join("pwd")).unwrap();
        assert!(directory.contains("fleet-conversations"), "{directory}");
    });
}

/// Asks a worker about a run of ann's, with any subject for the answer.
async fn ask(client: &Client, run: &str, reply: &str) {
    let question = json!({ "version": 1, "question": "show" });
    let question = serde_json::to_vec(&question).unwrap();
    let subject = format!("tm.ctl.ann.{run}");
    let reply = Subject::from(reply);
    let sent = client.publish_with_reply(subject, reply, question.into());
    sent.await.unwrap();
}

#[test]
fn requests_to_a_worker_do_no_more_than_who_sends_them_may() {
    let Some(server) = server() else { return };
    let shared = Shared::new();
    block_on(async {
        let op = operator(&server).await;
        let (_, op_context) = client(&server, "op").await;
        let (ann, ann_context) = client(&server, "ann").await;
        let agent = shared.agent();
        let policy = Some("slots = 4\npermissions = ['default']");
        let mut w1 = Machine::of(&url(&server, "w1"), "w1", &agent, policy, None);
        until_workers(&op, 1).await;
        let anns = runs_of(&server, "ann").await;
        let session = RunHandle::start(anns.clone(), "s1", SessionSpec::new("claude")).await;
        let session = session.unwrap();
        // A mode that the policy does not have.
        for mode in [PermissionMode::Bypass, PermissionMode::AcceptEdits] {
            let refused = session.set_permission(mode).await.unwrap_err();
            assert!(refused.message.contains("does not allow"), "{refused}");
        }
        session
            .set_permission(PermissionMode::Default)
            .await
            .unwrap();
        // The answer would be a record, or an entry of a log, of another owner.
        let targets = [
            ("KV_tm_runs", "$KV.tm_runs.bob.r1"),
            ("TM_LOG", "tm.log.bob.r1"),
        ];
        for (_, subject) in targets {
            ask(&ann, "s1", subject).await;
        }
        ann.flush().await.unwrap();
        // Those are answered after it.
        for _ in 0..5 {
            assert!(session.view().await.unwrap().summary.live.is_some());
        }
        for (stream, subject) in targets {
            assert_eq!(last(&op_context, stream, subject).await, None, "{subject}");
        }
        // A consumer delivers to where its maker may not publish.
        let records = ann_context.get_stream_no_info("KV_tm_runs").await.unwrap();
        let push = push::Config {
            name: Some("drains".to_owned()),
            filter_subject: "$KV.tm_runs.ann.>".to_owned(),
            deliver_subject: "tm.drain.w1".to_owned(),
            ack_policy: AckPolicy::Explicit,
            ..push::Config::default()
        };
        records.create_consumer(push).await.unwrap();
        let run = start(&anns, "run", RunSpec::new("claude", "hello")).await;
        shared.until_count(1);
        assert!(!op.workers().await.unwrap()[0].drains);
        shared.go();
        assert_eq!(end(&run).await.status, RunStatus::Completed);
        session.cancel(Stopping::Graceful).await.unwrap();
        w1.drain();
    });
}

#[test]
fn sessions_and_records_of_other_owners_are_out_of_reach() {
    let Some(server) = server() else { return };
    let shared = Shared::answering();
    block_on(async {
        let op = operator(&server).await;
        let (_, op_context) = client(&server, "op").await;
        let (_, bob_context) = client(&server, "bob").await;
        let anns = runs_of(&server, "ann").await;
        let mut w1 = Machine::start_at(&url(&server, "w1"), "w1", &shared.agent());
        until_workers(&op, 1).await;
        let anns_run = start(&anns, "s1", RunSpec::new("claude", "hello")).await;
        assert_eq!(end(&anns_run).await.status, RunStatus::Completed);
        let spec = json!({ "session": {
            "provider": "claude", "continues": "ann@s1", "workspace": { "kind": "continued" },
        } });
        forge(&bob_context, "bob", "s2", &queued(&spec)).await;
        let bobs = runs_of(&server, "bob").await;
        let result = end(&RunHandle::new(bobs, "s2")).await;
        assert_eq!(result.status, RunStatus::Failed);
        let message = &result.errors[0].message;
        assert!(message.contains("continues: expected the id"), "{message}");
        assert_eq!(shared.count(), 1);
        // It would remove the records of all.
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Rollup", "all");
        let sent = bob_context.publish_with_headers("$KV.tm_runs.bob.x", headers, "".into());
        assert!(sent.await.unwrap().await.is_err());
        let record = last(&op_context, "KV_tm_runs", "$KV.tm_runs.ann.s1").await;
        assert!(record.is_some());
        w1.drain();
    });
}
