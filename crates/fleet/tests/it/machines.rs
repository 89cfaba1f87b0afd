//! Runs on workers that are killed, on one machine and on two.

use std::fs;
use std::thread;

use teamster_api::{LiveState, ProblemCode, RunHandle, RunSpec, ViewState};
use teamster_core::{RunStatus, Stopping};
use teamster_testkit::proc::wait_until;
use tokio::time::timeout;

use super::contract::limits;
use super::machine::{
    LIMIT, Machine, Shared, block_on, dead_worker, end, jetstream, read, runs, runs_of, submit,
    until_workers, with_worker,
};

#[test]
fn run_is_carried_out_once_and_its_log_is_copied_exactly() {
    let server = server_or_skip!();
    let shared = Shared::new();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        // Submitted while no worker is there.
        let run = submit(&service, "run").await;
        let queued = run.view().await.unwrap().summary;
        assert_eq!((queued.state, &queued.machine), (ViewState::Queued, &None));
        assert_eq!(queued.since, Some(queued.info.accepted_at_ms));
        let pool = queued
            .queue
            .as_ref()
            .and_then(|queue| queue.pool.as_deref());
        assert_eq!(pool, Some("default"));
        let machines = ["w1", "w2"].map(|name| Machine::start(&server, name, &shared.agent()));
        until_workers(&fleet, 2).await;
        shared.until_count(1);
        shared.go();
        let copy = read(&run).await;
        let originals: Vec<_> = (machines.iter())
            .filter_map(|machine| machine.shown("run"))
            .collect();
        assert_eq!(originals, [copy]);
        let result = run.result().await.unwrap();
        assert_eq!(result.status, RunStatus::Completed);
        assert_eq!(shared.count(), 1);
    });
}

#[test]
fn run_outlives_worker_and_server_and_is_not_restarted() {
    let mut server = server_or_skip!();
    let shared = Shared::new();
    block_on(async {
        let (_fleet, service, mut machine) = with_worker(&server, &shared.agent()).await;
        let run = submit(&service, "run").await;
        let mut log = run.follow(0);
        // It works, and its log arrives.
        shared.until_count(1);
        for _ in 0..5 {
            timeout(LIMIT, log.next()).await.unwrap().unwrap().unwrap();
        }
        machine.kill();
        // Another one is there, which has no business with the run.
        let other = Machine::start(&server, "w2", &shared.agent());
        server.restart();
        shared.go();
        machine.restart(&shared.agent());
        assert_eq!(end(&run).await, RunStatus::Completed);
        assert_eq!(read(&run).await, machine.shown("run").unwrap());
        assert_eq!(shared.count(), 1);
        assert!(!other.log("run").exists());
        // What is over leaves nothing behind at the worker.
        machine.drain();
        let left = fs::read_dir(machine.folder.path().join("state/teamster/fleet/w1")).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [".lock"]);
    });
}

#[test]
fn a_wish_to_stop_is_kept_until_the_machine_is_back() {
    let server = server_or_skip!();
    let shared = Shared::new();
    block_on(async {
        let (_fleet, service, mut machine) = with_worker(&server, &shared.agent()).await;
        let run = submit(&service, "run").await;
        shared.until_count(1);
        machine.kill();
        let late = run.steer("more").await.unwrap_err();
        assert!(
            late.message.contains("worker w1, does not report"),
            "{late}"
        );
        let live = run.view().await.unwrap().summary.live.clone().unwrap();
        assert_eq!(live.state, LiveState::NotAnswering);
        run.cancel(Stopping::Kill).await.unwrap();
        machine.restart(&shared.agent());
        assert_eq!(end(&run).await, RunStatus::Aborted);
    });
}

