//! What the CLI reads.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::AsyncWrite;
use tokio::process::ChildStdin;

/// Bytes on their way to the CLI.
pub(crate) struct StdinWriter {
    pipe: ChildStdin,
    bytes: Vec<u8>,
    written: usize,
}

impl StdinWriter {
    pub(crate) fn new(pipe: ChildStdin, bytes: Vec<u8>) -> Self {
        Self {
            pipe,
            bytes,
            written: 0,
        }
    }

    /// Ready when there is nothing more to write: all was taken, or nobody reads.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.written < self.bytes.len() {
            let rest = &self.bytes[self.written..];
            match Pin::new(&mut self.pipe).poll_write(cx, rest) {
                Poll::Ready(Ok(count @ 1..)) => self.written += count,
                // A CLI that does not want its input may know what it does; its output will tell.
                Poll::Ready(_) => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }
}
