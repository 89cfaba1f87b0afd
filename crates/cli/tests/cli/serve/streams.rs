//! The log of a run over HTTP: nothing is lost and nothing comes twice.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use teamster_testkit::fake_agent::Script;

use super::client::{Request, Response, Served, Stream};
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
fn what_is_no_log_stops_neither_lists_nor_the_end_of_the_server() {
    let claude = Claude::plays("text", 0);
    let served = Served::of(&claude, &[]);
    let ids = [served.detach(), served.detach(), served.detach()];
    for id in &ids {
        served.ended(id);
    }
    served.end();
    let runs = claude.path("state/teamster/runs");
    for (id, name) in ids.iter().zip(["run.json", "events.ndjson"]) {
        let file = runs.join(id).join(name);
        fs::remove_file(&file).unwrap();
        let made = std::process::Command::new("mkfifo").arg(&file).status();
        assert!(made.unwrap().success());
    }
    let served = Served::of(&claude, &[]);
    let listed = served.get("/v1/runs").json();
    let listed: Vec<_> = (listed["runs"].as_array().unwrap().iter())
        .map(|run| run["runId"].as_str().unwrap())
        .collect();
    assert_eq!(listed, [&*ids[2]]);
    let mut feed = served.request("GET", "/v1/events").open();
    assert!(feed.until("snapshot").contains(&*ids[2]));
    served
        .get(&format!("/v1/runs/{}/events", ids[1]))
        .is_problem(500, "INTERNAL");
    served.end();
}

#[test]
fn a_damaged_line_is_an_entry_of_the_stream() {
    let claude = Claude::plays("text", 0);
    let served = Served::of(&claude, &[]);
    let id = served.detach();
    served.ended(&id);
    let file = log_file(&claude, &id);
    let mut lines: Vec<_> = fs::read_to_string(&file)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    lines[2] = lines[2][..20].to_owned();
    fs::write(&file, lines.join("\n") + "\n").unwrap();
    let all = frames(&sse(&served, &format!("/v1/runs/{id}/events")).until("event: end"));
    assert_eq!(all.len(), lines.len());
    let types: Vec<_> = (all.iter())
        .filter(|(_, data)| data.contains("\"type\":\"damaged\""))
        .map(|(seq, _)| *seq)
        .collect();
    assert_eq!(types, [3]);
    let page = served.get(&format!("/v1/runs/{id}/events?wait=0")).json();
    assert_eq!(page["entries"].as_array().unwrap().len(), lines.len());
}

#[test]
fn the_streams_of_a_token_end_when_it_is_revoked_or_replaced() {
    let claude = Claude::new(&silent());
    let served = Served::of(&claude, &[]);
    let id = served.detach();
    claude.report();
    let added = super::about(&claude, ["token", "add", "phone", "--scope", "read"]);
    let phone = added.stdout.trim_end().to_owned();
    let request = |token: &str, path: &str| {
        Request::new(&served.address, "GET", path)
            .header("Authorization", &format!("Bearer {token}"))
    };
    let log = format!("/v1/runs/{id}/events");
    let open = |token: &str, path: &str| request(token, path).open();
    let (mut first, mut second) = (open(&phone, &log), open(&phone, "/v1/events"));
    let (mut own, mut watched) = (open(&served.token, &log), open(&served.token, "/v1/events"));
    assert_eq!(
        super::about(&claude, ["token", "revoke", "phone"]).code,
        Some(0)
    );
    // They end, as they do when the server ends: the client connects again and gets 401.
    first.until("never");
    second.until("never");
    request(&phone, &log).send().is_problem(401, "UNAUTHORIZED");
    assert_eq!(request(&served.token, "/v1/runs").send().status, 200);

    let replaced = super::about(&claude, ["token", "replace"]);
    assert_eq!((replaced.code, &*replaced.stderr), (Some(0), ""));
    let new = replaced.stdout.trim_end();
    let file = super::token_file(&claude.path("state"));
    assert_eq!(fs::read_to_string(file).unwrap().trim_end(), new);
    assert_ne!(new, served.token);
    own.until("never");
    watched.until("never");
    request(&served.token, "/v1/runs")
        .send()
        .is_problem(401, "UNAUTHORIZED");
    assert_eq!(request(new, "/v1/runs").send().status, 200);
    assert_eq!(super::about(&claude, ["cancel", &id]).code, Some(0));
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
