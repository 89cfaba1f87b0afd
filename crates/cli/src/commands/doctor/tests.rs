use serde_json::json;
use teamster_core::ContainerEngine;

use super::*;

fn agent(usable: bool) -> ProviderFacts {
    let login = if usable {
        json!({"state": "yes", "from": "A_KEY"})
    } else {
        json!({"state": "unknown"})
    };
    let facts = json!({
        "id": "claude",
        "name": "Claude Code",
        "usable": usable,
        "inProcess": false,
        "path": usable.then_some("/bin/claude"),
        "version": usable.then_some("9.9.9"),
        "tested": false,
        "testedVersions": ["2.1.197"],
        "oldestVersion": "2.1.197",
        "tooOld": false,
        "problem": (!usable).then_some("it is not there"),
        "install": "npm install it",
        "login": login,
        "howToLogIn": "log in with it",
    });
    serde_json::from_value(facts).unwrap()
}

fn report(providers: Vec<ProviderFacts>, search_path: &str) -> Report {
    let mut here = MachineState::default();
    here.search_path = search_path.to_owned();
    Report {
        version: None,
        providers,
        here: Some(here),
    }
}

fn printed(report: &Report) -> String {
    printed_in(report, None)
}

/// Returns the report in a terminal of this width.
fn printed_in(report: &Report, width: Option<usize>) -> String {
    let mut bytes = Vec::new();
    print(report, width, &mut bytes).unwrap();
    anstream::adapter::strip_str(&String::from_utf8(bytes).unwrap()).to_string()
}

#[test]
fn the_report_names_the_next_steps() {
    let left = |killed, problem: Option<&str>| {
        let mut left = LeftoverReport::new(7, "claude", "r");
        (left.killed, left.problem) = (killed, problem.map(Into::into));
        left
    };
    let mut report = report(vec![agent(false), agent(true)], "/bin:/usr/bin");
    let here = report.here.as_mut().unwrap();
    here.leftovers = vec![
        left(false, None),
        left(true, None),
        left(false, Some("why")),
    ];
    here.changed_files = vec![ChangedFile::new("/w/opencode.json", vec!["a".into()])];
    here.container_engines = vec![
        EngineReport::new(
            ContainerEngine::Docker,
            Err("Docker does not answer".to_owned()),
        ),
        EngineReport::new(ContainerEngine::Podman, Ok("4.3.1".to_owned())),
    ];
    assert_eq!(
        printed(&report),
        "\
✓ Claude Code  9.9.9
    program  /bin/claude
    login    yes, by A_KEY
    tested   with 2.1.197
    oldest   2.1.197
    warning  untested version; should work, new event types show as `unknown`
✗ Claude Code  not found: npm install it

1 of 2 agents ready
PATH: /bin:/usr/bin
No containers by Docker (--in): Docker does not answer
Podman 4.3.1 runs containers (--in).
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
fn a_version_of_a_package_is_reported_as_such() {
    let mut unstarted = agent(true);
    unstarted.version_from = Some("/lib/claude/package.json".into());
    let shown = printed(&report(vec![unstarted], "/bin"));
    let version = "\n    version  by its package.json; the program was not started\n";
    assert!(shown.contains(version), "{shown}");
    let next = "\n1 of 1 agents ready\n`teamster doctor --start` starts every program.\n";
    assert!(shown.contains(next), "{shown}");
}

#[test]
fn a_token_that_ends_soon_or_has_ended_is_reported() {
    let shown = |at| {
        let mut agent = agent(true);
        agent.login.expires_at_ms = at;
        printed(&report(vec![agent], ""))
    };
    let login = "    login    yes, by A_KEY";
    let ended =
        format!("{login}; its token has ended: one run renews it, and others wait for that\n");
    let past = shown(Some(epoch_ms() - 1000));
    assert!(past.contains(&ended), "{past}");
    let soon = shown(Some(epoch_ms() + 180_000));
    assert!(
        soon.contains(&format!("{login}; its token ends at ")),
        "{soon}"
    );
    // The last one is not used.
    for at in [None, Some(epoch_ms() + 1_200_000), Some(1)] {
        assert!(shown(at).contains(&format!("{login}\n")), "{}", shown(at));
    }
}

#[test]
fn an_old_version_is_reported_with_the_update() {
    let mut old = agent(true);
    old.version = Some("2.1.9".to_owned());
    old.too_old = true;
    let report = report(vec![old], "/bin");
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
    broken.login.state = "no".to_owned();
    broken.tested_versions = ["2.1.197", "2.1.207", "2.1.240"]
        .map(str::to_owned)
        .to_vec();
    let mut absent = agent(false);
    absent.install = "npm install -g @google/gemini-cli".to_owned();
    let shown = printed_in(&report(vec![broken, absent], ""), Some(40));
    assert!(
        shown.contains("    login    no: log in with it\n"),
        "{shown}"
    );
    let head = "✗ Claude Code  9.9.9, not logged in\n";
    assert!(shown.starts_with(head), "{shown}");
    let end = "0 of 2 agents ready, 1 needs a login\n";
    assert!(shown.contains(end), "{shown}");
    let tested = "    tested   with 2.1.197, 2.1.207,\n             2.1.240\n";
    assert!(shown.contains(tested), "{shown}");
    let absent = "✗ Claude Code  not found: npm install -g\n    @google/gemini-cli\n";
    assert!(shown.contains(absent), "{shown}");
    let warning =
        "    warning  untested version; should\n             work, new event types show\n";
    assert!(shown.contains(warning), "{shown}");
    let shown = printed_in(&report(vec![agent(false)], ""), Some(40));
    let none = "0 of 1 agents ready: install one, or try\n  `teamster demo`, which needs none\n";
    assert!(shown.contains(none), "{shown}");
}

#[test]
fn the_problem_of_an_agent_on_another_machine_is_shown() {
    let mut report = report(vec![agent(false)], "/bin");
    let problem = "\n    problem  it is not there\n";
    assert!(!printed(&report).contains(problem), "{}", printed(&report));
    report.here = None;
    assert!(printed(&report).contains(problem), "{}", printed(&report));
}
