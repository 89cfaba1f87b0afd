//! `/v1/events`: a snapshot, then what changes of it.

use serde_json::{Value, json};
use teamster_testkit::http::Stream;

use super::client::Served;
use super::silent;
use crate::cli::Claude;

/// The messages up to one of which this holds.
fn until(stream: &mut Stream, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut messages = Vec::new();
    loop {
        let piece = stream.piece().unwrap().unwrap();
        for line in String::from_utf8(piece).unwrap().lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            let found = wanted(&message);
            messages.push(message);
            if found {
                return messages;
            }
        }
    }
}

#[test]
fn a_run_that_is_forgotten_goes() {
    let claude = Claude::new(&silent());
    let served = Served::of(&claude, &[]);
    let id = served.detach();
    claude.report();
    let mut stream = served.request("GET", "/v1/events").open();
    let snapshot = until(&mut stream, |_| true);
    assert_eq!(snapshot[0]["runs"][0]["runId"], *id);
    assert_eq!(
        served
            .request("POST", &format!("/v1/runs/{id}/cancel"))
            .send()
            .status,
        202
    );
    until(&mut stream, |message| message["run"]["status"] == "aborted");
    assert_eq!(super::about(&claude, ["runs", "forget", &id]).code, Some(0));
    let gone = until(&mut stream, |message| message["type"] == "gone");
    assert_eq!(gone.last().unwrap(), &json!({"type": "gone", "runId": id}));
}
