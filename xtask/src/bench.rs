//! `cargo xtask bench`.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{Outcome, cargo, root, target};

/// Numbers of deltas whose difference gives the instructions of one delta.
const STREAM_LINES: [u64; 2] = [10_000, 60_000];
/// Number of deltas for the processor time of one.
const CPU_LINES: &str = "500000";
/// Number of deltas for their latency in each round, and the pause between them in microseconds.
const LATENCY: [&str; 2] = ["500", "2000"];
/// Number of short runs to start.
const SHORT_RUNS: &str = "300";
/// Number of deltas for a consumer that sleeps: about 100 MB.
const SLOW_LINES: &str = "400000";

/// Number of runs that are read, and of runs that are started meanwhile.
const STARTS: [&str; 2] = ["20", "600"];

pub(crate) fn run(out: &mut impl Write) -> Result<Outcome> {
    let root = root();
    let built = cargo()
        .current_dir(root)
        .args(["build", "--release", "-p", "teamster-testkit"])
        .args(["--example", "measure"])
        .status()
        .context("failed to run cargo")?;
    if !built.success() {
        bail!("the measuring program could not be built");
    }
    let target = target();
    let measure = target.join("release/examples/measure");
    let input = target.join("bench-deltas.ndjson");
    output_of(Command::new(&measure).arg("make").arg(&input))?;

    instructions(&measure, &input, out)?;
    for args in [
        &["cpu", CPU_LINES][..],
        &["latency", LATENCY[0], LATENCY[1]],
        &["short", SHORT_RUNS],
        &["slow", SLOW_LINES],
        &["starts", STARTS[0], STARTS[1]],
    ] {
        writeln!(out, "\n{}:", args[0])?;
        write!(out, "{}", output_of(Command::new(&measure).args(args))?)?;
        out.flush()?;
    }
    Ok(Outcome::Fine)
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people to read")]
fn instructions(measure: &Path, input: &Path, out: &mut impl Write) -> Result<()> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        writeln!(
            out,
            "instructions: valgrind is not installed, so not counted"
        )?;
        return Ok(());
    }
    let bytes = fs::metadata(input)?.len();
    let count_of = |work: &str| count(measure, &[OsStr::new(work), input.as_os_str()]);
    let load = count_of("load")?;
    writeln!(out, "instructions a byte, of {bytes} bytes of delta lines:")?;
    for (work, name) in [
        ("split", "floor: memchr split"),
        ("decode", "bytes to events"),
    ] {
        let own = count_of(work)?.saturating_sub(load);
        writeln!(out, "{name}: {:.2}", own as f64 / bytes as f64)?;
    }
    writeln!(out, "instructions a delta line, from pipe to consumer:")?;
    let [few, many] = STREAM_LINES;
    for (work, name) in [
        ("stream", "a runtime's stream"),
        ("run", "a run of one attempt"),
    ] {
        let count_of = |lines: u64| {
            let lines = lines.to_string();
            count(measure, &[work.as_ref(), lines.as_ref()])
        };
        let own = count_of(many)?.saturating_sub(count_of(few)?);
        writeln!(out, "{name}: {:.0}", own as f64 / (many - few) as f64)?;
    }
    out.flush()?;
    Ok(())
}

/// Returns the number of instructions of a piece of work, as counted by callgrind.
fn count(measure: &Path, work: &[&OsStr]) -> Result<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(measure)
        .args(work)
        .output()?;
    let report = String::from_utf8_lossy(&output.stderr);
    report
        .lines()
        .find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
        .with_context(|| format!("valgrind counted nothing: {report}"))
}

fn output_of(command: &mut Command) -> Result<String> {
    let output = command
        .output()
        .with_context(|| format!("failed to run {}", command.get_program().display()))?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}
