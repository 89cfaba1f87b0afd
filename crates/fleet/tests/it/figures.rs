//! The figures of a worker.

use std::net::TcpListener;

use teamster_testkit::http::Request;
use teamster_testkit::proc::wait_until;
use tokio::time::timeout;

use super::machine::{LIMIT, Machine, Shared, block_on, runs, submit, until_workers};

/// Returns a figure of the worker, if it is there.
fn figure(address: &str, name: &str) -> Option<u64> {
    let text = Request::new(address, "GET", "/metrics").send().body;
    let line = text
        .lines()
        .find(|line| line.starts_with(&format!("{name} ")))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn a_worker_has_figures_of_its_slots_and_of_what_is_not_copied() {
    let server = server_or_skip!();
    let shared = Shared::new();
    // The port is free again when the worker takes it.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    block_on(async {
        let (fleet, service) = runs(&server, 0).await;
        let _machine = Machine::with(
            &server,
            "w1",
            &shared.agent(),
            None,
            &[("WORKER_METRICS", &address)],
        );
        until_workers(&fleet, 1).await;
        let run = submit(&service, "run").await;
        shared.until_count(1);
        let mut log = run.follow(0);
        timeout(LIMIT, log.next()).await.unwrap().unwrap().unwrap();
        assert_eq!(figure(&address, "teamster_worker_slots"), Some(4));
        assert_eq!(figure(&address, "teamster_worker_slots_used"), Some(1));
        assert_eq!(figure(&address, "teamster_worker_draining"), Some(0));
        let running = "teamster_runs{agent=\"claude\",state=\"running\"}";
        assert!(wait_until(LIMIT, || figure(&address, running) == Some(1)));
        // Without a server, the run continues, and nothing of its log is copied.
        drop(server);
        let uncopied = || figure(&address, "teamster_worker_uncopied_entries");
        assert!(
            wait_until(LIMIT, || uncopied() > Some(30)),
            "{:?}",
            uncopied()
        );
        shared.go();
        let ended = "teamster_runs_ended_total{agent=\"claude\",status=\"completed\"}";
        assert!(wait_until(LIMIT, || figure(&address, ended) == Some(1)));
    });
}
