//! What the body of a request may ask for with which token.

use std::process::Command;

use serde_json::{Value, json};
use teamster_testkit::proc::wait_until;

use super::about;
use super::client::{Request, Response, Served};
use crate::cli::chat::Agent;
use crate::cli::{Claude, LIMIT, run, teamster};

fn send(served: &Served, token: &str, path: &str, body: &Value) -> Response {
    Request::new(&served.address, "POST", path)
        .header("Authorization", &format!("Bearer {token}"))
        .json(body)
        .send()
}

#[test]
fn tools_are_allowed_in_advance_only_by_a_token_that_may_also_answer() {
    let claude = Claude::plays("text", 0);
    let served = Served::of(&claude, &[]);
    let add = |name, scopes| {
        let added = about(&claude, ["token", "add", name, "--scope", scopes]);
        added.stdout.trim_end().to_owned()
    };
    let (runner, both) = (add("ci", "run"), add("desk", "run,answer"));
    let body = json!({
        "provider": "claude", "prompt": "x", "askTimeoutMs": 0, "allowedTools": ["Bash"],
    });
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
    let denied = json!({
        "provider": "claude", "prompt": "x", "askTimeoutMs": 0, "deniedTools": ["Bash"],
    });
    assert_eq!(send(&served, &runner, "/v1/runs", &denied).status, 201);
}

fn environment(agent: &Agent, command: &mut Command) {
    agent.environment(command);
    // Claude Code refuses to bypass permissions as root elsewhere.
    command.env("IS_SANDBOX", "1");
}

/// A server with these arguments, and what adds tokens to it.
fn serve(agent: &Agent, args: &[&str]) -> (Served, impl Fn(&str) -> String) {
    let state = agent.path("state");
    let served = Served::start(args, &state, |command| environment(agent, command));
    let add = move |scopes: &str| {
        let mut command = teamster(["token", "add", &scopes.replace(',', "-"), "--scope", scopes]);
        let added = run(command.env("XDG_STATE_HOME", &state));
        added.stdout.trim_end().to_owned()
    };
    (served, add)
}

fn is_state(served: &Served, path: &str, state: &str) -> bool {
    wait_until(LIMIT, || {
        let run = served.get(path).json();
        run["state"] == state || run["live"]["state"] == state
    })
}

#[test]
fn a_token_that_may_only_answer_allows_what_was_requested_and_nothing_else() {
    let agent = Agent::new();
    let (served, add) = serve(&agent, &[]);
    let (phone, both) = (add("answer"), add("answer,run"));
    let other = json!({"decision": "allow_with", "input": {"file_path": "/x/b", "content": "two"}});
    // Returns the path of the request of a run that waits.
    let waiting = || {
        let body = json!({"provider": "claude", "prompt": "write"});
        let started = served.post("/v1/runs", &body);
        let id = started.json()["runId"].as_str().unwrap().to_owned();
        assert!(is_state(&served, &format!("/v1/runs/{id}"), "waiting"));
        (id.clone(), format!("/v1/requests/{id}/1"))
    };

    let (id, request) = waiting();
    let refused = send(&served, &phone, &request, &other);
    refused.is_problem(403, "INSUFFICIENT_SCOPE");
    let run = served.get(&format!("/v1/runs/{id}")).json();
    assert_eq!(run["requests"][0]["requestId"], format!("{id}/1"));
    let allow = json!({"decision": "allow"});
    assert_eq!(send(&served, &phone, &request, &allow).status, 204);
    served.ended(&id);

    let (id, request) = waiting();
    assert_eq!(send(&served, &both, &request, &other).status, 204);
    served.ended(&id);
}

#[test]
fn an_answer_is_checked_in_the_same_order_for_every_token() {
    let agent = Agent::new();
    let (served, add) = serve(&agent, &[]);
    let (phone, both) = (add("answer"), add("answer,run"));
    let started = served.post("/v1/sessions", &json!({"provider": "claude"}));
    let session = started.header("location").unwrap();
    let id = session.rsplit_once('/').unwrap().1;
    let other = json!({"decision": "allow_with", "input": {}});
    let is_refused = |token: &str, request: &str, status, code| {
        send(&served, token, &format!("/v1/requests/{request}"), &other).is_problem(status, code);
    };
    let begun = served.post(&format!("{session}/turns"), &json!({"prompt": "write"}));
    assert_eq!(begun.status, 201, "{}", begun.body);
    assert!(is_state(&served, session, "waiting"));
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
    assert_eq!(served.request("DELETE", session).send().status, 202);
    assert!(is_state(&served, session, "ended"));
    for token in [&phone, &both] {
        for number in [1, 2] {
            is_refused(token, &format!("{id}/{number}"), 409, "RUN_ENDED");
        }
        is_refused(token, "nothing/1", 404, "RUN_NOT_FOUND");
    }
}

