use super::*;

#[test]
fn versions_in_answers() {
    for (answer, version) in [
        ("2.1.197 (Claude Code)", Some("2.1.197")),
        ("codex-cli 0.142.5", Some("0.142.5")),
        ("v1.2, built today", Some("1.2")),
        ("0.44.0-preview.1", Some("0.44.0-preview.1")),
        ("unknown", None),
        ("3.. garbage 1.x 12", None),
        ("New version 1.7.0 available", None),
        ("Update available! 1.6.0 -> 1.7.0", None),
        ("2.1.330 (latest; 2.1.340 in beta)", Some("2.1.330")),
    ] {
        let info = CliInfo::new("claude", "Claude Code", "claude");
        assert_eq!(version_in(answer, &info).as_deref(), version, "{answer}");
    }
}

/// Made by hand: what shims and launchers print beside the version.
#[test]
fn a_banner_is_not_the_version() {
    let claude = CliInfo::new("claude", "Claude Code", "claude");
    let pi = CliInfo::new("pi", "Pi", "pi-agent");
    for (answer, info, version) in [
        (
            "Now using node v22.21.1 (npm v10.9.4)\n2.1.330 (Claude Code)",
            &claude,
            "2.1.330",
        ),
        (
            "mise 2026.8.3 by @jdx\n2.1.330 (Claude Code)\nhint: 9.9.9",
            &claude,
            "2.1.330",
        ),
        (
            "Now using node v22.21.1 2.1.330 (Claude Code)",
            &claude,
            "2.1.330",
        ),
        (
            "Now using node v22.21.1 (npm v10.9.4)\n0.87.1",
            &pi,
            "0.87.1",
        ),
        ("0.43.0 (node v22.21.1)", &pi, "0.43.0"),
        ("asdf 0.18.0\n1.6.0", &pi, "1.6.0"),
        (
            "Claude Code 2.1.330.\nRun claude update for 2.1.340",
            &claude,
            "2.1.330",
        ),
        ("Update available! 1.6.0 -> 1.7.0\npi 1.6.0", &pi, "1.6.0"),
    ] {
        assert_eq!(
            version_in(answer, info).as_deref(),
            Some(version),
            "{answer}"
        );
    }
}

mod version_command {

    use super::*;
    use teamster_testkit::proc::wait_gone;

    const VERSION_LIMIT: Duration = Duration::from_secs(20);

    async fn run(script: &str, limit: Duration) -> Result<String, String> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        let answer = query(command, limit).await;
        answer.map_err(|failure| failure.problem)
    }

    #[tokio::test]
    async fn the_lines_are_the_answer() {
        let answer = run("echo; echo '  1.2.3'; echo more", VERSION_LIMIT).await;
        assert_eq!(answer.unwrap(), "1.2.3\nmore");
    }

    #[tokio::test]
    async fn of_a_stack_the_error_is_shown() {
        let script = "printf 'file:///x/main.mjs:20\\n\\nSyntaxError: no such export\\n    at a (b:1)\\n' >&2; exit 1";
        let error = run(script, VERSION_LIMIT).await.unwrap_err();
        assert_eq!(
            error,
            "reports no version (exit status: 1): SyntaxError: no such export"
        );
    }

    #[tokio::test]
    async fn a_failure_is_reported_in_its_own_words() {
        let error = run("echo no such thing >&2; exit 3", VERSION_LIMIT)
            .await
            .unwrap_err();
        assert!(
            error.ends_with("(exit status: 3): no such thing"),
            "{error}"
        );
        let error = run("exit 0", VERSION_LIMIT).await.unwrap_err();
        assert!(error.ends_with("it printed nothing"), "{error}");
    }

    #[tokio::test]
    async fn a_silent_program_is_ended() {
        // The child of the shell holds the pipe and must be killed too.
        let error = run("sleep 600; true", Duration::from_millis(200))
            .await
            .unwrap_err();
        assert_eq!(error, "reports no version within 200ms");
    }

    #[tokio::test]
    async fn a_child_that_holds_the_pipes_is_not_waited_for_and_is_ended() {
        let answer = run("sleep 600 & echo 1.2.3 $!", VERSION_LIMIT).await;
        let answer = answer.unwrap();
        let (version, pid) = answer.split_once(' ').unwrap();
        assert_eq!(version, "1.2.3");
        assert!(wait_gone(pid.parse().unwrap(), VERSION_LIMIT));
    }

    #[tokio::test]
    async fn endless_output_is_cut_off() {
        let answer = run("echo 1.2.3; yes", VERSION_LIMIT).await;
        // `yes` ends by the closed pipe: the shell fails, but ends.
        assert!(answer.is_err() || answer.is_ok_and(|answer| answer.starts_with("1.2.3")));
    }
}
