//! A peer that speaks JSON-RPC, one message a line, on a program's stdin and stdout.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use serde_json::{Value, json};
use teamster_testkit::proc::wait_until;

use crate::cli::LIMIT;

/// A program and what it has written.
pub(crate) struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    pub(crate) seen: Vec<Value>,
    id: u64,
}

impl Peer {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            seen: Vec::new(),
            id: 0,
        }
    }

    pub(crate) fn write(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
    }

    pub(crate) fn send(&mut self, method: &str, params: &Value) -> u64 {
        self.id += 1;
        let id = self.id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    pub(crate) fn notify(&mut self, method: &str, params: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Waits for a message; it and those before it are in `seen`.
    pub(crate) fn wait(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + LIMIT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("no {what}: {:#?}", self.seen);
            };
            let message: Value = serde_json::from_str(&line).unwrap();
            self.seen.push(message.clone());
            if is_it(&message) {
                return message;
            }
        }
    }

    pub(crate) fn answer(&mut self, id: u64) -> Value {
        self.wait(&format!("answer to {id}"), |it| {
            it["id"] == id && it["method"].is_null()
        })
    }

    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Closes stdin; the stderr until the end.
    pub(crate) fn end_with_stderr(mut self) -> String {
        drop(self.stdin.take());
        let mut text = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut text).unwrap();
        text
    }

    /// Closes stdin; the exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        let child = &mut self.child;
        assert!(wait_until(LIMIT, || child.try_wait().unwrap().is_some()));
        child.wait().unwrap().code()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
