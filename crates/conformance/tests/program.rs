//! Tests of the program that need no CLI.
#![allow(clippy::unwrap_used)]

use std::process::{Command, Output};

fn program(args: &[&str]) -> Output {
    let target = tempfile::tempdir().unwrap();
    Command::new(env!("CARGO_BIN_EXE_conformance"))
        .args(args)
        .env("CARGO_TARGET_DIR", target.path())
        // A port without a listener.
        .env("npm_config_registry", "http://127.0.0.1:9")
        .env("npm_config_cache", target.path().join("cache"))
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn without_a_registry_nothing_counts_as_passed() {
    for task in [
        &["conformance", "--check"][..],
        &["follow"],
        &["follow", "codex", "--version", "0.144.0"],
        &["resilience", "--check"],
    ] {
        let output = program(task);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(3), "{task:?}: {message}");
        assert!(
            message.contains("the CLIs cannot be installed"),
            "{message}"
        );
        assert!(message.contains("NOT RUN"), "{message}");
    }
}

/// Lists every scenario, which also validates the scenarios and the table of differences.
#[test]
fn the_scenarios_are_listed_with_their_descriptions() {
    let output = program(&["conformance", "--list"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let list = String::from_utf8(output.stdout).unwrap();
    let mut scenarios = 0;
    for line in list.lines() {
        let (name, description) = line.split_once(' ').unwrap();
        assert!(
            !description.trim().is_empty(),
            "{name} does not say what it shows"
        );
        scenarios += 1;
    }
    assert!(scenarios >= 25, "{scenarios} scenarios");
}

#[test]
fn the_cases_are_listed_with_their_descriptions() {
    let output = program(&["resilience", "--list"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let list = String::from_utf8(output.stdout).unwrap();
    let names: Vec<_> = list
        .lines()
        .map(|line| line.split_once(' ').unwrap().0)
        .collect();
    assert_eq!(
        names,
        [
            "no_double_side_effects",
            "killed_in_a_tool",
            "cut_after_a_call",
            "sent_again",
            "failover",
            "failover_to_embedded",
            "read_only_retry",
            "abort",
            "limit",
            "sub_agent_limit"
        ]
    );
    assert!(list.lines().all(|line| line.len() > 40), "{list}");
}

#[test]
fn unknown_names_are_refused_with_the_known_ones() {
    for (args, message) in [
        (
            &["conformance", "--scenario", "nothing"][..],
            "unknown scenario nothing; available: ",
        ),
        (&["conformance", "nobody"], "there is: claude, codex"),
        (&["resilience", "nobody"], "there is: claude, codex"),
        (
            &["resilience", "--case", "nothing"],
            "there is: no_double_side_effects, killed_in_a_tool",
        ),
        (&["capture"], "PROVIDER"),
    ] {
        let output = program(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            stderr(&output).contains(message),
            "{args:?}: {}",
            stderr(&output)
        );
    }
}
