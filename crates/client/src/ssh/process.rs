//! The process of `ssh`, as a byte stream to the server behind it.

use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use teamster_api::StdioGreeting;
use teamster_core::sync::lock;
use teamster_core::text::{excerpt, one_line};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::address::ConnectError;
use crate::error::ClientErrorKind;

/// The maximum of what a login shell may print before the greeting, in bytes.
const LONGEST_PREFACE: usize = 64 << 10;
/// The maximum of what is kept of stderr, in bytes.
const LONGEST_STDERR: usize = 4 << 10;
/// The maximum of what an error shows of the output, in characters.
const LONGEST_EXCERPT: usize = 200;
/// The time limit for the exit of a process whose stdout has ended.
const EXIT_LIMIT: Duration = Duration::from_secs(5);
/// The time limit for the rest of its stderr: a shared connection of `ssh` may hold it open.
const STDERR_LIMIT: Duration = Duration::from_millis(300);
/// The exit status of a shell that does not find a program.
const NOT_FOUND: i32 = 127;
/// The exit status of a program that does not know its arguments.
const WRONG_ARGUMENTS: i32 = 2;

/// Ctrl-C at a terminal goes to all processes there. This program ends what it does over the connection, so `ssh` must
/// outlive it. The arguments are never part of the script.
const IGNORE_KEYS: &str = "trap '' INT QUIT\n";
const SSH: &str = "command -v ssh >/dev/null || { echo 'ssh is not installed on this machine' >&2; exit 255; }\n\
    exec ssh \"$@\"";

/// Stderr of the newest process.
#[derive(Debug, Clone, Default)]
pub(super) struct Failures(Arc<std::sync::Mutex<Vec<u8>>>);

impl Failures {
    /// Returns the line that is most likely the reason of a failure: the first one that begins like an error of a
    /// program, else the last one.
    pub(super) fn last(&self) -> Option<String> {
        let text = lock(&self.0);
        let text = String::from_utf8_lossy(&text);
        let mut lines = text.lines().map(one_line).filter(|line| !line.is_empty());
        let last = lines.clone().next_back();
        lines.find(|line| line.starts_with("error: ")).or(last)
    }

    /// Keeps the end of what a process writes.
    async fn read(self, mut stderr: ChildStderr) {
        let mut piece = [0; 1024];
        while let Ok(length @ 1..) = stderr.read(&mut piece).await {
            let mut text = lock(&self.0);
            text.extend_from_slice(&piece[..length]);
            let surplus = text.len().saturating_sub(LONGEST_STDERR);
            text.drain(..surplus);
        }
    }
}

/// A process of `ssh`. It is killed when this is dropped; the server ends with its stdin.
#[derive(Debug)]
pub(super) struct Process {
    stdin: ChildStdin,
    stdout: ChildStdout,
    /// Output that was read with the greeting.
    rest: Vec<u8>,
    child: Child,
    failures: Failures,
    stderr: JoinHandle<()>,
}

impl Process {
    /// Starts `ssh`, or this command of the shell, with these arguments.
    pub(super) fn start(
        command: Option<&str>,
        arguments: &[String],
        failures: &Failures,
    ) -> Result<Self, ConnectError> {
        let script = match command {
            Some(command) => format!("{IGNORE_KEYS}exec {command} \"$@\""),
            None => format!("{IGNORE_KEYS}{SSH}"),
        };
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(script)
            .arg("sh")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| ConnectError::from(format!("cannot start sh: {error}")))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(ConnectError::from("ssh has no pipes".to_owned()));
        };
        lock(&failures.0).clear();
        let reading = tokio::spawn(failures.clone().read(stderr));
        Ok(Self {
            stdin,
            stdout,
            rest: Vec::new(),
            child,
            failures: failures.clone(),
            stderr: reading,
        })
    }

    /// Reads up to the server's greeting.
    pub(super) async fn greeted(mut self) -> Result<Self, ConnectError> {
        let mut seen = Vec::new();
        let mut piece = [0; 4096];
        loop {
            // The read ends the process's output with an error too, such as one that was reset.
            let length = self.stdout.read(&mut piece).await.unwrap_or_default();
            if length == 0 {
                return Err(self.failed(&seen).await);
            }
            seen.extend_from_slice(&piece[..length]);
            if let Some((greeting, end)) = StdioGreeting::find(&seen) {
                let StdioGreeting {
                    protocol, version, ..
                } = greeting;
                if protocol != StdioGreeting::PROTOCOL {
                    let own = StdioGreeting::own();
                    let reason = format!(
                        "its teamster {version} speaks version {protocol} of the protocol, and teamster {} here \
                         version {}: install the same version on both machines",
                        own.version, own.protocol
                    );
                    return Err(ConnectError::new(ClientErrorKind::NoProgram, reason));
                }
                // What a login prints is no failure.
                lock(&self.failures.0).clear();
                self.rest = seen.split_off(end);
                return Ok(self);
            }
            if seen.len() > LONGEST_PREFACE {
                return Err(no_greeting(&seen));
            }
        }
    }

    /// Returns the reason why the process ended before the greeting, with what it has printed so far.
    async fn failed(mut self, seen: &[u8]) -> ConnectError {
        let exit = timeout(EXIT_LIMIT, self.child.wait()).await;
        // What is missing then is left out.
        let _ = timeout(STDERR_LIMIT, &mut self.stderr).await;
        let reported = self.failures.last();
        let code = match exit {
            Ok(Ok(status)) => status.code(),
            _ => None,
        };
        let is_login = |it: &str| {
            it.contains("Permission denied") || it.contains("Host key verification failed")
        };
        if let Some(reason) = reported.as_deref().filter(|it| is_login(it)) {
            // Repeating it would be taken for an attack.
            return ConnectError::new(ClientErrorKind::LoginFailed, reason.to_owned());
        }
        let reported_or = |other: &str| reported.clone().unwrap_or_else(|| other.to_owned());
        let no_program = |reason| ConnectError::new(ClientErrorKind::NoProgram, reason);
        match code {
            Some(NOT_FOUND) => {
                let details = reported_or("exit status 127");
                no_program(format!(
                    "teamster was not found ({details}): install it there, or name its path, such as \
                     ssh:HOST/~/.cargo/bin/teamster"
                ))
            }
            Some(WRONG_ARGUMENTS) => {
                let details = reported_or("exit status 2");
                no_program(format!(
                    "the teamster there cannot serve over ssh ({details}): install the version of this machine there"
                ))
            }
            _ => match (reported, code) {
                (Some(reported), _) => ConnectError::from(reported),
                (None, _) if !seen.trim_ascii().is_empty() => no_greeting(seen),
                (None, Some(code)) => {
                    ConnectError::from(format!("ssh ended with the exit status {code}"))
                }
                (None, None) => ConnectError::from("ssh ended".to_owned()),
            },
        }
    }
}

fn no_greeting(seen: &[u8]) -> ConnectError {
    let seen = excerpt(&one_line(&String::from_utf8_lossy(seen)), LONGEST_EXCERPT);
    let reason = format!("the command there printed {seen:?} and no greeting of teamster");
    ConnectError::new(ClientErrorKind::Unexpected, reason)
}

impl AsyncRead for Process {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.rest.is_empty() {
            return Pin::new(&mut self.stdout).poll_read(cx, buffer);
        }
        let length = self.rest.len().min(buffer.remaining());
        buffer.put_slice(&self.rest[..length]);
        self.rest.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Process {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stdin).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdin).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdin).poll_shutdown(cx)
    }
}
