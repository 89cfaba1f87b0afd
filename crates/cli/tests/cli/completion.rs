//! Completion of arguments, and the manual pages.

use std::fs;

use crate::cli::{Claude, recording, run, teamster};
use teamster_testkit::fake_agent::Script;

/// What a shell is offered for the last of these words, each with its help behind a tab.
fn completed(words: &[&str], env: &[(&str, &str)]) -> Vec<String> {
    let mut command = teamster(["--"]);
    // The way in which the script for fish asks.
    let command = command
        .env("TEAMSTER_COMPLETE", "fish")
        .args(words)
        .envs(env.iter().copied());
    let ended = run(command).quiet();
    ended.stdout.lines().map(str::to_owned).collect()
}

/// The same without options, which go with every word that is still empty.
fn values(words: &[&str], env: &[(&str, &str)]) -> Vec<String> {
    let mut found = completed(words, env);
    found.retain(|line| !line.starts_with("--"));
    found
}

#[test]
fn every_shell_gets_a_script_that_asks_this_program() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let ended = run(&mut teamster(["completions", shell]));
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{shell}");
        for word in ["teamster", "TEAMSTER_COMPLETE"] {
            assert!(ended.stdout.contains(word), "{shell}: {word}");
        }
    }
}

#[test]
fn commands_options_and_providers_are_completed() {
    assert_eq!(
        completed(&["teamster", "doc"], &[]),
        ["doctor\tList the installed agent CLIs and check whether they can be used"]
    );
    assert_eq!(
        completed(&["teamster", "run", "op"], &[]),
        ["opencode\tOpenCode"]
    );
    assert_eq!(
        completed(
            &["teamster", "run", "claude", "hi", "--fallback", "cod"],
            &[]
        ),
        ["codex\tCodex"]
    );
    let options = completed(&["teamster", "run", "--mcp-v"], &[]);
    assert!(options[0].starts_with("--mcp-via\t"), "{options:?}");
}

#[test]
fn runs_sessions_and_models_are_those_of_the_history() {
    let claude = Claude::new(&Script::new().play(recording("tool_shell_ok")));
    let store = claude.path("store.db").to_str().unwrap().to_owned();
    let env = [("TEAMSTER_STORE", &*store)];
    let none: [&str; 0] = [];
    let show = ["teamster", "runs", "show", ""];
    assert_eq!(values(&show, &env), none, "there is no history yet");
    assert!(!claude.path("store.db").exists());

    let mut command = claude.run(["hi", "--run-id=first"]);
    run(command.envs(env)).ok();
    let shown = run(teamster(["runs", "show", "first", "--json"]).envs(env)).stdout;
    let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
    let text = |field: &str| shown[field].as_str().unwrap().to_owned();

    assert_eq!(values(&show, &env), ["first\tclaude, completed"]);
    let forget = ["teamster", "runs", "forget", "fi"];
    assert_eq!(values(&forget, &env), ["first\tclaude, completed"]);
    let resume = ["teamster", "run", "claude", "hi", "--resume", ""];
    assert_eq!(
        values(&resume, &env),
        [format!("{}\tclaude, completed", text("sessionId"))]
    );
    let model = ["teamster", "chat", "claude", "--model", ""];
    assert_eq!(values(&model, &env), [format!("{}\tclaude", text("model"))]);
}

#[test]
fn agents_are_those_of_the_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("agents.config.json");
    let agents = r#"{"agents": [{"id": "pm-bot"}, {"id": "qa-bot"}]}"#;
    fs::write(&file, agents).unwrap();
    let file = file.to_str().unwrap();
    for id in ["pm-bot", "qa-bot"] {
        fs::create_dir_all(dir.path().join("agents").join(id)).unwrap();
    }
    let stop = ["teamster", "agents", "--config", file, "stop", "q"];
    assert_eq!(values(&stop, &[]), ["qa-bot"]);
    let logs = ["teamster", "agents", "logs", "--config", file, ""];
    assert_eq!(values(&logs, &[]), ["pm-bot", "qa-bot"]);
    let none: [&str; 0] = [];
    fs::write(file, "{").unwrap();
    assert_eq!(values(&stop, &[]), none);
}

#[test]
fn each_command_has_a_manual_page() {
    let dir = tempfile::tempdir().unwrap();
    let pages = dir.path().join("man/pages");
    let ended = run(&mut teamster(["man", pages.to_str().unwrap()]));
    assert_eq!(
        (ended.code, &*ended.stdout, &*ended.stderr),
        (Some(0), "", "")
    );
    for (page, text) in [
        ("teamster.1", "doctor"),
        ("teamster-run.1", "\\-\\-max\\-budget\\-usd"),
        ("teamster-runs-show.1", "teamster\\-runs\\-show"),
        ("teamster-agents-stop.1", "\\-\\-all"),
    ] {
        let written = fs::read_to_string(pages.join(page)).unwrap();
        assert!(written.contains(text), "{page}: {written}");
        let (title, rest) = written.split_once("\n.ad l\n.nh\n.SH NAME\n").unwrap();
        let has_title = title.lines().any(|line| line.starts_with(".TH "));
        assert!(has_title && !rest.contains("\n.TH "), "{page}: {written}");
    }
    assert!(!pages.join("teamster-man.1").exists(), "it is hidden");
}
