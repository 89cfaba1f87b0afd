//! `/v1/events`: a snapshot, then what changes of it.

use serde_json::json;

use super::client::Served;
use super::silent;
use crate::cli::Claude;

#[test]
fn a_run_that_is_forgotten_goes() {
    let claude = Claude::new(&silent());
    let served = Served::of(&claude, &[]);
    let id = served.detach();
    claude.report();
    let mut stream = served.request("GET", "/v1/events").open();
    let snapshot = stream.messages_until(|_| true);
    assert_eq!(snapshot[0]["runs"][0]["runId"], *id);
    assert_eq!(
        served
            .request("POST", &format!("/v1/runs/{id}/cancel"))
            .send()
            .status,
        202
    );
    stream.messages_until(|message| message["run"]["status"] == "aborted");
    assert_eq!(super::about(&claude, ["runs", "forget", &id]).code, Some(0));
    let gone = stream.messages_until(|message| message["type"] == "gone");
    assert_eq!(gone.last().unwrap(), &json!({"type": "gone", "runId": id}));
}
