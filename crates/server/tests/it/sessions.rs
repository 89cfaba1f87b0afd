//! Sessions over HTTP: turns, interrupts, changes, and their log.

use serde_json::{Value, json};
use teamster_testkit::http::{Request, Response};

use super::served::Served;

/// Sends a prompt and waits for the end of its turn.
fn turn(served: &Served, session: &str, prompt: &str, key: Option<&str>) -> Response {
    let request = served
        .request("POST", &format!("{session}/turns"))
        .header("Prefer", "wait=60")
        .json(&json!({ "prompt": prompt }));
    match key {
        Some(key) => request.header("Idempotency-Key", key).send(),
        None => request.send(),
    }
}

#[test]
fn waiting_prompt_begins_after_the_turn_in_progress() {
    let served = Served::start();
    let session = served.session(&json!({"provider": "claude"}));
    let turns = format!("{session}/turns");
    let first = served.post(&turns, &json!({"prompt": "wait"}));
    assert_eq!(first.status, 201, "{}", first.body);
    served
        .post(&turns, &json!({"prompt": "next"}))
        .is_problem(409, "SESSION_BUSY");
    let (address, authorization) = (served.address.clone(), format!("Bearer {}", served.token));
    let waiting = std::thread::spawn(move || {
        Request::new(&address, "POST", &turns)
            .header("Authorization", &authorization)
            .header("Prefer", "wait=60")
            .json(&json!({"prompt": "next", "queue": true}))
            .send()
    });
    let interrupted = served
        .request("POST", &format!("{session}/interrupt"))
        .send();
    assert_eq!(interrupted.status, 204, "{}", interrupted.body);
    let next = waiting.join().unwrap();
    assert_eq!(next.status, 201, "{}", next.body);
    assert_eq!(next.json()["result"]["text"], "next");
    // A session that ends meanwhile is no reason to wait on.
    served.post(&format!("{session}/turns"), &json!({"prompt": "wait"}));
    end(&served, &session);
    served
        .post(
            &format!("{session}/turns"),
            &json!({"prompt": "late", "queue": true}),
        )
        .is_problem(409, "RUN_ENDED");
}

fn end(served: &Served, session: &str) {
    let ended = served.request("DELETE", session).send();
    assert_eq!(ended.status, 202, "{}", ended.body);
    served.until(session, "ended");
}

