//! Figures that a benchmark harness does not give: instructions (to be counted from outside),
//! processor time, latency and memory. `cargo xtask bench` runs it and prints the table.
//!
//! ```text
//! measure make FILE                    some 4 MB of recorded text deltas
//! measure load|split|decode FILE       work to count instructions of
//! measure cpu LINES                    processor time for each line, from pipe to consumer
//! measure latency LINES MICROSECONDS   time from a line's printing to the consumer; a fourth argument names one
//! measure short RUNS                   a whole short run, beside spawning and reading
//! measure slow LINES                   peak memory while the consumer sleeps
//! measure stream|run LINES             a runtime's stream, or a run of one attempt, to count instructions of
//! measure starts RUNNING STARTS        the same latency of so many runs while others are started
//! measure program TEAMSTER RUNS        a short run of the program (its path), beside spawning and reading
//! measure memory TEAMSTER MIB          the program's peak memory for lines of all kinds and for one answer
//! ```
//!
//! The lines of `cpu` and of all below it are text deltas in the shape that Claude Code prints, made by this
//! program itself.
#![expect(clippy::print_stdout, reason = "it is what the program is for")]

#[path = "../../benches/common.rs"]
mod common;
mod program;
mod starts;

use std::hint::black_box;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use teamster::orchestrator::{Orchestrator, OrchestratorConfig, RunRequest};
use teamster::{
    AgentError, AgentEvent, AgentRuntime, Capabilities, CliInfo, CliProvider, EventStream,
    ExecuteParams, RuntimeConfig, claude::Claude,
};
use teamster_core::provider::{Decoder, Launch};
use teamster_process::CliRuntime;
use tokio::io::AsyncBufReadExt;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const SESSION: &str = "4e7c1419-faa6-4b9e-a712-01520d2026c2";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args[..] {
        ["make", file] => Ok(std::fs::write(file, common::delta_lines(4 << 20))?),
        ["load", file] => {
            black_box(std::fs::read(file)?);
            Ok(())
        }
        ["split", file] => {
            common::split(&std::fs::read(file)?);
            Ok(())
        }
        ["decode", file] => {
            common::decode(&std::fs::read(file)?);
            Ok(())
        }
        ["cpu", lines] => cpu(lines),
        ["latency", lines, pause] => latency(lines, pause, ""),
        ["latency", lines, pause, name] => latency(lines, pause, name),
        ["short", runs] => short(runs.parse()?),
        ["slow", lines] => slow(lines),
        ["stream", lines] => stream(lines),
        ["run", lines] => run(lines),
        ["starts", running, count] => starts::starts(running.parse()?, count),
        ["start", count] => starts::start_many(count.parse()?),
        ["program", teamster, runs] => program::program(teamster, runs.parse()?),
        ["memory", teamster, mib] => program::memory(teamster, mib),
        ["peak", teamster, mib, case] => program::peak(teamster, mib, case),
        ["mixed", mib] => program::mixed(mib.parse()?),
        ["answer", mib] => program::answer(mib.parse()?),
        ["emit", lines, pause] => emit(lines.parse()?, Duration::from_micros(pause.parse()?)),
        _ => Err("see the head of this file for what to ask".into()),
    }
}

/// Prints a session of `lines` deltas, each with the time of its printing as its text.
fn emit(lines: u64, pause: Duration) -> Result<()> {
    let mut out = BufWriter::with_capacity(64 * 1024, std::io::stdout().lock());
    writeln!(
        out,
        r#"{{"type":"system","subtype":"init","session_id":"{SESSION}","model":"m"}}"#
    )?;
    for _ in 0..lines {
        if !pause.is_zero() {
            out.flush()?;
            std::thread::sleep(pause);
        }
        writeln!(
            out,
            r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{}"}}}},"session_id":"{SESSION}","parent_tool_use_id":null,"uuid":"ad2e5fef-3f54-4bd7-8082-516ca8c0beb7"}}"#,
            now()
        )?;
    }
    writeln!(
        out,
        r#"{{"type":"result","subtype":"success","is_error":false,"session_id":"{SESSION}"}}"#
    )?;
    Ok(out.flush()?)
}

