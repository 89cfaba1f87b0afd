//! Writer of the CLI's input.

use std::pin::Pin;
use std::task::{Context, Poll};

use teamster_core::provider::Stdin;
use tokio::io::AsyncWrite;
use tokio::process::ChildStdin;

/// Writes pending bytes to the CLI's stdin.
pub(crate) struct StdinWriter {
    pipe: ChildStdin,
    bytes: Vec<u8>,
    written: usize,
    /// True to keep the pipe open after all bytes are written.
    hold: bool,
}

impl StdinWriter {
    pub(crate) fn new(pipe: ChildStdin, input: Stdin) -> Self {
        let (bytes, hold) = match input {
            Stdin::Bytes(bytes) => (bytes, false),
            Stdin::Open(bytes) => (bytes, true),
            _ => (Vec::new(), false),
        };
        Self {
            pipe,
            bytes,
            written: 0,
            hold,
        }
    }

    /// Adds input for the CLI.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        if self.written == self.bytes.len() {
            self.bytes = bytes;
            self.written = 0;
        } else {
            self.bytes.extend(bytes);
        }
    }

    /// Lets the pipe be closed after all bytes are written. Called when the CLI has reported that it is done.
    pub(crate) fn release(&mut self) {
        self.hold = false;
    }

    /// Writes pending bytes. Ready when the pipe is to be closed: all is written and nothing holds it open, or its
    /// reader is gone.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.written < self.bytes.len() {
            let rest = &self.bytes[self.written..];
            match Pin::new(&mut self.pipe).poll_write(cx, rest) {
                Poll::Ready(Ok(count @ 1..)) => self.written += count,
                // A CLI may close its stdin on purpose; its output shows the outcome.
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
        if self.hold {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    }
}
