//! Starting loops, and finding and ending them.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream as StdStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use nix::fcntl::OFlag;
use teamster_process::{ProcessIdentity, ProcessSignal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::agent::Exit;
use super::config::{AgentConfig, FILE_VARIABLE};
use crate::{ORCHESTRATOR, left_behind};

/// What stands before a loop until it may begin.
///
/// It ignores SIGUSR1, and so does the loop after it until it has a handler of its own: a wake that comes
/// early would end it otherwise. Then it waits for the word to go on; if the supervisor is killed before it
/// has written down that there is this process, that never comes, and nothing was started. `$@` is the
/// program with its arguments.
const GATE: &str =
    r#"trap '' USR1; echo >&0 || exit 75; read -r go <&0 || exit 75; exec "$@" </dev/null"#;
/// How long the shell may take to come to the gate. Only a machine in trouble takes so long.
const GATE_LIMIT: Duration = Duration::from_secs(20);
/// The interval at which a loop that is no child of ours is checked to be still running.
const LOOK: Duration = Duration::from_millis(250);

/// The program that a loop is.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// Arguments before the directory of the agent.
    pub(crate) args: Vec<OsString>,
    /// The configuration, by which an agent finds its supervisor.
    pub(crate) config: PathBuf,
}

/// A loop that waits for the word to go on. Dropped, it ends without having begun.
pub(crate) struct Gated {
    child: Child,
    gate: UnixStream,
    pub(crate) identity: ProcessIdentity,
}

impl Gated {
    /// Starts a process for the loop of this agent, in a process group of its own.
    pub(crate) async fn start(program: &Program, agent: &AgentConfig) -> io::Result<Self> {
        let with_path = |what: &str, path: &Path, error: &io::Error| {
            io::Error::new(error.kind(), format!("{what} {}: {error}", path.display()))
        };
        // The shell would report it only in the log.
        fs::metadata(&program.path)
            .map_err(|error| with_path("cannot start", &program.path, &error))?;
        let log = log_path(&agent.working_dir);
        let output = open_log(&log).map_err(|error| with_path("cannot write", &log, &error))?;
        let errors = output.try_clone()?;
        let (ours, theirs) = StdStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut command = Command::new("/bin/sh");
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
        // Our copy of its end has to go, or its end would not be noticed.
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
                // It has begun nothing.
                child.kill().await?;
                Err(io::Error::other(
                    "the shell that starts the loop has failed",
                ))
            }
        }
    }

    /// Lets it begin.
    pub(crate) async fn release(mut self) -> Child {
        // If it is gone, its waiter learns of that.
        let _ = self.gate.write_all(b"go\n").await;
        self.child
    }
}

/// The log of the loop that works in this directory.
pub fn log_path(working_dir: &Path) -> PathBuf {
    working_dir.join(ORCHESTRATOR).join("agent-loop.log")
}

fn open_log(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    // A pipe in its place, without a reader, is not waited for.
    options.custom_flags(OFlag::O_NONBLOCK.bits());
    options.open(path)
}

/// Waits for the end of a loop that we have started.
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

/// Waits for the end of a loop that an earlier supervisor has started.
pub(crate) async fn adopted_exit(process: ProcessIdentity) -> Exit {
    while process.is_running() {
        tokio::time::sleep(LOOK).await;
    }
    Exit::Unknown
}

/// Ends the processes that an ended loop has left: its group, and what its agent started, also in groups of
/// its own. Of several errors the first.
pub(crate) fn clear_up(process: ProcessIdentity, exit: Exit) -> io::Result<()> {
    let group = process.signal_group(ProcessSignal::Kill);
    if exit == Exit::Code(0) {
        // It has done that itself, and the table of all processes is long.
        return group;
    }
    group.and(end_marked(process))
}

/// Ends what the agent of a loop that is gone has started: it carries a mark.
pub(crate) fn end_marked(process: ProcessIdentity) -> io::Result<()> {
    let start = process.start_time().unwrap_or_default();
    left_behind::end(&format!("{}-{start}-", process.pid())).map(drop)
}
