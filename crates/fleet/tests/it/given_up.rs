//! Runs whose machine does not report, and what a person decides about them.

use std::fs;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use teamster_api::{
    Change, LiveState, Placement, ProblemCode, QueueReason, RunHandle, RunQuery, RunService,
    RunSpec, RunSummary, RunView, ServiceError, ViewState,
};
use teamster_core::{PermissionMode, RunStatus, Stopping};
use teamster_fleet::{Fleet, FleetRuns};
use teamster_testkit::proc::wait_until;
use teamster_testkit::run_service::claude_that;
use tempfile::TempDir;
use tokio::time::{Instant, timeout};

use super::contract::{limits, repository};
use super::machine::{
    LIMIT, Machine, Shared, block_on, dead_worker, end, jetstream, read, runs, runs_of, submit,
    until_workers,
};
use super::placement::until_waits;
use super::server::Server;

async fn until_shown(run: &RunHandle, state: ViewState) -> Arc<RunSummary> {
    let until = Instant::now() + LIMIT;
    loop {
        let view = run.view().await.unwrap();
        if view.summary.state == state {
            return view.summary;
        }
        assert!(Instant::now() < until, "{:?}", view.summary);
    }
}

fn code<T: std::fmt::Debug>(refused: Result<T, ServiceError>) -> Option<ProblemCode> {
    refused.unwrap_err().code
}

#[test]
fn a_run_of_a_lost_machine_is_unknown_until_a_person_decides() {
    let server = server_or_skip!();
    let shared = Shared::new();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let decides = FleetRuns::new(&fleet);
        let mut machine = Machine::start(&server, "w1", &shared.agent());
        until_workers(&fleet, 1).await;
        let mut spec = RunSpec::new("claude", "hello");
        spec.permission = PermissionMode::ReadOnly;
        spec.rerun_if_lost = true;
        let run = RunHandle::start(service.clone(), "run", spec)
            .await
            .unwrap();
        let mut log = run.follow(0);
        for _ in 0..10 {
            timeout(LIMIT, log.next()).await.unwrap().unwrap().unwrap();
        }
        // Of a machine that is there, nothing is given up.
        let refused = decides.give_up("run").await.unwrap_err();
        assert_eq!(refused.code, Some(ProblemCode::RunLive));
        assert!(refused.message.contains("cancel"), "{refused}");
        assert_eq!(code(decides.rerun("run").await), Some(ProblemCode::RunLive));
        let mut changes = service.changes();
        let first = poll_fn(|context| changes.as_mut().poll_next(context)).await;
        assert!(matches!(first, Some(Ok(Change::Snapshot { .. }))));
        let began = teamster_core::time::epoch_ms();
        machine.kill();
        // It may come back at once.
        let silent = run.view().await.unwrap().summary;
        assert_eq!(silent.state, ViewState::Running);
        assert_eq!(silent.live.as_ref().unwrap().state, LiveState::NotAnswering);
        let unknown = until_shown(&run, ViewState::Unknown).await;
        // Those who watch see it by themselves.
        let watched = async {
            loop {
                let change = poll_fn(|context| changes.as_mut().poll_next(context)).await;
                if let Change::Run { run } = change.unwrap().unwrap()
                    && run.state == ViewState::Unknown
                {
                    return run;
                }
            }
        };
        assert_eq!(timeout(LIMIT, watched).await.unwrap(), unknown);
        assert!(unknown.since.unwrap() >= began, "{unknown:?}");
        assert_eq!(unknown.machine.as_deref(), Some("w1"));
        decides.give_up("run").await.unwrap();
        decides.give_up("run").await.unwrap();
        let lost = run.view().await.unwrap();
        assert_eq!(lost.summary.status, Some(RunStatus::Failed));
        let error = lost.summary.error.as_ref().unwrap();
        assert!(error.message.contains("given up"), "{error:?}");
        // Another worker resubmits it, and ends its log.
        let again = RunHandle::new(service.clone(), "run~2");
        // The queue is full meanwhile.
        let jetstream = jetstream(&server).await;
        let queue = jetstream.get_stream("TM_WORK").await.unwrap();
        let mut config = queue.cached_info().config.clone();
        config.max_messages = 1;
        jetstream.update_stream(config).await.unwrap();
        let hint = jetstream.publish("tm.work.gpu.claude.n", "ann.none".into());
        hint.await.unwrap().await.unwrap();
        let other = Machine::start(&server, "w2", &shared.agent());
        let waits = async { while service.show("run~2").await.is_err() {} };
        timeout(LIMIT, waits).await.unwrap();
        until_shown(&again, ViewState::Queued).await;
        queue.purge().await.unwrap();
        shared.until_count(2);
        assert!(other.log("run~2").exists());
        let rerun = decides.rerun("run").await.unwrap();
        assert_eq!((&*rerun.run_id, rerun.accepted.existed), ("run~2", true));
        assert!(rerun.accepted.warnings[0].contains("may have worked"));
        let text = String::from_utf8(read(&run).await).unwrap();
        let last = text.lines().last().unwrap();
        assert!(last.contains("given up"), "{text}");
        let lines: Vec<_> = text.lines().collect();
        assert!(lines.len() > 10, "{text}");
        let original = String::from_utf8(machine.shown("run").unwrap()).unwrap();
        assert!(original.starts_with(&lines[..10].join("\n")), "{text}");
        // The agent of the machine that comes back is stopped there, and what it wrote stays there.
        let live = fs::read(machine.log("run")).unwrap();
        assert!(!live.ends_with(b"}\n") || !String::from_utf8_lossy(&live).contains("\"done\""));
        machine.restart_dying(&shared.agent(), Some("Stop"));
        machine.until_dead();
        machine.restart(&shared.agent());
        let stopped = wait_until(LIMIT, || {
            let log = fs::read_to_string(machine.log("run")).unwrap_or_default();
            log.lines()
                .last()
                .is_some_and(|line| line.contains("\"type\":\"done\""))
        });
        assert!(stopped);
        shared.go();
        assert_eq!(end(&again).await, RunStatus::Completed);
        machine.drain();
        assert_eq!(String::from_utf8(read(&run).await).unwrap(), text);
        assert_eq!(
            run.view().await.unwrap().summary.status,
            Some(RunStatus::Failed)
        );
        assert_eq!(shared.count(), 2);
        assert_eq!(
            code(decides.give_up("run~2").await),
            Some(ProblemCode::RunEnded)
        );
        let left = fs::read_dir(machine.folder.path().join("state/teamster/fleet/w1")).unwrap();
        assert_eq!(left.count(), 1);
    });
}

