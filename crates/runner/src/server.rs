//! The socket of a runner.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener as StdListener;
use std::path::Path;
use std::time::Duration;

use teamster_core::AbortHandle;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use crate::protocol::{Command, Reply};
use crate::requests::Requests;
use crate::session_control::SessionControl;
use crate::socket_path::with_short_path;
use crate::status::StatusBoard;
use crate::{Position, RefusalCode, RunsError};

/// The name of the socket in a run's folder.
pub(crate) const SOCKET: &str = "control.sock";
/// The longest line of a client, in bytes.
const LONGEST_LINE: u64 = 16 << 20;
/// How long the listener rests if it cannot accept, as where there are too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The socket of a run, before anything is served.
#[derive(Debug)]
pub struct Listener(StdListener);

impl Listener {
    /// Listens in this folder, which is private to its user.
    pub(crate) fn bind(folder: &Path) -> Result<Self, RunsError> {
        let path = folder.join(SOCKET);
        let bind = |short: &Path| {
            let listener = StdListener::bind(short)?;
            std::fs::set_permissions(short, std::fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            Ok(Self(listener))
        };
        with_short_path(folder, SOCKET, bind).map_err(RunsError::io("listen at", &path))
    }
}

/// What clients of a run can see and do.
#[derive(Clone)]
#[non_exhaustive]
pub struct Control {
    /// How far the log has been written.
    pub position: watch::Receiver<Position>,
    /// What stops the run.
    pub abort: AbortHandle,
    /// What waits for an answer.
    pub requests: Requests,
    session: Option<SessionControl>,
    status: Option<StatusBoard>,
}

impl Control {
    /// The control of a run.
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

    /// The control of a live session.
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

    /// The same with a status for its clients.
    pub(crate) fn status(mut self, status: StatusBoard) -> Self {
        self.status = Some(status);
        self
    }
}

/// Serves the clients of a run, until it is dropped. For a Tokio runtime.
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

/// One connection: commands in, replies out. That it breaks off is no error.
async fn client(stream: UnixStream, control: Control) {
    let (reader, mut writer) = stream.into_split();
    let mut lines = BufReader::new(reader);
    while let Ok(Some(line)) = read_line(&mut lines).await {
        let sent = match serde_json::from_slice(&line) {
            Ok(Command::Follow) => {
                // Nothing but the end of the connection is expected of such a client.
                return follow(&mut lines, &mut writer, control.position).await;
            }
            Ok(command) => send(&mut writer, &answer(command, &control).await).await,
            Err(error) => {
                let message = format!("this is no command: {error}");
                send(&mut writer, &refused(RefusalCode::Unsupported, message)).await
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn answer(command: Command, control: &Control) -> Reply {
    match command {
        Command::Cancel { kill } => {
            if let Some(session) = &control.session {
                session.end(kill);
                return Reply::Done;
            }
            if let Some(status) = &control.status {
                status.ending();
            }
            if kill {
                control.abort.kill();
            } else {
                control.abort.abort();
            }
            Reply::Done
        }
        Command::Requests => Reply::Requests {
            requests: control.requests.pending(),
        },
        Command::Answer { request_id, answer } => {
            match control.requests.answer(&request_id, answer) {
                Ok(()) => Reply::Done,
                Err((code, message)) => refused(code, message),
            }
        }
        Command::Status => match &control.status {
            Some(status) => {
                let is_waiting = !control.requests.pending().is_empty();
                let status = Box::new(status.status(is_waiting));
                Reply::Status { status }
            }
            None => unknown(),
        },
        Command::Follow | Command::Other => unknown(),
        command => match &control.session {
            Some(session) => session.carry_out(command).await,
            None => refused(
                RefusalCode::Unsupported,
                "this is a run and takes no further prompt: `teamster chat --detach` begins a session that does",
            ),
        },
    }
}

fn unknown() -> Reply {
    refused(
        RefusalCode::Unsupported,
        "the runner of this run is of another version and does not know this command",
    )
}

pub(crate) fn refused(code: RefusalCode, message: impl Into<String>) -> Reply {
    Reply::Refused {
        code,
        message: message.into(),
    }
}

/// Sends the newest number whenever it has changed; a client that is slow misses some in between.
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
            // It is gone, or breaks the protocol.
            _ = lines.read(&mut byte) => return,
        }
    }
}

async fn send(writer: &mut OwnedWriteHalf, reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    writer.write_all(&line).await
}

/// A line without its end; `None` at the end of the connection, or where it becomes too long.
async fn read_line(lines: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    lines
        .take(LONGEST_LINE)
        .read_until(b'\n', &mut line)
        .await?;
    Ok((line.pop() == Some(b'\n')).then_some(line))
}
