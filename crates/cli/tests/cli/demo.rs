//! `teamster demo`.

use std::fs;
use std::process::Command;

use nix::sys::signal::Signal;
use snapbox::{assert_data_eq, str};
use teamster::RunStatus;
use teamster_testkit::fake_agent::Script;
use tempfile::TempDir;

use crate::cli::{Claude, Running, done, run, teamster};

/// Creates a demo command that finds no CLI and puts temporary files into the folder.
fn demo<'a>(args: impl IntoIterator<Item = &'a str>, temporary: &TempDir) -> Command {
    let mut command = teamster(["demo", "--speed", "0"]);
    command
        .args(args)
        .env("PATH", temporary.path())
        .env("TMPDIR", temporary.path());
    command
}

fn left(temporary: &TempDir) -> usize {
    fs::read_dir(temporary.path()).unwrap().count()
}

#[test]
fn the_demo_needs_nothing() {
    let empty = tempfile::tempdir().unwrap();
    let ended = run(&mut demo([], &empty)).ok();
    assert_data_eq!(
        ended.stdout,
        str![[r#"
I write a small poem into a file.

Now two things at once: what is in it, and how much.

The poem is in `poem.txt`: three lines, seventeen words.

"#]]
    );
    assert_data_eq!(
        ended.stderr,
        str![[r#"
A recorded run of Claude Code 2.1.197, played without CLI, key and network.

Claude Code · claude-opus-4-8[1m] · session 11e7e644-689e-4f62-94a7-c0f31fc5f1bc
  ✓ Write  poem.txt  [..]s
  ✓ Read  poem.txt  [..]s
  ✓ Bash  sleep 1; wc -lw poem.txt  [..]s
✓ completed · 4 turns · 1 file changed · tokens 1.6k in, 194 out, 2.6k from cache · $0.0142 · [..]s

"#]]
    );
    assert_eq!(left(&empty), 0);
}

#[test]
fn the_recording_is_played_as_json_although_a_cli_is_installed() {
    let claude = Claude::plays("text", 0);
    let empty = tempfile::tempdir().unwrap();
    let ended =
        run(demo(["--recording", "--json"], &empty)
            .env("TEAMSTER_CLAUDE_BIN", claude.path("claude")));
    assert_eq!(ended.code, Some(0));
    assert_eq!(done(&ended.stdout).status, RunStatus::Completed);
    ended.stderr_begins("A recorded run");
    assert!(!claude.path("report.json").exists());
}

#[test]
fn an_installed_cli_runs_with_a_temporary_home() {
    let claude = Claude::plays("text", 0);
    let empty = tempfile::tempdir().unwrap();
    let ended = run(demo(["--json"], &empty)
        .env("TEAMSTER_CLAUDE_BIN", claude.path("claude"))
        .env("HOME", claude.path("home"))
        .env("ANTHROPIC_API_KEY", "mine"))
    .ok();
    ended.stderr_begins("Running Claude Code 2.1.197 with a scripted model");
    assert_eq!(done(&ended.stdout).status, RunStatus::Completed);
    let report = claude.report();
    let home = &report.env["HOME"];
    assert!(home.contains("teamster-demo-"), "{home}");
    assert!(report.env["ANTHROPIC_BASE_URL"].starts_with("http://127.0.0.1:"));
    assert_ne!(report.env["ANTHROPIC_API_KEY"], "mine");
    assert!(report.cwd.contains("teamster-demo-"));
    assert_eq!(left(&empty), 0);
}

#[test]
fn the_recording_replaces_a_cli_that_fails() {
    for (end, why) in [
        (
            "echo 'unknown option --verbose' >&2; exit 1",
            "unknown option",
        ),
        ("exit 0", ""),
    ] {
        let claude = Claude::new(&Script::new());
        claude.program(&format!(
            "case \"$1\" in --version) echo 0.1.2; exit 0;; esac\n{end}"
        ));
        let empty = tempfile::tempdir().unwrap();
        let ended =
            run(demo(["--json"], &empty).env("TEAMSTER_CLAUDE_BIN", claude.path("claude"))).ok();
        let prefix = "Claude Code 0.1.2 failed: ";
        let (_, reason) = ended.stderr.split_once(prefix).unwrap();
        assert!(reason.contains(why), "{}", ended.stderr);
        ended.stderr_has("A recorded run");
        // stdout has the events of one run only.
        assert_eq!(
            done(&ended.stdout).answer(),
            Some("The poem is in `poem.txt`: three lines, seventeen words.")
        );
        assert_eq!(left(&empty), 0);
    }
}

#[test]
fn a_chosen_cli_that_is_missing_is_an_error() {
    let empty = tempfile::tempdir().unwrap();
    let ended = run(&mut demo(["--provider", "codex"], &empty));
    ended.only_says(3, "`codex` was not found");
    ended.stderr_has("--recording");
}

#[test]
fn a_stopped_demo_leaves_no_folders() {
    let claude = Claude::new(&Script::new().forever());
    let empty = tempfile::tempdir().unwrap();
    let mut teamster =
        Running::start(demo([], &empty).env("TEAMSTER_CLAUDE_BIN", claude.path("claude")));
    claude.report();
    assert!(left(&empty) > 0);
    teamster.signal(Signal::SIGINT);
    let ended = teamster.end();
    assert_eq!(ended.code, Some(130), "{}", ended.stderr);
    assert!(!ended.stderr.contains("recording"), "{}", ended.stderr);
    assert_eq!(left(&empty), 0);
}
