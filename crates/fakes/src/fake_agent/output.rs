//! Standard output and standard error, including faults of real CLIs.

use std::collections::VecDeque;
use std::io;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd;

use super::Flow;
use super::Stop;
use super::write::Stream;

/// Delay before a full non-blocking pipe is retried.
pub(super) const RETRY: Duration = Duration::from_millis(1);

/// Writing end of one stream. It is unbuffered, so that a half line is written immediately.
#[derive(Debug)]
pub(super) struct Sink {
    stream: Stream,
    /// Bytes that the pipe has not accepted yet; `None` unless the stream is lossy.
    queue: Option<VecDeque<u8>>,
    /// The exit code if a missing reader ends the agent.
    pub(super) exit_on_epipe: Option<u8>,
    /// True if the script or the reader closed the stream.
    gone: bool,
}

impl Sink {
    pub(super) fn new(stream: Stream) -> Self {
        Self {
            stream,
            queue: None,
            exit_on_epipe: None,
            gone: false,
        }
    }

    /// Writes all bytes. In lossy mode, writes those that the pipe accepts and queues the rest.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Flow {
        if let Some(queue) = &mut self.queue {
            queue.extend(bytes);
            return self.drain().map(|_| ());
        }
        let mut rest = bytes;
        while !self.gone && !rest.is_empty() {
            match self.write_some(rest)? {
                Some(written) => rest = &rest[written..],
                // The stream is not lossy, but another process that shares the pipe made it non-blocking.
                None => thread::sleep(RETRY),
            }
        }
        Ok(())
    }

    /// Writes the queued bytes that the pipe accepts. Returns whether the queue is empty.
    pub(super) fn drain(&mut self) -> Result<bool, Stop> {
        while let Some(mut queue) = self.queue.take_if(|queue| !queue.is_empty()) {
            let written = self.write_some(queue.as_slices().0);
            if let Ok(Some(written)) = written {
                queue.drain(..written);
            }
            if self.gone {
                queue.clear();
            }
            self.queue = Some(queue);
            if written?.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Makes the pipe non-blocking. Bytes that it has not accepted at the end are lost.
    pub(super) fn make_lossy(&mut self) -> Flow {
        let stdout = io::stdout();
        fcntl(&stdout, FcntlArg::F_GETFL)
            .map(|flags| OFlag::from_bits_retain(flags) | OFlag::O_NONBLOCK)
            .and_then(|flags| fcntl(&stdout, FcntlArg::F_SETFL(flags)))
            .map_err(|error| Stop::failed("cannot make stdout non-blocking", error))?;
        self.queue.get_or_insert_default();
        Ok(())
    }

    /// Closes the pipe. The descriptor stays in use, so that no file that is opened later gets it.
    pub(super) fn close(&mut self, null: &std::fs::File) -> nix::Result<()> {
        self.gone = true;
        match self.stream {
            Stream::Stdout => unistd::dup2_stdout(null),
            Stream::Stderr => unistd::dup2_stderr(null),
        }
    }

    /// Returns the number of bytes written, or `None` if the pipe is full. Without a reader, all count as
    /// written.
    fn write_some(&mut self, bytes: &[u8]) -> Result<Option<usize>, Stop> {
        loop {
            let result = match self.stream {
                Stream::Stdout => unistd::write(io::stdout(), bytes),
                Stream::Stderr => unistd::write(io::stderr(), bytes),
            };
            return match result {
                Ok(written) => Ok(Some(written)),
                Err(Errno::EAGAIN) => Ok(None),
                Err(Errno::EINTR) => continue,
                Err(Errno::EPIPE) => {
                    self.gone = true;
                    match self.exit_on_epipe {
                        Some(code) => Err(Stop::Exit(code)),
                        None => Ok(Some(bytes.len())),
                    }
                }
                Err(error) => Err(Stop::failed("cannot write", error)),
            };
        }
    }
}