/// This program as the CLI, in Claude Code's place.
#[derive(Clone)]
struct Emitter(Vec<String>);

impl CliProvider for Emitter {
    fn info(&self) -> &'static CliInfo {
        Claude.info()
    }

    fn capabilities(&self) -> &Capabilities {
        Claude.capabilities()
    }

    fn launch(&self, _: &ExecuteParams) -> std::result::Result<Launch, AgentError> {
        Ok(Launch {
            args: self.0.iter().map(Into::into).collect(),
            ..Launch::default()
        })
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        Claude.decoder(params)
    }
}

fn emitter(lines: &str, pause: &str) -> Result<CliRuntime<Emitter>> {
    let mut config = RuntimeConfig::default();
    config.program = Some(std::env::current_exe()?);
    let args = ["emit", lines, pause].map(str::to_owned).to_vec();
    Ok(CliRuntime::with_config(Emitter(args), config))
}

fn bare(lines: &str, pause: &str) -> Result<std::process::Child> {
    let child = Command::new(std::env::current_exe()?)
        .args(["emit", lines, pause])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    Ok(child)
}

fn on_one_thread<T>(work: impl Future<Output = T>) -> Result<T> {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(tokio.block_on(work))
}

/// Runs of a few lines, in turn with the floor: spawning the same process and reading what it prints.
fn short(runs: usize) -> Result<()> {
    const LINES: &str = "5";
    let one_thread = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let several = tokio::runtime::Runtime::new()?;
    let runtime = emitter(LINES, "0")?;
    let config = runtime.config().clone().die_with_parent(true);
    let dying = CliRuntime::with_config(runtime.provider().clone(), config);
    let mut floors = Vec::new();
    let mut more = [const { Vec::new() }; 4];
    for _ in 0..runs {
        let start = now();
        let mut child = bare(LINES, "0")?;
        let mut output = Vec::new();
        let stdout = child.stdout.as_mut().ok_or("no pipe")?;
        std::io::Read::read_to_end(stdout, &mut output)?;
        child.wait()?;
        let floor = now() - start;
        floors.push(floor);
        for (index, more) in more.iter_mut().enumerate() {
            let start = now();
            let runtime = if index == 3 { &dying } else { &runtime };
            let run = runtime.execute(ExecuteParams::new("x")).result();
            let result = match index {
                1 => several.block_on(several.spawn(run))?,
                2 => several.block_on(run),
                _ => one_thread.block_on(run),
            };
            more.push(now() - start - floor);
            result.into_result()?;
        }
    }
    floors.sort_unstable();
    println!(
        "spawn and read: p50 {:.0} µs of {runs} runs",
        percentile(&floors, 50)
    );
    let names = [
        "one thread",
        "task",
        "main",
        "one thread, `die_with_parent`",
    ];
    for (name, mut times) in names.iter().zip(more) {
        times.sort_unstable();
        println!("a run, {name}: p50 {:+.0} µs", percentile(&times, 50));
    }
    Ok(())
}

/// Reads a runtime's stream.
fn stream(lines: &str) -> Result<()> {
    let runtime = emitter(lines, "0")?;
    on_one_thread(async { read(runtime.execute(ExecuteParams::new("x"))).await })
}

/// Reads the same as a run of one attempt.
fn run(lines: &str) -> Result<()> {
    let runtime = Arc::new(emitter(lines, "0")?);
    on_one_thread(async {
        let orchestrator = Orchestrator::new(OrchestratorConfig::default())?;
        let mut request = RunRequest::new(runtime, ExecuteParams::new("x"));
        request.retry.retries = 0;
        read(orchestrator.execute(request)).await;
        Ok(())
    })?
}

