//! `cargo xtask bench`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{Outcome, cargo, output_of, root, target};

/// File with the accepted numbers of instructions, from the root of the repository.
const BUDGET: &str = "xtask/budget.toml";
/// Share of a number by which a count may differ from it: what another compiler or a dependency changes.
const SLACK: f64 = 0.05;
/// Recordings whose decoding is counted, below `fixtures`: for each decoder the version with the most of them.
const RECORDINGS: [&str; 7] = [
    "claude/2.1.197",
    "codex/0.169.0",
    "copilot/1.0.102",
    "gemini/0.61.0",
    "opencode/1.18.33",
    "pi/0.87.1",
    "qwen/0.24.4",
];
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

/// Measure what criterion does not: instructions a byte, processor time a line, latency, memory.
///
/// Instructions are counted by valgrind, where it is installed, and are the same on a busy machine; the rest is best
/// measured on a quiet one. `cargo bench -p teamster-testkit` runs the criterion benchmarks.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only count instructions, and report those that differ by more than 5 % from xtask/budget.toml
    #[arg(long)]
    check: bool,

    /// Only count instructions, and write them to xtask/budget.toml
    #[arg(long, conflicts_with = "check")]
    accept: bool,
}

pub(crate) fn run(args: &Args, out: &mut impl Write) -> Result<Outcome> {
    let budgeted = args.check || args.accept;
    if budgeted && !valgrind() {
        writeln!(out, "valgrind is not installed, so nothing was counted")?;
        return Ok(Outcome::NotRun);
    }
    let measure = Measure::build()?;
    if budgeted {
        let counted = measure.count_all(out)?;
        return if args.accept {
            fs::write(root().join(BUDGET), counted.as_file())?;
            Ok(Outcome::Fine)
        } else {
            let budget = fs::read_to_string(root().join(BUDGET)).context(BUDGET)?;
            let problems = counted.differences(&toml::from_str(&budget).context(BUDGET)?);
            for problem in &problems {
                writeln!(out, "{problem}")?;
            }
            Ok(Outcome::problems_if(!problems.is_empty()))
        };
    }
    if valgrind() {
        measure.count_all(out)?;
    } else {
        writeln!(
            out,
            "instructions: valgrind is not installed, so not counted"
        )?;
    }
    for args in [
        &["cpu", CPU_LINES][..],
        &["latency", LATENCY[0], LATENCY[1]],
        &["short", SHORT_RUNS],
        &["slow", SLOW_LINES],
        &["starts", STARTS[0], STARTS[1]],
    ] {
        writeln!(out, "\n{}:", args[0])?;
        write!(
            out,
            "{}",
            output_of(Command::new(&measure.program).args(args))?
        )?;
        out.flush()?;
    }
    Ok(Outcome::Fine)
}

fn valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok()
}

/// Numbers of instructions, by what was done. Also the content of [`BUDGET`].
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Instructions {
    /// For each byte, from bytes to events, of text deltas of Claude Code and of the recordings in a folder.
    bytes: BTreeMap<String, f64>,
    /// For each line of text deltas of Claude Code, from pipe to consumer.
    lines: BTreeMap<String, f64>,
}

impl Instructions {
    fn as_file(&self) -> String {
        let mut file = String::from(
            "# Numbers of instructions that decoding takes, by valgrind. `cargo xtask bench --check` compares them,\n\
             # and `cargo xtask bench --accept` writes them again.\n",
        );
        for (name, numbers, digits) in [("bytes", &self.bytes, 2), ("lines", &self.lines, 0)] {
            let _ = write!(file, "\n[{name}]\n");
            for (key, number) in numbers {
                // A TOML float has a point.
                let point = if digits == 0 { ".0" } else { "" };
                let _ = writeln!(file, "{key:?} = {number:.digits$}{point}");
            }
        }
        file
    }

    /// Returns a line for each number that is not as accepted. Fewer instructions are one, too: the budget would
    /// leave room for what was just gained.
    fn differences(&self, accepted: &Self) -> Vec<String> {
        let mut found = Vec::new();
        for (unit, counted, accepted) in [
            ("byte", &self.bytes, &accepted.bytes),
            ("line", &self.lines, &accepted.lines),
        ] {
            for (key, number) in counted {
                match accepted.get(key) {
                    None => found.push(format!("{key}: not in {BUDGET}; add it with --accept")),
                    Some(accepted) if number / accepted > 1.0 + SLACK => found.push(format!(
                        "{key}: {number:.2} instructions a {unit}, where {accepted:.2} are accepted: \
                         find what costs them, or accept them with --accept"
                    )),
                    Some(accepted) if number / accepted < 1.0 - SLACK => found.push(format!(
                        "{key}: {number:.2} instructions a {unit}, fewer than the accepted {accepted:.2}: \
                         keep the gain with --accept"
                    )),
                    Some(_) => {}
                }
            }
            for key in accepted.keys().filter(|key| !counted.contains_key(*key)) {
                found.push(format!("{key}: in {BUDGET}, but no longer counted"));
            }
        }
        found
    }
}

