//! Runs: start, list and cancel.

use std::io::Write;
use std::net::TcpStream;

use serde_json::{Value, json};
use teamster_testkit::proc::wait_until;

use super::faulty::Fault;
use super::served::{LIMIT, Served};

#[test]
fn a_run_is_renamed_and_shows_its_spec() {
    let served = Served::start();
    let id = served.run("Fix the login\nnow");
    let path = format!("/v1/runs/{id}");
    assert_eq!(served.until(&path, "ended")["title"], "Fix the login");
    let patch = |path: &str, body: &Value| served.request("PATCH", path).json(body).send();
    let renamed = patch(&path[..path.len() - 4], &json!({"title": " The\nlogin "}));
    assert_eq!((renamed.status, &*renamed.body), (204, ""));
    assert_eq!(served.get(&path).json()["title"], "The login");
    assert_eq!(patch(&path, &json!({"title": null})).status, 204);
    assert_eq!(served.get(&path).json()["title"], "Fix the login");
    for body in [
        json!({}),
        json!({"title": " "}),
        json!({"title": "x".repeat(201)}),
        json!({"title": 1}),
    ] {
        patch(&path, &body).is_problem(422, "INVALID_PARAMS");
    }
    patch("/v1/runs/unknown", &json!({"title": "x"})).is_problem(404, "RUN_NOT_FOUND");

    let spec = served.get(&format!("{path}/spec")).json();
    assert_eq!(spec["what"]["run"]["prompt"], "Fix the login\nnow");
    served
        .get("/v1/runs/unknown/spec")
        .is_problem(404, "RUN_NOT_FOUND");
}

#[test]
fn a_run_is_started_shown_and_listed() {
    let served = Served::start();
    assert_eq!(served.get("/healthz").json(), json!({"status": "ok"}));
    let body = json!({"provider": "claude", "prompt": "hello", "model": "opus"});
    let started = served.post("/v1/runs", &body);
    assert_eq!(started.status, 201, "{}", started.body);
    let id = started.json()["runId"].as_str().unwrap().to_owned();
    assert_eq!(started.header("location"), Some(&*format!("/v1/runs/{id}")));
    assert_eq!(
        started.header("cache-control"),
        Some("no-store, no-transform")
    );
    assert_eq!(started.json().get("live"), None);
    let ended = served.until(&format!("/v1/runs/{id}"), "ended");
    assert_eq!(
        (&ended["status"], &ended["model"], &ended["result"]["text"]),
        (&"completed".into(), &"opus".into(), &"hello".into())
    );
    // The beginning of its id is enough.
    assert_eq!(served.get(&format!("/v1/runs/{}", &id[..18])).json(), ended);
    served
        .get("/v1/runs/unknown")
        .is_problem(404, "RUN_NOT_FOUND");

    let second = served.run("hello");
    served.until(&format!("/v1/runs/{second}"), "ended");
    // Newest first; what was accepted in the same millisecond, by the id.
    let list = served.get("/v1/runs?limit=1").json();
    assert_eq!(
        (&list["runs"][0]["runId"], &list["runs"][1]),
        (&second.into(), &Value::Null)
    );
    let next = list["next"].as_str().unwrap();
    let list = served
        .get(&format!("/v1/runs?limit=1&cursor={next}"))
        .json();
    assert_eq!(
        (&list["runs"][0]["runId"], list.get("next")),
        (&id.into(), None)
    );
    assert_eq!(
        served.get("/v1/runs?state=running").json(),
        json!({"runs": []})
    );
    assert_eq!(
        served.get("/v1/runs?limit=0").json()["runs"][1],
        Value::Null
    );
}

#[test]
fn start_warnings_are_in_the_response_and_in_its_repetition() {
    let warning = "`fallback` codex ignores `max_budget_usd`";
    let served = Served::start();
    served.runs.set_warnings([warning]);
    let expected = json!(["`fallback` codex ignores `maxBudgetUsd`"]);
    let run = json!({"provider": "claude", "prompt": "hello"});
    let session = json!({"provider": "claude"});
    for (method, path, body) in [
        ("POST", "/v1/runs", &run),
        ("PUT", "/v1/runs/mine", &run),
        ("POST", "/v1/sessions", &session),
        ("PUT", "/v1/sessions/my-session", &session),
    ] {
        let start = || {
            let request = served.request(method, path).header("Idempotency-Key", "k");
            request.json(body).send()
        };
        let (first, again) = (start(), start());
        assert_eq!((first.status, again.status), (201, 200), "{path}");
        assert_eq!(first.json()["warnings"], expected, "{path}");
        // The first response may have been lost.
        assert_eq!(again.json()["warnings"], expected, "{path}");
    }
    assert_eq!(served.get("/v1/runs/mine").json().get("warnings"), None);
}

