//! A server of the program, and a small HTTP client that sees every byte.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::cli::{LIMIT, Running, teamster};

/// A server on a free port.
pub(crate) struct Served {
    pub(crate) running: Running,
    pub(crate) address: String,
    pub(crate) token: String,
}

impl Served {
    /// Starts `teamster serve` with these arguments, in an environment that `prepare` makes.
    pub(crate) fn start(
        args: &[&str],
        state: &std::path::Path,
        prepare: impl Fn(&mut Command),
    ) -> Self {
        Self::listen("127.0.0.1:0", args, state, prepare)
    }

    /// The same on this address.
    pub(crate) fn start_at(
        address: &str,
        state: &std::path::Path,
        prepare: impl Fn(&mut Command),
    ) -> Self {
        Self::listen(address, &[], state, prepare)
    }

    fn listen(
        address: &str,
        args: &[&str],
        state: &std::path::Path,
        prepare: impl Fn(&mut Command),
    ) -> Self {
        let mut command = teamster(["serve", "--listen", address]);
        command.args(args);
        Self::by(command, state, prepare)
    }

    /// The same by this command.
    pub(crate) fn by(
        mut command: Command,
        state: &std::path::Path,
        prepare: impl Fn(&mut Command),
    ) -> Self {
        command.env("XDG_STATE_HOME", state);
        prepare(&mut command);
        let mut running = Running::start(&mut command);
        let line = running.line();
        let address = line.trim_end().strip_prefix("http://");
        let address = address.unwrap_or_else(|| panic!("{line:?} {}", running.end().stderr));
        let address = address.to_owned();
        let token = std::fs::read_to_string(token_file(state)).unwrap();
        Self {
            running,
            address,
            token: token.trim_end().to_owned(),
        }
    }

    /// A request with the owner's token.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        Request::new(&self.address, method, path)
            .header("Authorization", &format!("Bearer {}", self.token))
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.request("GET", path).send()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.request("POST", path).json(body).send()
    }

    /// Ends it in order.
    pub(crate) fn end(mut self) {
        self.running.signal(Signal::SIGTERM);
        let ended = self.running.end();
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""));
    }
}

pub(crate) fn token_file(state: &std::path::Path) -> PathBuf {
    state.join("teamster/server/token")
}

/// A request to be sent.
pub(crate) struct Request {
    address: String,
    head: String,
    body: Vec<u8>,
    host: Option<String>,
}

impl Request {
    pub(crate) fn new(address: &str, method: &str, path: &str) -> Self {
        Self {
            address: address.to_owned(),
            head: format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n"),
            body: Vec::new(),
            host: Some(address.to_owned()),
        }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        write!(self.head, "{name}: {value}\r\n").unwrap();
        self
    }

    pub(crate) fn host(mut self, host: Option<&str>) -> Self {
        self.host = host.map(str::to_owned);
        self
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        let mut request = self.header("Content-Type", "application/json");
        request.body = body.to_string().into_bytes();
        request
    }

    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sends it; the head of the response.
    pub(crate) fn open(self) -> Stream {
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

    pub(crate) fn send(self) -> Response {
        self.open().rest()
    }
}

/// A response whose body is still coming.
pub(crate) struct Stream {
    reader: BufReader<TcpStream>,
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Stream {
    pub(crate) fn read(stream: TcpStream) -> Self {
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

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    fn is_chunked(&self) -> bool {
        self.header("transfer-encoding") == Some("chunked")
    }

    /// The next piece of a body of unknown length; `None` at its end, `Err` if it breaks off.
    pub(crate) fn piece(&mut self) -> std::io::Result<Option<Vec<u8>>> {
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

    /// Reads until the body has this text, or ends; what was read.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let mut body = Vec::new();
        while !String::from_utf8_lossy(&body).contains(text) {
            match self.piece() {
                Ok(Some(piece)) => body.extend(piece),
                Ok(None) | Err(_) => break,
            }
        }
        String::from_utf8(body).unwrap()
    }

    pub(crate) fn rest(mut self) -> Response {
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
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// It is a problem of this status and code.
    #[track_caller]
    pub(crate) fn is_problem(&self, status: u16, code: &str) {
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

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let found = headers.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| &**value)
}
