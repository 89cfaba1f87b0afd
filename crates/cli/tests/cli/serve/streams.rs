//! The log of a run over HTTP: nothing is lost and nothing comes twice.

use std::fs;

use super::client::Served;
use crate::cli::Claude;

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
