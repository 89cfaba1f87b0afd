//! Clients of runners: following a log, and sending commands.

use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream as StdStream;
use std::time::Duration;

use serde::de::DeserializeOwned;
use teamster_core::PermissionMode;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use crate::protocol::{Answer, Command, PendingRequest, Reply};
use crate::server::SOCKET;
use crate::socket_path::with_short_path;
use crate::{LiveStatus, LogLine, RefusalCode, RunFolder, RunLogReader, RunState, RunsError};

/// How long until a runner that lives but does not listen is tried again: it is about to end.
const PAUSE: Duration = Duration::from_millis(20);

/// A connection with the runner of a run.
#[derive(Debug)]
struct Connection {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl Connection {
    /// Connects with the runner; `None` if none listens.
    fn open(run: &RunFolder) -> Result<Option<Self>, RunsError> {
        let failed = || RunsError::io("connect to", run.path().join(SOCKET));
        let connected = with_short_path(run.path(), SOCKET, |short| StdStream::connect(short));
        let stream = match connected {
            Ok(stream) => stream,
            Err(error) if is_absent(&error) => return Ok(None),
            Err(error) => return Err(failed()(error)),
        };
        let stream = (stream.set_nonblocking(true))
            .and_then(|()| UnixStream::from_std(stream))
            .map_err(failed())?;
        let (reader, writer) = stream.into_split();
        Ok(Some(Self {
            lines: BufReader::new(reader).lines(),
            writer,
        }))
    }

    async fn send(&mut self, command: &Command) -> io::Result<()> {
        let mut line = serde_json::to_vec(command)?;
        line.push(b'\n');
        self.writer.write_all(&line).await
    }

