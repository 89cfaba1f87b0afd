//! Clients of runners: following a log, and sending commands.

mod follow;

use std::io::{self, ErrorKind};
use std::pin::pin;
use std::time::Duration;

use serde::de::DeserializeOwned;
use teamster_api::{Command, LiveStatus, PendingRequest, RefusalCode, Reply};
use teamster_core::Stopping;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::background::blocking;
use crate::server::{LONGEST_LINE, SOCKET};
use crate::socket_path::ShortPath;
use crate::{RunFolder, RunState, RunsError};

pub use follow::Follow;

/// Pause before the next attempt to connect to a live runner that does not listen, because it is ending.
const PAUSE: Duration = Duration::from_millis(20);
/// Time limit for a live runner's first answer on a connection, for its answers that need no work of the agent, and for its
/// exit after the end of its log.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

#[derive(Debug)]
struct Connection {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl Connection {
    /// Connects to the runner. Returns `None` if none listens, or too many connections wait for it.
    async fn open(run: &RunFolder) -> Result<Option<Self>, RunsError> {
        let failed = || RunsError::io("connect to", run.path().join(SOCKET));
        let connected = match ShortPath::of(run.path(), SOCKET) {
            Ok(short) => UnixStream::connect(short.path()).await,
            Err(error) => Err(error),
        };
        let stream = match connected {
            Ok(stream) => stream,
            Err(error) if is_absent(&error) || error.kind() == ErrorKind::WouldBlock => {
                return Ok(None);
            }
            Err(error) => return Err(failed()(error)),
        };
        let (reader, writer) = stream.into_split();
        Ok(Some(Self {
            lines: BufReader::new(reader).lines(),
            writer,
        }))
    }

    async fn send(&mut self, command: &Command) -> io::Result<()> {
        self.writer.write_all(&line(command)?).await
    }