#[test]
fn run_that_a_killed_worker_had_only_claimed_is_shown_as_queued() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    block_on(async {
        let (run, mut machine) = dead_worker(&server, &shared.agent(), "MakeFolder").await;
        let (_, service) = runs_of(&server, "ann").await;
        let other = submit(&service, "other").await;
        let mut changes = service.changes();
        let watched = async {
            loop {
                let change = poll_fn(|context| changes.as_mut().poll_next(context)).await;
                if let Change::Run { run } = change.unwrap().unwrap()
                    && run.info.run_id == "run"
                    && (run.queue.as_ref()).is_some_and(|it| it.reason == QueueReason::NoMachine)
                {
                    return run;
                }
            }
        };
        // What is known of the workers is older when the worker goes, because it is read all the time.
        let (watched, _) = tokio::join!(
            timeout(LIMIT, watched),
            until_waits(&other, QueueReason::NoMachine)
        );
        assert_eq!(watched.unwrap().state, ViewState::Queued);
        other.cancel(Stopping::Graceful).await.unwrap();
        let queued = until_shown(&run, ViewState::Queued).await;
        assert_eq!(queued.machine, None);
        until_waits(&run, QueueReason::NoMachine).await;
        let mut query = RunQuery::default();
        query.live = true;
        let listed = service.list(query).await.unwrap().runs;
        let listed: Vec<_> = listed.iter().map(|run| (run.state, &run.machine)).collect();
        assert_eq!(listed, [(ViewState::Queued, &None)]);
        machine.restart(&shared.agent());
        assert_eq!(end(&run).await, RunStatus::Completed);
        assert_eq!(shared.count(), 1);
    });
}

