//! The events of a run as text, made to be read by a person and to be compared.
//!
//! One event is one line: its type, then its fields. Ids have names in order of their appearance
//! (`session#1`, `msg#1`, `tool#1`); what is measured or drawn by lot is hidden ([`Redactor`]);
//! long strings are cut in the middle and followed by their length and a short hash, so that every
//! change of them shows. A field is absent from the line when it is absent from the event, except
//! where `-` says so. `done` is followed by the fields of its result, one a line.
//!
//! ```text
//! session      session#1 model=claude-opus-4-8 tools=2[Bash Read] mcp=[]
//! text         msg#1 "I look."
//! tool_use     tool#1 Bash execute {"command":"echo one"}
//! tool_result  tool#1 ok "one"
//! turn_end     ok end_turn in=12 out=25 $0.000685
//! done         completed exit=0
//! ```
//!
//! Rendering takes every event and every type of field apart by name, so that a field that is
//! added to the vocabulary and not here does not compile.

mod quote;
mod redact;
mod render;
mod result;

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use similar::TextDiff;
use teamster_core::CliProvider;

use crate::fixture::{Fixture, discover};
use crate::replay::{ReplayOptions, replay};

pub use redact::{IdKind, Redactor};
pub use render::render;

/// The difference between two snapshots as a unified diff, or `None` if they are the same.
pub fn diff(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let diff = TextDiff::from_lines(expected, actual);
    Some(
        diff.unified_diff()
            .context_radius(2)
            .header("expected", "actual")
            .to_string(),
    )
}

/// The environment variable that has [`check`] write the snapshots that differ; any value but an empty one.
pub const ACCEPT: &str = "TEAMSTER_ACCEPT_SNAPSHOTS";

/// Replays all fixtures below a folder and compares them with their snapshots.
///
/// The error is a report for a person: all differences as diffs, snapshots that are missing, and streams
/// that break the grammar. With [`ACCEPT`] set, what differs is written instead of reported; a stream that
/// breaks the grammar is never accepted.
///
/// [`snapshot_tests!`](crate::snapshot_tests) makes a test of it.
pub fn check(provider: &dyn CliProvider, folder: &Path) -> Result<(), String> {
    let accept = std::env::var_os(ACCEPT).is_some_and(|value| !value.is_empty());
    check_with(provider, folder, accept)
}

fn check_with(provider: &dyn CliProvider, folder: &Path, accept: bool) -> Result<(), String> {
    let found = discover(folder);
    let mut report = String::new();
    for error in &found.errors {
        let _ = writeln!(report, "{error}");
    }
    if found.fixtures.is_empty() {
        let _ = writeln!(report, "no fixtures in {}", folder.display());
    }
    for dir in &found.fixtures {
        if let Err(problem) = check_one(provider, dir, accept) {
            let _ = writeln!(report, "{}: {problem}", dir.display());
        }
    }
    if report.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{report}Read the differences; `{ACCEPT}=1 cargo test` accepts them."
    ))
}

fn check_one(provider: &dyn CliProvider, dir: &Path, accept: bool) -> Result<(), String> {
    let fixture = Fixture::load(dir).map_err(|error| error.to_string())?;
    let replay = replay(&fixture, provider, ReplayOptions::default());
    if let Err(violation) = &replay.grammar {
        return Err(violation.to_string());
    }
    let path = fixture.snapshot_path();
    let actual = render(&replay.events);
    let difference = match std::fs::read_to_string(&path) {
        Ok(expected) => match diff(&expected, &actual) {
            None => return Ok(()),
            Some(difference) => format!("the events differ\n{difference}"),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => format!("no {}", path.display()),
        Err(error) => return Err(error.to_string()),
    };
    if !accept {
        return Err(difference);
    }
    std::fs::write(&path, actual).map_err(|error| error.to_string())
}

/// A `#[test]` that replays all fixtures below a folder and compares their events with the snapshots beside
/// them ([`snapshot::check`](crate::snapshot::check)).
///
/// ```ignore
/// teamster_testkit::snapshot_tests!(MyProvider, concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"));
/// ```
#[macro_export]
macro_rules! snapshot_tests {
    ($provider:expr, $fixtures:expr $(,)?) => {
        #[test]
        fn snapshots() {
            let fixtures = ::std::path::Path::new($fixtures);
            if let Err(report) = $crate::snapshot::check(&$provider, fixtures) {
                panic!("{report}");
            }
        }
    };
}

#[cfg(test)]
mod tests;