    /// Sends the [line](line) of a command and waits for its reply. Returns `None` if the runner has ended.
    async fn exchange(&mut self, line: &[u8]) -> io::Result<Option<Reply>> {
        match self.writer.write_all(line).await {
            Ok(()) => self.reply().await,
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits for the next reply. Returns `None` if the runner has ended. Cancel-safe.
    async fn reply<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        match self.lines.next_line().await {
            Ok(Some(line)) => Ok(Some(serde_json::from_str(&line)?)),
            Ok(None) => Ok(None),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns a command as a runner reads it.
fn line(command: &Command) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(command)?;
    line.push(b'\n');
    Ok(line)
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound
            | ErrorKind::ConnectionRefused
            | ErrorKind::ConnectionReset
            | ErrorKind::BrokenPipe
    )
}

fn ended(run: &RunFolder) -> RunsError {
    let id = run.id().to_owned();
    RunsError::Ended { id }
}

/// Returns the state of the run, as [`RunFolder::settle`] does, without blocking the thread.
///
/// # Errors
///
/// Fails as [`RunFolder::settle`] does.
pub async fn settle(run: &RunFolder) -> Result<RunState, RunsError> {
    let run = run.clone();
    blocking(move || run.settle()).await
}

/// Removes the run and its log if it has ended, as [`RunFolder::remove`] does. Waits up to 5 s for a runner that cleans up
/// after the end of its log. Returns whether it was removed.
///
/// # Errors
///
/// Fails as [`RunFolder::remove`] does.
pub async fn remove(run: RunFolder) -> Result<bool, RunsError> {
    let until = Instant::now() + ANSWER_LIMIT;
    loop {
        let this = run.clone();
        let is_removed = blocking(move || this.remove()).await?;
        if is_removed || Instant::now() >= until || !run.has_end()? {
            return Ok(is_removed);
        }
        sleep(PAUSE).await;
    }
}

/// Stops the run. Returns when the runner has accepted the command.
///
/// With [`Stopping::Kill`], a runner that does not answer is killed itself, with all other work of its process, and the
/// log is completed.
///
/// # Errors
///
/// Fails with [`RunsError::NotAnswering`] if the runner does not answer, and is not or cannot be killed.
pub async fn cancel(run: &RunFolder, stopping: Stopping) -> Result<(), RunsError> {
    let kill = stopping.is_kill();
    // The runner still answers for a moment after the end of its log.
    if !kill && run.has_end()? {
        return Err(ended(run));
    }
    match call(run, &Command::Cancel { kill }).await {
        Err(RunsError::NotAnswering { .. }) if kill => {
            run.kill_runner().await?;
            settle(run).await.map(drop)
        }
        reply => reply.map(drop),
    }
}

/// Returns the pending requests of the run. Returns none if the run has ended.
pub async fn requests(run: &RunFolder) -> Result<Vec<PendingRequest>, RunsError> {
    match call(run, &Command::Requests).await {
        Ok(Reply::Requests { requests }) => Ok(requests),
        Ok(_) | Err(RunsError::Ended { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Returns the status of a live run or session.
///
/// # Errors
///
/// Fails with [`RunsError::Ended`] if the run has ended. A runner that does not answer is no error, but a state.
pub async fn status(run: &RunFolder) -> Result<LiveStatus, RunsError> {
    match call(run, &Command::Status).await {
        Ok(Reply::Status { status }) => Ok(*status),
        Ok(other) => Err(unexpected_reply(&other)),
        Err(RunsError::NotAnswering { pid, .. }) => Ok(run.status_without_answer(pid)),
        Err(error) => Err(error),
    }
}

/// Sends a command to the runner of a live run and returns its reply, which is no refusal. A kill is one of a runner that
/// does not answer too, as in [`cancel`].
///
/// # Errors
///
/// Fails if the run has ended, the runner does not answer, or it refuses the command. [`Command::Follow`] is refused:
/// [`Follow`] has its replies.
pub async fn command(run: &RunFolder, command: &Command) -> Result<Reply, RunsError> {
    match command {
        Command::Cancel { kill } => cancel(run, Stopping::kill_if(*kill))
            .await
            .map(|()| Reply::Done),
        Command::Follow | Command::Other => Err(RunsError::Refused {
            code: RefusalCode::Unsupported,
            message: "this command has no reply of its own".to_owned(),
        }),
        command => call(run, command).await,
    }
}

/// Returns the error for a reply that does not fit the command.
fn unexpected_reply(reply: &Reply) -> RunsError {
    RunsError::Refused {
        code: RefusalCode::Other,
        message: format!("the runner is of another version: it replied {reply:?}"),
    }
}

/// Sends a command to the runner of a live run and returns its reply.
async fn call(run: &RunFolder, command: &Command) -> Result<Reply, RunsError> {
    let failed = || RunsError::io("talk with", run.path().join(SOCKET));
    let line = line(command).map_err(failed())?;
    let bytes = line.len() as u64;
    if bytes > LONGEST_LINE {
        return Err(RunsError::TooLarge {
            id: run.id().to_owned(),
            bytes,
            limit: LONGEST_LINE,
        });
    }
    let limit = Instant::now() + ANSWER_LIMIT;
    // These commands are not idempotent. After a broken connection they are not sent again.
    let mut sent = false;
    let once = matches!(
        command,
        Command::Send { key: None, .. } | Command::Steer { .. }
    );
    loop {
        if !(sent && once)
            && let Some(mut runner) = Connection::open(run).await?
        {
            let mut reply = pin!(runner.exchange(&line));
            let reply = loop {
                match timeout(ANSWER_LIMIT, &mut reply).await {
                    Ok(reply) => break reply,
                    Err(_) if needs_agent(command) && is_answering(run).await? => {}
                    Err(_) => return Err(run.not_answering()),
                }
            };
            match reply.map_err(failed())? {
                // The log has its end, and the runner is about to close its socket.
                Some(Reply::Refused {
                    code: RefusalCode::Ending,
                    ..
                }) if settle(run).await? == RunState::Ended => {}
                Some(Reply::Refused { code, message }) => {
                    return Err(RunsError::Refused { code, message });
                }
                Some(reply) => return Ok(reply),
                None => sent = true,
            }
        }
        if settle(run).await? == RunState::Ended {
            return Err(ended(run));
        }
        if Instant::now() >= limit {
            return Err(run.not_answering());
        }
        sleep(PAUSE).await;
    }
}

/// Returns whether the reply to this command may take as long as the agent wants.
fn needs_agent(command: &Command) -> bool {
    matches!(
        command,
        Command::Send { .. }
            | Command::Steer { .. }
            | Command::Clear
            | Command::SetModel { .. }
            | Command::SetPermission { .. }
    )
}

/// Returns whether the runner answers another command in time, or has ended.
async fn is_answering(run: &RunFolder) -> Result<bool, RunsError> {
    let limit = Instant::now() + ANSWER_LIMIT;
    let line =
        line(&Command::Requests).map_err(RunsError::io("talk with", run.path().join(SOCKET)))?;
    while Instant::now() < limit {
        if let Some(mut runner) = Connection::open(run).await? {
            let reply = timeout_at(limit, runner.exchange(&line)).await;
            if let Ok(Ok(Some(_))) = reply {
                return Ok(true);
            }
        }
        if settle(run).await? == RunState::Ended {
            return Ok(true);
        }
        sleep(PAUSE).await;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected() -> (Connection, UnixStream) {
        let (ours, its) = UnixStream::pair().unwrap();
        let (reader, writer) = ours.into_split();
        let lines = BufReader::new(reader).lines();
        (Connection { lines, writer }, its)
    }

    #[tokio::test]
    async fn a_reset_connection_is_no_reply_and_odd_bytes_are_an_error() {
        let (mut connection, runner) = connected();
        connection.writer.write_all(b"command\n").await.unwrap();
        // The runner is gone and has not read the command, so the connection is reset.
        drop(runner);
        assert!(connection.reply::<Reply>().await.unwrap().is_none());

        let (mut connection, mut runner) = connected();
        runner.write_all(b"\xff\n").await.unwrap();
        assert!(connection.reply::<Reply>().await.is_err());
    }
}
