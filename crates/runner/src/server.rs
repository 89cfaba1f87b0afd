//! Socket server of a runner.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdListener;
use std::path::Path;
use std::time::Duration;

use teamster_api::{Command, RefusalCode, Reply};
use teamster_core::{AbortHandle, Stopping};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use crate::requests::Requests;
use crate::session_control::SessionControl;
use crate::socket_path::ShortPath;
use crate::status::StatusBoard;
use crate::{Position, RunsError};

/// Name of the socket in a run's folder.
pub(crate) const SOCKET: &str = "control.sock";
/// Maximum length of a client's line, in bytes.
pub(crate) const LONGEST_LINE: u64 = 16 << 20;
/// Pause after a failed accept, for example with too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Bound socket of a run, before it is served.
#[derive(Debug)]
pub struct Listener(StdListener);

impl Listener {
    /// Binds the socket in this folder, which must be private to its user.
    pub(crate) fn bind(folder: &Path) -> Result<Self, RunsError> {
        let path = folder.join(SOCKET);
        let bind = || {
            let short = ShortPath::of(folder, SOCKET)?;
            let listener = StdListener::bind(short.path())?;
            std::fs::set_permissions(short.path(), std::fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            Ok(Self(listener))
        };
        bind().map_err(RunsError::io("listen at", &path))
    }
}

/// State and handles that clients of a run use.
#[derive(Clone)]
#[non_exhaustive]
pub struct Control {
    /// Position of the log.
    pub position: watch::Receiver<Position>,
    /// Handle that stops the run.
    pub abort: AbortHandle,
    /// Pending requests.
    pub requests: Requests,
    session: Option<SessionControl>,
    status: Option<StatusBoard>,
}

impl Control {
    /// Creates the control of a run.
    pub fn new(
        position: watch::Receiver<Position>,
        abort: AbortHandle,
        requests: Requests,
    ) -> Self {
        Self {
            position,
            abort,
            requests,
            session: None,
            status: None,
        }
    }

    pub(crate) fn of_session(
        position: watch::Receiver<Position>,
        session: SessionControl,
        requests: Requests,
    ) -> Self {
        Self {
            session: Some(session),
            ..Self::new(position, AbortHandle::default(), requests)
        }
    }

    /// Sets the status for clients.
    pub(crate) fn status(mut self, status: StatusBoard) -> Self {
        self.status = Some(status);
        self
    }

    /// Carries out a client's command.
    pub async fn carry_out(&self, command: Command) -> Reply {
        match command {
            Command::Cancel { kill } => {
                if let Some(session) = &self.session {
                    session.end(Stopping::kill_if(kill));
                    return Reply::Done;
                }
                if let Some(status) = &self.status {
                    status.ending();
                }
                if kill {
                    self.abort.kill();
                } else {
                    self.abort.abort();
                }
                Reply::Done
            }
            Command::Requests => Reply::Requests {
                requests: self.requests.pending(),
            },
            Command::Answer { request_id, answer } => {
                match self.requests.answer(&request_id, answer) {
                    Ok(()) => Reply::Done,
                    Err((code, message)) => refused(code, message),
                }
            }
            Command::Status => match &self.status {
                Some(status) => {
                    let is_waiting = !self.requests.pending().is_empty();
                    let status = Box::new(status.status(is_waiting));
                    Reply::Status { status }
                }
                None => unknown(),
            },
            Command::Follow | Command::Other => unknown(),
            command => match &self.session {
                Some(session) => session.carry_out(command).await,
                None => refused(RefusalCode::Unsupported, "this is a run, not a session"),
            },
        }
    }
}

/// Serves the clients of a run until the future is dropped. Needs a Tokio runtime.
///
/// # Errors
///
/// Fails if the socket cannot be registered with the runtime.
pub async fn serve(listener: Listener, control: Control) -> io::Result<()> {
    let listener = UnixListener::from_std(listener.0)?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(client(stream, control.clone()));
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Serves one connection. A broken connection is no error.
async fn client(stream: UnixStream, control: Control) {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader);
    while let Ok(Some(line)) = read_line(&mut lines).await {
        let sent = match serde_json::from_slice(&line) {
            Ok(Command::Follow) => {
                // Such a client sends nothing more.
                return follow(&mut lines, &mut writer, control.position).await;
            }
            Ok(command) => send(&mut writer, &control.carry_out(command).await).await,
            Err(error) => {
                let message = format!("invalid command: {error}");
                send(&mut writer, &refused(RefusalCode::Unsupported, message)).await
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

fn unknown() -> Reply {
    refused(
        RefusalCode::Unsupported,
        "the runner of this run has another version and does not support this command",
    )
}

pub(crate) fn refused(code: RefusalCode, message: impl Into<String>) -> Reply {
    Reply::Refused {
        code,
        message: message.into(),
    }
}

/// Sends the newest number after each change. A slow client misses intermediate numbers.
async fn follow(
    lines: &mut BufReader<OwnedReadHalf>,
    writer: &mut OwnedWriteHalf,
    mut position: watch::Receiver<Position>,
) {
    let mut byte = [0];
    loop {
        let now = *position.borrow_and_update();
        if send(writer, &Reply::Position { seq: now.seq })
            .await
            .is_err()
            || now.ended
        {
            return;
        }
        tokio::select! {
            changed = position.changed() => if changed.is_err() { return },
            // The client has disconnected, or breaks the protocol.
            _ = lines.read(&mut byte) => return,
        }
    }
}

async fn send(writer: &mut OwnedWriteHalf, reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    writer.write_all(&line).await
}

/// Reads a line without its newline. Returns `None` at the end of the connection, or if the line is too long.
async fn read_line(lines: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    lines
        .take(LONGEST_LINE)
        .read_until(b'\n', &mut line)
        .await?;
    Ok((line.pop() == Some(b'\n')).then_some(line))
}