/// Kills a worker before each of these effects of a run of its own, and starts it again.
fn dies_before(effects: &[&str]) {
    for effect in effects {
        let server = server_or_skip!();
        let shared = Shared::new();
        let agent = shared.agent();
        shared.go();
        block_on(async {
            let (fleet, service) = runs(&server, 0).await;
            let mut machine = Machine::dying(&server, "w1", &agent, Some(effect));
            until_workers(&fleet, 1).await;
            let spec = RunSpec::new("claude", "hello");
            let run = RunHandle::start(service, "run", spec).await.unwrap();
            let died = wait_until(LIMIT, || machine.worker.try_wait().unwrap().is_some());
            assert!(died, "before {effect}");
            machine.restart(&agent);
            let result = timeout(LIMIT, run.result()).await;
            let result = result
                .unwrap_or_else(|_| panic!("{effect}: no end"))
                .unwrap();
            assert_eq!(result.status, RunStatus::Completed, "{effect}");
            assert_eq!(shared.count(), 1, "{effect}");
            let original = machine.shown("run");
            assert_eq!(Some(read(&run).await), original, "{effect}");
        });
    }
}

#[test]
fn worker_killed_between_two_steps_continues_when_back() {
    dies_before(&["step: Start", "Witness", "Spawn", "Follow", "step: End"]);
}

#[test]
fn files_of_a_run_can_be_read_once_its_log_has_its_end() {
    let server = server_or_skip!();
    let shared = Shared::new();
    let agent = shared.agent();
    shared.go();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let mut machine = Machine::dying(&server, "w1", &agent, Some("step: End"));
        until_workers(&fleet, 1).await;
        submit(&service, "run").await;
        machine.until_dead();
        // The record does not have it yet.
        let (files, ()) = tokio::join!(service.files("run"), async {
            machine.restart(&agent);
        });
        assert!(files.is_ok(), "{files:?}");
    });
}

#[test]
fn log_of_a_run_has_its_end_once_the_run_is_shown_as_ended() {
    let server = server_or_skip!();
    let shared = Shared::new();
    let agent = shared.agent();
    shared.go();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let mut machine = Machine::dying(&server, "w1", &agent, Some("step: End"));
        until_workers(&fleet, 1).await;
        let run = submit(&service, "run").await;
        let reading = tokio::spawn(async move {
            read(&run).await;
            run.view().await.unwrap().summary.state
        });
        // The log has its end, and the record does not.
        machine.until_dead();
        machine.restart(&agent);
        let state = timeout(LIMIT, reading).await.unwrap().unwrap();
        assert_eq!(state, ViewState::Ended);
    });
}

/// Waits for times of the server: of a lease, and of a hint that comes again.
#[test]
fn a_claim_and_a_hint_of_a_killed_worker_are_handed_on() {
    thread::scope(|scope| {
        for effect in ["step: Claim", "Acknowledge", "MakeFolder"] {
            scope.spawn(move || dies_before(&[effect]));
        }
    });
}

#[test]
fn a_run_that_was_reported_as_failed_is_not_started_later() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    block_on(async {
        let (run, mut machine) = dead_worker(&server, &shared.agent(), "Spawn").await;
        // Something else is where the folder of the run is to be.
        let place = machine.log("run").parent().unwrap().to_owned();
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        fs::write(&place, "").unwrap();
        machine.restart_dying(&shared.agent(), Some("step: End"));
        machine.until_dead();
        // The log has its end, and the cause is gone.
        fs::remove_file(place).unwrap();
        machine.restart(&shared.agent());
        assert_eq!(end(&run).await, RunStatus::Failed);
        machine.drain();
        assert_eq!(shared.count(), 0);
        let log = String::from_utf8(read(&run).await).unwrap();
        assert_eq!(log.lines().count(), 1, "{log}");
    });
}

#[test]
fn run_cancelled_before_its_agent_starts_is_never_started() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    block_on(async {
        let (run, mut machine) = dead_worker(&server, &shared.agent(), "Spawn").await;
        run.cancel(Stopping::Graceful).await.unwrap();
        machine.restart(&shared.agent());
        let result = timeout(LIMIT, run.result()).await.unwrap().unwrap();
        assert_eq!(result.status, RunStatus::Aborted);
        assert!(result.aborted);
        machine.drain();
        assert_eq!(shared.count(), 0);
    });
}

