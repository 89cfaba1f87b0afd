//! The program `teamster` compared with a reader that spawns the same CLI.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use nix::pty::{Winsize, openpty};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, kill};
use nix::sys::time::TimeValLike;
use nix::unistd::Pid;

use super::{Result, SESSION, UUID, now, percentile};

/// A folder with a CLI that prints the output of this program with these arguments.
struct Place {
    folder: tempfile::TempDir,
    cli: PathBuf,
}

impl Place {
    fn new(args: &str) -> Result<Self> {
        let itself = std::env::current_exe()?;
        Self::of_script(&format!("exec '{}' {args}\n", itself.display()))
    }

    /// Creates the folder with a CLI that is this script.
    fn of_script(script: &str) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let cli = folder.path().join("cli");
        fs::write(&cli, format!("#!/bin/sh\n{script}"))?;
        fs::set_permissions(&cli, fs::Permissions::from_mode(0o700))?;
        Ok(Self { folder, cli })
    }

    /// Returns a command without the environment of this machine's user.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("HOME", self.folder.path())
            .env("PATH", path)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    fn run(&self, teamster: &Path, args: &[&str]) -> Command {
        let mut command = self.command(teamster);
        command.args(["run", "claude", "x", "--bin"]).arg(&self.cli);
        command.args(args).stderr(Stdio::null());
        command
    }
}

/// Measures runs of a few lines, alternating with the floor.
pub(super) fn program(teamster: &str, runs: usize) -> Result<()> {
    let teamster = fs::canonicalize(teamster)?;
    let place = Place::new("emit 5 0")?;
    let kinds: [(&str, &[&str]); 3] = [
        ("`--version`", &[]),
        ("`run --json`, no store", &["--json", "--store", "off"]),
        ("`run --json`", &["--json"]),
    ];
    let mut floors = Vec::new();
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..runs {
        floors.push(time(&mut place.command(&place.cli))?);
        for ((_, args), times) in kinds.iter().zip(&mut times) {
            times.push(match args {
                [] => time(place.command(&teamster).arg("--version"))?,
                args => time(&mut place.run(&teamster, args))?,
            });
        }
    }
    floors.sort_unstable();
    let floor = percentile(&floors, 50);
    println!("spawn and read: p50 {floor:.0} µs of {runs} runs");
    for ((name, _), mut times) in kinds.iter().zip(times) {
        times.sort_unstable();
        let p50 = percentile(&times, 50);
        println!("{name}: p50 {p50:.0} µs ({:+.0})", p50 - floor);
    }
    let mut firsts = Vec::new();
    for _ in 0..runs {
        firsts.push(first_character(&mut place.run(&teamster, &[]))?);
    }
    firsts.sort_unstable();
    let p50 = percentile(&firsts, 50);
    println!("first character of `run` at a terminal: p50 {p50:.0} µs");
    Ok(())
}

/// Measures the time from SIGINT to the end of the program, of a run whose agent ignores signals.
pub(super) fn abort(teamster: &str) -> Result<()> {
    let place = Place::of_script(&format!(
        "trap '' HUP INT TERM\nprintf '%s\\n' '{}'\nwhile :; do sleep 60; done\n",
        init()
    ))?;
    let mut command = place.run(&fs::canonicalize(teamster)?, &["--json", "--store", "off"]);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no pipe")?).lines();
    for line in lines.by_ref() {
        // The agent has begun.
        if line?.contains(r#""type":"session""#) {
            break;
        }
    }
    let start = now();
    kill(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGINT)?;
    lines.for_each(drop);
    child.wait()?;
    println!("from SIGINT to the end: {} ms", (now() - start) / 1_000_000);
    Ok(())
}

/// Measures the program's time for this many complete messages, and for half of them.
pub(super) fn messages(teamster: &str, count: usize) -> Result<()> {
    let teamster = fs::canonicalize(teamster)?;
    for count in [count / 2, count] {
        let place = Place::new(&format!("complete {count}"))?;
        let ns = time(&mut place.run(&teamster, &["--json", "--store", "off"]))?;
        println!("{count} messages: {} ms", ns / 1_000_000);
    }
    Ok(())
}

