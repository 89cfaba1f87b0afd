//! `cargo xtask replay` on hand-made fixtures outside of the repository.
#![cfg(test)]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A line of an unknown type, so that these tests do not depend on a decoder.
const LINE: &str = "{\"type\":\"no such type\",\"n\":1}\n";
const META: &str = r#"{"cli": "claude", "exit_code": 0, "more": [1]}"#;

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    /// Returns the lines of `--json`.
    fn events(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn xtask(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.current_dir(folder).arg("replay");
    command
}

fn replay(folder: &Path, args: &[&str]) -> Ran {
    let output = xtask(folder).args(args).output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn write_fixture(folder: &Path, meta: &str, stdout: &str) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("meta.json"), meta).unwrap();
    fs::write(folder.join("stdout.ndjson"), stdout).unwrap();
}

/// Creates a folder with the fixtures `tree/a` and `tree/b/c`.
fn two_fixtures() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    write_fixture(&dir.path().join("tree/a"), META, LINE);
    write_fixture(&dir.path().join("tree/b/c"), META, &LINE.repeat(2));
    dir
}

#[test]
fn json_names_the_fixture_as_given() {
    let dir = two_fixtures();
    let fixtures = |path: &str| {
        let ran = replay(dir.path(), &["--json", path]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        let name = |line: &Value| line["fixture"].as_str().unwrap().to_owned();
        let mut names: Vec<_> = ran.events().iter().map(name).collect();
        names.dedup();
        names
    };
    assert_eq!(fixtures("tree/a"), ["tree/a"]);
    assert_eq!(fixtures("./tree/a/"), ["./tree/a/"]);
    assert_eq!(fixtures("tree"), ["tree/a", "tree/b/c"]);
    assert_eq!(fixtures("./tree/b/"), ["./tree/b/c"]);
    let absolute = dir.path().join("tree/a").display().to_string();
    assert_eq!(fixtures(&absolute), [absolute.as_str()]);
}

#[test]
fn json_has_an_event_on_each_line_without_snapshot_or_stderr() {
    let dir = two_fixtures();
    let ran = replay(dir.path(), &["--json", "tree/b/c", "tree/a"]);
    let events = ran.events();
    for line in &events {
        let keys: Vec<_> = line.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["fixture", "event"]);
    }
    let done = |line: &&Value| line["event"]["type"] == "done";
    assert_eq!(events.iter().filter(done).count(), 2);
    assert_eq!(events.last().unwrap()["event"]["type"], "done");
    assert_eq!(events[0]["event"]["native"]["n"], 1);
    assert_eq!(ran.code, Some(0));
    assert!(!dir.path().join("tree/a/events.snap").exists());
}

#[test]
fn lines_are_attached_if_requested() {
    let dir = tempfile::tempdir().unwrap();
    write_fixture(dir.path(), META, "{\"half\n");
    let ran = replay(dir.path(), &["--json", "--native", "."]);
    // A notice of an invalid line has no JSON.
    assert_eq!(ran.events()[0]["event"]["type"], "notice");
    assert_eq!(ran.code, Some(0));
    let ran = replay(dir.path(), &["--native", "."]);
    assert_eq!(ran.code, Some(2), "without --json");
}

#[test]
fn a_snapshot_is_missing_then_accepted_then_compared() {
    let dir = two_fixtures();
    let run = |args: &[&str]| replay(dir.path(), args);

    let ran = run(&["tree"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("no snapshot"), "{}", ran.stdout);

    let ran = run(&["tree", "--accept"]);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stdout
            .ends_with("2 fixtures, 3 lines, 3 unknown, 0 differences, 2 accepted\n")
    );

    let ran = run(&["tree"]);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stdout
            .ends_with("2 fixtures, 3 lines, 3 unknown, 0 differences\n")
    );

    write_fixture(
        &dir.path().join("tree/a"),
        META,
        &LINE.replace("\"n\"", "\"m\""),
    );
    let ran = run(&["tree"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("\n-unknown "), "{}", ran.stdout);
    assert!(ran.stdout.contains("\n+unknown "), "{}", ran.stdout);
    assert!(ran.stdout.contains("tree/a/events.snap"), "{}", ran.stdout);
    assert!(
        ran.stdout.ends_with("3 unknown, 1 difference\n"),
        "{}",
        ran.stdout
    );
    assert_eq!(run(&["tree/b"]).code, Some(0));
}

