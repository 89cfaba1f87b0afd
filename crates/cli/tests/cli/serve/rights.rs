//! What the body of a request may ask for with which token.

use std::process::Command;

use serde_json::{Value, json};
use teamster_testkit::http::Response;
use teamster_testkit::proc::wait_until;

use super::client::Served;
use crate::cli::chat::Agent;
use crate::cli::{LIMIT, run, teamster};

fn send(served: &Served, token: &str, path: &str, body: &Value) -> Response {
    served.request_as(token, "POST", path).json(body).send()
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
        let sent = served
            .request_as(token, "POST", &format!("{session}/turns"))
            .header("Prefer", "wait=60")
            .json(&json!({"prompt": "hello"}))
            .send();
        let code = sent.json()["code"].as_str().unwrap_or_default().to_owned();
        (sent.status, code)
    };
    let set = |token: &str, session: &str, body: &Value| {
        served.request_as(token, "PATCH", session).json(body).send()
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

    let mut command = agent.command(["chat", "--detach", "claude", "--", "--yolo"]);
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
