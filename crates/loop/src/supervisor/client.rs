//! Talks to a supervisor.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::Error;
use super::protocol::{Command, Outcome, Request, Response, Status, Update};
use super::state::State;
use super::state_folder::{StateFolder, real};

/// How long the supervisor may take for an answer: it may have many loops to start first.
const PATIENCE: Duration = Duration::from_mins(1);

/// A connection to the supervisor of a configuration.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the supervisor of this configuration, which need not be running.
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
        let stream = match UnixStream::connect(&socket).await {
            Ok(stream) => stream,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                return Err(not_running());
            }
            Err(error) => return Err(Error::disk("cannot connect to", &socket)(error)),
        };
        if let Some(state) = state
            && real(&state.config) != real(&config)
        {
            return Err(Error::OtherConfig {
                ours: config,
                theirs: state.config,
            });
        }
        Ok(Self {
            stream: BufReader::new(stream),
        })
    }

    /// Asks for something; how things stand then.
    pub async fn ask(&mut self, command: Command) -> Result<Status, Error> {
        let response = timeout(PATIENCE, self.exchange(command))
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(Error::NoAnswer)?;
        match response.outcome {
            Outcome::Ok(status) => Ok(status),
            Outcome::Error { code, message } => Err(Error::Refused { code, message }),
            Outcome::Other => {
                let message = "its answer is one of a newer version";
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
}

impl Client {
    /// Asks for how things stand and for all that changes from then on.
    pub async fn subscribe(mut self) -> Result<(Status, Updates), Error> {
        let status = self.ask(Command::Subscribe).await?;
        Ok((status, Updates(self.stream)))
    }
}

/// What changes at a supervisor.
#[derive(Debug)]
pub struct Updates(BufReader<UnixStream>);

impl Updates {
    /// Waits for the next change; `None` when the supervisor has ended or has closed the connection.
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
