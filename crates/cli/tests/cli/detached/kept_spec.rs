//! The spec that a runner keeps.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use super::{about, detach, runs_folder, with_state};
use crate::cli::{Claude, run, teamster};

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
    about(&claude, ["wait", &id]).ok();
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

    // The store is that of the spec.
    let refused = about(&claude, ["runs", "again", &id, "--store", "off"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    let error = refused.stderr;
    assert!(error.contains("'--store'"), "{error}");
    let again = about(&claude, ["runs", "again", &id]);
    again.stderr_has("give env.API_KEY to");
    let shown = about(&claude, ["runs", "show", &id, "--store", &store]);
    shown.stdout_has("Fix it please");
    let shown = about(&claude, ["runs", "show", &id, "--json", "--store", &store]).json();
    assert_eq!(shown["prompt"], "Fix it\nplease");
    assert_eq!(shown["title"], "Fix it");
}

#[test]
fn a_run_is_found_by_its_title_which_a_person_may_change() {
    let claude = Claude::plays("text", 0);
    let store = claude.path("store.db").display().to_string();
    let id = detach(&claude, ["Fix it\nplease", "--store", &store]);
    let attached = ["Look\nat it", "--run-id=attached", "--store", &store];
    run(with_state(&mut claude.run(attached), &claude)).ok();
    about(&claude, ["wait", &id]).ok();
    let folder = runs_folder(&claude).join(&id);
    let described = fs::read(folder.join("run.json")).unwrap();
    let found = |words: &str| {
        let arguments = ["runs", "list", "--json", "--store", &store, "--text", words];
        let found = about(&claude, arguments).stdout;
        let found = found.lines().map(|line| {
            let run: Value = serde_json::from_str(line).unwrap();
            let text = |name: &str| run[name].as_str().unwrap().to_owned();
            (text("runId"), text("title"))
        });
        found.collect::<Vec<_>>()
    };
    assert_eq!(found("IT fix"), [(id.clone(), "Fix it".to_owned())]);
    assert_eq!(found("look"), [("attached".to_owned(), "Look".to_owned())]);
    assert_eq!(found("please"), []);

    let rename = |id: &str, title: &[&str]| {
        let arguments = ["runs", "rename", id, "--store", &store].into_iter();
        about(&claude, arguments.chain(title.iter().copied()))
    };
    for id in [&*id, "attached"] {
        rename(&id[..8], &["The login"]).quiet();
    }
    assert_eq!(found("login").len(), 2);
    assert_eq!(fs::read(folder.join("run.json")).unwrap(), described);
    rename(&id, &[]).ok();
    assert_eq!(found("fix"), [(id.clone(), "Fix it".to_owned())]);
    rename(&id, &[" "]).fails(2, "title");

    let mut again = teamster(["runs", "again", &id]);
    again.env("TEAMSTER_CLAUDE_BIN", claude.path("claude"));
    let again = run(with_state(&mut again, &claude));
    let second = again.stdout.trim_end();
    assert_eq!(
        about(&claude, ["wait", second]).code,
        Some(0),
        "{}",
        again.stderr
    );
    assert_ne!(second, id);
    assert_eq!(found("fix").len(), 2);
    let missing = rename("no-such-run", &["x"]);
    missing.stderr_has("no run \"no-such-run\"");
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
    about(&claude, ["wait", &id]).ok();
    let text = fs::read_to_string(runs_folder(&claude).join(&id).join("spec.json")).unwrap();
    let spec: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(spec["withheld"], json!(["prompt", "systemPrompt"]));
    assert!(
        !text.contains("private") && !text.contains("friend"),
        "{text}"
    );
    let shown = about(&claude, ["runs", "show", &id, "--store", &store]);
    shown.stdout_has("sha256");
    // Neither is the first line a title, here or in the history.
    let about_it = fs::read_to_string(runs_folder(&claude).join(&id).join("run.json")).unwrap();
    assert!(!about_it.contains("private"), "{about_it}");
    let listed = about(&claude, ["runs", "list", "--json", "--store", &store]);
    assert!(!listed.stdout.contains("private"), "{}", listed.stdout);
    // Where it is kept, the folder is its only place.
    let id = start("on").stdout.trim_end().to_owned();
    about(&claude, ["wait", &id]).ok();
    let shown = about(&claude, ["runs", "show", &id, "--store", &store]);
    shown.stdout_has("prompt        a private matter\n");
    fs::remove_file(runs_folder(&claude).join(&id).join("spec.json")).unwrap();
    let shown = about(&claude, ["runs", "show", &id, "--store", &store]);
    shown.stdout_has("prompt        not kept (sha256 ");
    // A title that was given is none.
    let mut command = claude.run(["a private matter", "--title", "My title"]);
    let command = with_state(&mut command, &claude).args(["--detach", "--store", &store]);
    let id = run(command.env("TEAMSTER_KEEP_PROMPTS", "off"));
    let id = id.stdout.trim_end();
    about(&claude, ["wait", id]).ok();
    let listed = about(&claude, ["runs", "list", "--json", "--store", &store]);
    let newest: Value = serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&newest["runId"], &newest["title"]),
        (&id.into(), &"My title".into())
    );

    let refused = start("no");
    assert_eq!((refused.code, &*refused.stdout), (Some(2), ""));
    refused.stderr_begins("error: TEAMSTER_KEEP_PROMPTS: \"no\" is neither");
}
