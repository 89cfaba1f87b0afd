//! Sessions over HTTP that are in use.

use serde_json::{Value, json};
use teamster_testkit::proc::wait_until;

use super::client::Served;
use crate::cli::LIMIT;
use crate::cli::chat::Agent;

#[test]
fn a_session_that_another_run_works_with_is_a_conflict() {
    let agent = Agent::new();
    let served = Served::start(&[], &agent.path("state"), |command| {
        agent.environment(command);
        command.env("TEAMSTER_STORE", agent.path("store.db"));
    });
    let body = json!({"provider": "claude", "prompt": "wait", "sessionKey": "k"});
    let started = served.post("/v1/runs", &body);
    assert_eq!(started.status, 201, "{}", started.body);
    let run = started.header("location").unwrap().to_owned();
    let mut session = Value::Null;
    assert!(wait_until(LIMIT, || {
        session = served.get(&run).json()["sessionId"].take();
        session.is_string()
    }));
    let id = run.rsplit('/').next().unwrap();
    for (path, body) in [
        (
            "/v1/runs",
            json!({"provider": "claude", "prompt": "more", "sessionId": session}),
        ),
        (
            "/v1/runs",
            json!({"provider": "claude", "prompt": "more", "sessionKey": "k"}),
        ),
        (
            "/v1/sessions",
            json!({"provider": "claude", "sessionId": session}),
        ),
    ] {
        let refused = served.post(path, &body);
        refused.is_problem(409, "SESSION_IN_USE");
        assert!(refused.body.contains(id), "{body}: {}", refused.body);
    }
    let killed = served.post(&format!("{run}/cancel"), &json!({"kill": true}));
    assert_eq!(killed.status, 202, "{}", killed.body);
    assert!(wait_until(LIMIT, || served.get(&run).json()["state"] == "ended"));
}