#[test]
fn starts_of_different_ids_do_not_wait_for_each_other() {
    const COUNT: usize = 20;
    let (served, held) = Served::start().with_held_starts();
    let body = json!({"provider": "claude", "prompt": "hello"});
    std::thread::scope(|scope| {
        let starts: Vec<_> = (0..COUNT)
            .map(|number| {
                let request = served.request("PUT", &format!("/v1/runs/r{number}"));
                let request = request.json(&body);
                scope.spawn(move || request.send().status)
            })
            .collect();
        assert!(
            wait_until(LIMIT, || held.begun() == COUNT),
            "{}",
            held.begun()
        );
        held.release();
        for start in starts {
            assert_eq!(start.join().unwrap(), 201);
        }
    });
}

#[test]
fn a_start_whose_client_is_gone_is_decided_all_the_same() {
    let (served, held) = Served::start().with_held_starts();
    let body = json!({"provider": "claude", "prompt": "hello"}).to_string();
    let mut client = TcpStream::connect(&served.address).unwrap();
    let (token, length) = (&served.token, body.len());
    write!(
        client,
        "PUT /v1/runs/mine HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nContent-Type: \
         application/json\r\nContent-Length: {length}\r\n\r\n{body}",
        served.address
    )
    .unwrap();
    assert!(wait_until(LIMIT, || held.begun() == 1));
    drop(client);
    // Each request is one more turn of the server's only thread, which sees the end of the connection meanwhile.
    for _ in 0..10 {
        served.get("/v1/runs/mine").is_problem(404, "RUN_NOT_FOUND");
    }
    held.release();
    let shown = || served.get("/v1/runs/mine").status;
    assert!(wait_until(LIMIT, || shown() == 200));
}

#[test]
fn a_run_with_an_id_of_the_client_is_started_once() {
    let served = Served::with(|config| config.allow_private_callbacks = true);
    let put = |id: &str, body: &Value| {
        let path = format!("/v1/runs/{id}");
        served.request("PUT", &path).json(body).send()
    };
    let body = json!({"provider": "claude", "prompt": "hello"});
    let started = put("mine", &body);
    assert_eq!(started.status, 201, "{}", started.body);
    assert_eq!(started.json()["runId"], "mine");
    assert_eq!(started.header("location"), Some("/v1/runs/mine"));
    let again = put("mine", &body);
    assert_eq!(
        (again.status, &again.json()["runId"]),
        (200, &"mine".into())
    );
    // A callback of another spec gets nothing of this run.
    let other = json!({"provider": "claude", "prompt": "x", "callback": "http://127.0.0.1:1/x"});
    put("mine", &other).is_problem(409, "RUN_EXISTS");
    assert!(!served.folder().join("callbacks").exists());
    // An id becomes the name of a file.
    for id in ["..%2Fx", "a%2Fb", ".x", "%00", "turn.2", &"a".repeat(101)] {
        put(id, &body).is_problem(422, "INVALID_PARAMS");
    }
    let list = served.get("/v1/runs?kind=session&liveStatus=true");
    assert_eq!(list.json(), json!({"runs": []}));
    assert_eq!(served.get("/v1/runs?kind=walk").status, 422);
    let list = served.get("/v1/runs?kind=run");
    assert_eq!(list.json()["runs"][0]["runId"], "mine");
}

#[test]
fn a_run_is_cancelled_once() {
    let served = Served::start();
    let id = served.run("wait");
    let path = format!("/v1/runs/{id}");
    assert_eq!(
        served.get("/v1/runs?live=true").json()["runs"][0]["live"]["state"],
        "running"
    );
    assert_eq!(served.cancel(&id).json().get("live"), None);
    assert_eq!(served.until(&path, "ended")["status"], "aborted");
    served
        .request("POST", &format!("{path}/cancel"))
        .send()
        .is_problem(409, "RUN_ENDED");
    assert_eq!(served.get("/v1/runs?live=true").json(), json!({"runs": []}));
}

