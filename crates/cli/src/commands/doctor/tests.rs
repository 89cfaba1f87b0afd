use teamster::doctor::Login;

use super::*;

fn agent(usable: bool) -> AgentReport {
    let state = if usable {
        LoginState::Yes
    } else {
        LoginState::Unknown
    };
    let login = Login::new(state, usable.then(|| "A_KEY".to_owned()));
    let claude = crate::global::providers().get("claude").unwrap();
    let mut report = AgentReport::new(claude.info(), login);
    report.usable = usable;
    report.path = usable.then(|| "/bin/claude".into());
    report.version = usable.then(|| "9.9.9".to_owned());
    report.tested_versions = &["2.1.197"];
    report.oldest_version = Some("2.1.197");
    report.problem = (!usable).then(|| "it is not there".to_owned());
    report.install = "npm install it";
    report.how_to_log_in = "log in with it";
    report
}

fn printed(report: &Report) -> String {
    let mut bytes = Vec::new();
    print(report, None, &mut bytes).unwrap();
    anstream::adapter::strip_str(&String::from_utf8(bytes).unwrap()).to_string()
}

#[test]
fn the_report_names_the_next_steps() {
    let left = |killed, problem: Option<&str>| LeftoverReport {
        pid: 7,
        program: "claude".into(),
        run_id: "r".into(),
        killed,
        problem: problem.map(Into::into),
    };
    let report = Report {
        providers: vec![agent(true), agent(false)],
        search_path: "/bin:/usr/bin".to_owned(),
        shim_guards: Vec::new(),
        leftovers: vec![
            left(false, None),
            left(true, None),
            left(false, Some("why")),
        ],
        changed_files: vec![ChangedFile::new("/w/opencode.json", vec!["a".into()])],
    };
    assert_eq!(
        printed(&report),
        "\
✓ Claude Code  9.9.9
    program  /bin/claude
    login    yes, by A_KEY
    tested   with 2.1.197
    oldest   2.1.197
    warning  untested version; should work, new event types show as `unknown`
✗ Claude Code  not found
    problem  it is not there
    install  npm install it
    tested   with 2.1.197
    oldest   2.1.197

1 of 2 agents ready
PATH: /bin:/usr/bin
Processes that earlier runs left behind:
    7  claude
    7  claude  ended
    7  claude  cannot be ended: why
End them with `teamster doctor --kill-leftovers`.
Configuration files that killed runs left changed:
    /w/opencode.json
Restore them with `teamster mcp restore`.
"
    );
}

#[test]
fn an_old_version_is_reported_with_the_update() {
    let mut old = agent(true);
    old.version = Some("2.1.9".to_owned());
    old.too_old = true;
    let report = Report {
        providers: vec![old],
        search_path: "/bin".to_owned(),
        shim_guards: Vec::new(),
        leftovers: Vec::new(),
        changed_files: Vec::new(),
    };
    assert_eq!(
        printed(&report),
        "\
✓ Claude Code  2.1.9
    program  /bin/claude
    login    yes, by A_KEY
    tested   with 2.1.197
    oldest   2.1.197
    warning  older than the oldest supported version; update it: `npm install it@latest`

1 of 1 agents ready
No processes of earlier runs are left.
"
    );
}

#[test]
fn long_lines_end_between_words() {
    let mut broken = agent(true);
    broken.login.state = LoginState::No;
    let report = Report {
        providers: vec![broken],
        search_path: String::new(),
        shim_guards: Vec::new(),
        leftovers: Vec::new(),
        changed_files: Vec::new(),
    };
    let mut bytes = Vec::new();
    print(&report, Some(40), &mut bytes).unwrap();
    let shown = anstream::adapter::strip_str(&String::from_utf8(bytes).unwrap()).to_string();
    assert!(
        shown.contains("    login    no: log in with it\n"),
        "{shown}"
    );
    let warning =
        "    warning  untested version; should\n             work, new event types show\n";
    assert!(shown.contains(warning), "{shown}");
}
