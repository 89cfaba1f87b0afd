//! Replays of hand-made recordings. The tests of the package `fixtures` replay real ones.

use std::cell::RefCell;
use std::fs;

use teamster_core::provider::Exit;
use teamster_testkit::fixture::{Fixture, META, STDOUT};
use teamster_testkit::replay::{ReplayOptions, replay, replay_bytes};
use teamster_testkit::snapshot;

#[test]
fn a_program_that_never_started_gives_the_error_of_the_engine() {
    // Hand-made: such a run has no output to record.
    let dir = tempfile::tempdir().unwrap();
    let meta = r#"{"cli": "claude", "spawn_error": "OSError(7, 'Argument list too long')"}"#;
    fs::write(dir.path().join(META), meta).unwrap();
    fs::write(dir.path().join(STDOUT), "").unwrap();
    let fixture = Fixture::load(dir.path()).unwrap();
    let provider = teamster::Providers::builtin().get("claude").unwrap();
    let replay = replay(&fixture, &*provider, ReplayOptions::default());
    assert_eq!(replay.grammar, Ok(()));
    insta::assert_snapshot!(snapshot::render(&replay.events[..1]), @r#"error        PROMPT_TOO_LARGE invalid final "OSError(7, 'Argument list too long')""#);
}

#[test]
fn counts() {
    // Hand-made lines.
    let provider = teamster::Providers::builtin().get("claude").unwrap();
    let stdout = b"\xef\xbb\xbf{\"type\":\"?\"}\r\n\n{\"half\nnoise\n{\"type\":\"?\"}";
    let replay = replay_bytes(&*provider, [stdout.as_slice()], Exit::default());
    assert_eq!(replay.lines(), 4);
    assert_eq!(replay.unknown(), 2);
    assert_eq!(replay.malformed(), 2);
    let counts = replay.counts();
    assert_eq!((counts["unknown"], counts["notice"]), (2, 2));
    assert_eq!(counts["done"], 1);
}

#[test]
fn all_recordings_that_differ_are_named_and_broken_ones_too() {
    // Hand-made lines.
    let dir = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c", "d"] {
        fs::create_dir(dir.path().join(name)).unwrap();
        fs::write(dir.path().join(name).join(STDOUT), "{\"type\":\"?\"}\n").unwrap();
    }
    fs::write(dir.path().join("d").join(META), "no JSON").unwrap();
    let provider = teamster::Providers::builtin().get("claude").unwrap();
    let asserted = RefCell::new(Vec::new());
    let checked = snapshot::check(&*provider, dir.path(), |name, events| {
        assert!(events.starts_with("unknown"), "{events}");
        asserted.borrow_mut().push(name.to_owned());
        assert!(asserted.borrow().len() == 2, "as insta panics");
    });
    assert_eq!(asserted.into_inner(), ["events"; 3]);
    let root = fs::canonicalize(dir.path()).unwrap();
    let at = |name: &str| root.join(name).display().to_string();
    let differs = "the events differ from the snapshot";
    assert_eq!(
        checked.unwrap_err(),
        format!(
            "{}: {differs}\n{}: {differs}\n{}: {}/meta.json is not a JSON object\n",
            at("a"),
            at("c"),
            at("d"),
            at("d")
        )
    );
}

#[test]
fn a_folder_without_recordings_has_no_snapshots_to_pass() {
    let dir = tempfile::tempdir().unwrap();
    let provider = teamster::Providers::builtin().get("claude").unwrap();
    let checked = snapshot::check(&*provider, dir.path(), |_, _| {});
    let report = checked.unwrap_err();
    assert!(report.starts_with("no recordings in "), "{report}");
}
