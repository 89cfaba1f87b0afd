//! git commands of this machine: what they start, such as a filter of the user's repository, may hang, and is ended then.

use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use teamster_core::time::millis;
use teamster_process::Descendants;

use crate::git;
use crate::network::SILENCE;
use crate::running::{Seen, follow};

/// Time between two checks of a command, which read all its descendants.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Number of limits of idleness that a command may take in all.
const LONGEST: u32 = 12;

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

/// Runs a command that reads `input`, which has an end. Fails if it cannot be started, or is [stuck](Stuck): then it
/// was ended, and its children where they can be read.
pub(crate) fn output(command: &mut Command, input: Option<&[u8]>) -> anyhow::Result<Output> {
    let limit = Duration::from_millis(LIMIT.load(Ordering::Relaxed));
    output_within(command, input, limit, limit.saturating_mul(LONGEST))
}

fn output_within(
    command: &mut Command,
    input: Option<&[u8]>,
    limit: Duration,
    longest: Duration,
) -> anyhow::Result<Output> {
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
    let mut watch = Watch::of(limit, longest);
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let status = follow(&mut child, |seen, descendants| {
        match seen {
            Seen::Stdout(piece) => stdout.extend_from_slice(&piece),
            Seen::Stderr(piece) => stderr.extend_from_slice(&piece),
            Seen::Running => watch.check(descendants)?,
        }
        Ok(())
    })?;
    Ok(Output {
        status,
        stdout,
        stderr,
    })
}

/// Checks whether a command does something.
struct Watch {
    limit: Duration,
    longest: Duration,
    every: Duration,
    begun: Instant,
    checked: Instant,
    used: Option<Duration>,
    busy: Instant,
}

impl Watch {
    fn of(limit: Duration, longest: Duration) -> Self {
        let now = Instant::now();
        Self {
            limit,
            longest,
            every: CHECK_EVERY.min(limit / 4),
            begun: now,
            checked: now,
            used: None,
            busy: now,
        }
    }

    /// Returns an error for a command that is stuck.
    fn check(&mut self, descendants: &mut Descendants) -> Result<(), Stuck> {
        if self.checked.elapsed() < self.every {
            return Ok(());
        }
        self.checked = Instant::now();
        let used = descendants.processor_time();
        // Where it cannot be read, no command is taken for idle: only the limit of the whole time holds.
        if used.is_none() || used != self.used {
            (self.used, self.busy) = (used, self.checked);
        }
        let is_idle = self.busy.elapsed() >= self.limit;
        if !is_idle && self.begun.elapsed() < self.longest {
            return Ok(());
        }
        Err(Stuck {
            limit: if is_idle { self.limit } else { self.longest },
            is_idle,
        })
    }
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    use teamster_process::ProcessIdentity;

    use super::*;

    fn sh(script: &str, input: Option<&[u8]>, limit: Duration) -> anyhow::Result<Output> {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        output_within(&mut command, input, limit, limit.saturating_mul(LONGEST))
    }

    #[cfg(target_os = "linux")]
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
        let mut command = Command::new("sh");
        command.args(["-c", "while :; do :; done"]);
        let longest = Duration::from_secs(1);
        let error = output_within(&mut command, None, SILENCE, longest).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("git took more than 1 s"), "{error}");
    }

    #[test]
    fn a_command_that_works_in_silence_is_not_ended() {
        // Longer than the limit, of which it is never idle.
        let script =
            "for i in 1 2 3 4 5 6; do timeout 0.5 sh -c 'while :; do :; done'; done; echo done";
        let output = sh(script, None, Duration::from_secs(2)).unwrap();
        assert_eq!(output.stdout, b"done\n");
    }

    #[test]
    fn background_process_of_a_command_is_neither_awaited_nor_ended() {
        let begun = Instant::now();
        let output = sh("sleep 60 & echo $!", None, Duration::from_secs(20)).unwrap();
        assert!(output.status.success());
        assert!(begun.elapsed() < Duration::from_secs(15));
        let pid = String::from_utf8(output.stdout).unwrap();
        let left = Command::new("kill").arg(pid.trim()).status().unwrap();
        assert!(left.success(), "it was ended");
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