#[test]
fn run_is_hinted_again_behind_a_hint_that_none_can_take() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let spec = RunSpec::new("claude", "hello");
        let mut stuck = spec.clone();
        stuck.working_directory = Some("/nothing-there".into());
        let _stuck = RunHandle::start(service.clone(), "stuck", stuck)
            .await
            .unwrap();
        let run = RunHandle::start(service, "run", spec).await.unwrap();
        // The hint of the run is lost.
        let queue = jetstream(&server)
            .await
            .get_stream("TM_WORK")
            .await
            .unwrap();
        assert!(queue.delete_message(2).await.unwrap());
        let _machine = Machine::start(&server, "w1", &shared.agent());
        until_workers(&fleet, 1).await;
        let result = timeout(2 * LIMIT, run.result()).await.unwrap().unwrap();
        assert_eq!(result.status, RunStatus::Completed);
    });
}

#[test]
fn runs_of_two_owners_with_one_id_are_kept_apart() {
    let server = server_or_skip!();
    let shared = Shared::new();
    block_on(async {
        let (fleet, anns) = runs(&server, 0).await;
        let (_, bobs) = runs_of(&server, "bob").await;
        let machine = Machine::start(&server, "w1", &shared.agent());
        until_workers(&fleet, 1).await;
        let spec = RunSpec::new("claude", "of ann");
        let anns = RunHandle::start(anns, "fix-1", spec).await.unwrap();
        let spec = RunSpec::new("claude", "of bob");
        let bobs = RunHandle::start(bobs, "fix-1", spec).await.unwrap();
        // Both at once, on one machine.
        shared.until_count(2);
        let view = bobs.view().await.unwrap();
        assert_eq!(view.summary.info.run_id, "fix-1");
        assert_eq!(view.prompt.as_deref(), Some("of bob"));
        bobs.cancel(Stopping::Kill).await.unwrap();
        assert_eq!(end(&bobs).await, RunStatus::Aborted);
        shared.go();
        assert_eq!(end(&anns).await, RunStatus::Completed);
        let ended = bobs.view().await.unwrap();
        assert_eq!(ended.summary.machine.as_deref(), Some("w1"));
        assert_eq!(read(&anns).await, machine.shown("fix-1").unwrap());
        let bobs_log = machine.shown_of("bob", "fix-1").unwrap();
        assert_eq!(read(&bobs).await, bobs_log);
        assert_eq!(shared.count(), 2);
    });
}

#[test]
fn a_run_that_a_full_queue_has_refused_is_not_carried_out_later() {
    let server = server_or_skip!();
    let shared = Shared::answering();
    block_on(async {
        let (fleet, service) = runs_of(&server, "ann").await;
        let mut limits = limits();
        limits.queue = Some(1);
        fleet.init(&limits).await.unwrap();
        let spec = RunSpec::new("claude", "hello");
        let first = RunHandle::start(service.clone(), "first", spec.clone())
            .await
            .unwrap();
        let full = RunHandle::start(service.clone(), "second", spec).await;
        let full = full.unwrap_err();
        assert_eq!(full.code, Some(ProblemCode::OverQuota), "{full}");
        let second = service.show("second").await.unwrap();
        assert_eq!(second.summary.status, Some(RunStatus::Aborted));
        // The time at which it was submitted stays.
        let accepted = first.view().await.unwrap().summary.info.accepted_at_ms;
        assert!(second.summary.info.accepted_at_ms >= accepted);
        let mut machine = Machine::start(&server, "w1", &shared.agent());
        assert_eq!(end(&first).await, RunStatus::Completed);
        machine.drain();
        assert_eq!(shared.count(), 1);
    });
}
