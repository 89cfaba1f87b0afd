//! Triggers of the agents' file.

use std::fs;

use serde_json::json;

use super::client::Served;
use crate::cli::{Claude, run, teamster};

#[test]
fn trigger_starts_a_run_with_values_as_its_prompt() {
    let claude = Claude::plays("text", 0);
    let config = claude.path("agents.config.json");
    // A run that asks nothing has its prompt in its arguments.
    let run = json!({"provider": "claude", "prompt": "{{body.title}}", "askTimeoutMs": 0});
    let trigger = json!({ "id": "ask", "run": run });
    let text = json!({"agents": [], "triggers": [trigger]}).to_string();
    fs::write(&config, text).unwrap();
    let served = Served::of(&claude, &["--agents", config.to_str().unwrap()]);
    let title = "--dangerously-skip-permissions";
    let fired = served.post("/v1/triggers/ask", &json!({ "title": title }));
    assert_eq!(fired.status, 201, "{}", fired.body);
    let id = fired.json()["runId"].as_str().unwrap().to_owned();
    assert_eq!(served.ended(&id)["status"], "completed");
    let argv = claude.report().argv;
    let at = |text: &str| argv.iter().position(|arg| arg == text);
    assert!(at("--") < at(title), "{argv:?}");
    assert!(at("--").is_some(), "{argv:?}");
    served.end();
}

#[test]
fn trigger_that_cannot_be_used_is_refused_at_the_start() {
    let claude = Claude::plays("text", 0);
    let config = claude.path("agents.config.json");
    fs::write(&config, r#"{"agents": [], "triggers": [{"id": "a"}]}"#).unwrap();
    let mut serve = teamster(["serve", "--agents", config.to_str().unwrap()]);
    let ended = run(serve.env("XDG_STATE_HOME", claude.path("state")));
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    ended.stderr_has("agents.config.json: missing field `run`");
}
