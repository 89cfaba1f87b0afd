//! Output of a server: messages and other lines on stdout, and stderr.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value};
use teamster_core::provider::mixed_line;
use teamster_core::sync::lock;
use teamster_core::text::{excerpt, one_line};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Time limit of reading the remaining output after the server has ended.
const DRAIN: Duration = Duration::from_millis(300);
/// Maximum size of a message's line, in bytes.
const LONGEST_LINE: u64 = 16 << 20;
/// Size of the kept end of stderr, in bytes.
const STDERR_BYTES: usize = 16 << 10;
const STDERR_LINES: usize = 5;
/// Maximum length of a text from the server in an error message.
const LONGEST_TEXT: usize = 300;

/// Output of a server other than messages. Dropping it stops the readers.
pub(crate) struct Output {
    garbage: Arc<Mutex<Option<String>>>,
    stderr: Arc<Mutex<Vec<u8>>>,
    tasks: [JoinHandle<()>; 2],
}

impl Output {
    /// Starts to read. The returned stream has the lines that can be messages. A client would silently drop other
    /// lines.
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

    /// Returns the first line on stdout that was not a message.
    pub(crate) fn garbage(&self) -> Option<String> {
        lock(&self.garbage).clone()
    }

    /// Returns the last lines on stderr, at most 5. Called after the server has ended.
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

/// Forwards the lines that can be messages, and keeps the first one that cannot.
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
            let line = String::from_utf8_lossy(&line);
            lock(&garbage).get_or_insert_with(|| text(&line));
            // A banner without a line end, or two messages in a line.
            for found in mixed_line::objects(&line) {
                let object = serde_json::from_str::<Map<String, Value>>(&found.json);
                if !object.is_ok_and(|object| object.contains_key("jsonrpc")) {
                    continue;
                }
                let message = [found.json.as_bytes(), b"\n"].concat();
                if to_client.write_all(&message).await.is_err() {
                    return;
                }
            }
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

/// Returns a text of the server in one line, shortened.
pub(crate) fn text(text: &str) -> String {
    excerpt(&one_line(text), LONGEST_TEXT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn messages_are_found_beside_other_text() {
        // Made by hand: a banner, terminal codes, two messages in a line and a broken one.
        let stdout: &[u8] = b"npm warn {x} {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\
            \x1b[2K{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}{\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\
            {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"text\":\"a\x1b[2Kb\"}}\n{\"level\":1} done\n";
        let (output, mut messages) = Output::new(stdout, tokio::io::empty());
        let mut read = String::new();
        messages.read_to_string(&mut read).await.unwrap();
        assert_eq!(
            read.lines().collect::<Vec<_>>(),
            [
                r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
                r#"{"jsonrpc":"2.0","id":2,"result":{}}"#,
                r#"{"jsonrpc":"2.0","method":"a"}"#,
            ]
        );
        let garbage = output.garbage().unwrap();
        assert!(garbage.starts_with("npm warn {x} "), "{garbage}");
    }
}
