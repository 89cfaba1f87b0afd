//! Follows the log of a run on a server. Reconnects after a lost connection and continues after the last entry.

use std::time::{Duration, Instant};

use bytes::BytesMut;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderName};
use teamster_api::{LogLine, ProblemCode};
use teamster_runner::RunsError;
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::http::{Failure, Http};

/// The maximum number of entries buffered for the reader.
const BUFFERED: usize = 256;
/// The time without data after which a connection counts as lost. The server sends a heartbeat every 15 s.
const SILENCE: Duration = Duration::from_secs(45);
/// The first and the longest delay before a reconnect.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_secs(2)];
/// The time without a connection after which the loss is reported.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time without a connection after which reconnecting is given up.
const GIVE_UP: Duration = Duration::from_mins(10);

/// The entries of a log on a server.
#[derive(Debug)]
pub(crate) struct RemoteFollow {
    lines: mpsc::Receiver<Result<LogLine, RunsError>>,
}

impl RemoteFollow {
    /// Follows the log of a run after the entry with this number.
    pub(crate) fn new(http: Http, run_id: &str, after: u64) -> Self {
        let (sender, lines) = mpsc::channel(BUFFERED);
        let reader = Reader {
            http,
            run_id: run_id.to_owned(),
            after,
            sender,
        };
        tokio::spawn(reader.read());
        Self { lines }
    }

    /// Returns the next entry; `None` after the last. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Option<LogLine>, RunsError> {
        self.lines.recv().await.transpose()
    }
}

struct Reader {
    http: Http,
    run_id: String,
    /// The number of the last entry received.
    after: u64,
    sender: mpsc::Sender<Result<LogLine, RunsError>>,
}

/// The cause of the end of a connection.
enum End {
    /// The log ended.
    Log,
    /// The connection was lost, for this reason.
    Connection(String),
    /// The reader is gone.
    Reader,
}

impl Reader {
    async fn read(mut self) {
        let mut lost: Option<Instant> = None;
        let mut reported = false;
        let mut pause = PAUSES[0];
        loop {
            let before = self.after;
            let end = match self.connect().await {
                Ok(None) => return,
                Ok(Some(body)) => {
                    if reported {
                        crate::warn(&[format!("reconnected to {}", self.http.url())]);
                        reported = false;
                    }
                    lost = None;
                    self.entries(body).await
                }
                Err(error) => match error {
                    Failure::Problem(problem) if problem.code != ProblemCode::Internal => {
                        let error = super::runs_error(&Failure::Problem(problem), &self.run_id);
                        let _ = self.sender.send(Err(error)).await;
                        return;
                    }
                    error => End::Connection(error.to_string()),
                },
            };
            let reason = match end {
                End::Log | End::Reader => return,
                End::Connection(reason) => reason,
            };
            let since = *lost.get_or_insert_with(Instant::now);
            if since.elapsed() > GIVE_UP {
                let error = super::connection_error(format!(
                    "{reason}; the run continues: resume with `teamster attach {} --after {}`",
                    self.run_id, self.after
                ));
                let _ = self.sender.send(Err(error)).await;
                return;
            }
            if since.elapsed() > PATIENCE && !std::mem::replace(&mut reported, true) {
                crate::warn(&[format!("{reason}; retrying")]);
            }
            if self.after > before {
                pause = PAUSES[0];
            }
            tokio::select! {
                () = sleep(pause) => pause = (pause * 2).min(PAUSES[1]),
                () = self.sender.closed() => return,
            }
        }
    }

    async fn connect(&self) -> Result<Option<Incoming>, Failure> {
        let run_id = super::encode_segment(&self.run_id);
        let path = format!("/v1/runs/{run_id}/events?after={}", self.after);
        let accept: (HeaderName, String) = (ACCEPT, "text/event-stream".to_owned());
        self.http.stream(&path, &[accept]).await
    }

    /// Reads the entries of one connection.
    async fn entries(&mut self, mut body: Incoming) -> End {
        let mut events = Events::default();
        loop {
            let frame = tokio::select! {
                frame = timeout(SILENCE, body.frame()) => frame,
                () = self.sender.closed() => return End::Reader,
            };
            let data = match frame {
                Ok(Some(Ok(frame))) => frame.into_data(),
                Ok(Some(Err(error))) => return End::Connection(error.to_string()),
                Ok(None) => {
                    return End::Connection(format!("{} closed the connection", self.http.url()));
                }
                Err(_) => {
                    let url = self.http.url();
                    return End::Connection(format!("{url} sent nothing for {SILENCE:?}"));
                }
            };
            // Ignore trailers.
            let Ok(data) = data else { continue };
            events.push(&data);
            while let Some(event) = events.next() {
                let entry = match event {
                    Event::End => return End::Log,
                    Event::Entry(json) => LogLine::from_json(json, &self.run_id),
                };
                // Ignore unknown lines of newer versions.
                let Some(line) = entry else { continue };
                if line.seq() <= self.after {
                    continue;
                }
                self.after = line.seq();
                let is_end = line.is_end();
                if self.sender.send(Ok(line)).await.is_err() {
                    return End::Reader;
                }
                if is_end {
                    return End::Log;
                }
            }
        }
    }
}

/// A parser of the server's events. The data of each event is one line.
#[derive(Default)]
struct Events {
    bytes: BytesMut,
    /// The number of leading bytes known to contain no newline.
    searched: usize,
    is_end: bool,
    data: Option<Vec<u8>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Event {
    Entry(Vec<u8>),
    End,
}

impl Events {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn next(&mut self) -> Option<Event> {
        loop {
            let rest = &self.bytes[self.searched..];
            let Some(end) = rest.iter().position(|byte| *byte == b'\n') else {
                self.searched = self.bytes.len();
                return None;
            };
            let line = self.bytes.split_to(self.searched + end + 1);
            self.searched = 0;
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            if let Some(data) = line.strip_prefix(b"data: ") {
                self.data = Some(data.to_vec());
            } else if line == b"event: end" {
                self.is_end = true;
            } else if line.is_empty() {
                let data = self.data.take();
                if std::mem::take(&mut self.is_end) {
                    return Some(Event::End);
                }
                if let Some(data) = data {
                    return Some(Event::Entry(data));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_in_any_pieces() {
        let text = b"retry: 1000\n\nid: 1\ndata: {\"seq\":1}\n\n: \n\nid: 2\ndata: {\"seq\":2}\n\nevent: end\ndata: {}\n\n";
        let expected = [
            Event::Entry(b"{\"seq\":1}".to_vec()),
            Event::Entry(b"{\"seq\":2}".to_vec()),
            Event::End,
        ];
        for size in [1, 2, 3, 7, text.len()] {
            let mut events = Events::default();
            let mut read = Vec::new();
            for piece in text.chunks(size) {
                events.push(piece);
                while let Some(event) = events.next() {
                    read.push(event);
                }
            }
            assert_eq!(read, expected, "{size}");
        }
    }
}