#[test]
fn run_that_ended_before_its_loss_is_ended_by_another() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let mut machine = Machine::dying(&server, "w1", &shared.agent(), Some("step: End"));
        until_workers(&fleet, 1).await;
        let run = submit(&service, "run").await;
        machine.until_dead();
        until_shown(&run, ViewState::Unknown).await;
        let client = async_nats::connect(&server.url).await.unwrap();
        let mut readers = client.subscribe("tm.watch.>").await.unwrap();
        client.flush().await.unwrap();
        let decides = FleetRuns::new(&fleet);
        let _other = Machine::start(&server, "w2", &shared.agent());
        let ended = until_shown(&run, ViewState::Ended).await;
        assert_eq!(ended.status, Some(RunStatus::Completed));
        assert_eq!(ended.machine.as_deref(), Some("w1"));
        assert_eq!(ended.session_id.as_deref(), Some("s"));
        assert_eq!(
            ended.usage.as_ref().and_then(|usage| usage.output_tokens),
            Some(5)
        );
        let result = run.view().await.unwrap().result.unwrap();
        assert_eq!(result.text, "done");
        // What the server has sent until now is there. A worker that repairs may not report that it reads.
        client.flush().await.unwrap();
        let reader = timeout(Duration::ZERO, super::next(&mut readers)).await;
        assert!(reader.is_err(), "{reader:?}");
        // Once more on purpose, under another id.
        let rerun = decides.rerun("run").await.unwrap();
        assert_eq!((&*rerun.run_id, rerun.accepted.existed), ("run~2", false));
        assert_eq!(rerun.accepted.warnings, Vec::<String>::new());
        let again = RunHandle::new(service, "run~2");
        assert_eq!(end(&again).await, RunStatus::Completed);
        assert_eq!(shared.count(), 2);
    });
}

#[test]
fn remotely_drained_worker_ends_and_interrupts_its_runs() {
    let server = server_or_skip!();
    let shared = Shared::new();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let mut machine = Machine::with(
            &server,
            "w1",
            &shared.agent(),
            None,
            &[("WORKER_DRAIN_SECONDS", "1")],
        );
        until_workers(&fleet, 1).await;
        let spec = RunSpec::new("claude", "hello");
        let run = RunHandle::start(service.clone(), "run", spec.clone())
            .await
            .unwrap();
        shared.until_count(1);
        let nothing = fleet.drain("w7").await.unwrap_err();
        assert!(nothing.message.contains("no worker \"w7\""), "{nothing}");
        fleet.drain("w1").await.unwrap();
        let second = RunHandle::start(service, "second", spec).await.unwrap();
        let result = timeout(LIMIT, run.result()).await.unwrap().unwrap();
        assert_eq!((result.status, result.aborted), (RunStatus::Aborted, true));
        machine.until_dead();
        assert_eq!(fleet.workers().await.unwrap(), []);
        assert_eq!(read(&run).await, machine.shown("run").unwrap());
        let queued = second.view().await.unwrap().summary.state;
        assert_eq!(queued, ViewState::Queued);
        assert_eq!(shared.count(), 1);
    });
}

/// Lets the presence of a worker be that of another machine.
async fn take_name(server: &Server, worker: &str) {
    let client = async_nats::connect(&server.url).await.unwrap();
    let jetstream = async_nats::jetstream::new(client);
    let workers = jetstream.get_stream("KV_tm_workers").await.unwrap();
    let subject = format!("$KV.tm_workers.=here.{worker}");
    let last = workers.get_last_raw_message_by_subject(&subject).await;
    let mut present: Value = serde_json::from_slice(&last.unwrap().payload).unwrap();
    present["machine"] = "0123456789abcdef0123456789abcdef".into();
    let other = serde_json::to_vec(&present).unwrap();
    let stored = jetstream.publish(subject, other.into()).await.unwrap();
    stored.await.unwrap();
}

#[test]
fn machine_with_the_name_of_a_lost_one_does_not_replace_it() {
    let server = server_or_skip!();
    let shared = Shared::new();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let decides = FleetRuns::new(&fleet);
        let mut machine = Machine::start(&server, "w1", &shared.agent());
        let mut drained = Machine::start(&server, "w2", &shared.agent());
        until_workers(&fleet, 2).await;
        let mut spec = RunSpec::new("claude", "hello");
        spec.placement = Placement::machine("w1");
        let run = RunHandle::start(service, "run", spec).await.unwrap();
        shared.until_count(1);
        until_shown(&run, ViewState::Running).await;
        machine.kill();
        take_name(&server, "w1").await;
        let unknown = until_shown(&run, ViewState::Unknown).await;
        assert_eq!(unknown.machine.as_deref(), Some("w1"));
        decides.give_up("run").await.unwrap();
        // One that ends does not take away what the other one reports.
        take_name(&server, "w2").await;
        drained.drain();
        let there = fleet.workers().await.unwrap();
        let there: Vec<_> = there.iter().map(|worker| &*worker.worker).collect();
        assert_eq!(there, ["w1", "w2"]);
        // The run of the machine that is lost continues without its worker.
        shared.go();
        let has_ended = wait_until(LIMIT, || {
            let log = fs::read_to_string(machine.log("run")).unwrap_or_default();
            log.contains("\"type\":\"done\"")
        });
        assert!(has_ended);
    });
}

