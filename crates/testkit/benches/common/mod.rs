//! Input of the benchmarks: lines of recorded runs.
#![expect(
    clippy::expect_used,
    reason = "without its input a benchmark has nothing to measure"
)]

use std::path::{Path, PathBuf};

/// The folder of a recorded run of Claude Code.
pub(crate) fn fixture(scenario: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/claude/2.1.197")
        .join(scenario)
}

/// At least `bytes` of text deltas as Claude Code printed them, behind the line that begins the
/// session.
pub(crate) fn delta_lines(bytes: usize) -> Vec<u8> {
    let path = fixture("slow_reader_partial").join("stdout.ndjson");
    let recorded = std::fs::read(path).expect("the fixture is in the repository");
    let lines: Vec<&[u8]> = recorded.split_inclusive(|b| *b == b'\n').collect();
    let mut input = Vec::with_capacity(bytes + recorded.len());
    let init = lines.iter().find(|l| contains(l, br#""subtype":"init""#));
    input.extend_from_slice(init.expect("a session begins with it"));
    while input.len() < bytes {
        for line in &lines {
            if contains(line, b"text_delta") && line.ends_with(b"}\n") {
                input.extend_from_slice(line);
            }
        }
    }
    input
}

fn contains(line: &[u8], what: &[u8]) -> bool {
    memchr::memmem::find(line, what).is_some()
}
