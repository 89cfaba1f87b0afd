//! The log of a run over HTTP: nothing is lost and nothing comes twice.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use teamster_testkit::fake_agent::Script;

use super::client::{Response, Served, Stream};
use super::silent;
use crate::cli::{Claude, recording};

fn log_file(claude: &Claude, id: &str) -> PathBuf {
    claude
        .path("state/teamster/runs")
        .join(id)
        .join("events.ndjson")
}

fn sse(served: &Served, path: &str) -> Stream {
    served
        .request("GET", path)
        .header("Accept", "text/event-stream")
        .open()
}

/// The numbers and data of the events of a stream.
fn frames(body: &str) -> Vec<(u64, String)> {
    let mut frames = Vec::new();
    for block in body.split("\n\n") {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        if let (Some(id), Some(data)) = (field("id: "), field("data: ")) {
            frames.push((id.parse().unwrap(), data.to_owned()));
        }
    }
    frames
}

#[test]
fn all_forms_have_the_bytes_of_the_log() {
    let claude = Claude::plays("text", 0);
    let served = Served::of(&claude, &[]);
    let id = served.detach();
    served.ended(&id);
    let log = fs::read_to_string(log_file(&claude, &id)).unwrap();
    let count = log.lines().count();
    let path = format!("/v1/runs/{id}/events");

    let lines = served.get(&path);
    assert_eq!(lines.header("content-type"), Some("application/x-ndjson"));
    assert_eq!(lines.header("x-accel-buffering"), Some("no"));
    assert_eq!(lines.body, log);
    assert_eq!(
        served.get(&format!("{path}?after=3")).body.lines().count(),
        count - 3
    );

    let events = sse(&served, &path).rest();
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
    assert_eq!(frames(&events.body), expected);

    let page = served.get(&format!("{path}?wait=10")).json();
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
    let unknown = sse(&served, "/v1/runs/unknown/events").rest();
    unknown.is_problem(404, "RUN_NOT_FOUND");
}

#[test]
fn a_long_poll_answers_at_once_or_after_its_time() {
    let claude = Claude::new(&silent());
    let served = Served::of(&claude, &[]);
    let id = served.detach();
    claude.report();
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
    assert_eq!(
        served
            .request("POST", &format!("/v1/runs/{id}/cancel"))
            .send()
            .status,
        202
    );
    let mut ended = false;
    while !ended {
        page = served.get(&format!("{path}?wait=30&after={}", next(&page)));
        ended = page.json()["ended"] == true;
    }
}

#[test]
fn a_watcher_of_a_server_that_is_killed_goes_on_where_it_was() {
    let script = Script::new().play(recording("text").first(4)).forever();
    let claude = Claude::new(&script);
    let served = Served::of(&claude, &[]);
    let id = served.detach();
    claude.report();
    let path = format!("/v1/runs/{id}/events");
    let mut stream = sse(&served, &path);
    let mut seen = frames(&stream.until("\"type\":\"session\""));
    assert!(!seen.is_empty());
    served.running.signal(Signal::SIGKILL);
    // The stream breaks off without an end.
    seen.extend(frames(&stream.until("event: end")));
    drop(stream);
    drop(served);

    let served = Served::of(&claude, &[]);
    let last = seen.last().unwrap().0;
    let again = served
        .request("GET", &path)
        .header("Accept", "text/event-stream");
    let mut stream = again.header("Last-Event-ID", &last.to_string()).open();
    assert_eq!(stream.status, 200);
    assert_eq!(
        served
            .request("POST", &format!("/v1/runs/{id}/cancel"))
            .send()
            .status,
        202
    );
    let rest = stream.until("event: end");
    assert!(rest.contains("event: end"), "{rest}");
    seen.extend(frames(&rest));
    let log = fs::read_to_string(log_file(&claude, &id)).unwrap();
    let expected: Vec<_> = (1..).zip(log.lines().map(str::to_owned)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn a_server_that_ends_closes_its_streams_without_an_end() {
    let claude = Claude::new(&silent());
    let served = Served::of(&claude, &[]);
    let id = served.detach();
    claude.report();
    let mut stream = sse(&served, &format!("/v1/runs/{id}/events"));
    assert!(stream.until("\"type\":\"run:start\"").contains("run:start"));
    served.end();
    assert!(!stream.until("event: end").contains("event: end"));
    assert_eq!(super::about(&claude, ["cancel", &id]).code, Some(0));
}
