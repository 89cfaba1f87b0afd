//! The log of a run over HTTP: nothing is lost and nothing comes twice.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use teamster_server::{OwnerToken, Scope, Tokens};
use teamster_testkit::http::{Response, events_in};

use super::faulty::{Fault, Faulty};
use super::served::Served;

#[test]
fn all_forms_have_the_same_entries() {
    let served = Served::start();
    let id = served.run("hello");
    served.until(&format!("/v1/runs/{id}"), "ended");
    let path = format!("/v1/runs/{id}/events");

    let lines = served.get(&path);
    assert_eq!(lines.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(lines.header("x-accel-buffering"), Some("no"));
    let log = lines.body;
    let count = log.lines().count();
    assert!(count > 3, "{log}");
    assert_eq!(
        served.get(&format!("{path}?after=3")).body.lines().count(),
        count - 3
    );

    let events = served.request("GET", &path).open_events().rest();
    assert_eq!(events.header("content-type"), Some("text/event-stream"));
    assert_eq!(
        events.header("cache-control"),
        Some("no-store, no-transform")
    );
    assert!(events.body.starts_with("retry: "), "{}", events.body);
    assert!(
        events.body.ends_with("event: end\ndata: {}\n\n"),
        "{}",
        events.body
    );
    let expected: Vec<_> = (1..).zip(log.lines().map(str::to_owned)).collect();
    assert_eq!(events_in(&events.body), expected);

    let page = served.get(&format!("{path}?wait=0")).json();
    let entries: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        page,
        json!({"entries": entries, "next": count, "ended": true})
    );
    let page = served.get(&format!("{path}?wait=10&after={count}")).json();
    assert_eq!(page, json!({"entries": [], "next": count, "ended": true}));

    // A browser whose stream has ended connects again, and is to stop then.
    let again = served.request("GET", &format!("{path}?after=1"));
    let again = again
        .header("Accept", "text/event-stream")
        .header("Last-Event-ID", &count.to_string())
        .send();
    assert_eq!((again.status, &*again.body), (204, ""));
    let from = served
        .request("GET", &format!("{path}?after=1"))
        .header("Last-Event-ID", "2")
        .send();
    assert_eq!(from.body.lines().count(), count - 2);
    served
        .request("GET", &path)
        .header("Last-Event-ID", "x")
        .send()
        .is_problem(422, "INVALID_PARAMS");
    served
        .get(&format!("{path}?after=x"))
        .is_problem(422, "INVALID_PARAMS");
    served
        .get(&format!("{path}?wait=-1"))
        .is_problem(422, "INVALID_PARAMS");
    // Before any head of a stream.
    let unknown = served
        .request("GET", "/v1/runs/unknown/events")
        .open_events()
        .rest();
    unknown.is_problem(404, "RUN_NOT_FOUND");
}

#[test]
fn a_long_poll_answers_at_once_or_after_its_time() {
    let served = Served::start();
    let id = served.run("wait");
    let path = format!("/v1/runs/{id}/events");
    let next = |page: &Response| page.json()["next"].as_u64().unwrap();
    // Up to where the agent is silent.
    let mut page = served.get(&format!("{path}?wait=30"));
    assert!(next(&page) > 0);
    loop {
        let more = served.get(&format!("{path}?wait=0.3&after={}", next(&page)));
        if more.json()["entries"] == json!([]) {
            assert_eq!(
                (next(&more), &more.json()["ended"]),
                (next(&page), &false.into())
            );
            break;
        }
        page = more;
    }
    served.cancel(&id);
    let mut ended = false;
    while !ended {
        page = served.get(&format!("{path}?wait=30&after={}", next(&page)));
        ended = page.json()["ended"] == true;
    }
}

