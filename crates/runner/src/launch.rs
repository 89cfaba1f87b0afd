//! Start of a runner: a separate process that accepts a run or a session and detaches.
//!
//! The caller passes the [`Launch`] on stdin, because other users can read the arguments of a process. The
//! runner answers on stdout when the run is accepted.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::RawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, ExitStatus, Stdio};

use nix::unistd::{close, dup2_stderr, dup2_stdin, dup2_stdout};
use serde::{Deserialize, Serialize};

use crate::NewRun;

/// Prefix of the runner's line on stdout when the run is accepted. The run's id follows.
const ACCEPTED: &str = "accepted ";
/// File with the stderr of the runner.
const STDERR: &str = "runner.log";

/// Input of a runner.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Launch {
    /// Arguments of `teamster run` or `teamster chat`, with the program's name and without the prompt.
    pub args: Vec<OsString>,
    /// Prompt of a run. `None` for a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Id of a session. Default: a new one. The id of a run is among its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// Outcome of the start of a runner.
#[derive(Debug)]
#[non_exhaustive]
pub enum Launched {
    /// The runner accepted the run with this id.
    Accepted(String),
    /// The runner ended without accepting a run.
    #[non_exhaustive]
    Refused {
        /// Exit status. The code is one of the program's exit codes.
        status: ExitStatus,
        /// Its stderr, if it was captured.
        message: String,
    },
}

impl Launch {
    /// Creates the input of a runner.
    pub fn new(args: Vec<OsString>, prompt: Option<String>) -> Self {
        Self {
            args,
            prompt,
            session_id: None,
        }
    }

    /// Reads the input, in the runner.
    ///
    /// # Errors
    ///
    /// Fails if the input cannot be read or parsed.
    pub fn read(from: impl Read) -> io::Result<Self> {
        Ok(serde_json::from_reader(io::BufReader::new(from))?)
    }

    /// Starts a runner with this command and waits until it has accepted the run. With `capture`, its stderr
    /// until then is in the result. Otherwise it goes to the stderr of this process.
    ///
    /// Blocks, usually for some milliseconds.
    ///
    /// # Errors
    ///
    /// Fails if the process cannot be started, or its output cannot be read.
    pub fn start(&self, mut command: Command, capture: bool) -> io::Result<Launched> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        if capture {
            command.stderr(Stdio::piped());
        }
        let mut runner = command.spawn()?;
        let errors = runner.stderr.take().map(|mut stderr| {
            std::thread::Builder::new().spawn(move || {
                let mut message = Vec::new();
                // After an error the part that was read is used.
                let _ = stderr.read_to_end(&mut message);
                String::from_utf8_lossy(&message).into_owned()
            })
        });
        let errors = match errors.transpose() {
            Ok(errors) => errors,
            Err(error) => {
                // Without its input, it has not accepted a run.
                let _ = runner.kill();
                runner.wait()?;
                return Err(error);
            }
        };
        if let Some(mut stdin) = runner.stdin.take() {
            // A runner that has ended reports the reason on stderr or by its exit code.
            let _ = stdin.write_all(&serde_json::to_vec(self)?);
        }
        let mut answer = String::new();
        if let Some(mut stdout) = runner.stdout.take() {
            stdout.read_to_string(&mut answer)?;
        }
        if let Some(id) = accepted_id(&answer) {
            return Ok(Launched::Accepted(id.to_owned()));
        }
        let status = runner.wait()?;
        Ok(Launched::Refused {
            status,
            message: errors
                .and_then(|errors| errors.join().ok())
                .unwrap_or_default(),
        })
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

/// Returns the run's id from the runner's stdout, or `None` if it has not accepted a run.
pub fn accepted_id(reply: &str) -> Option<&str> {
    reply.trim_end().strip_prefix(ACCEPTED)
}

/// Reports to the starting process that the run is accepted, and detaches from it. Further stderr goes to
/// `runner.log` in the run's folder.
pub fn detach(run: &NewRun) -> io::Result<()> {
    let stderr = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(run.folder.path().join(STDERR))?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    // The run is accepted and continues even if no process reads this.
    let _ = writeln!(io::stdout(), "{ACCEPTED}{}", run.folder.id());
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&stderr)?;
    Ok(())
}
