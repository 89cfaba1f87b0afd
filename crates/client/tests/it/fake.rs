//! A server whose responses are bytes.

use std::fmt::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use teamster_client::Client;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::time::timeout;

/// How long anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// A response.
#[derive(Clone)]
pub(crate) struct Reply {
    bytes: Vec<u8>,
    /// The connection is kept open after them.
    keep: bool,
}

impl Reply {
    /// Sends these bytes and closes the connection.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self { bytes, keep: false }
    }

    /// Sends a complete response.
    pub(crate) fn new(status: u16, media: &str, body: &str) -> Self {
        Self::with(status, media, "", body)
    }

    /// Sends a complete response with further lines of its head, each with its end.
    pub(crate) fn with(status: u16, media: &str, more: &str, body: &str) -> Self {
        let length = body.len();
        let more = format!("Content-Length: {length}\r\n{more}");
        Self::raw(head(status, media, &more) + body)
    }

    pub(crate) fn json(status: u16, body: &str) -> Self {
        Self::new(status, "application/json", body)
    }

    pub(crate) fn problem(status: u16, code: &str) -> Self {
        Self::refusal(status, code, "")
    }

    /// Sends a problem with further lines of its head.
    pub(crate) fn refusal(status: u16, code: &str, more: &str) -> Self {
        let body = serde_json::json!({"type": "about:blank", "title": "", "status": status,
            "code": code, "detail": format!("because of {code}")});
        Self::with(status, "application/problem+json", more, &body.to_string())
    }

    /// Sends the beginning of a stream with these entries, and closes the connection.
    pub(crate) fn stream(entries: &[String]) -> Self {
        let mut text = head(200, "text/event-stream", "") + "retry: 1000\n\n";
        for entry in entries {
            write!(text, "id: 0\ndata: {entry}\n\n").unwrap();
        }
        Self::raw(text)
    }

    pub(crate) fn and(mut self, bytes: &str) -> Self {
        self.bytes.extend_from_slice(bytes.as_bytes());
        self
    }

    pub(crate) fn is_stream(&self) -> bool {
        String::from_utf8_lossy(&self.bytes).contains("text/event-stream")
    }

    /// Keeps the connection open.
    pub(crate) fn open(mut self) -> Self {
        self.keep = true;
        self
    }
}

/// Returns the head of a response whose body ends with the connection.
pub(crate) fn head(status: u16, media: &str, more: &str) -> String {
    let media = match media {
        "" => String::new(),
        media => format!("Content-Type: {media}\r\n"),
    };
    format!("HTTP/1.1 {status} X\r\n{media}{more}Connection: close\r\n\r\n")
}

/// The end of a stream.
pub(crate) const END: &str = "event: end\ndata: {}\n\n";

/// Returns an entry with text.
pub(crate) fn text(seq: u64) -> String {
    format!(r#"{{"seq":{seq},"atMs":1,"attempt":1,"type":"text","text":"{seq}"}}"#)
}

/// Returns the last entry of the log of run `a`.
pub(crate) fn done(seq: u64) -> String {
    format!(r#"{{"seq":{seq},"atMs":1,"attempt":1,"runId":"a","type":"done","result":{{}}}}"#)
}

/// Returns the view of a run with this number of entries.
pub(crate) fn view(seq: u64) -> String {
    serde_json::json!({"runId": "a", "kind": "run", "provider": "claude", "acceptedAt": 1, "seq": seq,
        "state": "running", "requests": []})
    .to_string()
}

type Respond = dyn Fn(usize, &str) -> Reply + Send + Sync;

/// A server on loopback.
pub(crate) struct Fake {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
    /// The number of open connections.
    open: Arc<watch::Sender<usize>>,
}

impl Fake {
    /// Gives each request, with its number from 1, to `respond`.
    pub(crate) async fn new(
        respond: impl Fn(usize, &str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let fake = Self::of(url);
        let (requests, open, respond) =
            (fake.requests.clone(), fake.open.clone(), Arc::new(respond));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                serve(stream, requests.clone(), open.clone(), respond.clone());
            }
        });
        fake
    }

    /// The same on a socket.
    pub(crate) fn unix(
        path: &Path,
        respond: impl Fn(usize, &str) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let fake = Self::of(format!("unix:{}", path.display()));
        let (requests, open, respond) =
            (fake.requests.clone(), fake.open.clone(), Arc::new(respond));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                serve(stream, requests.clone(), open.clone(), respond.clone());
            }
        });
        fake
    }

    fn of(url: String) -> Self {
        Self {
            url,
            requests: Arc::default(),
            open: Arc::default(),
        }
    }

    /// Gives one response after the other, and the last one to all further requests.
    pub(crate) async fn steps(replies: impl Into<Vec<Reply>>) -> Self {
        let replies = replies.into();
        Self::new(move |number, _| replies[number.min(replies.len()) - 1].clone()).await
    }

    /// Returns a client with short limits.
    pub(crate) fn client(&self) -> Client {
        Client::new(&self.url, Some("secret"))
            .unwrap()
            .with_response_limit(Duration::from_secs(2))
            .with_silence_limit(Duration::from_secs(2))
            .with_reconnect_limit(Duration::from_millis(100))
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Waits until all connections are closed.
    pub(crate) async fn closed(&self) {
        let mut open = self.open.subscribe();
        let closed = timeout(LIMIT, open.wait_for(|open| *open == 0)).await;
        closed.unwrap().unwrap();
    }
}

/// Counts a connection as closed when it is dropped.
struct Closes(Arc<watch::Sender<usize>>);

impl Drop for Closes {
    fn drop(&mut self) {
        self.0.send_modify(|open| *open -= 1);
    }
}

fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    requests: Arc<Mutex<Vec<String>>>,
    open: Arc<watch::Sender<usize>>,
    respond: Arc<Respond>,
) {
    tokio::spawn(async move {
        open.send_modify(|open| *open += 1);
        let _closes = Closes(open);
        let mut received = Vec::new();
        loop {
            let mut piece = [0; 4096];
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => return,
                Ok(length) => received.extend_from_slice(&piece[..length]),
            }
            if is_complete(&received) {
                break;
            }
        }
        let request = String::from_utf8_lossy(&received).into_owned();
        let number = {
            let mut all = requests.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(request.clone());
            all.len()
        };
        let reply = respond(number, &request);
        // The client may be gone.
        let _ = stream.write_all(&reply.bytes).await;
        if reply.keep {
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest).await;
        }
        let _ = stream.shutdown().await;
    });
}

/// Returns whether a request has arrived.
fn is_complete(received: &[u8]) -> bool {
    let text = String::from_utf8_lossy(received);
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<usize>().unwrap())
    });
    received.len() >= head.len() + 4 + length.unwrap_or(0)
}
