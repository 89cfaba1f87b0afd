//! Output of a server: messages and other lines on stdout, and stderr.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};
use teamster_core::sync::lock;
use teamster_core::text::{excerpt, one_line};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How long the rest of what it wrote may take to arrive once it has ended.
const DRAIN: Duration = Duration::from_millis(300);
/// A line that is longer is no message.
const LONGEST_LINE: u64 = 16 << 20;
/// How much of the end of stderr is kept, in bytes, and how many lines of it are shown.
const STDERR_BYTES: usize = 16 << 10;
const STDERR_LINES: usize = 5;
/// The longest text of the server's in a message.
const LONGEST_TEXT: usize = 300;

/// Output of a server beside messages. Dropping it ends the reading.
pub(crate) struct Output {
    garbage: Arc<Mutex<Option<String>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    tasks: [JoinHandle<()>; 2],
}

impl Output {
    /// Begins to read; the stream has the lines that can be messages. A client would drop the others silently.
    pub(crate) fn new(
        stdout: impl AsyncRead + Unpin + Send + 'static,
        stderr: impl AsyncRead + Unpin + Send + 'static,
    ) -> (Self, DuplexStream) {
        let (messages, to_client) = tokio::io::duplex(64 << 10);
        let garbage = Arc::default();
        let end = Arc::default();
        let tasks = [
            tokio::spawn(sort_out(stdout, to_client, Arc::clone(&garbage))),
            tokio::spawn(keep_end(stderr, Arc::clone(&end))),
        ];
        let output = Self {
            garbage,
            stderr: end,
            tasks,
        };
        (output, messages)
    }

    /// The first line on stdout that was no message.
    pub(crate) fn garbage(&self) -> Option<String> {
        lock(&self.garbage).clone()
    }

    /// The last lines on stderr of a server that has ended.
    pub(crate) async fn last_lines(&mut self) -> Vec<String> {
        let [_, stderr] = &mut self.tasks;
        let _ = timeout(DRAIN, stderr).await;
        let end = lock(&self.stderr);
        let end = String::from_utf8_lossy(&end);
        let lines = end.lines().map(text).filter(|line| !line.is_empty());
        let mut lines: Vec<String> = lines.collect();
        lines.split_off(lines.len().saturating_sub(STDERR_LINES))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Passes on the lines that can be messages and keeps the first one that cannot.
async fn sort_out(
    stdout: impl AsyncRead + Unpin,
    mut to_client: DuplexStream,
    garbage: Arc<Mutex<Option<String>>>,
) {
    let mut stdout = BufReader::new(stdout);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut stdout)
            .take(LONGEST_LINE)
            .read_until(b'\n', &mut line)
            .await;
        if !read.is_ok_and(|bytes| bytes > 0) {
            return;
        }
        if serde_json::from_slice::<Map<String, Value>>(&line).is_ok() {
            if to_client.write_all(&line).await.is_err() {
                return;
            }
        } else if !line.trim_ascii().is_empty() {
            lock(&garbage).get_or_insert_with(|| text(&String::from_utf8_lossy(&line)));
        }
    }
}

async fn keep_end(mut stderr: impl AsyncRead + Unpin, end: Arc<Mutex<Vec<u8>>>) {
    let mut piece = [0; 4096];
    while let Ok(bytes @ 1..) = stderr.read(&mut piece).await {
        let mut end = lock(&end);
        end.extend_from_slice(&piece[..bytes]);
        let too_much = end.len().saturating_sub(STDERR_BYTES);
        end.drain(..too_much);
    }
}

/// A text of the server's in one line that is not too long.
pub(crate) fn text(text: &str) -> String {
    excerpt(&one_line(text), LONGEST_TEXT)
}
