//! Tests of the fake agent with real processes.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

mod input;
mod launch;
mod output;
mod play;
mod signals;
mod spawn;

use std::io::Read;
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use teamster_testkit::fake_agent::{Script, Signal};
use teamster_testkit::proc;

/// Long enough for a loaded machine. Only a failing test waits for it.
const LIMIT: Duration = Duration::from_secs(30);

fn command(script: &Script) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_teamster-fake-agent"));
    command.envs(script.env().unwrap()).stdin(Stdio::null());
    command
}

/// Runs a script to its end.
fn run(script: &Script) -> Output {
    command(script).output().unwrap()
}

/// A running agent, killed when dropped.
struct Agent(Child);

/// Starts a script with a pipe on every standard stream.
fn start(script: &Script) -> Agent {
    let mut command = command(script);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Agent(command.spawn().unwrap())
}

impl Agent {
    fn is_running(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// Returns its exit status, within the limit.
    fn end(&mut self) -> ExitStatus {
        let mut status = None;
        proc::wait_until(LIMIT, || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        });
        status.expect("the agent should have ended")
    }

    /// Reads this many bytes of standard output.
    fn read_stdout(&mut self, bytes: usize) -> String {
        let mut buffer = vec![0; bytes];
        self.0
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut buffer)
            .unwrap();
        String::from_utf8(buffer).unwrap()
    }

    /// Reads the rest of standard output.
    fn rest_of_stdout(&mut self) -> String {
        let mut text = String::new();
        self.0
            .stdout
            .as_mut()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        text
    }

    fn signal(&self, signal: Signal) {
        send(self.0.id(), signal);
    }
}

impl Deref for Agent {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Agent {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal to a process.
fn send(pid: u32, signal: Signal) {
    let pid = nix::unistd::Pid::from_raw(pid.cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::from(signal)).unwrap();
}

/// A directory for the files of one test.
struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// Waits for the pid file and guards the process.
    fn pid(&self, name: &str) -> proc::KillOnDrop {
        let pid = proc::wait_pid_file(&self.path(name), LIMIT).expect("a pid file");
        proc::KillOnDrop::new(pid)
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}
