//! Fixtures as they were recorded.

use std::fs;
use std::path::PathBuf;

use teamster_core::Exit;
use teamster_testkit::fixture::{Fixture, META, STDOUT};
use teamster_testkit::replay::{ReplayOptions, replay, replay_bytes};
use teamster_testkit::snapshot;

use super::{FIXTURES, check_stream};

#[test]
fn the_grammar_holds() {
    for (fixture, provider) in FIXTURES.iter() {
        let replay = replay(fixture, &**provider, ReplayOptions::default());
        check_stream(&replay, fixture.dir.display());
    }
}

#[test]
fn events_are_those_of_the_snapshot() {
    let mut different = Vec::new();
    for (fixture, provider) in FIXTURES.iter() {
        // That there is a snapshot for each is checked by `cargo xtask tidy`.
        let Ok(expected) = fs::read_to_string(fixture.snapshot_path()) else {
            continue;
        };
        let replay = replay(fixture, &**provider, ReplayOptions::default());
        if let Some(diff) = snapshot::diff(&expected, &snapshot::render(&replay.events)) {
            different.push(format!("{}\n{diff}", fixture.dir.display()));
        }
    }
    assert!(
        different.is_empty(),
        "{} differ; after a look, `cargo xtask replay --accept` takes the new events over\n{}",
        different.len(),
        different.join("\n")
    );
}

#[test]
fn lines_are_there_when_asked_for_and_change_nothing_else() {
    for (fixture, provider) in FIXTURES.iter() {
        let plain = replay(fixture, &**provider, ReplayOptions::default());
        let options = ReplayOptions {
            include_native: true,
        };
        let native = replay(fixture, &**provider, options);
        assert!(plain.events == native.events, "{}", fixture.dir.display());
        assert!(plain.natives.iter().all(Option::is_none));
        let whole_lines = !fixture.stdout.is_empty() && native.malformed() == 0;
        if whole_lines {
            assert!(
                native.natives.iter().any(Option::is_some),
                "{}",
                fixture.dir.display()
            );
        }
    }
}

#[test]
fn a_program_that_never_started_gives_the_error_of_the_engine() {
    // Hand-made: there is no output to record of such a run.
    let dir = tempfile::tempdir().unwrap();
    let meta = r#"{"cli": "claude", "spawn_error": "OSError(7, 'Argument list too long')"}"#;
    fs::write(dir.path().join(META), meta).unwrap();
    fs::write(dir.path().join(STDOUT), "").unwrap();
    let fixture = Fixture::load(dir.path()).unwrap();
    let provider = teamster::provider("claude").unwrap();
    let replay = replay(&fixture, &*provider, ReplayOptions::default());
    check_stream(&replay, "not started");
    insta::assert_snapshot!(snapshot::render(&replay.events[..1]), @r#"error        PROMPT_TOO_LARGE invalid final "OSError(7, 'Argument list too long')""#);
}

#[test]
fn counts() {
    // Hand-made lines.
    let provider = teamster::provider("claude").unwrap();
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
fn a_fixture_is_where_it_says_it_is() {
    for (fixture, provider) in FIXTURES.iter() {
        let meta = &fixture.meta;
        let version = meta.version.as_deref().unwrap_or_default();
        let place: PathBuf = [provider.info().id, version, &meta.scenario]
            .iter()
            .collect();
        assert!(
            fixture.dir.ends_with(&place),
            "{} says it is {}",
            fixture.dir.display(),
            place.display()
        );
        assert!(!meta.what_it_shows.is_empty(), "{}", place.display());
    }
}
