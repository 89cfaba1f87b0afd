//! Many runs at once: their latency while others are started, and their processor time.

use std::process::Command;

use teamster::{AgentEvent, AgentRuntime, ExecuteParams};

use super::{Result, bare, cpu_ns, emitter, now, print_times, read, read_times};

/// Measures the latency of events of running agents while others are started in the same process. The floor
/// is the same with threads that only read, while another process starts the agents.
pub(super) fn starts(running: usize, count: &str) -> Result<()> {
    const LINES: &str = "100000";
    const PAUSE: &str = "5000";
    let tokio = tokio::runtime::Runtime::new()?;
    let engine = tokio.block_on(async {
        let mut running: Vec<_> = (0..running)
            .map(|_| emitter(LINES, PAUSE).map(|it| it.execute(ExecuteParams::new("x"))))
            .collect::<Result<_>>()?;
        for stream in &mut running {
            stream.next().await;
        }
        let readers: Vec<_> = running
            .into_iter()
            .map(|mut stream| {
                let abort = stream.abort_handle();
                let times = tokio::spawn(async move {
                    let mut times = Vec::new();
                    while let Some(event) = stream.next().await {
                        if let AgentEvent::Text(text) = event {
                            times.push(now() - text.text.parse::<i64>().unwrap_or(0));
                        }
                    }
                    times
                });
                (abort, times)
            })
            .collect();
        run_many(count.parse()?).await?;
        let mut all = Vec::new();
        for (abort, times) in readers {
            abort.kill();
            all.extend(times.await?);
        }
        Result::Ok(all)
    })?;
    drop(tokio);

    let mut children = Vec::new();
    let mut readers = Vec::new();
    for _ in 0..running {
        let mut child = bare(LINES, PAUSE)?;
        let stdout = child.stdout.take().ok_or("no pipe")?;
        readers.push(std::thread::spawn(move || read_times(stdout)));
        children.push(child);
    }
    let load = Command::new(std::env::current_exe()?)
        .args(["start", count])
        .status()?;
    if !load.success() {
        return Err("the runs could not be started".into());
    }
    let mut floor = Vec::new();
    for mut child in children {
        child.kill()?;
        child.wait()?;
    }
    for reader in readers {
        floor.extend(reader.join().map_err(|_| "a reader panicked")?);
    }
    print_times(engine, floor);
    Ok(())
}

/// Executes this many short concurrent runs in a separate process.
pub(super) fn start_many(starts: usize) -> Result<()> {
    tokio::runtime::Runtime::new()?.block_on(run_many(starts))
}

/// Executes this many short concurrent runs.
async fn run_many(starts: usize) -> Result<()> {
    let runtime = emitter("1", "0")?;
    let runs: Vec<_> = (0..starts)
        .map(|_| tokio::spawn(runtime.execute(ExecuteParams::new("x")).result()))
        .collect();
    for run in runs {
        run.await?;
    }
    Ok(())
}

/// Measures the processor time of this many concurrent runs. The floor are threads that only read.
#[expect(clippy::cast_precision_loss, reason = "a figure for people to read")]
pub(super) fn many(runs: usize) -> Result<()> {
    const LINES: &str = "100";
    const PAUSE: &str = "20000";
    let before = cpu_ns()?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let runtime = emitter(LINES, PAUSE)?;
        let runs: Vec<_> = (0..runs)
            .map(|_| tokio::spawn(read(runtime.execute(ExecuteParams::new("x")))))
            .collect();
        for run in runs {
            run.await?;
        }
        Result::Ok(())
    })?;
    let engine = cpu_ns()? - before;

    let before = cpu_ns()?;
    let mut readers = Vec::new();
    for _ in 0..runs {
        let mut child = bare(LINES, PAUSE)?;
        let stdout = child.stdout.take().ok_or("no pipe")?;
        readers.push(std::thread::spawn(move || {
            let lines = read_times(stdout).len();
            child.wait().map(|_| lines)
        }));
    }
    for reader in readers {
        reader.join().map_err(|_| "a reader panicked")??;
    }
    let floor = cpu_ns()? - before;
    for (name, ns) in [("engine", engine), ("floor", floor)] {
        println!(
            "{name}: {:.2} ms of processor time a run",
            ns as f64 / 1e6 / runs as f64
        );
    }
    Ok(())
}