#[test]
fn run_with_a_damaged_claim_ends_without_an_agent() {
    let server = server_or_skip!();
    let shared = Shared::new();
    block_on(async {
        let (run, mut machine) = dead_worker(&server, &shared.agent(), "Spawn").await;
        let folder = machine
            .folder
            .path()
            .join("state/teamster/fleet/w1/ann@run");
        fs::write(folder.join("claim.json"), "{\"version\":1").unwrap();
        machine.restart(&shared.agent());
        // It is no reason to read it again.
        let result = timeout(LIMIT, run.result()).await.unwrap().unwrap();
        assert_eq!(result.status, RunStatus::Failed);
        let error = &result.errors[0].message;
        assert!(error.contains("damaged, so it was not started"), "{error}");
        assert_eq!(shared.count(), 0);
        let is_gone = wait_until(LIMIT, || !folder.exists());
        assert!(is_gone);
    });
}

/// What an agent does that writes a file for which the fleet has no room.
const WRITES: &str = "head -c 3000000 /dev/urandom > large; init; result done";

/// Starts a worker with these variables in a fleet that has little room for files, and a run there whose changes have none.
async fn without_room(
    server: &Server,
    variables: &[(&str, &str)],
) -> (Fleet, RunHandle, Machine, TempDir) {
    let (fleet, service) = runs_of(server, "ann").await;
    let mut limits = limits();
    limits.file_bytes = Some(1 << 20);
    fleet.init(&limits).await.unwrap();
    let files = tempfile::tempdir().unwrap();
    let repository = repository(files.path());
    let machine = Machine::with(
        server,
        "w1",
        &claude_that(WRITES),
        Some(&repository),
        variables,
    );
    until_workers(&fleet, 1).await;
    let mut spec = RunSpec::new("claude", "hello");
    let place = json!({ "kind": "worktree", "directory": repository });
    spec.workspace = Some(serde_json::from_value(place).unwrap());
    let run = RunHandle::start(service, "run", spec).await.unwrap();
    (fleet, run, machine, files)
}

/// Returns a run whose record has its end: for a moment, it is still the machine that answers.
async fn until_ended(run: &RunHandle) -> RunView {
    let until = Instant::now() + LIMIT;
    loop {
        let view = run.view().await.unwrap();
        if view.result.is_some() {
            return view;
        }
        assert!(Instant::now() < until, "{:?}", view.summary);
    }
}

#[test]
fn run_whose_changes_have_no_room_says_where_they_are() {
    let server = server_or_skip!();
    block_on(async {
        let (_fleet, run, _machine, _files) = without_room(&server, &[]).await;
        let text = String::from_utf8(read(&run).await).unwrap();
        let view = until_ended(&run).await;
        for workspace in [&view.summary.workspace, &view.result.unwrap().workspace] {
            let workspace = workspace.as_ref().unwrap();
            assert_eq!(workspace.branch.as_deref(), Some("teamster/run"));
            let error = workspace.error.as_deref().unwrap();
            assert!(
                error.contains("on worker w1") && error.contains("no more space"),
                "{error}"
            );
            assert!(text.lines().last().unwrap().contains(error), "{text}");
        }
    });
}

#[test]
fn log_and_record_agree_on_files_if_room_comes_after_the_end() {
    let server = server_or_skip!();
    block_on(async {
        let dies = [("WORKER_DIES_BEFORE", "step: End")];
        let (fleet, run, mut machine, _files) = without_room(&server, &dies).await;
        let seen = String::from_utf8(read(&run).await).unwrap();
        assert!(seen.contains("but on worker w1"), "{seen}");
        machine.until_dead();
        fleet.init(&limits()).await.unwrap();
        // The next process of the worker cannot see what the first one has sent.
        let logs = jetstream(&server).await.get_stream("TM_LOG").await.unwrap();
        logs.purge().await.unwrap();
        machine.restart(&claude_that(WRITES));
        let view = until_ended(&run).await;
        let copy = String::from_utf8(read(&run).await).unwrap();
        assert_eq!(copy, seen);
        let result = view.result.unwrap();
        let done: Value = serde_json::from_str(seen.lines().last().unwrap()).unwrap();
        assert_eq!(done["result"], serde_json::to_value(&result).unwrap());
        assert_eq!(view.summary.workspace, result.workspace);
        assert_eq!(FleetRuns::new(&fleet).files("run").await.unwrap().files, []);
    });
}
