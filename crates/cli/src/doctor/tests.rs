use super::*;

fn provider(usable: bool) -> Provider {
    Provider {
        id: "claude",
        name: "Claude Code",
        usable,
        path: usable.then(|| "/bin/claude".into()),
        resolved_path: None,
        version: usable.then(|| "9.9.9".to_owned()),
        tested: false,
        tested_versions: &["2.1.197"],
        oldest_version: Some("2.1.197"),
        too_old: false,
        problem: (!usable).then(|| "it is not there".to_owned()),
        install: "npm install it",
        login: Login {
            state: if usable { State::Yes } else { State::Unknown },
            from: usable.then(|| "A_KEY".to_owned()),
        },
        how_to_log_in: "log in with it",
    }
}

fn printed(report: &Report) -> String {
    let mut bytes = Vec::new();
    print(report, None, &mut bytes).unwrap();
    anstream::adapter::strip_str(&String::from_utf8(bytes).unwrap()).to_string()
}

#[test]
fn the_report_says_what_to_do() {
    let left = |killed, problem: Option<&str>| Left {
        pid: 7,
        program: "claude".into(),
        run_id: "r".into(),
        killed,
        problem: problem.map(Into::into),
    };
    let report = Report {
        providers: vec![provider(true), provider(false)],
        search_path: "/bin:/usr/bin".to_owned(),
        leftovers: vec![
            left(false, None),
            left(true, None),
            left(false, Some("why")),
        ],
        changed_files: vec![mcp::Left {
            file: "/w/opencode.json".into(),
            servers: vec!["a".into()],
        }],
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
fn a_version_that_is_too_old_is_to_be_updated() {
    let mut old = provider(true);
    old.version = Some("2.1.9".to_owned());
    old.too_old = true;
    let report = Report {
        providers: vec![old],
        search_path: "/bin".to_owned(),
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

No processes of earlier runs are left.
"
    );
}

#[test]
fn long_lines_end_between_words() {
    let mut broken = provider(true);
    broken.login.state = State::No;
    let report = Report {
        providers: vec![broken],
        search_path: String::new(),
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

#[test]
fn versions_in_answers() {
    for (answer, version) in [
        ("2.1.197 (Claude Code)", Some("2.1.197")),
        ("codex-cli 0.142.5", Some("0.142.5")),
        ("v1.2, built today", Some("1.2")),
        ("0.44.0-preview.1", Some("0.44.0-preview.1")),
        ("unknown", None),
        ("3.. garbage 1.x 12", None),
    ] {
        assert_eq!(version_in(answer).as_deref(), version, "{answer}");
    }
}

mod asking {
    use super::*;
    use teamster_testkit::proc::wait_gone;

    async fn ask(script: &str, limit: Duration) -> Result<String, String> {
        ask_version(Path::new("/bin/sh"), &["-c", script], limit).await
    }

    #[tokio::test]
    async fn the_first_line_is_the_answer() {
        let answer = ask("echo; echo 1.2.3; echo more", VERSION_LIMIT).await;
        assert_eq!(answer.unwrap(), "1.2.3");
    }

    #[tokio::test]
    async fn a_failure_is_told_in_its_own_words() {
        let error = ask("echo no such thing >&2; exit 3", VERSION_LIMIT)
            .await
            .unwrap_err();
        assert!(
            error.ends_with("(exit status: 3): no such thing"),
            "{error}"
        );
        let error = ask("exit 0", VERSION_LIMIT).await.unwrap_err();
        assert!(error.ends_with("it said nothing"), "{error}");
    }

    #[tokio::test]
    async fn a_program_that_says_nothing_is_ended() {
        // The child of the shell holds the pipe: it must go too.
        let error = ask("sleep 600; true", Duration::from_millis(200))
            .await
            .unwrap_err();
        assert_eq!(error, "does not tell its version within 0.2s");
    }

    #[tokio::test]
    async fn a_child_that_holds_the_pipes_is_not_waited_for_and_is_ended() {
        let start = Instant::now();
        let answer = ask("sleep 600 & echo 1.2.3 $!", VERSION_LIMIT).await;
        assert!(start.elapsed() < VERSION_LIMIT / 2);
        let answer = answer.unwrap();
        let (version, pid) = answer.split_once(' ').unwrap();
        assert_eq!(version, "1.2.3");
        assert!(wait_gone(pid.parse().unwrap(), VERSION_LIMIT));
    }

    #[tokio::test]
    async fn a_program_that_says_too_much_is_no_trouble() {
        let answer = ask("echo 1.2.3; yes", VERSION_LIMIT).await;
        // `yes` ends by the closed pipe, so the shell does not succeed, but it does end.
        assert!(answer.is_err() || answer.is_ok_and(|answer| answer == "1.2.3"));
    }
}
