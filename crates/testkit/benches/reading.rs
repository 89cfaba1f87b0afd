//! Splitting of lines and decoding of events, compared with the floor: splitting the same bytes with memchr.

mod common;

use std::hint::black_box;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use teamster_process::framing::{Frame, LineBuf};

use common::CHUNK;

fn group<'a>(c: &'a mut Criterion, name: &str, input: &[u8]) -> BenchmarkGroup<'a, WallTime> {
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Bytes(input.len() as u64));
    group.bench_function("floor: memchr split", |b| b.iter(|| common::split(input)));
    group
}

fn framing(c: &mut Criterion) {
    let input = common::delta_lines(4 << 20);
    let mut lines = LineBuf::new(64 << 20);
    group(c, "framing", &input).bench_function("LineBuf", |b| {
        b.iter(|| {
            for chunk in input.chunks(CHUNK) {
                lines.extend(chunk);
                while let Some(frame) = lines.next() {
                    if let Frame::Line(line) = frame {
                        black_box(line);
                    }
                }
            }
        });
    });
}

fn claude_decoder(c: &mut Criterion) {
    let deltas = common::delta_lines(4 << 20);
    let complete = common::recorded("write_edit");
    for (name, input) in [("text deltas", &deltas), ("a run with tools", &complete)] {
        group(c, &format!("claude decoder, {name}"), input)
            .bench_function("bytes to events", |b| b.iter(|| common::decode(input)));
    }
}

criterion_group!(benches, framing, claude_decoder);
criterion_main!(benches);
