//! Benchmark of a scan of many large transcripts, with its memory usage.
//!
//! The transcripts consist of recorded lines with unique ids and with tool results of realistic size.
//! `TEAMSTER_BENCH_MB` sets their total size in megabytes. Default: 500.

#![allow(clippy::expect_used, reason = "a benchmark")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use teamster_api::usage::Dimension;
use teamster_usage::{Locations, Provider, Scan};

/// Size of a transcript, in bytes.
const FILE: u64 = 20 << 20;

/// Returns the lines of a recorded file.
fn recorded(folder: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(folder);
    let mut files = vec![folder];
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(
                fs::read_dir(path)
                    .expect("a folder")
                    .map(|entry| entry.expect("an entry").path()),
            );
        } else if path
            .extension()
            .is_some_and(|extension| extension == "jsonl")
        {
            let text = fs::read_to_string(path).expect("a recorded file");
            return text.lines().map(str::to_owned).collect();
        }
    }
    panic!("no recorded file")
}

/// Lengthens tool results to some kilobytes of text.
fn long(line: &str) -> String {
    let text =
        "    let line = reader.next_line()?; // \\\"quoted\\\" and \\u4f60\\u597d\\n".repeat(60);
    line.replacen("\"content\":\"", &format!("\"content\":\"{text}"), 1)
        .replacen("\"stdout\":\"", &format!("\"stdout\":\"{text}"), 1)
}

/// Writes files of `FILE` bytes up to a total of `size`. `lines` returns the beginning of a file, or the lines of a
/// turn.
fn fill(
    folder: &Path,
    name: impl Fn(u64) -> PathBuf,
    size: u64,
    lines: impl Fn(u64, Option<u64>) -> String,
) {
    let mut turn = 0;
    for file in 0..size.div_ceil(FILE) {
        let path = folder.join(name(file));
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let mut out = BufWriter::new(File::create(path).expect("a file"));
        out.write_all(lines(file, None).as_bytes())
            .expect("written");
        let mut written = 0;
        while written < FILE.min(size) {
            let text = lines(file, Some(turn));
            out.write_all(text.as_bytes()).expect("written");
            written += text.len() as u64;
            turn += 1;
        }
        out.flush().expect("written");
    }
}

/// Writes Claude's transcripts: a turn has an answer in four lines, results of two tools, and one more answer.
fn claude(home: &Path, size: u64, long_results: bool) {
    let lines: Vec<_> = recorded("claude/2.1.197/tools_in_one_answer/home")
        .iter()
        .map(|line| {
            if long_results {
                long(line)
            } else {
                line.clone()
            }
        })
        .collect();
    fill(
        &home.join(".claude/projects"),
        |file| {
            format!(
                "-w-{}/{file:08}-0000-4000-8000-000000000000.jsonl",
                file % 7
            )
            .into()
        },
        size,
        |_, turn| {
            let mut text = String::new();
            if let Some(turn) = turn {
                for line in &lines {
                    let _ = writeln!(
                        text,
                        "{}",
                        line.replace("_mock_2", &format!("_{turn:08}_2"))
                    );
                }
            }
            text
        },
    );
}

/// Writes Codex's rollouts: a turn has two requests with tools.
fn codex(home: &Path, size: u64) {
    let recorded = recorded("codex/0.169.0/tools/home");
    let thread = "7916-7541-accb-75642c4d6556";
    let (once, of_turn): (Vec<_>, Vec<_>) = recorded
        .iter()
        .partition(|line| line.contains("\"session_meta\""));
    let output = format!("\"output\":\"{}", "text of a tool\\n".repeat(200));
    fill(
        &home.join(".codex/sessions/2026/11/22"),
        |file| {
            format!("rollout-2026-11-22T19-01-26-01a204a2-7916-7541-accb-{file:012}.jsonl").into()
        },
        size,
        |file, turn| {
            let mut text = String::new();
            for line in if turn.is_some() { &of_turn } else { &once } {
                let line = line
                    .replace(thread, &format!("7916-7541-accb-{file:012}"))
                    .replace("resp_", &format!("resp_{}_", turn.unwrap_or(0)))
                    .replacen("\"output\":\"", &output, 1);
                let _ = writeln!(text, "{line}");
            }
            text
        },
    );
}

/// Writes files of this total size to a home.
type Make = fn(&Path, u64);

/// Returns the peak memory of this process since `forget_peak`, in MiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0) / 1024
}

/// Resets the peak memory to the current one. Works only on Linux.
fn forget_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Reads the files without parsing them, as the lower limit of a scan's time.
fn floor(home: &Path) -> u64 {
    let mut folders = vec![home.to_owned()];
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = 0;
    while let Some(path) = folders.pop() {
        if path.is_dir() {
            folders.extend(
                fs::read_dir(path)
                    .expect("a folder")
                    .map(|entry| entry.expect("an entry").path()),
            );
            continue;
        }
        let mut file = File::open(path).expect("a file");
        loop {
            match file.read(&mut buffer).expect("read") {
                0 => break,
                count => bytes += count as u64,
            }
        }
    }
    bytes
}

#[expect(clippy::print_stdout, reason = "a benchmark prints its results")]
fn main() {
    let size = std::env::var("TEAMSTER_BENCH_MB");
    let size: u64 = size.map_or(500, |size| size.parse().expect("a number of megabytes")) << 20;
    let mut criterion = Criterion::default()
        .configure_from_args()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100));
    for (name, provider, make) in [
        (
            "claude",
            Provider::Claude,
            (|home, size| claude(home, size, true)) as Make,
        ),
        ("claude, short lines", Provider::Claude, |home, size| {
            claude(home, size, false);
        }),
        ("codex", Provider::Codex, codex),
    ] {
        let home = tempfile::tempdir().expect("a folder");
        make(home.path(), size);
        let scan = Scan::new(Locations::of_home(home.path())).providers([provider]);
        let one = scan.clone().threads(NonZero::<usize>::MIN);
        forget_peak();
        let before = peak();
        let start = Instant::now();
        let accounts = scan.run();
        let groups = accounts.by(Dimension::Day).len() + accounts.by(Dimension::Model).len();
        let requests = accounts.total().requests;
        println!(
            "{name}: {} MB, {requests} requests, {groups} groups in {:.2?}; peak memory {} MiB, {before} MiB before",
            accounts.diagnostics().bytes >> 20,
            start.elapsed(),
            peak(),
        );
        let bytes = accounts.diagnostics().bytes;
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(bytes));
        group.bench_function("floor: read", |b| b.iter(|| floor(home.path())));
        group.bench_function("one thread", |b| b.iter(|| one.run().total()));
        group.bench_function("all processors", |b| b.iter(|| scan.run().total()));
        group.finish();
    }
    criterion.final_summary();
}
