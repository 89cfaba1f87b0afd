//! git commands of this machine: what they start, such as a filter of the user's repository, may hang, and is ended then.

use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use teamster_core::time::millis;
use teamster_process::Descendants;

use crate::git;
use crate::network::{SILENCE, end};

/// Time between two looks at a command.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Number of limits of idleness that a command may take in all.
const LONGEST: u32 = 12;
/// Time between two looks at a command that has closed its output.
const CLOSED_EVERY: Duration = Duration::from_millis(1);

/// The limit of this process, in milliseconds.
static LIMIT: AtomicU64 = AtomicU64::new(SILENCE.as_secs() * 1000);

/// Sets the time for which a local git command of this process may do nothing. Default: [`SILENCE`]. A command that does
/// something may take twelve times as long in all.
pub fn set_git_silence(limit: Duration) {
    LIMIT.store(millis(limit), Ordering::Relaxed);
}

/// A command that did nothing for too long, or took too long.
#[derive(Debug, thiserror::Error)]
#[error(
    "git {} {} s, so it was ended: a filter, a hook or a file system hangs",
    if *.is_idle { "did nothing for" } else { "took more than" },
    .limit.as_secs_f64()
)]
pub(crate) struct Stuck {
    limit: Duration,
    is_idle: bool,
}

/// Runs a command that reads `input`, which has an end.
///
/// # Errors
///
/// Fails if it cannot be started, or is [stuck](Stuck): then it and its children were ended.
pub(crate) fn output(command: &mut Command, input: Option<&[u8]>) -> anyhow::Result<Output> {
    let limit = Duration::from_millis(LIMIT.load(Ordering::Relaxed));
    output_within(command, input, limit)
}

fn output_within(
    command: &mut Command,
    input: Option<&[u8]>,
    limit: Duration,
) -> anyhow::Result<Output> {
    const CANNOT: &str = "cannot run git";
    if input.is_some() {
        command.stdin(Stdio::piped());
    }
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(git::not_started)?;
    if let (Some(input), Some(mut stdin)) = (input, child.stdin.take()) {
        let input = input.to_vec();
        // Git may answer before it has read all. If it ends without reading it, its message is the error.
        thread::spawn(move || drop(stdin.write_all(&input)));
    }
    let (sender, pipes) = mpsc::channel();
    let read = |pipe: Option<Box<dyn Read + Send>>, is_error| {
        let sender = sender.clone();
        thread::spawn(move || {
            let mut text = Vec::new();
            let read = pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut text));
            // Fails if the command was given up.
            let _ = sender.send((is_error, read.map(|_| text)));
        });
    };
    read(child.stdout.take().map(|it| Box::new(it) as _), false);
    read(child.stderr.take().map(|it| Box::new(it) as _), true);
    drop(sender);
    let mut watch = Watch::of(&child, limit);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    loop {
        match pipes.recv_timeout(watch.every) {
            Ok((is_error, text)) => {
                let text = text.context(CANNOT)?;
                *(if is_error { &mut stderr } else { &mut stdout }) = text;
            }
            Err(RecvTimeoutError::Timeout) => watch.look(&mut child)?,
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let status = loop {
        if let Some(status) = child.try_wait().context(CANNOT)? {
            break status;
        }
        thread::sleep(CLOSED_EVERY);
        watch.look(&mut child)?;
    };
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

/// Looks whether a command does something.
struct Watch {
    descendants: Descendants,
    limit: Duration,
    every: Duration,
    begun: Instant,
    looked: Instant,
    used: Option<Duration>,
    busy: Instant,
}

impl Watch {
    fn of(child: &Child, limit: Duration) -> Self {
        let now = Instant::now();
        Self {
            descendants: Descendants::of(child.id()),
            limit,
            every: LOOK_EVERY.min(limit / 4),
            begun: now,
            looked: now,
            used: None,
            busy: now,
        }
    }

    /// Ends a command that is stuck.
    fn look(&mut self, child: &mut Child) -> Result<(), Stuck> {
        if self.looked.elapsed() < self.every {
            return Ok(());
        }
        self.looked = Instant::now();
        // Where it cannot be read, the command is taken for idle from its start.
        let used = self.descendants.processor_time();
        if used.is_some() && used != self.used {
            (self.used, self.busy) = (used, self.looked);
        }
        let is_idle = self.busy.elapsed() >= self.limit;
        let longest = self.limit.saturating_mul(LONGEST);
        if !is_idle && self.begun.elapsed() < longest {
            return Ok(());
        }
        end(child, &mut self.descendants);
        Err(Stuck {
            limit: if is_idle { self.limit } else { longest },
            is_idle,
        })
    }
}

#[cfg(test)]
mod tests {
    use teamster_process::ProcessIdentity;

    use super::*;

    fn sh(script: &str, input: Option<&[u8]>, limit: Duration) -> anyhow::Result<Output> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        output_within(&mut command, input, limit)
    }

    #[test]
    fn a_command_that_does_nothing_is_ended_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("pid");
        // It has closed its output, and its child is deaf to SIGTERM.
        let script = format!(
            "exec >/dev/null 2>&1; setsid sh -c \"trap '' TERM; echo \\$\\$ > {0}.new; mv {0}.new {0}; sleep 1000\"",
            note.display()
        );
        let error = sh(&script, None, Duration::from_secs(2)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "git did nothing for 2 s, so it was ended: a filter, a hook or a file system hangs"
        );
        let pid = std::fs::read_to_string(note).unwrap();
        let pid: u32 = pid.trim().parse().unwrap();
        assert!(!ProcessIdentity::of(pid).is_some_and(ProcessIdentity::is_running));
    }

    #[test]
    fn a_command_that_works_without_an_end_is_ended_too() {
        let error = sh("while :; do :; done", None, Duration::from_millis(200));
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("git took more than 2.4 s"), "{error}");
    }

    #[test]
    fn a_command_that_works_in_silence_is_not_ended() {
        // Longer than the limit, of which it is never idle.
        let script =
            "for i in 1 2 3 4 5 6; do timeout 0.2 sh -c 'while :; do :; done'; done; echo done";
        let output = sh(script, None, Duration::from_millis(500)).unwrap();
        assert_eq!(output.stdout, b"done\n");
    }

    #[test]
    fn a_command_reads_its_input_and_prints_any_amount() {
        let input = vec![b'x'; 1 << 20];
        let output = sh("cat; cat >&2 /dev/null", Some(&input), SILENCE).unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout.len(), input.len());
        // One that ends before it has read all.
        let output = sh("exec true", Some(&input), SILENCE).unwrap();
        assert!(output.status.success());
    }
}
