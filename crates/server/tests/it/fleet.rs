//! The state of a fleet and figures.

use serde_json::json;
use teamster_api::{FleetQueue, FleetStatus, FleetWorker};
use teamster_server::Scope;
use teamster_testkit::http::Request;
use teamster_testkit::proc::wait_until;

use super::document::Document;
use super::served::{LIMIT, Served};

/// Waits until the figures have this line.
#[track_caller]
fn until(served: &Served, line: &str) -> String {
    let mut text = String::new();
    let is_there = wait_until(LIMIT, || {
        text = served.get("/metrics").body;
        text.lines().any(|it| it == line)
    });
    assert!(is_there, "{line}: {text}");
    text
}

#[test]
fn the_state_of_a_fleet_is_that_of_the_machine() {
    let served = Served::start();
    let none = served.get("/v1/fleet");
    assert_eq!((none.status, &*none.body), (204, ""));
    let mut worker = FleetWorker::default();
    worker.name = "w1".to_owned();
    worker.pools = vec!["default".to_owned()];
    let mut queue = FleetQueue::default();
    (queue.pool, queue.waiting) = (Some("default".to_owned()), 3);
    let mut status = FleetStatus::default();
    (status.workers, status.queues) = (vec![worker], vec![queue]);
    *served.fleet.lock().unwrap() = Some(status.clone());
    let shown = served.get("/v1/fleet");
    assert_eq!((shown.status, shown.json()), (200, json!(status)));
    let document = Document::of(&served);
    let schema = json!({"$ref": "#/components/schemas/FleetStatus"});
    assert!(document.validator(&schema).is_valid(&shown.json()));
    until(&served, "teamster_fleet_queued_runs{pool=\"default\"} 3");
    served.end();
}

#[test]
fn figures_follow_the_runs_of_the_server() {
    let served = Served::start();
    let metrics = served.get("/metrics");
    assert_eq!(
        (metrics.status, metrics.header("content-type")),
        (200, Some("text/plain; version=0.0.4; charset=utf-8"))
    );
    assert!(
        !metrics.body.contains("teamster_fleet_workers{"),
        "{}",
        metrics.body
    );
    served.run("write");
    let text = until(&served, "teamster_requests_waiting{agent=\"claude\"} 1");
    assert!(
        text.contains("teamster_runs{agent=\"claude\",state=\"waiting\"} 1\n"),
        "{text}"
    );
    served.run("hello");
    until(
        &served,
        "teamster_runs_ended_total{agent=\"claude\",status=\"completed\"} 1",
    );
    let token = served.add(&[Scope::Read]);
    assert_eq!(
        served.request_of(&token, "GET", "/metrics").send().status,
        200
    );
    Request::new(&served.address, "GET", "/metrics")
        .send()
        .is_problem(401, "UNAUTHORIZED");
    served.end();
}