    /// The next reply; `None` if the runner is gone. Cancel-safe.
    async fn reply<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        match self.lines.next_line().await {
            Ok(Some(line)) => Ok(Some(serde_json::from_str(&line)?)),
            Ok(None) => Ok(None),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
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

/// The entries of a run's log: those that are there, then those that come, up to its end.
///
/// For a Tokio runtime. If the runner is killed meanwhile, the log gets its end here.
#[derive(Debug)]
pub struct Follow {
    run: RunFolder,
    reader: RunLogReader,
    runner: Option<Connection>,
    /// The run has ended: what is not in the log now never will be.
    settled: bool,
}

impl Follow {
    /// The log of this run behind the entry of this number; 0 is the beginning.
    pub fn new(run: RunFolder, after: u64) -> Result<Self, RunsError> {
        let reader = run.log(after)?;
        Ok(Self {
            run,
            reader,
            runner: None,
            settled: false,
        })
    }

    /// The last entry of a run's log, once it is there. `None` if a log that has ended has none.
    pub async fn end(run: RunFolder) -> Result<Option<LogLine>, RunsError> {
        let newest = run.last_line()?.map_or(0, |line| line.seq());
        let mut follow = Self::new(run, newest.saturating_sub(1))?;
        let mut last = None;
        while let Some(line) = follow.next().await? {
            last = Some(line);
        }
        Ok(last.filter(LogLine::is_end))
    }

    /// The run.
    pub fn run(&self) -> &RunFolder {
        &self.run
    }

    /// The next entry; `None` after the last. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<LogLine>, RunsError> {
        loop {
            if let Some(line) = self.reader.next_line()? {
                return Ok(Some(line));
            }
            if self.reader.has_ended() || self.settled {
                return Ok(None);
            }
            let Some(runner) = &mut self.runner else {
                self.connect().await?;
                continue;
            };
            // A runner that cannot be understood is as good as none.
            if !matches!(
                runner.reply::<Reply>().await,
                Ok(Some(Reply::Position { .. }))
            ) {
                self.runner = None;
            }
        }
    }

    /// Has the runner say what comes. Without a runner, the log is complete afterwards.
    async fn connect(&mut self) -> Result<(), RunsError> {
        if let Some(mut runner) = Connection::open(&self.run)?
            && runner.send(&Command::Follow).await.is_ok()
        {
            self.runner = Some(runner);
            return Ok(());
        }
        match self.run.settle()? {
            RunState::Ended => self.settled = true,
            RunState::Live => tokio::time::sleep(PAUSE).await,
        }
        Ok(())
    }
}

/// Stops the run; with `kill` by force. Returns once its runner knows.
pub async fn cancel(run: &RunFolder, kill: bool) -> Result<(), RunsError> {
    call(run, &Command::Cancel { kill }).await.map(drop)
}

/// The requests of the run that wait for an answer; none if it has ended.
pub async fn requests(run: &RunFolder) -> Result<Vec<PendingRequest>, RunsError> {
    match call(run, &Command::Requests).await {
        Ok(Reply::Requests { requests }) => Ok(requests),
        Ok(_) | Err(RunsError::Ended { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Answers a request of the run.
pub async fn answer(run: &RunFolder, request_id: &str, answer: Answer) -> Result<(), RunsError> {
    let request_id = request_id.to_owned();
    let command = Command::Answer { request_id, answer };
    call(run, &command).await.map(drop)
}

/// What a live run or session is doing.
pub async fn status(run: &RunFolder) -> Result<LiveStatus, RunsError> {
    match call(run, &Command::Status).await? {
        Reply::Status { status } => Ok(*status),
        other => Err(odd(&other)),
    }
}

/// A turn of a session that has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartedTurn {
    /// The turn's id: that of the session, `.` and a number.
    pub run_id: String,
    /// The number of the log's entry with the prompt. Those of the turn follow, up to the `done` with its id.
    pub seq: u64,
    /// It was begun by this request, and not before by one with the same key.
    pub is_new: bool,
}

impl StartedTurn {
    /// A turn that has just begun, and the entry of its prompt.
    pub fn new(run_id: impl Into<String>, seq: u64) -> Self {
        Self {
            run_id: run_id.into(),
            seq,
            is_new: true,
        }
    }

    /// A turn that was begun before.
    pub fn known(run_id: impl Into<String>, seq: u64) -> Self {
        Self {
            run_id: run_id.into(),
            seq,
            is_new: false,
        }
    }
}

/// A prompt to a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnRequest {
    /// The prompt.
    pub prompt: String,
    /// The name that other clients see.
    pub from: Option<String>,
    /// A key of the caller's choice: the same prompt with the same key begins one turn.
    pub key: Option<String>,
}

impl TurnRequest {
    /// This prompt.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            ..Self::default()
        }
    }
}

/// Sends a prompt to a session, under the name that other clients see. Refused
/// ([`RefusalCode::Busy`]) while a turn is in progress.
pub async fn send(
    session: &RunFolder,
    prompt: impl Into<String>,
    from: Option<String>,
) -> Result<StartedTurn, RunsError> {
    let mut request = TurnRequest::new(prompt);
    request.from = from;
    begin_turn(session, request).await
}

/// Begins a turn, as [`send`] does.
pub async fn begin_turn(
    session: &RunFolder,
    request: TurnRequest,
) -> Result<StartedTurn, RunsError> {
    let command = Command::Send {
        prompt: request.prompt,
        images: Vec::new(),
        from: request.from,
        key: request.key,
    };
    match call(session, &command).await? {
        Reply::Turn { run_id, seq, known } => Ok(StartedTurn {
            run_id,
            seq,
            is_new: !known,
        }),
        other => Err(odd(&other)),
    }
}

/// Adds text to the turn in progress.
pub async fn steer(
    session: &RunFolder,
    text: impl Into<String>,
    from: Option<String>,
) -> Result<(), RunsError> {
    let text = text.into();
    call(session, &Command::Steer { text, from })
        .await
        .map(drop)
}

/// Ends the turn in progress, and keeps the session; with `kill` by force.
pub async fn interrupt(session: &RunFolder, kill: bool) -> Result<(), RunsError> {
    call(session, &Command::Interrupt { kill }).await.map(drop)
}

/// Has the session go on with an empty context.
pub async fn clear(session: &RunFolder) -> Result<(), RunsError> {
    call(session, &Command::Clear).await.map(drop)
}

/// Another model, from the next turn on.
pub async fn set_model(session: &RunFolder, model: impl Into<String>) -> Result<(), RunsError> {
    let model = model.into();
    call(session, &Command::SetModel { model }).await.map(drop)
}

/// Another permission mode, from the next turn on.
pub async fn set_permission(session: &RunFolder, mode: PermissionMode) -> Result<(), RunsError> {
    call(session, &Command::SetPermission { mode })
        .await
        .map(drop)
}

/// A reply to another command than was sent.
fn odd(reply: &Reply) -> RunsError {
    RunsError::Refused {
        code: RefusalCode::Other,
        message: format!("the runner is of another version: it replied {reply:?}"),
    }
}

/// Sends a command to the runner of a live run; its reply.
async fn call(run: &RunFolder, command: &Command) -> Result<Reply, RunsError> {
    let failed = || RunsError::io("talk with", run.path().join(SOCKET));
    // A command that is sent twice would be done twice: after a connection that broke off, only the end is waited for.
    let mut sent = false;
    let once = matches!(
        command,
        Command::Send { key: None, .. } | Command::Steer { .. }
    );
    loop {
        if !(sent && once)
            && let Some(mut runner) = Connection::open(run)?
        {
            let reply = match runner.send(command).await {
                Ok(()) => runner.reply().await.map_err(failed())?,
                Err(error) if is_absent(&error) => None,
                Err(error) => return Err(failed()(error)),
            };
            match reply {
                Some(Reply::Refused { code, message }) => {
                    return Err(RunsError::Refused { code, message });
                }
                Some(reply) => return Ok(reply),
                None => sent = true,
            }
        }
        if run.settle()? == RunState::Ended {
            return Err(RunsError::Ended {
                id: run.id().to_owned(),
            });
        }
        tokio::time::sleep(PAUSE).await;
    }
}
