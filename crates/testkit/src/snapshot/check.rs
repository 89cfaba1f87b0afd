//! Snapshot tests.

use std::fmt::Write as _;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use teamster_core::CliProvider;

use super::render;
use crate::fixture::{Fixture, SNAPSHOT, discover};
use crate::replay::{ReplayOptions, replay};

/// Replays all recordings below a folder and compares their events with the snapshots next to them.
///
/// `assert` is `|name, events| insta::assert_snapshot!(name, events)`, written in the crate with the
/// recordings: insta searches for the workspace of the crate that contains its macro call. It is called once
/// for each recording, with insta's settings for the snapshot's location, and panics if the events differ.
///
/// The error names all recordings whose events differ or break the grammar of a stream. The latter are not
/// compared, so they can never be accepted.
///
/// [`snapshot_tests!`](crate::snapshot_tests) defines a test that calls it.
pub fn check(
    provider: &dyn CliProvider,
    folder: &Path,
    assert: impl Fn(&str, &str),
) -> Result<(), String> {
    // insta resolves a relative path against the folder of the test's source.
    let folder = fs::canonicalize(folder)
        .map_err(|error| format!("cannot read {}: {error}\n", folder.display()))?;
    let found = discover(&folder);
    let mut report = String::new();
    for error in &found.errors {
        let _ = writeln!(report, "{error}");
    }
    if found.fixtures.is_empty() {
        let _ = writeln!(report, "no recordings in {}", folder.display());
    }
    for dir in &found.fixtures {
        if let Err(problem) = check_one(provider, dir, &assert) {
            let _ = writeln!(report, "{}: {problem}", dir.display());
        }
    }
    if report.is_empty() {
        Ok(())
    } else {
        Err(report)
    }
}

fn check_one(
    provider: &dyn CliProvider,
    dir: &Path,
    assert: &impl Fn(&str, &str),
) -> Result<(), String> {
    let fixture = Fixture::load(dir).map_err(|error| error.to_string())?;
    let replay = replay(&fixture, provider, ReplayOptions::default());
    if let Err(violation) = &replay.grammar {
        return Err(violation.to_string());
    }
    let events = render(&replay.events);
    let name = SNAPSHOT.trim_end_matches(".snap");
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(dir);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    // The other recordings are still compared: a change of a decoder affects many of them.
    catch_unwind(AssertUnwindSafe(|| settings.bind(|| assert(name, &events))))
        .map_err(|_| "the events differ from the snapshot".to_owned())
}

/// Defines a `#[test]` that replays all recordings below a folder and compares their events with the
/// snapshots next to them ([`snapshot::check`](crate::snapshot::check)).
///
/// The snapshots belong to insta: `cargo insta review` shows differences and accepts them.
///
/// ```text
/// teamster_testkit::snapshot_tests!(MyProvider, concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"));
/// ```
#[macro_export]
macro_rules! snapshot_tests {
    ($provider:expr, $fixtures:expr $(,)?) => {
        #[test]
        fn snapshots() {
            let fixtures = ::std::path::Path::new($fixtures);
            let checked = $crate::snapshot::check(&$provider, fixtures, |name, events| {
                $crate::insta::assert_snapshot!(name, events);
            });
            if let Err(report) = checked {
                panic!("{report}");
            }
        }
    };
}
