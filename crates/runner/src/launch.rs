//! Starting a runner: a process of its own that accepts a run or a session and detaches.
//!
//! The caller gives it what to run on its stdin, because everybody can read the arguments of a process. It answers
//! on stdout once the run is accepted.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::RawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, ExitStatus, Stdio};

use nix::unistd::{close, dup2_stderr, dup2_stdin, dup2_stdout};
use serde::{Deserialize, Serialize};

use crate::NewRun;

/// What the runner writes to its stdout when the run is accepted, before the run's id.
const ACCEPTED: &str = "accepted ";
/// The file that takes what the runner writes to stderr.
const STDERR: &str = "runner.log";

/// What a runner is given.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Launch {
    /// The arguments of `teamster run` or `teamster chat`, the program's name first, without the prompt.
    pub args: Vec<OsString>,
    /// The prompt of a run; nothing for a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The id of a session; a new one if left out. That of a run is among its arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

/// What became of a runner that was started.
#[derive(Debug)]
#[non_exhaustive]
pub enum Launched {
    /// It has accepted the run of this id.
    Accepted(String),
    /// It has ended before, so that nothing was started.
    #[non_exhaustive]
    Refused {
        /// How it ended; its code is one of the program's exit codes.
        status: ExitStatus,
        /// What it wrote to stderr, if that was captured.
        message: String,
    },
}

impl Launch {
    /// What to run.
    pub fn new(args: Vec<OsString>, prompt: Option<String>) -> Self {
        Self {
            args,
            prompt,
            session_id: None,
        }
    }

    /// Reads what to run, in the runner.
    pub fn read(from: impl Read) -> io::Result<Self> {
        Ok(serde_json::from_reader(io::BufReader::new(from))?)
    }

    /// Starts a runner by this command and waits until it has accepted the run. With `capture`, what it writes to
    /// stderr until then is in the answer; else it goes where that of this process goes.
    ///
    /// It blocks, for some milliseconds as a rule.
    pub fn start(&self, mut command: Command, capture: bool) -> io::Result<Launched> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        if capture {
            command.stderr(Stdio::piped());
        }
        let mut runner = command.spawn()?;
        if let Some(mut stdin) = runner.stdin.take() {
            // A runner that has ended reports why, or its exit code does.
            let _ = stdin.write_all(&serde_json::to_vec(self)?);
        }
        let errors = runner.stderr.take().map(|mut stderr| {
            std::thread::spawn(move || {
                let mut message = Vec::new();
                // What can be read of it is enough.
                let _ = stderr.read_to_end(&mut message);
                String::from_utf8_lossy(&message).into_owned()
            })
        });
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

/// Closes what the runner has inherited beside stdin, stdout and stderr, such as the lock of a script that started
/// it: nothing of its caller's stays open for the length of the run. To be called first of all.
pub fn close_inherited() {
    let Ok(entries) = std::fs::read_dir("/dev/fd") else {
        return;
    };
    let open = entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let open: Vec<RawFd> = open.filter(|fd| *fd > 2).collect();
    for fd in open {
        // The one by which they were listed is closed already.
        let _ = close(fd);
    }
}

/// The run's id in what a runner has written to stdout; `None` if it has not accepted a run.
pub fn accepted_id(reply: &str) -> Option<&str> {
    reply.trim_end().strip_prefix(ACCEPTED)
}

/// Tells the process that has started this runner that the run is accepted, and detaches from it: what comes on
/// stderr goes to a file in the run's folder.
pub fn detach(run: &NewRun) -> io::Result<()> {
    let stderr = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(run.folder.path().join(STDERR))?;
    let null = File::options().read(true).write(true).open("/dev/null")?;
    // Without a waiting process the run continues: it is accepted.
    let _ = writeln!(io::stdout(), "{ACCEPTED}{}", run.folder.id());
    dup2_stdin(&null)?;
    dup2_stdout(&null)?;
    dup2_stderr(&stderr)?;
    Ok(())
}
