//! `/v1/events`: a snapshot, then what changes of it.

use serde_json::{Value, json};

use super::served::Served;

#[test]
fn runs_begin_wait_and_end_in_the_stream_of_all() {
    let served = Served::start();
    let mut stream = served.request("GET", "/v1/events").open();
    let first = stream.messages_until(|_| true);
    assert_eq!(
        (&first[0]["type"], &first[0]["runs"]),
        (&"snapshot".into(), &json!([]))
    );
    assert_eq!(first[0]["agents"]["agents"][0]["id"], "qa");
    let started = served.post(
        "/v1/runs",
        &json!({"provider": "claude", "prompt": "write"}),
    );
    let id = started.json()["runId"].clone();
    let of_it = |message: &Value| message["type"] == "run" && message["run"]["runId"] == id;
    let waiting =
        stream.messages_until(|message| of_it(message) && message["run"]["state"] == "waiting");
    let request = &waiting.last().unwrap()["run"]["requests"][0];
    assert_eq!(request["toolName"], "Write");

    // Who comes now needs nothing of before.
    let mut other = served
        .request("GET", "/v1/events")
        .header("Accept", "text/event-stream")
        .open();
    let text = other.until("\"type\":\"snapshot\"");
    assert!(
        text.contains(id.as_str().unwrap()) && text.contains("\"state\":\"waiting\""),
        "{text}"
    );
    let path = format!("/v1/requests/{}", request["requestId"].as_str().unwrap());
    assert_eq!(
        served.post(&path, &json!({"decision": "allow"})).status,
        204
    );
    let ended =
        stream.messages_until(|message| of_it(message) && message["run"]["state"] == "ended");
    assert_eq!(ended.last().unwrap()["run"]["status"], "completed");
    let text = other.until("\"state\":\"ended\"");
    assert!(text.contains("\"state\":\"ended\""), "{text}");
    drop(other);
    served.end();
}

#[test]
fn a_run_that_is_forgotten_goes() {
    let served = Served::start();
    let id = served.run("wait");
    let mut stream = served.request("GET", "/v1/events").open();
    let snapshot = stream.messages_until(|_| true);
    assert_eq!(snapshot[0]["runs"][0]["runId"], *id);
    served.cancel(&id);
    stream.messages_until(|message| message["run"]["status"] == "aborted");
    let forgotten = served.post("/v1/history/forget", &json!({"ids": [id]}));
    assert_eq!(forgotten.json()["logs"], 1, "{}", forgotten.body);
    let gone = stream.messages_until(|message| message["type"] == "gone");
    assert_eq!(gone.last().unwrap(), &json!({"type": "gone", "runId": id}));
}