#[test]
fn prefer_wait_answers_when_the_run_has_ended_or_after_the_time() {
    let served = Served::start();
    let start = |prompt: &str, wait: &str| {
        let started = served
            .request("POST", "/v1/runs")
            .header("Prefer", wait)
            .json(&json!({"provider": "claude", "prompt": prompt}))
            .send();
        assert_eq!(started.status, 201, "{}", started.body);
        started
    };
    let ended = start("hello", "wait=60");
    assert_eq!(ended.header("preference-applied"), Some("wait=60"));
    assert_eq!(ended.json()["result"]["status"], "completed");
    assert_eq!(start("wait", "wait=0").json()["state"], "running");
    let plain = start("wait", "respond-async");
    assert_eq!(plain.header("preference-applied"), None);
}

#[test]
fn the_same_key_starts_one_run() {
    let served = Served::start();
    let start = |key: &str, prompt: &str| {
        served
            .request("POST", "/v1/runs")
            .header("Idempotency-Key", key)
            .json(&json!({"provider": "claude", "prompt": prompt}))
            .send()
    };
    let first = start("a", "x");
    assert_eq!(first.status, 201, "{}", first.body);
    let id = &first.json()["runId"];
    let again = start("a", "x");
    assert_eq!((again.status, &again.json()["runId"]), (200, id));
    start("a", "y").is_problem(422, "IDEMPOTENCY_KEY_REUSED");
    let second = start("b", "x");
    assert_eq!(second.status, 201);
    assert_ne!(&second.json()["runId"], id);
    start("", "x").is_problem(422, "INVALID_PARAMS");
    start(&"k".repeat(257), "x").is_problem(422, "INVALID_PARAMS");
    let runs = served.get("/v1/runs").json();
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn a_repetition_starts_nothing_that_is_deleted_meanwhile() {
    let served = Served::start();
    let start = |served: &Served| {
        served
            .request("POST", "/v1/runs")
            .header("Idempotency-Key", "a")
            .header("Prefer", "wait=60")
            .json(&json!({"provider": "claude", "prompt": "hello"}))
            .send()
    };
    let first = start(&served);
    assert_eq!(first.status, 201, "{}", first.body);
    let served = served.with_fault(Fault::FoundLast);
    start(&served);
    let runs = served.get("/v1/runs").json();
    assert_eq!(runs["runs"], json!([]));
}

#[test]
fn a_request_is_answered_once() {
    let served = Served::start();
    let id = served.run("write");
    let run = served.until(&format!("/v1/runs/{id}"), "waiting");
    let requests = served.get("/v1/requests").json();
    assert_eq!(requests["requests"], run["requests"]);
    assert_eq!(run["requests"][0]["requestId"], format!("{id}/1"));
    let path = format!("/v1/requests/{id}/1");
    let answer = |path: &str, decision: &str| served.post(path, &json!({ "decision": decision }));
    answer(&path, "perhaps").is_problem(422, "INVALID_PARAMS");
    answer(&format!("/v1/requests/{id}/7"), "allow").is_problem(404, "REQUEST_NOT_FOUND");
    answer("/v1/requests/unknown/1", "allow").is_problem(404, "RUN_NOT_FOUND");
    let answered = answer(&format!("/v1/requests/{id}%2F1"), "allow");
    assert_eq!((answered.status, &*answered.body), (204, ""));
    assert_eq!(answer(&path, "deny").status, 409);
    let ended = served.until(&format!("/v1/runs/{id}"), "ended");
    assert_eq!(
        (&ended["status"], &ended["requests"]),
        (&"completed".into(), &json!([]))
    );
}

#[test]
fn a_start_and_a_stop_ask_no_runner_for_its_status() {
    let served = Served::start().with_fault(Fault::NoLive);
    let id = served.run("wait");
    assert_eq!(served.cancel(&id).json()["runId"], id);
}

#[test]
fn a_run_whose_log_cannot_be_read_has_a_state() {
    let served = Served::start().with_fault(Fault::NoLog);
    let body = json!({"provider": "claude", "prompt": "wait"});
    let started = served.post_and_wait("/v1/runs", &body);
    assert_eq!(started.status, 201, "{}", started.body);
    assert_eq!(started.json()["state"], "running");
}

#[test]
fn an_id_that_cannot_be_looked_for_is_not_free() {
    let served = Served::start().with_fault(Fault::NoFind);
    let body = json!({"provider": "claude", "prompt": "hello"});
    let refused = served.request("PUT", "/v1/runs/mine").json(&body).send();
    refused.is_problem(500, "INTERNAL");
    assert_eq!(served.get("/v1/runs").json(), json!({"runs": []}));
}