#[test]
fn a_prompt_needs_a_token_that_could_have_started_the_session() {
    let agent = Agent::new();
    let (served, add) = serve(&agent, &["--allow-bypass"]);
    let (ci, desk) = (add("run"), add("answer,run"));
    let start = |more: Value| {
        let mut body = json!({"provider": "claude"});
        (body.as_object_mut().unwrap()).extend(more.as_object().unwrap().clone());
        let started = served.post("/v1/sessions", &body);
        assert_eq!(started.status, 201, "{}", started.body);
        started.header("location").unwrap().to_owned()
    };
    // Sends a prompt, and waits for its turn; the status.
    let prompt = |served: &Served, token: &str, session: &str| {
        let sent = Request::new(&served.address, "POST", &format!("{session}/turns"))
            .header("Authorization", &format!("Bearer {token}"))
            .header("Prefer", "wait=60")
            .json(&json!({"prompt": "hello"}))
            .send();
        let code = sent.json()["code"].as_str().unwrap_or_default().to_owned();
        (sent.status, code)
    };
    let set = |token: &str, session: &str, body: &Value| {
        Request::new(&served.address, "PATCH", session)
            .header("Authorization", &format!("Bearer {token}"))
            .json(body)
            .send()
    };
    let is_refused = |token: &str, session: &str, code: &str| {
        assert_eq!(prompt(&served, token, session), (403, code.to_owned()));
        let steer = json!({"text": "stop"});
        send(&served, token, &format!("{session}/steer"), &steer).is_problem(403, code);
        set(token, session, &json!({"model": "opus"})).is_problem(403, code);
        set(token, session, &json!({"permission": "read-only"})).is_problem(403, code);
    };
    let done = (201, String::new());

    let bypass = start(json!({"permission": "bypass"}));
    is_refused(&ci, &bypass, "BYPASS_NOT_ALLOWED");
    is_refused(&desk, &bypass, "BYPASS_NOT_ALLOWED");
    assert_eq!(prompt(&served, &served.token, &bypass), done);
    // A server that does not allow it allows no prompt either.
    let other = Served::start(&[], &agent.path("state"), |command| {
        environment(&agent, command);
    });
    let refused = prompt(&other, &other.token, &bypass);
    assert_eq!(refused, (403, "BYPASS_NOT_ALLOWED".to_owned()));

    let tools = start(json!({"allowedTools": ["Bash"]}));
    is_refused(&ci, &tools, "INSUFFICIENT_SCOPE");
    assert_eq!(prompt(&served, &desk, &tools), done);

    // What counts is the mode that the session has now.
    let plain = start(json!({}));
    assert_eq!(prompt(&served, &ci, &plain), done);
    let owner = served.token.clone();
    let changed = set(&owner, &plain, &json!({"permission": "bypass"}));
    assert_eq!(changed.status, 200, "{}", changed.body);
    assert_eq!(changed.json()["live"]["permission"], "bypass");
    is_refused(&ci, &plain, "BYPASS_NOT_ALLOWED");
    let changed = set(&owner, &plain, &json!({"permission": "default"}));
    assert_eq!(changed.status, 200, "{}", changed.body);
    assert_eq!(prompt(&served, &ci, &plain), done);

    let mut command = teamster(["chat", "--detach", "claude", "--", "--yolo"]);
    agent.environment(&mut command);
    let arguments = format!("/v1/sessions/{}", run(&mut command).stdout.trim_end());
    is_refused(&desk, &arguments, "INSUFFICIENT_SCOPE");
    assert_eq!(prompt(&served, &owner, &arguments), done);

    // A version before this one did not record what a session may do.
    let id = plain.rsplit_once('/').unwrap().1;
    let file = agent.path("state/teamster/runs").join(id).join("run.json");
    let mut info: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_eq!(
        info.as_object_mut().unwrap().remove("grants"),
        Some(json!({"permission": "default"}))
    );
    std::fs::write(&file, info.to_string()).unwrap();
    is_refused(&desk, &plain, "INSUFFICIENT_SCOPE");
    assert_eq!(prompt(&served, &owner, &plain), done);

    for session in [bypass, tools, plain, arguments] {
        assert_eq!(served.request("DELETE", &session).send().status, 202);
        assert!(is_state(&served, &session, "ended"));
    }
}
