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
use serde::{Deserialize, Serialize};
use teamster_api::Spec;
use teamster_core::{AgentError, ErrorCode, ErrorKind};

use crate::NewRun;

/// File with the stderr of the runner.
const STDERR: &str = "runner.log";

/// Input of a runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Launch {
    /// Version of this input. A runner refuses one that it does not know.
    pub version: u32,
    /// Id of the run or session.
    pub id: String,
    /// The run or session to start.
    pub what: Spec,
}

/// Answer of a runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Launched {
    /// The runner accepted the run.
    #[non_exhaustive]
    Accepted {
        /// Warnings, such as of options without effect.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        warnings: Vec<String>,
    },
    /// Nothing was started.
    #[non_exhaustive]
    Refused {
        /// The reason.
        error: AgentError,
    },
}

impl Launched {
    /// Creates the answer that the run was accepted.
    pub fn accepted(warnings: Vec<String>) -> Self {
        Self::Accepted { warnings }
    }

    /// Creates the answer that nothing was started.
    pub fn refused(error: AgentError) -> Self {
        Self::Refused { error }
    }

    /// Reads the answer of a runner from its output. `ended` is how the runner ended without one.
    pub fn read(output: &[u8], ended: impl std::fmt::Display) -> Self {
        serde_json::from_slice(output).unwrap_or_else(|_| {
            Self::refused(AgentError::new(
                ErrorCode::Io,
                ErrorKind::Internal,
                format!(
                    "the runner ended before it accepted the run ({ended}): nothing was started"
                ),
            ))
        })
    }
}

impl Launch {
    /// The version that this crate writes.
    pub const VERSION: u32 = Spec::VERSION;

    /// Creates the input that starts this run or session.
    pub fn new(id: impl Into<String>, what: impl Into<Spec>) -> Self {
        Self {
            version: Self::VERSION,
            id: id.into(),
            what: what.into(),
        }
    }

    /// Reads the input, in the runner.
    ///
    /// # Errors
    ///
    /// Fails if the input cannot be read or parsed, or is of another version.
    pub fn read(from: impl Read) -> Result<Self, AgentError> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }

        let refused = |problem: String| AgentError::invalid_params(problem);
        let text = io::read_to_string(from)
            .map_err(|error| refused(format!("cannot read the launch request: {error}")))?;
        // A field of a newer version may be unknown, so the version comes first.
        match serde_json::from_str(&text) {
            Ok(Version { version }) if version > Self::VERSION => Err(refused(format!(
                "the launch request has version {version}, this runner knows {}: install the same version of \
                 teamster for both",
                Self::VERSION
            ))),
            _ => serde_json::from_str(&text)
                .map_err(|error| refused(format!("the launch request: {error}"))),
        }
    }

    /// Starts a runner with this command and waits for its answer. Its stderr until then is that of this process.
    ///
    /// Blocks, usually for some milliseconds.
    ///
    /// # Errors
    ///
    /// Fails if the process cannot be started, or its output cannot be read.
    pub fn start(&self, mut command: Command) -> io::Result<Launched> {
        let input = serde_json::to_vec(self)?;
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
    fn a_launch_of_a_newer_version_is_refused_by_its_version() {
        let launch = r#"{"version": 9, "id": "r", "where": "elsewhere"}"#;
        let error = Launch::read(launch.as_bytes()).unwrap_err();
        assert!(error.message.contains("version 9"), "{error}");
    }

    #[test]
    fn an_unknown_field_is_named() {
        let launch = r#"{"version": 1, "id": "r",
            "what": {"run": {"provider": "claude", "prompt": "hi", "workspace": {}}}}"#;
        let error = Launch::read(launch.as_bytes()).unwrap_err();
        assert!(error.message.contains("workspace"), "{error}");
    }

    #[test]
    fn a_runner_without_an_answer_refuses() {
        let launch = Launch::new("r", RunSpec::new("claude", "hi"));
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "cat >/dev/null; exit 7"]);
        let Launched::Refused { error } = launch.start(command).unwrap() else {
            panic!("accepted");
        };
        assert!(error.message.contains("exit status: 7"), "{error}");
    }
}
