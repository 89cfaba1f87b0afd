//! Input of the CLI.

use std::pin::Pin;
use std::task::{Context, Poll};

use teamster_core::provider::Stdin;
use tokio::io::AsyncWrite;
use tokio::process::ChildStdin;

/// Bytes on their way to the CLI.
pub(crate) struct StdinWriter {
    pipe: ChildStdin,
    bytes: Vec<u8>,
    written: usize,
    /// Stays open when all is written.
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

    /// More for the CLI.
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

    /// Closes the pipe once the CLI has reported that it is done.
    pub(crate) fn release(&mut self) {
        self.hold = false;
    }

    /// Ready when it is to be closed: all was taken and nothing holds it open, or its reader is gone.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.written < self.bytes.len() {
            let rest = &self.bytes[self.written..];
            match Pin::new(&mut self.pipe).poll_write(cx, rest) {
                Poll::Ready(Ok(count @ 1..)) => self.written += count,
                // A CLI that does not want its input may know what it does; its output will show it.
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
