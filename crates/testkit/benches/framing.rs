//! Lines out of chunks, beside the floor: splitting the same bytes with memchr.

mod common;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use teamster_process::framing::{Frame, LineBuf};

/// What one read of a pipe gives at most before it is enlarged.
const CHUNK: usize = 64 * 1024;

fn framing(c: &mut Criterion) {
    let input = common::delta_lines(4 << 20);
    let mut group = c.benchmark_group("framing");
    group.throughput(Throughput::Bytes(input.len() as u64));
    group.bench_function("floor: memchr split", |b| {
        b.iter(|| {
            let mut start = 0;
            for end in memchr::memchr_iter(b'\n', &input) {
                black_box(&input[start..end]);
                start = end + 1;
            }
        });
    });
    group.bench_function("LineBuf", |b| {
        let mut lines = LineBuf::new(64 << 20);
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
    group.finish();
}

criterion_group!(benches, framing);
criterion_main!(benches);
