//! Load test of detached runs with many late readers: every reader sees every entry once, in order.
//!
//! ```sh
//! cargo run --release -p teamster-runner --example readers -- --runs 200 --rate 50 --readers 20 --seconds 10
//! ```
//!
//! Each writer process has 20 runs, and each reader is a process that follows all runs from their beginning.
//! The readers start 0.5 s late. Prints the latency of the entries, and exits with 1 if one was missing,
//! repeated or out of order.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use teamster_api::{RunInfo, RunLogEntry};
use teamster_core::time::epoch_ms;
use teamster_core::{AbortHandle, AgentEvent, Done, LogEntry, RunResult, ToolKind, ToolUse};
use teamster_runner::client::Follow;
use teamster_runner::server::{Control, serve};
use teamster_runner::{AcceptedRun, LogLimits, Position, Requests, Runs};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::interval;

/// Runs of one process, so that its open files stay below the usual limit of 1024.
const RUNS_PER_PROCESS: u64 = 20;
/// Delay of the readers.
const LATE: Duration = Duration::from_millis(500);

type Failure = Box<dyn Error + Send + Sync>;

#[derive(Clone, Copy)]
struct Load {
    runs: u64,
    /// Events per second of each run.
    rate: u64,
    readers: u64,
    seconds: u64,
}

impl Load {
    fn events(self) -> u64 {
        self.rate * self.seconds
    }

    fn args(self) -> [String; 4] {
        [self.runs, self.rate, self.readers, self.seconds].map(|it| it.to_string())
    }

    fn parse(args: &[String]) -> Result<Self, Failure> {
        let number = |at: usize| -> Result<u64, Failure> {
            Ok(args.get(at).ok_or("a number is missing")?.parse::<u64>()?)
        };
        Ok(Self {
            runs: number(0)?,
            rate: number(1)?.max(1),
            readers: number(2)?,
            seconds: number(3)?,
        })
    }
}