/// Returns the time from the start of a command to the first character that it shows at a terminal, in nanoseconds.
fn first_character(command: &mut Command) -> Result<i64> {
    let size = Winsize {
        ws_row: 24,
        ws_col: 80,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let terminal = openpty(&size, None)?;
    command
        .env("TERM", "xterm")
        .stdout(terminal.slave.try_clone()?)
        .stderr(terminal.slave);
    let start = now();
    let mut child = command.spawn()?;
    let mut byte = [0];
    fs::File::from(terminal.master).read_exact(&mut byte)?;
    let first = now() - start;
    // Without the terminal, the run ends.
    child.wait()?;
    Ok(first)
}

/// Returns the duration of a command whose output is read, in nanoseconds.
fn time(command: &mut Command) -> Result<i64> {
    let start = now();
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut output = Vec::new();
    let stdout = child.stdout.as_mut().ok_or("no pipe")?;
    stdout.read_to_end(&mut output)?;
    if !child.wait()?.success() {
        return Err(format!("{command:?} failed").into());
    }
    Ok(now() - start)
}

/// Measures the program's peak memory and processor time for this much output of a CLI.
pub(super) fn memory(teamster: &str, mib: &str) -> Result<()> {
    let itself = std::env::current_exe()?;
    for case in ["mixed", "slow", "answer", "deltas"] {
        // In a separate process: the system reports the peak of all children.
        let mut measured = Command::new(&itself);
        measured.args(["peak", teamster, mib, case]);
        if !measured.status()?.success() {
            return Err(format!("{case} could not be measured").into());
        }
    }
    Ok(())
}

/// Measures one of these cases.
pub(super) fn peak(teamster: &str, mib: &str, case: &str) -> Result<()> {
    /// Pause after each read of at most 64 KiB.
    const PAUSE: Duration = Duration::from_millis(1);
    let mixed = format!("mixed {mib}");
    let (emitted, args, pause, name): (_, &[&str], _, _) = match case {
        "mixed" => (mixed, &["--json"], None, "lines of all kinds, `--json`"),
        "slow" => (
            mixed,
            &["--json"],
            Some(PAUSE),
            "the same, 1 ms of sleep for each 64 KiB that are read",
        ),
        "answer" => (format!("answer {mib}"), &[], None, "one answer, as text"),
        _ => (
            "emit 200000 0".to_owned(),
            &["--json"],
            None,
            "text deltas, `--json`",
        ),
    };
    let place = Place::new(&emitted)?;
    let teamster = fs::canonicalize(teamster)?;
    let [lines, _] = read(&mut place.command(&place.cli), None)?;
    let of_cli = used()?;
    let start = now();
    let [_, bytes] = read(&mut place.run(&teamster, args), pause)?;
    let peak = getrusage(UsageWho::RUSAGE_CHILDREN)?.max_rss() / 1024;
    let (mb, ms) = (bytes / 1_000_000, (now() - start) / 1_000_000);
    // The program waits for the CLI, so its time has that of the CLI in it.
    let ns = (used()? - 2 * of_cli) / i64::try_from(lines)?;
    println!(
        "{name}: peak memory {peak} MiB, {mb} MB read in {ms} ms, {ns} ns of processor time for each of {lines} lines"
    );
    Ok(())
}

/// Returns the processor time of all children that have ended, in nanoseconds.
fn used() -> Result<i64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    Ok(usage.user_time().num_nanoseconds() + usage.system_time().num_nanoseconds())
}

/// Runs a command and reads its output, with this pause after each read of at most 64 KiB. Returns the numbers of lines and
/// bytes.
fn read(command: &mut Command, pause: Option<Duration>) -> Result<[usize; 2]> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut stdout = child.stdout.take().ok_or("no pipe")?;
    let (mut lines, mut bytes, mut chunk) = (0, 0, vec![0; 64 << 10]);
    loop {
        let len = stdout.read(&mut chunk)?;
        if len == 0 {
            break;
        }
        lines += memchr::memchr_iter(b'\n', &chunk[..len]).count();
        bytes += len;
        if let Some(pause) = pause {
            sleep(pause);
        }
    }
    if !child.wait()?.success() {
        return Err(format!("{command:?} failed").into());
    }
    Ok([lines, bytes])
}

/// Prints a session of this many MiB: text, tools and their results.
pub(super) fn mixed(mib: usize) -> Result<()> {
    let output = "a line of what a tool has found\\n".repeat(60);
    let mut number = 0;
    session(mib << 20, |out| {
        number += 1;
        let mut len = 0;
        for _ in 0..10 {
            len += delta(out, "a few words ")?;
        }
        let lines = format!(
            r#"{{"type":"assistant","message":{{"id":"msg_{number}","type":"message","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"toolu_{number}","name":"Bash","input":{{"command":"find . -name {number}"}}}}],"stop_reason":null,"usage":{{"input_tokens":10,"output_tokens":20}}}},"parent_tool_use_id":null,"session_id":"{SESSION}"}}
{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"toolu_{number}","type":"tool_result","content":"{output}","is_error":false}}]}},"parent_tool_use_id":null,"session_id":"{SESSION}"}}
"#
        );
        out.write_all(lines.as_bytes())?;
        Ok(len + lines.len())
    })
}

/// Prints a session with an answer of this many MiB.
pub(super) fn answer(mib: usize) -> Result<()> {
    let text = "the words of a long answer ".repeat(40);
    session(mib << 20, |out| delta(out, &text).map(|_| text.len()))
}

/// Prints a session of this many complete messages.
pub(super) fn complete(count: usize) -> Result<()> {
    let mut number = 0;
    session(count, |out| {
        number += 1;
        writeln!(
            out,
            r#"{{"type":"assistant","message":{{"id":"msg_{number}","type":"message","role":"assistant","model":"m","content":[{{"type":"text","text":"answer {number}"}}],"stop_reason":"end_turn","usage":{{"input_tokens":10,"output_tokens":20}}}},"parent_tool_use_id":null,"session_id":"{SESSION}"}}"#
        )?;
        Ok(1)
    })
}

fn delta(out: &mut impl Write, text: &str) -> Result<usize> {
    let line = format!(
        r#"{{"type":"stream_event","event":{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}},"session_id":"{SESSION}","parent_tool_use_id":null,"uuid":"{UUID}"}}
"#
    );
    out.write_all(line.as_bytes())?;
    Ok(line.len())
}

/// Returns the first line of a session.
fn init() -> String {
    format!(r#"{{"type":"system","subtype":"init","session_id":"{SESSION}","model":"m"}}"#)
}

/// Prints a session of parts until the sum of what they return is this.
fn session(
    until: usize,
    mut part: impl FnMut(&mut BufWriter<std::io::StdoutLock<'_>>) -> Result<usize>,
) -> Result<()> {
    let mut out = BufWriter::with_capacity(64 * 1024, std::io::stdout().lock());
    writeln!(out, "{}", init())?;
    let mut sum = 0;
    while sum < until {
        sum += part(&mut out)?;
    }
    writeln!(
        out,
        r#"{{"type":"result","subtype":"success","is_error":false,"session_id":"{SESSION}"}}"#
    )?;
    Ok(out.flush()?)
}
