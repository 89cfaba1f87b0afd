//! A way from one process to the servers that loses, delays and repeats single messages, and cuts connections.
//!
//! What is not a message (`INFO`, `CONNECT`, `SUB`, `PING`, …) passes as it is. A message that is delayed is overtaken by
//! those after it, as when a connection was made again.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use teamster_testkit::stand_in::Chance;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

/// Number of messages that wait to be written.
const WAITING: usize = 1024;

/// What is done to messages, and how often it was.
pub(crate) struct Links {
    chance: Mutex<Chance>,
    /// The probability with which something is done to a message.
    probability: f64,
    /// Nothing is done any more.
    is_over: AtomicBool,
    cut: Notify,
    pub(crate) counts: Mutex<BTreeMap<&'static str, usize>>,
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Passes,
    IsLost,
    IsLate(Duration),
    IsRepeated(Duration),
}

impl Links {
    /// Starts a proxy for each of these ports, and returns the addresses of the proxies.
    pub(crate) async fn start(seed: u64, probability: f64, ports: &[u16]) -> (Arc<Self>, String) {
        let links = Arc::new(Self {
            chance: Mutex::new(Chance::of(seed, 2, 0)),
            probability,
            is_over: AtomicBool::new(false),
            cut: Notify::new(),
            counts: Mutex::default(),
        });
        let mut urls = Vec::new();
        for port in ports.iter().copied() {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            urls.push(format!("nats://{}", listener.local_addr().unwrap()));
            let links = links.clone();
            tokio::spawn(async move {
                while let Ok((client, _)) = listener.accept().await {
                    tokio::spawn(links.clone().carry(client, port));
                }
            });
        }
        (links, urls.join(","))
    }

    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Cuts all connections of the process.
    pub(crate) fn cut(&self) {
        self.cut.notify_waiters();
    }

    async fn carry(self: Arc<Self>, client: TcpStream, port: u16) {
        let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else {
            return;
        };
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::select! {
            _ = self.pass(from_client, to_server) => {}
            _ = self.pass(from_server, to_client) => {}
            () = self.cut.notified() => {}
        }
    }

    async fn pass(
        &self,
        from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        let (late, mut waiting) = mpsc::channel::<Vec<u8>>(WAITING);
        let mut from = BufReader::new(from);
        loop {
            let read = read(&mut from);
            tokio::pin!(read);
            // What is late goes between messages, and not into one.
            let (content, is_message) = loop {
                tokio::select! {
                    content = &mut read => break content?,
                    Some(content) = waiting.recv() => to.write_all(&content).await?,
                }
            };
            let send_later = |content: Vec<u8>, after: Duration| {
                let late = late.clone();
                tokio::spawn(async move {
                    sleep(after).await;
                    let _ = late.send(content).await;
                });
            };
            if is_message {
                self.count_answer(&content);
                if self.is_doubled(&content) {
                    to.write_all(&content).await?;
                }
            }
            match if is_message {
                self.fate()
            } else {
                Fate::Passes
            } {
                Fate::Passes => to.write_all(&content).await?,
                Fate::IsLost => {}
                Fate::IsLate(after) => send_later(content, after),
                Fate::IsRepeated(after) => {
                    to.write_all(&content).await?;
                    send_later(content, after);
                }
            }
        }
    }

    /// Counts the answers to requests that expect a number.
    fn count_answer(&self, content: &[u8]) {
        for (code, what) in [
            (&b"\"err_code\":10164"[..], "answer 10164"),
            (b"\"err_code\":10071", "answer 10071"),
        ] {
            if content.windows(code.len()).any(|part| part == code) {
                *self.counts.lock().unwrap().entry(what).or_default() += 1;
            }
        }
    }

    /// Returns whether a request that expects a number is to be sent twice at once: the second one arrives while the first
    /// one is under way.
    fn is_doubled(&self, content: &[u8]) -> bool {
        const EXPECTS: &[u8] = b"Nats-Expected-Last-Subject-Sequence";
        if self.is_over.load(Ordering::Relaxed)
            || !content.starts_with(b"HPUB")
            || !content.windows(EXPECTS.len()).any(|part| part == EXPECTS)
        {
            return false;
        }
        let doubled = self.chance.lock().unwrap().happens(10.0 * self.probability);
        if doubled {
            let mut counts = self.counts.lock().unwrap();
            *counts.entry("request doubled").or_default() += 1;
        }
        doubled
    }

    fn fate(&self) -> Fate {
        if self.is_over.load(Ordering::Relaxed) {
            return Fate::Passes;
        }
        let mut chance = self.chance.lock().unwrap();
        if !chance.happens(self.probability) {
            return Fate::Passes;
        }
        let kind = chance.between([0, 2]);
        let longest = [50, 500, 6_000][usize::try_from(chance.between([0, 2])).unwrap()];
        let after = Duration::from_millis(chance.between([0, longest]));
        let (what, fate) = match kind {
            0 => ("message lost", Fate::IsLost),
            1 => ("message late", Fate::IsLate(after)),
            _ => ("message repeated", Fate::IsRepeated(after)),
        };
        *self.counts.lock().unwrap().entry(what).or_default() += 1;
        fate
    }
}

/// Reads a line of the protocol with what belongs to it. Returns whether it is a message.
async fn read(from: &mut (impl AsyncBufReadExt + Unpin)) -> io::Result<(Vec<u8>, bool)> {
    let mut content = Vec::new();
    if from.read_until(b'\n', &mut content).await? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let line = String::from_utf8_lossy(&content).into_owned();
    let mut words = line.split_whitespace();
    let kind = words.next().unwrap_or_default().to_ascii_uppercase();
    let is_message = ["PUB", "HPUB", "MSG", "HMSG"].contains(&&*kind);
    if is_message {
        // The last number is the size of all that follows, without the end of its line.
        let size: usize = words
            .next_back()
            .and_then(|size| size.parse().ok())
            .unwrap_or(0);
        let head = content.len();
        content.resize(head + size + 2, 0);
        from.read_exact(&mut content[head..]).await?;
    }
    Ok((content, is_message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_whole_and_all_else_by_lines() {
        let wire =
            b"PING\r\nPUB a.b r 5\r\nx\r\nyz\r\nHMSG a 1 12 15\r\nNATS/1.0\r\n\r\nabc\r\n+OK\r\n";
        super::super::super::machine::block_on(async {
            let mut from = BufReader::new(&wire[..]);
            let mut found = Vec::new();
            while let Ok((content, is_message)) = read(&mut from).await {
                found.push((String::from_utf8(content).unwrap(), is_message));
            }
            let expected = [
                ("PING\r\n", false),
                ("PUB a.b r 5\r\nx\r\nyz\r\n", true),
                ("HMSG a 1 12 15\r\nNATS/1.0\r\n\r\nabc\r\n", true),
                ("+OK\r\n", false),
            ];
            let expected = expected.map(|(text, is_message)| (text.to_owned(), is_message));
            assert_eq!(found, expected);
        });
    }
}
