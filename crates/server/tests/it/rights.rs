//! What the body of a request may ask for with which token.

use serde_json::{Value, json};
use teamster_server::Scope;
use teamster_testkit::http::Response;

use super::faulty::Fault;
use super::served::Served;

fn send(served: &Served, token: &str, path: &str, body: &Value) -> Response {
    served.request_of(token, "POST", path).json(body).send()
}

#[test]
fn tools_are_allowed_in_advance_only_with_the_right_to_answer() {
    let served = Served::start();
    let (runner, both) = (
        served.add(&[Scope::Run]),
        served.add(&[Scope::Run, Scope::Answer]),
    );
    let body = json!({"provider": "claude", "prompt": "x", "allowedTools": ["Bash"]});
    let session = json!({"provider": "claude", "allowedTools": ["Bash"]});
    for (path, body) in [("/v1/runs", &body), ("/v1/sessions", &session)] {
        let refused = send(&served, &runner, path, body);
        refused.is_problem(403, "INSUFFICIENT_SCOPE");
        assert!(refused.body.contains("`answer`"), "{}", refused.body);
    }
    assert_eq!(served.get("/v1/runs").json(), json!({"runs": []}));
    for token in [&both, &served.token] {
        let started = send(&served, token, "/v1/runs", &body);
        assert_eq!(started.status, 201, "{}", started.body);
    }
    // What forbids tools needs nothing.
    let denied = json!({"provider": "claude", "prompt": "x", "deniedTools": ["Bash"]});
    assert_eq!(send(&served, &runner, "/v1/runs", &denied).status, 201);
    // Each prompt needs it again.
    let session = served.session(&session);
    let turns = format!("{session}/turns");
    let prompt = json!({"prompt": "hello"});
    send(&served, &runner, &turns, &prompt).is_problem(403, "INSUFFICIENT_SCOPE");
    let steer = json!({"text": "stop"});
    send(&served, &runner, &format!("{session}/steer"), &steer)
        .is_problem(403, "INSUFFICIENT_SCOPE");
    served
        .request_of(&runner, "PATCH", &session)
        .json(&json!({"model": "opus"}))
        .send()
        .is_problem(403, "INSUFFICIENT_SCOPE");
    assert_eq!(send(&served, &both, &turns, &prompt).status, 201);
}

#[test]
fn token_with_the_right_to_answer_allows_only_the_request() {
    let served = Served::start();
    let (phone, both) = (
        served.add(&[Scope::Answer]),
        served.add(&[Scope::Answer, Scope::Run]),
    );
    let other = json!({"decision": "allow_with", "input": {"file_path": "/x/b", "content": "two"}});
    // Returns the path of the request of a run that waits.
    let waiting = || {
        let id = served.run("write");
        served.until(&format!("/v1/runs/{id}"), "waiting");
        (id.clone(), format!("/v1/requests/{id}/1"))
    };

    let (id, request) = waiting();
    let refused = send(&served, &phone, &request, &other);
    refused.is_problem(403, "INSUFFICIENT_SCOPE");
    let run = served.get(&format!("/v1/runs/{id}")).json();
    assert_eq!(run["requests"][0]["requestId"], format!("{id}/1"));
    let allow = json!({"decision": "allow"});
    assert_eq!(send(&served, &phone, &request, &allow).status, 204);
    served.until(&format!("/v1/runs/{id}"), "ended");

    let (id, request) = waiting();
    assert_eq!(send(&served, &both, &request, &other).status, 204);
    served.until(&format!("/v1/runs/{id}"), "ended");
}

#[test]
fn an_answer_is_checked_in_the_same_order_for_every_token() {
    let served = Served::start();
    let (phone, both) = (
        served.add(&[Scope::Answer]),
        served.add(&[Scope::Answer, Scope::Run]),
    );
    let session = served.session(&json!({"provider": "claude"}));
    let id = session.rsplit_once('/').unwrap().1;
    let other = json!({"decision": "allow_with", "input": {}});
    let is_refused = |token: &str, request: &str, status, code| {
        send(&served, token, &format!("/v1/requests/{request}"), &other).is_problem(status, code);
    };
    let begun = served.post(&format!("{session}/turns"), &json!({"prompt": "write"}));
    assert_eq!(begun.status, 201, "{}", begun.body);
    served.until(&session, "waiting");
    for token in [&phone, &both] {
        is_refused(token, "nothing/1", 404, "RUN_NOT_FOUND");
        is_refused(token, &format!("{id}/2"), 404, "REQUEST_NOT_FOUND");
    }
    is_refused(&phone, &format!("{id}/1"), 403, "INSUFFICIENT_SCOPE");
    let allow = json!({"decision": "allow"});
    let answered = served.post(&format!("/v1/requests/{id}/1"), &allow);
    assert_eq!(answered.status, 204, "{}", answered.body);
    for token in [&phone, &both] {
        is_refused(token, &format!("{id}/1"), 409, "ALREADY_ANSWERED");
        is_refused(token, &format!("{id}/2"), 404, "REQUEST_NOT_FOUND");
    }
}

#[test]
fn a_prompt_needs_a_runner_that_says_what_the_session_may_do() {
    let served = Served::start();
    let session = served.session(&json!({"provider": "claude"}));
    let served = served.with_fault(Fault::NotAnswering);
    let turns = format!("{session}/turns");
    let refused = send(&served, &served.token, &turns, &json!({"prompt": "hello"}));
    refused.is_problem(503, "RUNNER_NOT_RESPONDING");
    let steer = format!("{session}/steer");
    let refused = send(&served, &served.token, &steer, &json!({"text": "hello"}));
    refused.is_problem(503, "RUNNER_NOT_RESPONDING");
}
