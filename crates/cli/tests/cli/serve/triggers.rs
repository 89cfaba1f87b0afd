//! Triggers of the agents' file.

use std::fs;

use crate::cli::{Claude, run, teamster};

#[test]
fn trigger_that_cannot_be_used_is_refused_at_the_start() {
    let claude = Claude::plays("text", 0);
    let config = claude.path("agents.config.json");
    fs::write(&config, r#"{"agents": [], "triggers": [{"id": "a"}]}"#).unwrap();
    let mut serve = teamster(["serve", "--agents", config.to_str().unwrap()]);
    run(serve.env("XDG_STATE_HOME", claude.path("state")))
        .fails(2, "agents.config.json: missing field `run`");
}
