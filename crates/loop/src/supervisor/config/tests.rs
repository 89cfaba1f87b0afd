use std::fs;

use super::*;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, "/company/agents.config.json".into())
}

/// Returns the line and message of the error.
fn wrong(text: &str) -> (Option<usize>, String) {
    let error = parse(text).unwrap_err();
    (error.line, error.message)
}

#[test]
fn a_typical_configuration_is_read() {
    let config = parse(
        r#"{
  "companyName": "Your Company",
  "agentsRoot": "./agents",
  "dashboard": {"port": 3000},
  "agents": [
    { "id": "pm-bot", "alias": "@pm-bot", "role": "Product Manager", "chrome": false, "team": 1 },
    { "id": "marketing", "runtime": "claude", "chrome": true },
    { "id": "qa", "runtime": "copilot", "chrome": true, "workingDir": "../qa",
      "instructionsFile": "docs/QA.md" }
  ]
}"#,
    )
    .unwrap();
    assert_eq!(config.company_name.as_deref(), Some("Your Company"));
    let [pm, marketing, qa] = &config.agents[..] else {
        panic!("{config:?}")
    };
    assert_eq!(pm.working_dir, Path::new("/company/agents/pm-bot"));
    assert_eq!(
        (pm.alias.as_deref(), pm.role.as_deref()),
        (Some("@pm-bot"), Some("Product Manager"))
    );
    assert_eq!(pm.environment(), []);
    assert_eq!(
        marketing.environment(),
        [("RUNTIME", "claude".into()), ("CHROME", "1".into())]
    );
    // The loop checks whether the runtime has a browser.
    assert_eq!(
        qa.environment(),
        [("RUNTIME", "copilot".into()), ("CHROME", "1".into())]
    );
    assert_eq!(qa.working_dir, Path::new("/company/../qa"));
    assert_eq!(
        qa.instructions_file.as_deref(),
        Some(Path::new("docs/QA.md"))
    );
    assert_eq!(config.agent("qa").map(|it| &it.id), Some(&"qa".to_owned()));
    assert_eq!(config.agent("nobody"), None);
}

