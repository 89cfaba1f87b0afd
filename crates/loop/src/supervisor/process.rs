//! Start of loops, their exit, and cleanup after them.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use teamster_process::{ProcessIdentity, ProcessSignal, foreign_git_variables};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::agent::Exit;
use super::config::{AgentConfig, FILE_VARIABLE};
use crate::log::{Log, open_to_append};
use crate::{ORCHESTRATOR, left_behind};

/// Shell script that holds a loop until the supervisor has recorded it.
///
/// It ignores SIGUSR1, and so does the loop until it has its own handler: an early wake would kill it
/// otherwise. Then it waits for a line on stdin. If the supervisor is killed before it has recorded the
/// process, the line never comes and no loop begins. `$@` is the program with its arguments.
const GATE: &str =
    r#"trap '' USR1; echo >&0 || exit 75; read -r go <&0 || exit 75; exec "$@" </dev/null"#;
/// Time limit for the shell to reach the gate. Only an overloaded machine takes this long.
const GATE_LIMIT: Duration = Duration::from_secs(20);
/// Interval at which a loop that is no child process is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// Arguments before the agent's directory.
    pub(crate) args: Vec<OsString>,
    /// Path of the configuration, by which an agent finds its supervisor.
    pub(crate) config: PathBuf,
}

/// A started process that waits to be released. If this is dropped, the process ends without beginning a loop.
pub(crate) struct GatedLoop {
    child: Child,
    gate: UnixStream,
    pub(crate) identity: ProcessIdentity,
}

impl GatedLoop {
    /// Starts a process for the loop of this agent, in a process group of its own.
    pub(crate) async fn start(program: &Program, agent: &AgentConfig) -> io::Result<Self> {
        let with_path = |what: &str, path: &Path, error: &io::Error| {
            io::Error::new(error.kind(), format!("{what} {}: {error}", path.display()))
        };
        // The shell would report a missing program only in the log.
        fs::metadata(&program.path)
            .map_err(|error| with_path("cannot start", &program.path, &error))?;
        let log = log_path(&agent.working_dir);
        let output = open_log(&log).map_err(|error| with_path("cannot write", &log, &error))?;
        let errors = output.try_clone()?;
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut command = Command::new("/bin/sh");
        for name in foreign_git_variables(&agent.working_dir) {
            command.env_remove(name);
        }
        command
            .args(["-c", GATE, "teamster-loop"])
            .arg(&program.path)
            .args(&program.args)
            .arg(&agent.working_dir)
            .env(FILE_VARIABLE, &program.config)
            .envs(agent.environment())
            .current_dir(&agent.working_dir)
            .process_group(0)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(output)
            .stderr(errors);
        let mut child = command.spawn()?;
        // The parent's copy of the child's socket must be closed, or the end of the child would not be noticed.
        drop(command);
        let mut gate = UnixStream::from_std(ours)?;
        let pid = child.id();
        let ready = timeout(GATE_LIMIT, gate.read_u8()).await;
        let found = pid.and_then(ProcessIdentity::of);
        match (ready, found) {
            (Ok(Ok(_)), Some(identity)) => Ok(Self {
                child,
                gate,
                identity,
            }),
            _ => {
                // The loop has not begun.
                child.kill().await?;
                Err(io::Error::other("the shell that starts the loop failed"))
            }
        }
    }

    /// Lets the loop begin.
    pub(crate) async fn release(mut self) -> Child {
        // If the process has ended, its exit is reported by the waiter.
        let _ = self.gate.write_all(b"go\n").await;
        self.child
    }
}

/// Returns the path of the log of the loop in this directory.
pub fn log_path(working_dir: &Path) -> PathBuf {
    working_dir.join(ORCHESTRATOR).join(Log::NAME)
}

fn open_log(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    open_to_append(path)
}

/// Waits for the exit of a loop that this supervisor started.
pub(crate) async fn child_exit(mut child: Child) -> Exit {
    child.wait().await.map_or(Exit::Unknown, exit)
}

fn exit(status: ExitStatus) -> Exit {
    match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

/// Waits for the exit of a loop that another process started.
pub(crate) async fn adopted_exit(process: ProcessIdentity) -> Exit {
    while process.is_running() {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Exit::Unknown
}

/// Kills the processes that an ended loop left: its group, and processes of its agent in other groups. Returns
/// the first error.
pub(crate) fn end_leftovers(process: ProcessIdentity, exit: Exit) -> io::Result<()> {
    let group = process.signal_group(ProcessSignal::Kill);
    if exit == Exit::Code(0) {
        // The loop has cleaned up itself, and a scan of all processes is slow.
        return group;
    }
    group.and(end_marked_processes(process))
}

/// Kills the processes that an ended loop's agent started, by their mark.
pub(crate) fn end_marked_processes(process: ProcessIdentity) -> io::Result<()> {
    let start = process.start_time().unwrap_or_default();
    left_behind::end_runs(&format!("{}-{start}-", process.pid())).map(drop)
}
