//! Client of a supervisor.

use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep, timeout};

use super::Error;
use super::lock_holder;
use super::state::State;
use super::state_folder::{StateFolder, resolve_links};
use teamster_api::agents::{Command, Outcome, Request, Response, Status, Update};

/// Time limit for the response to a command. The supervisor may have to start many loops first.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// Time limit for a connection and for a status.
const STATUS_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval at which a supervisor that has not answered is looked at: one that is stopped (`SIGSTOP`) will not answer.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Interval of the attempts to connect to a supervisor that lives but does not listen, because it starts or ends.
const PAUSE: Duration = Duration::from_millis(20);

/// Connection to the supervisor of a configuration.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    /// The supervisor's lock file.
    lock: PathBuf,
}

impl Client {
    /// Connects to the supervisor of this configuration.
    ///
    /// # Errors
    ///
    /// Fails with [`Error::NotRunning`] if there is none, with [`Error::NotAnswering`] if it lives but accepts no
    /// connection, and with [`Error::OtherConfig`] if it has another configuration.
    pub async fn connect(config: &Path) -> Result<Self, Error> {
        let config = std::path::absolute(config)
            .map_err(Error::disk("cannot find the directory of", config))?;
        let not_running = || Error::NotRunning {
            config: config.clone(),
        };
        let folder = StateFolder::of(&config);
        let state = State::read(&folder.state()).ok().flatten();
        let socket = folder
            .socket()
            .or_else(|| state.as_ref()?.socket.clone())
            .ok_or_else(not_running)?;
        let until = Instant::now() + STATUS_TIMEOUT;
        let stream = loop {
            match UnixStream::connect(&socket).await {
                Ok(stream) => break stream,
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound
                            | io::ErrorKind::ConnectionRefused
                            // Too many connections wait for it.
                            | io::ErrorKind::WouldBlock
                    ) =>
                {
                    let Some((holder, _)) = lock_holder::supervisor(&folder.lock()) else {
                        return Err(not_running());
                    };
                    if holder.is_stopped() || Instant::now() >= until {
                        return Err(Error::not_answering(&folder.lock()));
                    }
                    sleep(PAUSE).await;
                }
                Err(error) => return Err(Error::disk("cannot connect to", &socket)(error)),
            }
        };
        if let Some(state) = state
            && resolve_links(&state.config) != resolve_links(&config)
        {
            return Err(Error::OtherConfig {
                ours: config,
                theirs: state.config,
            });
        }
        Ok(Self {
            stream: BufReader::new(stream),
            lock: folder.lock(),
        })
    }

    /// Sends a command and returns the status after it.
    ///
    /// # Errors
    ///
    /// Fails if the supervisor refuses the command, is stopped, or does not answer: within 10 s for a status, 60 s for
    /// another command.
    pub async fn ask(&mut self, command: Command) -> Result<Status, Error> {
        let limit = match command {
            Command::Status | Command::Subscribe => STATUS_TIMEOUT,
            _ => RESPONSE_TIMEOUT,
        };
        let until = Instant::now() + limit;
        let lock = self.lock.clone();
        let is_stopped =
            || lock_holder::supervisor(&lock).is_some_and(|(holder, _)| holder.is_stopped());
        // It would carry out the command when it continues.
        if is_stopped() {
            return Err(Error::not_answering(&lock));
        }
        let mut response = pin!(self.exchange(command));
        let response = loop {
            match timeout(POLL_INTERVAL, &mut response).await {
                Ok(response) => break response.map_err(Error::NoAnswer)?,
                Err(_) if is_stopped() || Instant::now() >= until => {
                    return Err(Error::not_answering(&lock));
                }
                Err(_) => {}
            }
        };
        match response.outcome {
            Outcome::Ok(status) => Ok(status),
            Outcome::Error { code, message } => Err(Error::Refused { code, message }),
            _ => {
                let message = "the response is of a later version";
                Err(Error::NoAnswer(io::Error::other(message)))
            }
        }
    }

    async fn exchange(&mut self, command: Command) -> io::Result<Response> {
        let mut line = serde_json::to_vec(&Request::new(command))?;
        line.push(b'\n');
        self.stream.write_all(&line).await?;
        let mut answer = String::new();
        if self.stream.read_line(&mut answer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(serde_json::from_str(&answer)?)
    }

    /// Returns the current status and the stream of later changes.
    ///
    /// # Errors
    ///
    /// Fails as [`ask`](Self::ask) does.
    pub async fn subscribe(mut self) -> Result<(Status, Updates), Error> {
        let status = self.ask(Command::Subscribe).await?;
        Ok((status, Updates(self.stream)))
    }
}

/// Stream of the changes at a supervisor.
#[derive(Debug)]
pub struct Updates(BufReader<UnixStream>);

impl Updates {
    /// Waits for the next change. Returns `None` when the supervisor has ended or closed the connection.
    ///
    /// # Errors
    ///
    /// Fails if the connection breaks or a line cannot be parsed.
    pub async fn next(&mut self) -> Result<Option<Update>, Error> {
        let mut line = String::new();
        let count = self.0.read_line(&mut line).await.map_err(Error::NoAnswer)?;
        if count == 0 {
            return Ok(None);
        }
        let update = serde_json::from_str(&line);
        update
            .map(Some)
            .map_err(|error| Error::NoAnswer(error.into()))
    }
}