#[test]
fn an_invalid_replay_is_reported_with_exit_code_2() {
    let dir = two_fixtures();
    let at = |path: &str| dir.path().join(path);
    fs::create_dir(at("empty")).unwrap();
    write_fixture(&at("no-cli"), "{}", LINE);
    write_fixture(&at("odd"), r#"{"cli": "claude", "exit_code": "x"}"#, LINE);
    write_fixture(&at("other"), r#"{"cli": "nobody"}"#, LINE);
    fs::create_dir(at("bare")).unwrap();
    fs::write(at("bare/stdout.ndjson"), LINE).unwrap();

    for (args, message) in [
        (["empty", "--json"], "no fixtures in empty"),
        (["none", "--json"], "cannot read none: No such file"),
        (
            ["no-cli", "--json"],
            "no-cli: no `cli` in meta.json: name the provider with --provider",
        ),
        (
            ["odd", "--json"],
            "odd/meta.json: field `exit_code` must be a number of 32 bits",
        ),
        (
            ["bare", "--json"],
            "bare: no `cli` in meta.json: name the provider with --provider",
        ),
        (
            ["other", "--json"],
            "other: unknown provider \"nobody\"; available: claude",
        ),
        (
            ["tree", "--provider=x"],
            "unknown provider \"x\"; available: claude",
        ),
    ] {
        let ran = replay(dir.path(), &args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{args:?}");
        assert!(
            ran.stderr.starts_with(&format!("error: {message}")),
            "{}",
            ran.stderr
        );
    }
    let ran = replay(dir.path(), &["other", "--json", "--provider", "claude"]);
    assert_eq!(ran.code, Some(0));
}

#[test]
fn with_a_provider_the_output_is_enough() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("stdout.ndjson"), LINE).unwrap();
    let args = [".", "--json", "--provider=claude"];
    let ran = replay(dir.path(), &args);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    assert_eq!(ran.events().last().unwrap()["event"]["type"], "done");
    // In the format of other recorders.
    let meta = r#"{"argv": "claude -p hi", "env": ["A"], "stdin": {}, "prompt": ["hi"],
        "version": 2, "duration_ms": -1.5, "signal": 9}"#;
    write_fixture(dir.path(), meta, LINE);
    let ran = replay(dir.path(), &args);
    assert_eq!((ran.code, &*ran.stderr), (Some(0), ""));
    assert!(ran.stdout.contains("SIGKILL"), "{}", ran.stdout);
}

#[test]
fn unreadable_recording_does_not_hide_the_others() {
    let dir = two_fixtures();
    write_fixture(&dir.path().join("tree/bad"), "not JSON", LINE);
    write_fixture(&dir.path().join("tree/other"), r#"{"cli": "nobody"}"#, LINE);
    for args in [&["tree", "none"][..], &["tree", "none", "--json"]] {
        let ran = replay(dir.path(), args);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        for message in [
            "error: tree/bad/meta.json is not a JSON object",
            "error: tree/other: unknown provider \"nobody\"",
            "error: cannot read none",
        ] {
            assert!(ran.stderr.contains(message), "{}", ran.stderr);
        }
        for fixture in ["tree/a", "tree/b/c"] {
            assert!(ran.stdout.contains(fixture), "{}", ran.stdout);
        }
    }
    // A snapshot that is not a file only affects one fixture, too.
    fs::create_dir(dir.path().join("tree/a/events.snap")).unwrap();
    let ran = replay(dir.path(), &["tree/a", "tree/b", "--accept"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("tree/a/events.snap"), "{}", ran.stderr);
    assert!(dir.path().join("tree/b/c/events.snap").is_file());
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let dir = tempfile::tempdir().unwrap();
    // More than a pipe holds, so that the writer does not finish before the reader is gone.
    write_fixture(dir.path(), META, &LINE.repeat(20_000));
    let mut child = xtask(dir.path())
        .args(["--json", "."])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}
