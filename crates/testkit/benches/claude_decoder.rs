//! From bytes to events, framing included, beside the floor: splitting the same bytes with memchr.
#![expect(
    clippy::expect_used,
    reason = "without its input a benchmark has nothing to measure"
)]

mod common;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use teamster::{CliProvider, Events, ExecuteParams, RunAssembler, claude::Claude};
use teamster_process::framing::{Frame, LineBuf};

fn decode(input: &[u8]) {
    let decoder = Claude.decoder(&ExecuteParams::new(""));
    let mut assembler = RunAssembler::new(decoder, false);
    let mut lines = LineBuf::new(64 << 20);
    let mut events = Events::new();
    for chunk in input.chunks(64 * 1024) {
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

fn claude_decoder(c: &mut Criterion) {
    let deltas = common::delta_lines(4 << 20);
    let whole = std::fs::read(common::fixture("write_edit").join("stdout.ndjson"))
        .expect("the fixture is in the repository");
    for (name, input) in [("text deltas", &deltas), ("a run with tools", &whole)] {
        let mut group = c.benchmark_group(format!("claude decoder, {name}"));
        group.throughput(Throughput::Bytes(input.len() as u64));
        group.bench_function("floor: memchr split", |b| {
            b.iter(|| {
                let mut start = 0;
                for end in memchr::memchr_iter(b'\n', input) {
                    black_box(&input[start..end]);
                    start = end + 1;
                }
            });
        });
        group.bench_function("bytes to events", |b| b.iter(|| decode(input)));
        group.finish();
    }
}

criterion_group!(benches, claude_decoder);
criterion_main!(benches);