#[test]
fn a_stream_without_new_entries_has_its_head_at_once() {
    let served = Served::start();
    let id = served.run("wait");
    let path = format!("/v1/runs/{id}/events");
    let page = served.get(&format!("{path}?wait=30")).json();
    let mut seq = page["next"].as_u64().unwrap();
    loop {
        let more = served.get(&format!("{path}?wait=0&after={seq}")).json();
        if more["entries"] == json!([]) {
            break;
        }
        seq = more["next"].as_u64().unwrap();
    }
    let mut stream = served
        .request("GET", &format!("{path}?after={seq}"))
        .open_events();
    assert_eq!(stream.status, 200);
    served.cancel(&id);
    let rest = stream.until("event: end");
    assert_eq!(events_in(&rest)[0].0, seq + 1);
}

#[test]
fn the_streams_of_a_token_end_when_it_is_revoked_or_replaced() {
    let served = Served::start();
    let id = served.run("wait");
    let phone = served.add(&[Scope::Read]);
    let log = format!("/v1/runs/{id}/events");
    let open = |token: &str, path: &str| served.request_of(token, "GET", path).open();
    let status = |token: &str| served.request_of(token, "GET", "/v1/runs").send().status;
    let (mut first, mut second) = (open(&phone, &log), open(&phone, "/v1/events"));
    let (mut own, mut watched) = (open(&served.token, &log), open(&served.token, "/v1/events"));
    Tokens::at(served.folder()).revoke("read").unwrap();
    // They end, as they do when the server ends: the client connects again and gets 401.
    first.until("never");
    second.until("never");
    assert_eq!((status(&phone), status(&served.token)), (401, 200));

    let new = OwnerToken::replace(&served.folder().join("token")).unwrap();
    assert_ne!(new.secret(), served.token);
    own.until("never");
    watched.until("never");
    assert_eq!((status(&served.token), status(new.secret())), (401, 200));
}

#[test]
fn a_server_that_ends_closes_its_streams_without_an_end() {
    let served = Served::start();
    let id = served.run("wait");
    let mut stream = served
        .request("GET", &format!("/v1/runs/{id}/events"))
        .open_events();
    assert!(stream.until("\"type\":\"run:start\"").contains("run:start"));
    served.end();
    assert!(!stream.until("event: end").contains("event: end"));
}

#[test]
fn a_runner_that_does_not_answer_keeps_back_no_log() {
    let served = Served::start();
    let (waiting, ended) = (served.run("wait"), served.run("hello"));
    served.until(&format!("/v1/runs/{ended}"), "ended");
    let page = served.get(&format!("/v1/runs/{waiting}/events?wait=30"));
    let seq = page.json()["next"].as_u64().unwrap();
    let served = served.with_fault(Fault::NoState);
    let path = format!("/v1/runs/{waiting}/events");
    let page = served.get(&format!("{path}?wait=0")).json();
    assert!(page["next"].as_u64().unwrap() >= seq, "{page}");
    let mut stream = served.request("GET", &path).open_events();
    assert!(stream.until("\"type\":\"run:start\"").contains("id: 1\n"));
    // Without new entries, the head comes too.
    let beyond = served
        .request("GET", &format!("{path}?after=1000"))
        .open_events();
    assert_eq!(beyond.status, 200);
    let path = format!("/v1/runs/{ended}/events");
    let last = served.get(&path).body.lines().count();
    assert_eq!(served.get(&format!("{path}?after={last}")).status, 204);
}

#[test]
fn a_log_with_entries_is_sent_without_reading_a_result() {
    let served = Served::start();
    let id = served.run("hello");
    served.until(&format!("/v1/runs/{id}"), "ended");
    let faulty = Faulty::new(served.runs.clone(), Fault::None);
    let (shows, outlines) = (faulty.shows.clone(), faulty.outlines.clone());
    let served = served.over(std::sync::Arc::new(faulty));
    let asked = || {
        (
            shows.load(Ordering::Relaxed),
            outlines.load(Ordering::Relaxed),
        )
    };
    let path = format!("/v1/runs/{id}/events");
    let body = served.get(&path).body;
    assert!(body.contains("\"type\":\"done\""), "{body}");
    assert_eq!(asked(), (0, 0));
    let page = served.get(&format!("{path}?wait=0")).json();
    assert_eq!(page["ended"], true, "{page}");
    assert_eq!(asked(), (0, 1));
}