fn main() -> ExitCode {
    match start() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<(), Failure> {
    let args: Vec<String> = env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    match args.first().map(String::as_str) {
        Some("write") => {
            let load = Load::parse(&args[2..6])?;
            runtime.block_on(write(Path::new(&args[1]), load, args[6].parse()?))
        }
        Some("read") => runtime.block_on(read(Path::new(&args[1]), Load::parse(&args[2..6])?)),
        _ => all(&args),
    }
}

/// Starts writers and readers and sums up their output.
fn all(args: &[String]) -> Result<(), Failure> {
    let option = |name: &str, default: u64| -> Result<u64, Failure> {
        match args.iter().position(|it| it == name) {
            Some(at) => Ok(args
                .get(at + 1)
                .ok_or("a number is missing")?
                .parse::<u64>()?),
            None => Ok(default),
        }
    };
    let load = Load {
        runs: option("--runs", 200)?,
        rate: option("--rate", 50)?,
        readers: option("--readers", 20)?,
        seconds: option("--seconds", 10)?,
    };
    let dir = tempfile::tempdir()?;
    let child = |mode: &str, more: &[String]| -> Result<Child, Failure> {
        Ok(Command::new(env::current_exe()?)
            .arg(mode)
            .arg(dir.path())
            .args(load.args())
            .args(more)
            .stdout(Stdio::piped())
            .spawn()?)
    };
    let mut writers = Vec::new();
    for first in (0..load.runs).step_by(usize::try_from(RUNS_PER_PROCESS)?) {
        writers.push(child("write", &[first.to_string()])?);
    }
    std::thread::sleep(LATE);
    let mut readers = Vec::new();
    for _ in 0..load.readers {
        readers.push(child("read", &[])?);
    }
    let mut late: Vec<u64> = Vec::new();
    let mut read = 0;
    for reader in readers {
        let output = reader.wait_with_output()?;
        let text = String::from_utf8(output.stdout)?;
        let mut numbers = text.split_whitespace().map(str::parse::<u64>);
        if !output.status.success() {
            return Err("a reader failed".into());
        }
        read += numbers.next().ok_or("a reader printed nothing")??;
        for number in numbers {
            late.push(number?);
        }
    }
    for writer in writers {
        if !writer.wait_with_output()?.status.success() {
            return Err("a writer failed".into());
        }
    }
    let expected = load.runs * (load.events() + 1) * load.readers;
    if read != expected {
        return Err(format!("{read} entries were read, and {expected} expected").into());
    }
    late.sort_unstable();
    let at = |share: usize| late.get((late.len() * share / 1000).min(late.len().saturating_sub(1)));
    println!(
        "{} runs, {}/s each, {} readers each: {read} entries read, each once and in order; read after \
         p50 {:?} ms, p99 {:?} ms, most {:?} ms",
        load.runs,
        load.rate,
        load.readers,
        at(500).unwrap_or(&0),
        at(990).unwrap_or(&0),
        late.last().unwrap_or(&0)
    );
    Ok(())
}

/// Writer process: writes its share of the runs.
async fn write(dir: &Path, load: Load, first: u64) -> Result<(), Failure> {
    let mut tasks = JoinSet::new();
    for number in first..(first + RUNS_PER_PROCESS).min(load.runs) {
        let info = RunInfo::new(format!("run-{number}"), "claude");
        let run = Runs::at(dir).accept(&info, LogLimits::default())?;
        tasks.spawn(run_of(run, load));
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(())
}

async fn run_of(run: AcceptedRun, load: Load) -> Result<(), Failure> {
    let AcceptedRun {
        folder,
        mut log,
        listener,
        lock,
        ..
    } = run;
    let (announce, position) = watch::channel(Position::default());
    let control = Control::new(position, AbortHandle::default(), Requests::default());
    let server = tokio::spawn(serve(listener, control));
    let mut ticks = interval(Duration::from_nanos(1_000_000_000 / load.rate));
    for number in 0..=load.events() {
        ticks.tick().await;
        let event = if number < load.events() {
            let input = serde_json::json!({"command": "cargo test"});
            let tool = ToolUse::new("Bash", number.to_string(), ToolKind::Execute, input);
            AgentEvent::ToolUse(Box::new(tool))
        } else {
            AgentEvent::Done(Done::new(Box::new(RunResult::default())))
        };
        let mut entry = LogEntry::from(event);
        entry.at_ms = epoch_ms();
        log.push(RunLogEntry::Agent(entry));
        announce.send_replace(log.flush()?);
    }
    // Slow readers read the rest from the file.
    server.abort();
    folder.close_socket();
    drop(lock);
    Ok(())
}

/// Reader process: prints the number of entries, and the latency of those that were written after its start.
async fn read(dir: &Path, load: Load) -> Result<(), Failure> {
    let began = epoch_ms();
    let runs = Runs::at(dir);
    let mut tasks = JoinSet::new();
    for number in 0..load.runs {
        let run = loop {
            // The writer may not have accepted the run yet.
            match runs.find(&format!("run-{number}")) {
                Ok(run) if run.id() == format!("run-{number}") => break run,
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        tasks.spawn(async move {
            let mut follow = Follow::new(run, 0)?;
            let mut late = Vec::new();
            let mut seen = 0;
            while let Some(line) = follow.next().await? {
                let now = epoch_ms();
                seen += 1;
                if line.seq() != seen {
                    return Err(format!("entry {} instead of {seen}", line.seq()).into());
                }
                let at = line.entry()?.at_ms();
                if at > began {
                    late.push(now.saturating_sub(at));
                }
            }
            Ok::<_, Failure>((seen, late))
        });
    }
    let mut all = 0;
    let mut numbers = String::new();
    while let Some(ended) = tasks.join_next().await {
        let (seen, late) = ended??;
        all += seen;
        // Every 20th value is enough for a distribution.
        for number in late.iter().step_by(20) {
            let _ = write!(numbers, " {number}");
        }
    }
    println!("{all}{numbers}");
    Ok(())
}
