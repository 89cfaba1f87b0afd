//! Input and work of the benchmarks.
#![expect(
    clippy::expect_used,
    reason = "without its input a benchmark has nothing to measure"
)]

use std::hint::black_box;
use std::path::Path;

use teamster::{CliProvider, ExecuteParams, claude::Claude};
use teamster_core::provider::{Events, RunAssembler};
use teamster_process::framing::{Frame, LineBuf};

/// Maximum size of one read of a pipe with the default capacity, in bytes.
pub(crate) const CHUNK: usize = 64 * 1024;

/// Returns the output of Claude Code in a recorded run.
pub(crate) fn recorded(scenario: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/claude/2.1.197")
        .join(scenario)
        .join("stdout.ndjson");
    std::fs::read(path).expect("the fixture is in the repository")
}

/// Returns at least `bytes` of text deltas of Claude Code, after the line that begins the session.
pub(crate) fn delta_lines(bytes: usize) -> Vec<u8> {
    let recorded = recorded("slow_reader_partial");
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

/// Splits lines, which is the floor of the comparison.
pub(crate) fn split(input: &[u8]) {
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', input) {
        black_box(&input[start..end]);
        start = end + 1;
    }
}

/// Decodes bytes of Claude Code to events, as a run does.
pub(crate) fn decode(input: &[u8]) {
    decode_as(&Claude, input);
}

/// Decodes bytes to events, as a run does.
pub(crate) fn decode_as(provider: &dyn CliProvider, input: &[u8]) {
    let decoder = provider.decoder(&ExecuteParams::new(""));
    let mut assembler = RunAssembler::new(decoder);
    let mut lines = LineBuf::new(64 << 20);
    let mut events = Events::new();
    for chunk in input.chunks(CHUNK) {
        lines.extend(chunk);
        while let Some(frame) = lines.next() {
            if let Frame::Line(line) = frame {
                assembler.line(line, &mut events);
            }
        }
        events.drain().for_each(|event| {
            black_box(event);
        });
    }
}
