//! The log of a run over HTTP: nothing is lost and nothing comes twice.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use teamster_testkit::fake_agent::Script;
use teamster_testkit::http::events_in;

use super::client::Served;
use crate::cli::{Claude, recording};

fn log_file(claude: &Claude, id: &str) -> PathBuf {
    claude
        .path("state/teamster/runs")
        .join(id)
        .join("events.ndjson")
}

#[test]
fn a_watcher_of_a_server_that_is_killed_goes_on_where_it_was() {
    let script = Script::new().play(recording("text").first(4)).forever();
    let claude = Claude::new(&script);
    let served = Served::of(&claude, &[]);
    let id = served.detach();
    claude.report();
    let path = format!("/v1/runs/{id}/events");
    let mut stream = served.request("GET", &path).open_events();
    let mut seen = events_in(&stream.until("\"type\":\"session\""));
    assert!(!seen.is_empty());
    served.running.signal(Signal::SIGKILL);
    // The stream breaks off without an end.
    seen.extend(events_in(&stream.until("event: end")));
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
    seen.extend(events_in(&rest));
    let log = fs::read_to_string(log_file(&claude, &id)).unwrap();
    let expected: Vec<_> = (1..).zip(log.lines().map(str::to_owned)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn damaged_logs_stop_neither_lists_nor_the_end_of_the_server() {
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
    let all = events_in(
        &served
            .request("GET", &format!("/v1/runs/{id}/events"))
            .open_events()
            .until("event: end"),
    );
    assert_eq!(all.len(), lines.len());
    let types: Vec<_> = (all.iter())
        .filter(|(_, data)| data.contains("\"type\":\"damaged\""))
        .map(|(seq, _)| *seq)
        .collect();
    assert_eq!(types, [3]);
    let page = served.get(&format!("/v1/runs/{id}/events?wait=0")).json();
    assert_eq!(page["entries"].as_array().unwrap().len(), lines.len());
}
