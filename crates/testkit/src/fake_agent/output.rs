//! Standard output and standard error, with the ways in which CLIs mistreat them.

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

/// How long to wait before a full non-blocking pipe is tried again.
pub(super) const RETRY: Duration = Duration::from_millis(1);

/// The writing end of one stream. Not buffered: a half line must leave at once.
#[derive(Debug)]
pub(super) struct Sink {
    stream: Stream,
    /// Bytes that the pipe has not taken yet, if the stream is lossy.
    queue: Option<VecDeque<u8>>,
    /// The exit code if a missing reader ends the agent.
    pub(super) exit_on_epipe: Option<u8>,
    /// Closed by the script or by the reader.
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

    /// Writes all of it, or in lossy mode what the pipe takes; the rest is queued.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Flow {
        if let Some(queue) = &mut self.queue {
            queue.extend(bytes);
            return self.drain().map(|_| ());
        }
        let mut rest = bytes;
        while !self.gone && !rest.is_empty() {
            match self.write_some(rest)? {
                Some(written) => rest = &rest[written..],
                // Not lossy, yet non-blocking: another process shares the pipe and made it so.
                None => thread::sleep(RETRY),
            }
        }
        Ok(())
    }

    /// Writes what the pipe takes of the queue; whether nothing is left.
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

    /// Makes the pipe non-blocking; what it does not take is lost at the end.
    pub(super) fn make_lossy(&mut self) -> Flow {
        let stdout = io::stdout();
        fcntl(&stdout, FcntlArg::F_GETFL)
            .map(|flags| OFlag::from_bits_retain(flags) | OFlag::O_NONBLOCK)
            .and_then(|flags| fcntl(&stdout, FcntlArg::F_SETFL(flags)))
            .map_err(|error| Stop::failed("cannot make stdout non-blocking", error))?;
        self.queue.get_or_insert_default();
        Ok(())
    }

    /// Lets go of the pipe. The descriptor stays taken, so that no file opened later gets it.
    pub(super) fn close(&mut self, null: &std::fs::File) -> nix::Result<()> {
        self.gone = true;
        match self.stream {
            Stream::Stdout => unistd::dup2_stdout(null),
            Stream::Stderr => unistd::dup2_stderr(null),
        }
    }

    /// The number of bytes written, none if the pipe is full. Without a reader all counts as written.
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