#[test]
fn without_a_root_it_is_agents() {
    let config = parse(r#"{"agents": [{"id": "a"}]}"#).unwrap();
    assert_eq!(config.agents[0].working_dir, Path::new("/company/agents/a"));
}

#[test]
fn errors_name_the_line_and_a_fix() {
    let (line, message) = wrong("{\n\"agents\": [\n{\"id\": \"a\"},,\n]}");
    assert_eq!(line, Some(3));
    assert!(message.starts_with("invalid JSON: "), "{message}");

    assert_eq!(wrong("").0, Some(1));

    let (line, message) = wrong("{\n\"agents\": {}}");
    assert_eq!(line, Some(2));
    assert!(
        message.contains(r#"{"agents": [{"id": "helper"}]}"#),
        "{message}"
    );

    for text in ["[]", "7"] {
        let (line, message) = wrong(text);
        assert_eq!(line, Some(1));
        assert!(
            message.contains("expected an object: write an object such as "),
            "{message}"
        );
    }
    let (_, message) = wrong("{\"agents\": [[]]}");
    assert!(
        message.contains("expected an object: write an agent such as "),
        "{message}"
    );

    let (_, message) = wrong("{}");
    assert!(message.contains("missing field `agents`"), "{message}");

    let (line, message) = wrong("{\"agents\": [\n{\"id\": \"a\"},\n{\n\"alias\": \"@b\"\n}\n]}");
    // The error is at the end of the agent's object.
    assert_eq!(line, Some(5));
    assert!(
        message.contains("missing field `id`") && message.contains("\"alias\": \"@pm-bot\""),
        "{message}"
    );

    let (line, message) = wrong("{\"agents\": [\n{\"id\": \"a\",\n\"chrome\": \"yes\"}]}");
    assert_eq!(line, Some(3));
    assert!(message.contains("expected a boolean"), "{message}");
}

#[test]
fn an_id_is_the_name_of_one_folder() {
    for id in [
        "",
        ".",
        "..",
        "a/b",
        "a\\\\b",
        "/etc",
        "-a",
        "a b",
        "a\\u0000b",
        "a\\nb",
    ] {
        let (line, message) = wrong(&format!("{{\"agents\": [\n{{\"id\": \"{id}\"}}]}}"));
        assert_eq!(line, Some(2), "{id}");
        assert!(message.contains("write a name such as"), "{id}: {message}");
    }
    assert!(parse(r#"{"agents": [{"id": "..a"}, {"id": "für.Alle_1"}]}"#).is_ok());
}

#[test]
fn no_two_agents_share_an_id_or_a_directory() {
    let (line, message) =
        wrong("{\"agents\": [\n{\"id\": \"a\"},\n{\"id\": \"b\"},\n{\"id\": \"a\"}]}");
    assert_eq!(line, Some(4));
    assert!(message.contains("the agent in line 2"), "{message}");

    let (line, message) = wrong(
        "{\"agents\": [\n{\"id\": \"a\"},\n{\"id\": \"b\", \"workingDir\": \"agents/./a\"}]}",
    );
    assert_eq!(line, Some(3));
    assert!(message.contains("same directory"), "{message}");
}

#[test]
fn a_file_that_is_not_there_and_one_with_a_byte_order_mark() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(FILE_NAME);
    let error = Config::read(&file).unwrap_err();
    assert!(error.to_string().starts_with(&file.display().to_string()));
    assert!(error.message.contains("there is no such file"), "{error}");

    fs::write(&file, "\u{feff}{\"agents\": []}").unwrap();
    assert_eq!(Config::read(&file).unwrap().agents, []);
    fs::write(&file, b"\xff").unwrap();
    assert!(
        Config::read(&file)
            .unwrap_err()
            .message
            .contains("cannot read")
    );
    fs::write(&file, "{").unwrap();
    let error = Config::read(&file).unwrap_err().to_string();
    assert!(
        error.contains("agents.config.json:1: invalid JSON"),
        "{error}"
    );
}

#[test]
fn agent_without_directory_or_instructions_has_an_obstacle() {
    let dir = tempfile::tempdir().unwrap();
    let agent = |more: &str| {
        let text = format!(r#"{{"agentsRoot": ".", "agents": [{{"id": "a"{more}}}]}}"#);
        let config = Config::parse(&text, dir.path().join(FILE_NAME)).unwrap();
        config.agents.into_iter().next().unwrap()
    };
    let folder = dir.path().join("a");
    let obstacle = agent("").obstacle(&[]).unwrap().to_string();
    assert!(obstacle.contains("is missing: create it"), "{obstacle}");
    fs::write(&folder, "").unwrap();
    assert!(
        agent("")
            .obstacle(&[])
            .unwrap()
            .to_string()
            .contains("is not a directory")
    );
    fs::remove_file(&folder).unwrap();
    fs::create_dir(&folder).unwrap();

    let files = ["A.md", "AGENTS.md"];
    for (more, file) in [
        ("", "A.md"),
        (r#", "instructionsFile": "TASK.md""#, "TASK.md"),
    ] {
        let obstacle = agent(more).obstacle(&files).unwrap().to_string();
        assert!(
            obstacle.contains(&format!("the instructions file {file} is missing")),
            "{more}: {obstacle}"
        );
        fs::write(folder.join(file), "").unwrap();
        assert_eq!(agent(more).obstacle(&files), None, "{more}");
        fs::remove_file(folder.join(file)).unwrap();
        // Another instructions file of the CLI suffices.
        fs::write(folder.join("AGENTS.md"), "").unwrap();
        assert_eq!(agent(more).obstacle(&files), None, "{more}");
        fs::remove_file(folder.join("AGENTS.md")).unwrap();
    }
}

#[test]
fn a_schedule_has_times_and_a_run() {
    let config = parse(
        r#"{"agents": [], "schedules": [
            {"id": "nightly", "cron": " 0 2 * * 1-5", "timeZone": "Europe/Berlin", "missed": "run",
             "run": {"provider": "claude", "prompt": "x", "workingDirectory": "app"}},
            {"id": "poll", "every": "30m", "run": {"provider": "codex", "prompt": "y", "title": "Poll",
             "workspace": {"kind": "worktree", "directory": "app"}}}
        ]}"#,
    );
    let config = config.unwrap();
    let [nightly, poll] = &config.schedules[..] else {
        panic!("{config:?}")
    };
    assert_eq!(
        nightly.when,
        When::Cron("0 2 * * 1-5 Europe/Berlin".to_owned())
    );
    assert_eq!(nightly.missed, Missed::Run);
    let directory = nightly.run.working_directory.as_deref();
    assert_eq!(directory, Some(Path::new("/company/app")));
    assert_eq!(nightly.run.title.as_deref(), Some("nightly"));
    assert_eq!(poll.when, When::Every(std::time::Duration::from_mins(30)));
    assert_eq!(poll.missed, Missed::Skip);
    assert_eq!(poll.run.title.as_deref(), Some("Poll"));
    let workspace = poll.run.workspace.as_ref().unwrap();
    assert_eq!(workspace.path(), Some(&"/company/app".into()));
}

#[test]
fn a_wrong_schedule_is_refused_with_a_fix() {
    let run = r#""run": {"provider": "claude", "prompt": "x"}"#;
    for (fields, expected) in [
        (
            String::from(r#""cron": "0 2 * * *""#),
            "missing field `run`",
        ),
        (run.to_owned(), "write either `cron`"),
        (
            format!(r#""cron": "0 2 * * *", "every": "1h", {run}"#),
            "write either `cron`",
        ),
        (
            format!(r#""cron": "2 * *", {run}"#),
            "`cron` has 3 fields instead of 5",
        ),
        (
            format!(r#""cron": "0 25 * * *", {run}"#),
            "must be in range 0..=23",
        ),
        (
            format!(r#""cron": "0 0 31 2 *", {run}"#),
            "it never runs again",
        ),
        (
            format!(r#""cron": "0 2 * * *", "timeZone": "Berlin", {run}"#),
            "unknown time zone",
        ),
        (format!(r#""every": "10ms", {run}"#), "less than a second"),
        (
            format!(r#""every": "1h", "timeZone": "UTC", {run}"#),
            "`timeZone` belongs to `cron`",
        ),
        (
            format!(r#""every": "1h", "mised": "run", {run}"#),
            "unknown field `mised`",
        ),
        (
            r#""every": "1h", "run": {"provider": "claude"}"#.to_owned(),
            "prompt",
        ),
    ] {
        let text = format!("{{\"agents\": [], \"schedules\": [\n{{\"id\": \"a\", {fields}}}]}}");
        let (line, message) = wrong(&text);
        assert_eq!(line, Some(2), "{message}");
        assert!(message.contains(expected), "{message}");
    }
    let one = format!(r#"{{"id": "a", "every": "1h", {run}}}"#);
    let (_, message) = wrong(&format!(r#"{{"agents": [], "schedules": [{one}, {one}]}}"#));
    assert!(message.contains("another schedule has the id"), "{message}");
}
