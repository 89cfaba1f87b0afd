//! The history, the limits and what was used, as a page shows them.

use serde_json::{Value, json};
use teamster_testkit::proc::wait_until;

use super::client::Served;
use crate::cli::{Claude, LIMIT, run};

/// A server whose runs are recorded in a store of their own.
fn recorded(claude: &Claude) -> Served {
    let (program, store, home) = (
        claude.path("claude"),
        claude.path("store.db"),
        claude.path("home"),
    );
    Served::start(&[], &claude.path("state"), |command| {
        command
            .env("TEAMSTER_CLAUDE_BIN", &program)
            .env("TEAMSTER_STORE", &store)
            .env("HOME", &home)
            .env("TZ", "UTC");
    })
}

fn ids(list: &Value) -> Vec<&str> {
    let runs = list["runs"].as_array().unwrap().iter();
    runs.map(|run| run["runId"].as_str().unwrap()).collect()
}

#[test]
fn the_history_has_attached_and_detached_runs() {
    let claude = Claude::plays("text", 0);
    let served = recorded(&claude);
    assert_eq!(served.get("/v1/history").json(), json!({"runs": []}));
    run(claude
        .run(["x", "--run-id", "attached", "--session-key", "slack:U42"])
        .env("TEAMSTER_STORE", claude.path("store.db"))
        .env("XDG_STATE_HOME", claude.path("state")))
    .ok();
    let detached = served.detach();
    // Its row is written after the end of its log.
    assert!(wait_until(LIMIT, || {
        served.get("/v1/history?status=success&limit=2").json()["runs"][1].is_object()
    }));
    let all = served.get("/v1/history").json();
    assert_eq!(ids(&all), [&*detached, "attached"]);
    assert_eq!(all.get("next"), None);
    let of = |query: &str| {
        let list = served.get(&format!("/v1/history?{query}")).json();
        ids(&list)
            .into_iter()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let began = all["runs"][0]["startedAt"].as_u64().unwrap();
    assert_eq!(of(&format!("since={began}")), [&*detached]);
    assert_eq!(of(&format!("until={began}")), ["attached"]);
    assert_eq!(of("key=slack:U42"), ["attached"]);
    assert_eq!(of("agent=claude").len(), 2);
    assert!(of("agent=codex").is_empty() && of("status=error").is_empty());

    let page = served.get("/v1/history?limit=1").json();
    assert_eq!(ids(&page), [&*detached]);
    let next = page["next"].as_str().unwrap();
    let page = served.get(&format!("/v1/history?limit=1&cursor={next}"));
    assert_eq!(
        (ids(&page.json()), page.json().get("next")),
        (vec!["attached"], None)
    );
    for wrong in [
        "status=done",
        "cursor=x",
        "limit=x",
        "other=1",
        "key=a:b:c:d",
    ] {
        served
            .get(&format!("/v1/history?{wrong}"))
            .is_problem(422, "INVALID_PARAMS");
    }

    let mut shown = served.get("/v1/history/att").json();
    assert_eq!(shown["conversation"], "slack:U42:_");
    // A list has the titles alone.
    let prompt = shown.as_object_mut().unwrap().remove("prompt");
    assert_eq!(prompt, Some(json!("x")));
    assert_eq!(shown, all["runs"][1]);
    served
        .get("/v1/history/unknown")
        .is_problem(404, "RUN_NOT_FOUND");
    served.end();
}

#[test]
fn a_run_with_a_key_belongs_to_its_conversation() {
    let claude = Claude::plays("text", 0);
    let served = recorded(&claude);
    let mut body = json!({
        "provider": "claude", "prompt": "x", "askTimeoutMs": 0,
        "sessionKey": "slack:U42", "maxWaitMs": 60_000
    });
    let started = served.post("/v1/runs", &body);
    assert_eq!(started.status, 201, "{}", started.body);
    let id = started.json()["runId"].as_str().unwrap().to_owned();
    // Its row is written after the end of its log.
    assert!(wait_until(LIMIT, || {
        served
            .get("/v1/history?key=slack:U42&status=success")
            .json()["runs"][0]["runId"]
            == *id
    }));
    body["sessionId"] = "s-1".into();
    served
        .post("/v1/runs", &body)
        .is_problem(422, "INVALID_PARAMS");
}

#[test]
fn usage_is_grouped_by_the_key_and_lists_its_models() {
    let claude = Claude::plays("text", 0);
    let served = recorded(&claude);
    run(claude
        .run(["x", "--session-key", "slack:U42"])
        .env("TEAMSTER_STORE", claude.path("store.db"))
        .env("XDG_STATE_HOME", claude.path("state")))
    .ok();
    let usage = served.get("/v1/usage?by=key&models=true").json();
    assert_eq!(usage["by"], "key");
    let [group] = &usage["groups"].as_array().unwrap()[..] else {
        panic!("{usage}");
    };
    assert_eq!(group["name"], "slack:U42:_");
    assert_eq!(group["providers"], json!(["claude"]));
    assert!(group["spentUsd"].as_f64().unwrap() > 0.0, "{group}");
    assert_eq!(group["byModel"].as_array().unwrap().len(), 1);
    let none = served.get("/v1/usage?by=key&provider=codex,gemini").json();
    assert_eq!(none["groups"], json!([]));
    served
        .get("/v1/usage?by=colour")
        .is_problem(422, "INVALID_PARAMS");
    served
        .get("/v1/usage?provider=nobody")
        .is_problem(422, "INVALID_PARAMS");
    // Periods that cannot be, which no schema forbids.
    for period in [
        "since=2026-02-30",
        "since=99999999d",
        "since=2026-11-22&until=2026-11-20",
    ] {
        let refused = served.get(&format!("/v1/usage?{period}"));
        refused.is_problem(422, "INVALID_PARAMS");
    }
}

#[test]
fn unknown_run_cannot_be_shown_or_forgotten() {
    let claude = Claude::plays("text", 0);
    let served = recorded(&claude);
    served.ended(&served.detach());
    assert!(wait_until(LIMIT, || {
        served.get("/v1/history").json()["runs"][0]["status"] == "success"
    }));
    for id in ["unknown", "%00", &"x".repeat(501)] {
        let shown = served.get(&format!("/v1/history/{id}"));
        shown.is_problem(404, "RUN_NOT_FOUND");
    }
    let forget = |id: &str| served.post("/v1/history/forget", &json!({"ids": [id]}));
    for id in ["unknown", "", "\0"] {
        forget(id).is_problem(404, "RUN_NOT_FOUND");
    }
    let invalid = served.get("/v1/history?agent=%00");
    assert_eq!(invalid.json(), json!({"runs": []}));
    let started = served.post("/v1/sessions", &json!({"provider": "claude"}));
    let id = started.json()["runId"].as_str().unwrap().to_owned();
    forget(&id).is_problem(409, "RUN_LIVE");
}
