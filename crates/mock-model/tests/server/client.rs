//! An HTTP/1.1 client that exposes the bytes on the wire.

use std::time::Duration;

use serde_json::{Value, json};
use teamster_mock_model::{MockModel, MockModelSettings, Script};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longer than any operation here.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Claude's user agent, so that the server calls its tools.
pub(crate) const USER_AGENT: &str = "claude-cli/2.1.197 (external, cli)";

pub(crate) fn script(text: &str) -> Script {
    text.parse().unwrap()
}

/// Starts a server without pauses between pieces of text.
pub(crate) async fn server(text: &str) -> MockModel {
    let mut settings = MockModelSettings::default();
    settings.pace = Duration::ZERO;
    MockModel::start_with(script(text), settings).await.unwrap()
}

/// Returns a conversation with this many turns of the model.
pub(crate) fn conversation(turns: usize, stream: bool) -> Value {
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    for _ in 0..turns {
        messages.push(json!({"role": "assistant", "content": "answer"}));
        messages.push(json!({"role": "user", "content": "and"}));
    }
    json!({"model": "m", "stream": stream, "messages": messages})
}

pub(crate) struct Connection {
    stream: TcpStream,
    /// Bytes read beyond the current answer.
    rest: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The head, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
    /// True if the body has its end.
    pub(crate) complete: bool,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

impl Connection {
    pub(crate) async fn to(model: &MockModel) -> Self {
        Self {
            stream: TcpStream::connect(model.address()).await.unwrap(),
            rest: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, method: &str, path: &str, body: &[u8]) {
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: x\r\nuser-agent: {USER_AGENT}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.stream.write_all(head.as_bytes()).await.unwrap();
        // The server may answer before it has read the whole body.
        let _ = self.stream.write_all(body).await;
    }

    /// Writes literal bytes until the server stops reading.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    pub(crate) async fn ask(&mut self, body: &Value) {
        let body = body.to_string();
        self.send("POST", "/v1/messages?beta=true", body.as_bytes())
            .await;
    }

    /// Reads more bytes. Returns `false` at any end of the connection.
    async fn more(&mut self) -> bool {
        let mut bytes = [0; 4096];
        let read = tokio::time::timeout(DEADLINE, self.stream.read(&mut bytes))
            .await
            .expect("the server sends nothing");
        let count = read.unwrap_or(0);
        self.rest.extend(&bytes[..count]);
        count > 0
    }

    /// Takes the bytes up to and including `end`. Returns `None` if the connection ends before.
    async fn until(&mut self, end: &[u8]) -> Option<String> {
        loop {
            if let Some(at) = self.rest.windows(end.len()).position(|bytes| bytes == end) {
                let taken: Vec<_> = self.rest.drain(..at + end.len()).collect();
                return Some(String::from_utf8(taken[..at].to_vec()).unwrap());
            }
            if !self.more().await {
                return None;
            }
        }
    }

    /// Takes this many bytes.
    async fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.rest.len() < count {
            if !self.more().await {
                return None;
            }
        }
        Some(self.rest.drain(..count).collect())
    }

    /// Reads the head of an answer.
    pub(crate) async fn head(&mut self) -> Option<(u16, String)> {
        let head = self.until(b"\r\n\r\n").await?.to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Some((status, head))
    }

    /// Reads a chunk of a streamed body, which is empty at its end. Returns `None` if it breaks off.
    pub(crate) async fn chunk(&mut self) -> Option<String> {
        let length = self.until(b"\r\n").await?;
        let length = usize::from_str_radix(&length, 16).unwrap();
        let bytes = self.bytes(length + 2).await?;
        assert!(bytes.ends_with(b"\r\n"));
        Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
    }

    /// Reads a whole answer. Returns `None` if the connection ends before its head.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        let (status, head) = self.head().await?;
        let mut body = String::new();
        let complete = if head.contains("transfer-encoding: chunked") {
            loop {
                match self.chunk().await {
                    Some(chunk) if chunk.is_empty() => break true,
                    Some(chunk) => body.push_str(&chunk),
                    None => break false,
                }
            }
        } else {
            let length = head.split("content-length: ").nth(1).map_or(0, |length| {
                length.lines().next().unwrap().trim().parse().unwrap()
            });
            match self.bytes(length).await {
                Some(bytes) => {
                    body = String::from_utf8(bytes).unwrap();
                    true
                }
                None => false,
            }
        };
        Some(Answer {
            status,
            head,
            body,
            complete,
        })
    }

    /// Returns whether the server has closed the connection.
    pub(crate) async fn is_over(&mut self) -> bool {
        assert!(self.rest.is_empty(), "{:?}", self.rest);
        !self.more().await
    }
}

/// Sends a request on a new connection.
pub(crate) async fn ask(model: &MockModel, body: &Value) -> Answer {
    let mut connection = Connection::to(model).await;
    connection.ask(body).await;
    connection.answer().await.unwrap()
}

/// Waits until this runtime has this many tasks.
pub(crate) async fn tasks(count: usize) {
    let metrics = tokio::runtime::Handle::current().metrics();
    let start = std::time::Instant::now();
    while metrics.num_alive_tasks() != count {
        assert!(
            start.elapsed() < DEADLINE,
            "{} tasks are left, not {count}",
            metrics.num_alive_tasks()
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
