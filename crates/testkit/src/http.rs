//! A small HTTP client that sees every byte, for tests of servers.
//!
//! Everything panics at what a test does not expect, such as a response that does not come within a minute.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "it is for tests, whose failures are panics"
)]

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;

/// The time limit of a read.
const LIMIT: Duration = Duration::from_mins(1);

/// A request to be sent.
#[derive(Debug)]
pub struct Request {
    address: String,
    head: String,
    body: Vec<u8>,
    host: Option<String>,
}

impl Request {
    /// Creates a request to this address (`HOST:PORT`). The connection is closed after it.
    pub fn new(address: &str, method: &str, path: &str) -> Self {
        Self {
            address: address.to_owned(),
            head: format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n"),
            body: Vec::new(),
            host: Some(address.to_owned()),
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        write!(self.head, "{name}: {value}\r\n").unwrap();
        self
    }

    /// Sets the `Host` header, or leaves it out.
    #[must_use]
    pub fn host(mut self, host: Option<&str>) -> Self {
        self.host = host.map(str::to_owned);
        self
    }

    /// Sets a body of JSON.
    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        let mut request = self.header("Content-Type", "application/json");
        request.body = body.to_string().into_bytes();
        request
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends the request and reads the head of the response.
    pub fn open(self) -> Stream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let host = self
            .host
            .map(|host| format!("Host: {host}\r\n"))
            .unwrap_or_default();
        let length = match self.body.len() {
            0 => String::new(),
            length => format!("Content-Length: {length}\r\n"),
        };
        let head = format!("{}{host}{length}\r\n", self.head);
        stream.write_all(head.as_bytes()).unwrap();
        // A server that refuses a body may close before it has read all of it.
        let _ = stream.write_all(&self.body);
        Stream::read(stream)
    }

    /// Sends the request for a stream of server-sent events, and reads the head of the response.
    pub fn open_events(self) -> Stream {
        self.header("Accept", "text/event-stream").open()
    }

    /// Sends the request and reads the whole response.
    pub fn send(self) -> Response {
        self.open().rest()
    }
}

/// A response whose body is still coming.
#[derive(Debug)]
pub struct Stream {
    reader: BufReader<TcpStream>,
    /// The status.
    pub status: u16,
    headers: Vec<(String, String)>,
}

/// A response.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Stream {
    /// Reads the head of a response.
    pub fn read(stream: TcpStream) -> Self {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let status = line
            .split(' ')
            .nth(1)
            .unwrap_or_else(|| panic!("{line:?}"))
            .parse()
            .unwrap();
        let mut headers = Vec::new();
        loop {
            line.clear();
            reader.read_line(&mut line).unwrap();
            match line.trim_end().split_once(": ") {
                Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.to_owned())),
                None => break,
            }
        }
        Self {
            reader,
            status,
            headers,
        }
    }

    /// Returns the value of a header, whose name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    fn is_chunked(&self) -> bool {
        self.header("transfer-encoding") == Some("chunked")
    }

    /// Returns the next piece of a body of unknown length; `None` at its end.
    ///
    /// # Errors
    ///
    /// Fails if the body breaks off.
    pub fn piece(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        assert!(self.is_chunked());
        let mut line = String::new();
        if self.reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let length = usize::from_str_radix(line.trim_end(), 16).unwrap();
        let mut piece = vec![0; length + 2];
        self.reader.read_exact(&mut piece)?;
        piece.truncate(length);
        Ok((length > 0).then_some(piece))
    }

    /// Reads until the body has this text, or ends. Returns what was read.
    pub fn until(&mut self, text: &str) -> String {
        let mut body = Vec::new();
        while !String::from_utf8_lossy(&body).contains(text) {
            match self.piece() {
                Ok(Some(piece)) => body.extend(piece),
                Ok(None) | Err(_) => break,
            }
        }
        String::from_utf8(body).unwrap()
    }

    /// Reads messages, which are lines of JSON, up to one of which this holds.
    pub fn messages_until(&mut self, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut messages = Vec::new();
        loop {
            let piece = self.piece().unwrap().unwrap();
            for line in String::from_utf8(piece).unwrap().lines() {
                let message: Value = serde_json::from_str(line).unwrap();
                let found = wanted(&message);
                messages.push(message);
                if found {
                    return messages;
                }
            }
        }
    }

    /// Reads the rest of the response.
    pub fn rest(mut self) -> Response {
        let mut body = Vec::new();
        if self.is_chunked() {
            while let Some(piece) = self.piece().unwrap() {
                body.extend(piece);
            }
        } else {
            self.reader.read_to_end(&mut body).unwrap();
        }
        Response {
            status: self.status,
            headers: self.headers,
            body: String::from_utf8(body).unwrap(),
        }
    }
}

impl Response {
    /// Returns the value of a header, whose name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// Checks that this is a problem with this status and code.
    #[track_caller]
    pub fn is_problem(&self, status: u16, code: &str) {
        assert_eq!(self.status, status, "{}", self.body);
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json")
        );
        let problem = self.json();
        assert_eq!(
            (&problem["code"], &problem["status"]),
            (&code.into(), &status.into())
        );
        assert!(!problem["detail"].as_str().unwrap().is_empty());
    }
}

/// Returns the ids and the data of the server-sent events in a text. Those without an id are left out.
pub fn events_in(text: &str) -> Vec<(u64, String)> {
    let mut events = Vec::new();
    for block in text.split("\n\n") {
        let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
        if let (Some(id), Some(data)) = (field("id: "), field("data: ")) {
            events.push((id.parse().unwrap(), data.to_owned()));
        }
    }
    events
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| &**value)
}