/// The measuring program and its input.
struct Measure {
    program: PathBuf,
    input: PathBuf,
}

impl Measure {
    fn build() -> Result<Self> {
        let built = cargo()
            .current_dir(root())
            .args(["build", "--release", "-p", "teamster-testkit"])
            .args(["--example", "measure"])
            .status()
            .context("failed to run cargo")?;
        if !built.success() {
            bail!("the measuring program could not be built");
        }
        let measure = Self {
            program: target().join("release/examples/measure"),
            input: target().join("bench-deltas.ndjson"),
        };
        output_of(
            Command::new(&measure.program)
                .arg("make")
                .arg(&measure.input),
        )?;
        Ok(measure)
    }

    /// Counts all, and prints each number as soon as it is known.
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people to read")]
    fn count_all(&self, out: &mut impl Write) -> Result<Instructions> {
        let mut counted = Instructions::default();
        let bytes = fs::metadata(&self.input)?.len() as f64;
        let of_input = |work: &str| self.count(&[work.as_ref(), self.input.as_os_str()]);
        let load = of_input("load")?;
        writeln!(out, "instructions a byte, bytes to events:")?;
        let floor = of_input("split")?.saturating_sub(load) as f64 / bytes;
        writeln!(out, "text deltas, memchr split alone: {floor:.2}")?;
        let deltas = of_input("decode")?.saturating_sub(load) as f64 / bytes;
        writeln!(out, "text deltas: {deltas:.2}")?;
        counted.bytes.insert("text deltas".to_owned(), deltas);
        for recordings in RECORDINGS {
            let folder = root().join("fixtures").join(recordings);
            let of_folder = |work: &str| {
                self.count(&["recordings".as_ref(), work.as_ref(), folder.as_os_str()])
            };
            let bytes: f64 = output_of(
                Command::new(&self.program)
                    .args(["recordings", "load"])
                    .arg(&folder),
            )?
            .trim()
            .parse()
            .context("the number of bytes")?;
            let own = of_folder("decode")?.saturating_sub(of_folder("load")?);
            let number = own as f64 / bytes;
            writeln!(out, "{recordings}: {number:.2}")?;
            out.flush()?;
            counted.bytes.insert(recordings.to_owned(), number);
        }
        writeln!(out, "instructions a delta line, from pipe to consumer:")?;
        let [few, many] = STREAM_LINES;
        for (work, name) in [
            ("stream", "a runtime's stream"),
            ("run", "a run of one attempt"),
        ] {
            let count_of = |lines: u64| {
                let lines = lines.to_string();
                self.count(&[work.as_ref(), lines.as_ref()])
            };
            let own = count_of(many)?.saturating_sub(count_of(few)?);
            let number = own as f64 / (many - few) as f64;
            writeln!(out, "{name}: {number:.0}")?;
            counted.lines.insert(name.to_owned(), number);
        }
        out.flush()?;
        Ok(counted)
    }

    /// Returns the number of instructions of a piece of work, as counted by callgrind.
    fn count(&self, work: &[&OsStr]) -> Result<u64> {
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(&self.program)
            .args(work)
            .output()?;
        let report = String::from_utf8_lossy(&output.stderr);
        report
            .lines()
            .find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
            .with_context(|| format!("valgrind counted nothing: {report}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: f64, lines: f64) -> Instructions {
        Instructions {
            bytes: BTreeMap::from([("claude/1".to_owned(), bytes)]),
            lines: BTreeMap::from([("a stream".to_owned(), lines)]),
        }
    }

    #[test]
    fn differences_within_the_slack_are_none() {
        assert_eq!(of(104.0, 96.0).differences(&of(100.0, 100.0)), [""; 0]);
    }

    #[test]
    fn differences_beyond_the_slack_name_the_work_and_the_numbers() {
        let found = of(106.0, 94.0).differences(&of(100.0, 100.0));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(
            found[0].starts_with("claude/1: 106.00 instructions a byte, where 100.00"),
            "{found:?}"
        );
        assert!(
            found[1]
                .starts_with("a stream: 94.00 instructions a line, fewer than the accepted 100.00"),
            "{found:?}"
        );
    }

    #[test]
    fn differences_name_what_is_on_one_side_alone() {
        let found = of(1.0, 1.0).differences(&Instructions::default());
        assert_eq!(
            found[0],
            "claude/1: not in xtask/budget.toml; add it with --accept"
        );
        let found = Instructions::default().differences(&of(1.0, 1.0));
        assert_eq!(
            found[1],
            "a stream: in xtask/budget.toml, but no longer counted"
        );
    }

    #[test]
    fn file_reads_back_as_what_it_was() {
        let numbers = of(7.81, 2329.0);
        assert_eq!(
            toml::from_str::<Instructions>(&numbers.as_file()).unwrap(),
            numbers
        );
    }
}
