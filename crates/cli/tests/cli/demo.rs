//! `teamster demo`.

use snapbox::{assert_data_eq, str};
use teamster::RunStatus;

use crate::{done, run, teamster};

#[test]
fn the_demo_needs_nothing() {
    let empty = tempfile::tempdir().unwrap();
    let ended = run(teamster(["demo", "--speed", "0"]).env("PATH", empty.path()));
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "Files written.\n"));
    assert_data_eq!(
        ended.stderr,
        str![[r#"
A recorded run of Claude Code 2.1.197. A stand-in plays it: no CLI, no key and no network is used.

Claude Code · claude-opus-4-8[1m] · session 15a95919-ea0a-4b0d-a4a0-45e8d7697535
  ✓ Write  new.txt  [..]s
  ✓ Edit  new.txt  [..]s
  ✓ Read  new.txt  [..]s
  ✗ Glob  *.txt  [..]s
    Error: No such tool available: Glob. [..]
  ✗ Grep  line  [..]s
    Error: No such tool available: Grep. [..]
✓ completed · 6 turns · 1 file changed · tokens 60 in, 125 out · $0.0034 · [..]s

"#]]
    );
}

#[test]
fn the_demo_as_json() {
    let ended = run(&mut teamster(["demo", "--speed", "0", "--json"]));
    assert_eq!(ended.code, Some(0));
    assert_eq!(done(&ended.stdout).status, RunStatus::Completed);
    assert!(
        ended.stderr.starts_with("A recorded run"),
        "{}",
        ended.stderr
    );
}
