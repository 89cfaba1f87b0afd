//! Start of a runner: a separate process that accepts a run or a session and detaches.
//!
//! The caller writes a [`Launch`] to the runner's stdin, because other users can read the arguments of a process. The
//! runner answers on stdout, with one line of JSON, when the run is accepted or refused.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::RawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};

use nix::unistd::{close, dup2_stderr, dup2_stdin, dup2_stdout};
use teamster_api::{Launch, Launched};
use teamster_core::AgentError;

use crate::NewRun;

/// File with the stderr of the runner.
const STDERR: &str = "runner.log";

/// Reads the input, in the runner.
///
/// # Errors
///
/// Fails if the input cannot be read or parsed, or is of a newer version.
pub fn read(from: impl Read) -> Result<Launch, AgentError> {
    let text = io::read_to_string(from).map_err(|error| {
        AgentError::invalid_params(format!("cannot read the launch request: {error}"))
    })?;
    Launch::parse(&text)
}

/// Starts a runner with this command and input, and waits for its answer. Its stderr until then is that of this
/// process.
///
/// Blocks, usually for some milliseconds.
///
/// # Errors
///
/// Fails if the process cannot be started, or its output cannot be read.
pub fn start(launch: &Launch, mut command: Command) -> io::Result<Launched> {
    let input = serde_json::to_vec(launch)?;
    let mut runner = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = runner.stdin.take() {
        // A runner that has ended has its reason in its answer or exit code.
        let _ = stdin.write_all(&input);
    }
    let mut answer = Vec::new();
    if let Some(mut stdout) = runner.stdout.take() {
        stdout.read_to_end(&mut answer)?;
    }
    if let Ok(answer) = serde_json::from_slice(&answer) {
        if matches!(answer, Launched::Refused { .. }) {
            runner.wait()?;
        }
        return Ok(answer);
    }
    Ok(Launched::read(&answer, runner.wait()?))
}

/// Closes all inherited descriptors except stdin, stdout and stderr, such as the lock of a calling script,
/// which would stay open for the length of the run. MUST be called before anything else opens a file.
pub fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/dev/fd") else {
        return;
    };
    let open = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let open: Vec<RawFd> = open.filter(|fd| *fd > 2).collect();
    for fd in open {
        // The descriptor of the listing is closed already.
        let _ = close(fd);
    }
}

/// Writes the answer to the starting process.
pub fn answer(answer: &Launched) {
    // A run that is accepted continues even if no process reads this.
    if let Ok(mut line) = serde_json::to_vec(answer) {
        line.push(b'\n');
        let _ = io::stdout().write_all(&line);
    }
}

/// Reports to the starting process that the run is accepted, with warnings, and detaches from it. Further stderr goes to
/// `runner.log` in the run's folder.
pub fn detach(run: &NewRun, warnings: Vec<String>) -> io::Result<()> {
    let stderr = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(run.folder.path().join(STDERR))?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    answer(&Launched::accepted(warnings));
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&stderr)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use teamster_api::RunSpec;

    use super::*;

    #[test]
    fn a_runner_without_an_answer_refuses() {
        let launch = Launch::new("r", RunSpec::new("claude", "hi"));
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "cat >/dev/null; exit 7"]);
        let Launched::Refused { error, .. } = start(&launch, command).unwrap() else {
            panic!("accepted");
        };
        assert!(error.message.contains("exit status: 7"), "{error}");
    }
}
