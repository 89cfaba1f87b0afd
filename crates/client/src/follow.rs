//! Follows the log of a run on a server. Reconnects after a lost connection and continues after the last entry.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::Incoming;
use serde::Deserialize;
use serde_json::value::RawValue;
use teamster_api::LogLine;
use teamster_api::ProblemCode;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::call::{Call, Media};
use crate::error::{ClientError, ClientErrorKind};
use crate::http::{Http, LARGEST_BODY};
use crate::patience::Patience;
use crate::sse::{SseEvent, SseParser};

/// The maximum number of entries buffered for the reader.
const BUFFERED: usize = 256;
/// The time for which a page of a log waits for entries, in seconds.
const PAGE_SECONDS: u64 = 20;

/// The entries of a log on a server, from [`Client::follow`](crate::Client::follow). Also a [`Stream`].
///
/// The numbers have no gaps, unless the server has removed old entries: then one entry `reset` takes their place. A
/// lost connection is restored, and the entries continue after the last one. The end comes after the log's last entry
/// only; an error before it is the last item, and [`retryable`](ClientError::retryable) if the server was away for
/// too long.
#[must_use = "nothing is read before the stream is polled"]
#[derive(Debug)]
pub struct Follow {
    lines: mpsc::Receiver<Result<LogLine, ClientError>>,
}

impl Follow {
    pub(crate) fn new(http: Arc<Http>, run_id: &str, after: u64) -> Self {
        let (sender, lines) = mpsc::channel(BUFFERED);
        let reader = Reader {
            patience: Patience::new(http.clone()),
            http,
            run_id: run_id.to_owned(),
            after,
            has_streams: true,
            sender: sender.clone(),
        };
        tokio::spawn(async move {
            tokio::select! {
                () = reader.read() => {}
                // The reader of the entries is gone.
                () = sender.closed() => {}
            }
        });
        Self { lines }
    }

    /// Returns the next entry; `None` after the last. Cancel-safe.
    ///
    /// # Errors
    ///
    /// Fails if the server refuses to show the log, or cannot be reached for too long.
    pub async fn next(&mut self) -> Result<Option<LogLine>, ClientError> {
        self.lines.recv().await.transpose()
    }
}

impl Stream for Follow {
    type Item = Result<LogLine, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.lines.poll_recv(cx)
    }
}

struct Reader {
    http: Arc<Http>,
    patience: Patience,
    run_id: String,
    /// The number of the last entry received.
    after: u64,
    /// False once a proxy held back a stream: pages of the log replace it.
    has_streams: bool,
    sender: mpsc::Sender<Result<LogLine, ClientError>>,
}

/// A page of a log.
#[derive(Deserialize)]
struct Page {
    entries: Vec<Box<RawValue>>,
    ended: bool,
}

impl Reader {
    async fn read(mut self) {
        loop {
            let before = self.after;
            let done = if self.has_streams {
                self.stream().await
            } else {
                self.page().await
            };
            if self.after > before {
                self.patience.advanced();
            }
            let mut error = match done {
                Ok(true) => return,
                Ok(false) => continue,
                Err(error) => error,
            };
            if self.has_streams && error.kind == ClientErrorKind::TimedOut {
                self.has_streams = false;
                continue;
            }
            // The server may be short of memory or file descriptors for a moment.
            if error.code == Some(ProblemCode::Internal) {
                (error.retryable, error.is_transient) = (true, true);
            }
            if let Err(error) = self.patience.wait(error).await {
                // Fails only if the reader is gone.
                let _ = self.sender.send(Err(error)).await;
                return;
            }
        }
    }

    fn call(&self) -> Result<Call, ClientError> {
        Call::get(&["runs", &self.run_id, "events"])
    }

    /// Reads the entries of one connection. Returns `true` at the end of the log.
    async fn stream(&mut self) -> Result<bool, ClientError> {
        let query = serde_json::json!({ "after": self.after });
        let call = self.call()?.with_query(&query)?.with_media(Media::Stream);
        let response = self.http.send(&call).await?;
        if response.status() == StatusCode::NO_CONTENT {
            return Ok(true);
        }
        let mut events = Events::new(self.http.clone(), response.into_body());
        while let Some(event) = events.next(&mut self.patience).await? {
            let is_last = match &*event.name {
                b"end" => true,
                b"" | b"message" => self.entry(event.data).await?,
                // An event of a later version.
                _ => false,
            };
            if is_last {
                return Ok(true);
            }
        }
        let url = self.http.url();
        let message = format!("{url} closed the connection");
        Err(ClientError::new(ClientErrorKind::Disconnected, message))
    }

    /// Reads one page of the log. Returns `true` at its end.
    async fn page(&mut self) -> Result<bool, ClientError> {
        let query = serde_json::json!({ "after": self.after, "wait": PAGE_SECONDS });
        let call = self.call()?.with_query(&query)?;
        let mut http = Http::clone(&self.http);
        http.limits.response += Duration::from_secs(PAGE_SECONDS);
        let body = http.bytes(&call).await?;
        self.patience.connected();
        if body.is_empty() {
            // Status 204.
            return Ok(true);
        }
        let page: Page = self.http.read(&body)?;
        for entry in page.entries {
            let json = String::from(Box::<str>::from(entry)).into_bytes();
            if self.entry(json).await? {
                return Ok(true);
            }
        }
        Ok(page.ended)
    }

    /// Passes an entry on. Returns `true` if it is the last one.
    async fn entry(&mut self, json: Vec<u8>) -> Result<bool, ClientError> {
        let line = LogLine::from_json(json, &self.run_id);
        let line = line.ok_or_else(|| self.http.unexpected(&"an entry without a number"))?;
        if line.seq() <= self.after {
            return Ok(false);
        }
        if line.seq() > self.after + 1 && !matches!(&*line.type_name(), "reset" | "damaged") {
            let reason = format!("entry {} follows entry {}", line.seq(), self.after);
            return Err(self.http.unexpected(&reason));
        }
        self.after = line.seq();
        let is_end = line.is_end();
        // Fails only if the reader is gone, which ends this task too.
        let _ = self.sender.send(Ok(line)).await;
        Ok(is_end)
    }
}

/// The events of one connection.
pub(crate) struct Events {
    http: Arc<Http>,
    body: Incoming,
    parser: SseParser,
}

impl Events {
    pub(crate) fn new(http: Arc<Http>, body: Incoming) -> Self {
        Self {
            http,
            body,
            parser: SseParser::default(),
        }
    }

    /// Returns the next event; `None` where the connection was closed. Any data shows that the server is there, also the
    /// heartbeats of a log to which nothing is added.
    pub(crate) async fn next(
        &mut self,
        patience: &mut Patience,
    ) -> Result<Option<SseEvent>, ClientError> {
        let silence = self.http.limits.silence;
        loop {
            if let Some(event) = self.parser.next() {
                return Ok(Some(event));
            }
            if self.parser.pending() > LARGEST_BODY {
                return Err(self.http.unexpected(&"an event is too large"));
            }
            let Ok(frame) = timeout(silence, self.body.frame()).await else {
                let url = self.http.url();
                let message = format!("{url} sent nothing for {silence:?}");
                return Err(ClientError::new(ClientErrorKind::TimedOut, message));
            };
            match frame.transpose() {
                // Trailers are ignored.
                Ok(Some(frame)) => {
                    if let Some(data) = frame.data_ref() {
                        patience.connected();
                        self.parser.push(data);
                    }
                }
                Ok(None) => return Ok(None),
                Err(error) => return Err(self.http.broken(&error)),
            }
        }
    }
}