async fn read(mut events: EventStream) {
    while let Some(event) = events.next().await {
        black_box(event);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people to read")]
fn cpu(lines: &str) -> Result<()> {
    let runtime = emitter(lines, "0")?;
    let before = cpu_ns()?;
    let events = on_one_thread(async {
        let mut stream = runtime.execute(ExecuteParams::new("x"));
        let mut count = 0u64;
        while let Some(event) = stream.next().await {
            count += u64::from(matches!(event, AgentEvent::Text(_)));
        }
        count
    })?;
    let engine = cpu_ns()? - before;

    let mut child = bare(lines, "0")?;
    let before = cpu_ns()?;
    let mut stdout = child.stdout.take().ok_or("no pipe")?;
    let mut count = 0u64;
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let len = std::io::Read::read(&mut stdout, &mut chunk)?;
        if len == 0 {
            break;
        }
        count += memchr::memchr_iter(b'\n', &chunk[..len]).count() as u64;
    }
    let floor = cpu_ns()? - before;
    child.wait()?;
    let per_line = |ns: i64| ns as f64 / 1000.0 / events as f64;
    println!("lines: {events} (floor: {count})");
    println!(
        "engine: {:.3} µs of processor time a line",
        per_line(engine)
    );
    println!("floor:  {:.3} µs of processor time a line", per_line(floor));
    Ok(())
}

/// The consumer whose latency is measured.
#[derive(Clone, Copy)]
enum Consumer {
    /// A thread that blocks in `read` and splits lines.
    Blocking,
    /// A Tokio task that reads the pipe and splits lines.
    EventLoop(Tokio),
    /// A runtime's stream.
    Engine(Tokio),
}

#[derive(Clone, Copy)]
enum Tokio {
    OneThread,
    /// Several threads, and the consumer on one of them.
    Task,
    /// Several threads, and the consumer on another (`#[tokio::main]`).
    Main,
}

const CONSUMERS: [(&str, Consumer); 7] = [
    ("blocking reader", Consumer::Blocking),
    (
        "event loop, one thread",
        Consumer::EventLoop(Tokio::OneThread),
    ),
    ("engine, one thread", Consumer::Engine(Tokio::OneThread)),
    ("event loop, task", Consumer::EventLoop(Tokio::Task)),
    ("engine, task", Consumer::Engine(Tokio::Task)),
    ("event loop, main", Consumer::EventLoop(Tokio::Main)),
    ("engine, main", Consumer::Engine(Tokio::Main)),
];

/// All consumers in turn, several times: what else the machine does is the same for all.
fn latency(lines: &str, pause: &str, name: &str) -> Result<()> {
    const ROUNDS: usize = 7;
    let consumers: Vec<_> = (CONSUMERS.iter())
        .filter(|consumer| consumer.0.contains(name))
        .collect();
    let mut figures = vec![Vec::new(); consumers.len()];
    for _ in 0..ROUNDS {
        let mut floor = None;
        for ((_, consumer), figures) in consumers.iter().zip(&mut figures) {
            let times = consumer.times(lines, pause)?;
            let at = [percentile(&times, 50), percentile(&times, 99)];
            let floor = *floor.get_or_insert(at);
            figures.push([at[0], at[1], at[0] / floor[0], at[1] / floor[1]]);
        }
    }
    println!(
        "medians of {ROUNDS} rounds of {lines} lines, {pause} µs apart; in brackets times the first"
    );
    for ((name, _), figures) in consumers.iter().zip(figures) {
        let median = |of: usize| {
            let mut values: Vec<f64> = figures.iter().map(|it: &[f64; 4]| it[of]).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let [p50, p99, p50_ratio, p99_ratio] = [0, 1, 2, 3].map(median);
        println!("{name}: p50 {p50:.0} µs ({p50_ratio:.2}), p99 {p99:.0} µs ({p99_ratio:.2})");
    }
    Ok(())
}

impl Consumer {
    /// How long each line took, in nanoseconds, sorted.
    fn times(self, lines: &str, pause: &str) -> Result<Vec<i64>> {
        let mut times = match self {
            Self::Blocking => {
                let mut child = bare(lines, pause)?;
                let times = read_times(child.stdout.take().ok_or("no pipe")?);
                child.wait()?;
                times
            }
            Self::EventLoop(tokio) => {
                let mut child = bare(lines, pause)?;
                let stdout = child.stdout.take().ok_or("no pipe")?;
                let times = tokio.run(async move {
                    let stdout = tokio::process::ChildStdout::from_std(stdout)?;
                    let mut lines = tokio::io::BufReader::new(stdout).lines();
                    let mut times = Vec::new();
                    while let Some(line) = lines.next_line().await? {
                        times.extend(time_of(&line));
                    }
                    std::io::Result::Ok(times)
                })??;
                child.wait()?;
                times
            }
            Self::Engine(tokio) => {
                let mut stream = emitter(lines, pause)?.execute(ExecuteParams::new("x"));
                tokio.run(async move {
                    let mut times = Vec::new();
                    while let Some(event) = stream.next().await {
                        if let AgentEvent::Text(text) = event {
                            times.push(now() - text.text.parse::<i64>().unwrap_or(0));
                        }
                    }
                    times
                })?
            }
        };
        times.sort_unstable();
        Ok(times)
    }
}

impl Tokio {
    fn run<T: Send + 'static>(self, work: impl Future<Output = T> + Send + 'static) -> Result<T> {
        let several = || tokio::runtime::Runtime::new();
        match self {
            Self::OneThread => on_one_thread(work),
            Self::Task => {
                let tokio = several()?;
                Ok(tokio.block_on(tokio.spawn(work))?)
            }
            Self::Main => Ok(several()?.block_on(work)),
        }
    }
}

/// In microseconds, of times in nanoseconds that are sorted.
#[expect(clippy::cast_precision_loss, reason = "a figure for people to read")]
fn percentile(times: &[i64], percent: usize) -> f64 {
    let time = times.get(times.len() * percent / 100);
    time.map_or(f64::NAN, |time| *time as f64 / 1000.0)
}

/// How long each line has taken, in nanoseconds.
fn read_times(stdout: impl std::io::Read) -> Vec<i64> {
    BufReader::new(stdout)
        .lines()
        .map_while(std::result::Result::ok)
        .filter_map(|line| time_of(&line))
        .collect()
}

/// How long the line has taken, in nanoseconds.
fn time_of(line: &str) -> Option<i64> {
    let (_, rest) = line.split_once(r#""text":""#)?;
    let (time, _) = rest.split_once('"')?;
    Some(now() - time.parse::<i64>().ok()?)
}

fn print_times(engine: Vec<i64>, floor: Vec<i64>) {
    for (name, mut times) in [("engine", engine), ("floor", floor)] {
        times.sort_unstable();
        let at = |percent| percentile(&times, percent);
        let count = times.len();
        println!(
            "{name}: p50 {:.0} µs, p99 {:.0} µs of {count} lines",
            at(50),
            at(99)
        );
    }
}

fn slow(lines: &str) -> Result<()> {
    let runtime = emitter(lines, "0")?;
    let (count, bytes) = on_one_thread(async {
        let mut stream = runtime.execute(ExecuteParams::new("x"));
        let (mut count, mut bytes) = (0u64, 0usize);
        while let Some(event) = stream.next().await {
            if count == 0 {
                // The agent is done long before it is over.
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
            if let AgentEvent::Text(text) = event {
                count += 1;
                bytes += text.text.len();
            }
        }
        (count, bytes)
    })?;
    let peak = getrusage(UsageWho::RUSAGE_SELF)?.max_rss() / 1024;
    println!("{count} deltas with {bytes} bytes of text, peak memory {peak} MiB");
    Ok(())
}

fn now() -> i64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| time.num_nanoseconds())
}

fn cpu_ns() -> Result<i64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    Ok(usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds())
}
