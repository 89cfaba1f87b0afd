//! The spec that a runner keeps.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{about, detach, runs_folder, with_state};
use crate::cli::{Claude, run};

#[test]
fn the_spec_of_a_detached_run_is_kept_without_secrets() {
    let claude = Claude::plays("text", 0);
    let store = claude.path("store.db").display().to_string();
    let id = detach(
        &claude,
        [
            "Fix it\nplease",
            "--env",
            "API_KEY=secret-1",
            "--max-turns",
            "3",
            "--store",
            &store,
        ],
    );
    assert_eq!(about(&claude, ["wait", &id]).code, Some(0));
    let file = runs_folder(&claude).join(&id).join("spec.json");
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let text = fs::read_to_string(&file).unwrap();
    assert!(!text.contains("secret-1"), "{text}");
    let spec: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(spec["withheld"], json!(["env.API_KEY"]));
    assert_eq!(spec["what"]["run"]["maxTurns"], 3);
    assert_eq!(spec["what"]["run"]["prompt"], "Fix it\nplease");

    let shown = about(&claude, ["runs", "show", &id, "--store", &store]);
    assert!(shown.stdout.contains("Fix it please"), "{}", shown.stdout);
    let shown = about(&claude, ["runs", "show", &id, "--json", "--store", &store]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["prompt"], "Fix it\nplease");
}

#[test]
fn prompts_are_not_kept_if_the_environment_says_so() {
    let claude = Claude::plays("text", 0);
    let store = claude.path("store.db").display().to_string();
    let start = |value: &str| {
        let mut command = claude.run(["a private matter", "--system-prompt", "be a friend"]);
        let command = with_state(&mut command, &claude).args(["--detach", "--store", &store]);
        run(command.env("TEAMSTER_KEEP_PROMPTS", value))
    };
    let id = start("off").stdout.trim_end().to_owned();
    assert_eq!(about(&claude, ["wait", &id]).code, Some(0));
    let text = fs::read_to_string(runs_folder(&claude).join(&id).join("spec.json")).unwrap();
    let spec: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(spec["withheld"], json!(["prompt", "systemPrompt"]));
    assert!(
        !text.contains("private") && !text.contains("friend"),
        "{text}"
    );
    let shown = about(&claude, ["runs", "show", &id, "--store", &store]);
    assert!(shown.stdout.contains("sha256"), "{}", shown.stdout);

    let refused = start("no");
    assert_eq!((refused.code, &*refused.stdout), (Some(2), ""));
    assert!(
        refused
            .stderr
            .starts_with("error: TEAMSTER_KEEP_PROMPTS: \"no\" is neither"),
        "{}",
        refused.stderr
    );
}