#[test]
fn a_session_takes_turns_and_shows_them_in_its_log() {
    let served = Served::start();
    let session = served.session(&json!({"provider": "claude"}));
    let shown = served.get(&session).json();
    assert_eq!(
        (&shown["kind"], &shown["state"], &shown["live"]["state"]),
        (&"session".into(), &"running".into(), &"idle".into())
    );
    let id = shown["runId"].as_str().unwrap().to_owned();

    let first = turn(&served, &session, "hello", None);
    assert_eq!(
        (first.status, first.header("preference-applied")),
        (201, Some("wait=60"))
    );
    let first = first.json();
    assert_eq!(first["runId"], format!("{id}.1"));
    assert_eq!(first["result"]["text"], "hello");
    served.until(&session, "idle");
    let begun = served.post(
        &format!("{session}/turns"),
        &json!({"prompt": "more", "from": "me"}),
    );
    assert_eq!((begun.status, begun.json().get("result")), (201, None));
    let entries = begun.header("location").unwrap().to_owned();
    let page = served.get(&format!("{entries}&wait=60")).json();
    assert_eq!(
        page["entries"][0]["seq"],
        begun.json()["seq"].as_u64().unwrap() + 1
    );
    served.until(&session, "idle");
    assert_eq!(served.get(&session).json()["live"]["turns"], 2);

    let list = served.get("/v1/sessions").json();
    assert_eq!(
        (
            &list["sessions"][0]["runId"],
            &list["sessions"][0]["live"]["state"]
        ),
        (&id.clone().into(), &"idle".into())
    );
    assert_eq!(
        served.get("/v1/sessions?state=ended").json(),
        json!({"sessions": []})
    );
    end(&served, &session);
    let list = served.get("/v1/sessions?state=ended").json();
    assert_eq!(list["sessions"][0]["runId"], *id);
    let log = served.get(&format!("{session}/events"));
    let log: Vec<Value> = (log.body.lines())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let messages: Vec<_> = (log.iter())
        .filter(|entry| entry["type"] == "user:message")
        .map(|entry| {
            (
                entry["text"].as_str().unwrap(),
                entry["from"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(messages, [("hello", "HTTP"), ("more", "me")]);
    let last = log.last().unwrap();
    assert_eq!(
        (&last["type"], &last["runId"]),
        (&"done".into(), &id.into())
    );
    let after = served.get(&format!("{session}/events?after={}", last["seq"]));
    assert_eq!(after.status, 204);
    served
        .request("DELETE", &session)
        .send()
        .is_problem(409, "RUN_ENDED");
    turn(&served, &session, "late", None).is_problem(409, "RUN_ENDED");
}

#[test]
fn repeated_key_begins_no_second_turn_or_session() {
    let served = Served::start();
    let start = |path: &str, body: &Value| {
        served
            .request("POST", path)
            .header("Idempotency-Key", "k")
            .json(body)
            .send()
    };
    let body = json!({"provider": "claude"});
    let first = start("/v1/sessions", &body);
    assert_eq!(first.status, 201, "{}", first.body);
    let again = start("/v1/sessions", &body);
    assert_eq!(
        (again.status, &again.json()["runId"]),
        (200, &first.json()["runId"])
    );
    start(
        "/v1/sessions",
        &json!({"provider": "claude", "model": "opus"}),
    )
    .is_problem(422, "IDEMPOTENCY_KEY_REUSED");
    // The same key of a run is another one.
    let run = json!({"provider": "claude", "prompt": "x"});
    assert_eq!(start("/v1/runs", &run).status, 201);

    let session = first.header("location").unwrap();
    let first = turn(&served, session, "hello", Some("t"));
    assert_eq!(first.status, 201, "{}", first.body);
    let again = turn(&served, session, "hello", Some("t"));
    assert_eq!((again.status, again.json()), (200, first.json()));
    turn(&served, session, "another", Some("t")).is_problem(422, "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(served.get(session).json()["live"]["turns"], 1);
}

#[test]
fn a_turn_is_interrupted_and_a_session_changed() {
    let served = Served::start();
    let session = served.session(&json!({"provider": "claude"}));
    let post = |path: &str, body: &Value| served.post(&format!("{session}/{path}"), body);
    let no_turn = served.request("POST", &format!("{session}/interrupt"));
    no_turn.send().is_problem(409, "NO_TURN");
    post("steer", &json!({"text": "x"})).is_problem(409, "NO_TURN");
    assert_eq!(post("turns", &json!({"prompt": "wait"})).status, 201);
    served.until(&session, "running");
    post("turns", &json!({"prompt": "more"})).is_problem(409, "SESSION_BUSY");
    assert_eq!(post("steer", &json!({"text": "x"})).status, 204);
    let interrupted = served
        .request("POST", &format!("{session}/interrupt"))
        .send();
    assert_eq!((interrupted.status, &*interrupted.body), (204, ""));
    served.until(&session, "idle");

    let clear = served.request("POST", &format!("{session}/clear")).send();
    assert_eq!((clear.status, &*clear.body), (204, ""));
    let patch = |body: Value| served.request("PATCH", &session).json(&body).send();
    let changed = patch(json!({"model": "opus", "permission": "accept-edits"}));
    assert_eq!(
        (changed.status, &changed.json()["state"]),
        (200, &"running".into())
    );
    patch(json!({"permission": "bypass"})).is_problem(403, "BYPASS_NOT_ALLOWED");
    patch(json!({})).is_problem(422, "INVALID_PARAMS");
    patch(json!({"model": " "})).is_problem(422, "INVALID_PARAMS");
    patch(json!({"colour": "red"})).is_problem(422, "INVALID_PARAMS");
}

#[test]
fn missing_session_is_not_found_and_invalid_input_is_refused() {
    let served = Served::start();
    let run = served.run("hello");
    for id in [&*run, "unknown", "..%2f..", "%00"] {
        for path in [
            format!("/v1/sessions/{id}"),
            format!("/v1/sessions/{id}/events"),
        ] {
            served.get(&path).is_problem(404, "SESSION_NOT_FOUND");
        }
        let turns = format!("/v1/sessions/{id}/turns");
        let turn = served.post(&turns, &json!({"prompt": "x"}));
        turn.is_problem(404, "SESSION_NOT_FOUND");
    }
    for (body, field) in [
        (json!({}), "provider"),
        (json!({"provider": "unknown-agent"}), "unknown-agent"),
        (json!({"provider": "claude", "prompt": "x"}), "prompt"),
        (
            json!({"provider": "claude", "workingDirectory": "src"}),
            "workingDirectory",
        ),
        (json!({"provider": "claude", "fork": true}), "sessionId"),
        (
            json!({"provider": "claude", "callback": "ftp://x"}),
            "callback",
        ),
        (json!({"provider": "claude", "maxBudgetUsd": -1}), "0"),
        (
            json!({"provider": "claude", "trusted": {"env": {"A": "b"}}}),
            "trusted.env",
        ),
    ] {
        let refused = served.post("/v1/sessions", &body);
        refused.is_problem(422, "INVALID_PARAMS");
        assert!(refused.body.contains(field), "{body}: {}", refused.body);
    }
    served
        .post(
            "/v1/sessions",
            &json!({"provider": "claude", "permission": "bypass"}),
        )
        .is_problem(403, "BYPASS_NOT_ALLOWED");
    served
        .post("/v1/sessions", &json!({"provider": "cmd:cat"}))
        .is_problem(403, "COMMAND_NOT_ALLOWED");
    assert_eq!(served.get("/v1/sessions").json(), json!({"sessions": []}));
    let turns = format!("{}/turns", served.session(&json!({"provider": "claude"})));
    served
        .post(&turns, &json!({"prompt": " "}))
        .is_problem(422, "INVALID_PARAMS");
    let huge = served
        .request("POST", &turns)
        .header("Content-Type", "application/json")
        .body("x".repeat((8 << 20) + 1));
    huge.send().is_problem(413, "BODY_TOO_LARGE");
}
