//! Commands that run: their output as it comes, their end, and what ends them.

use std::io::{self, Read};
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use teamster_process::{Descendants, ProcessIdentity, ProcessSignal};

/// Time between two checks of a command.
const CHECK_EVERY: Duration = Duration::from_millis(50);
/// Time between two checks of a command that has closed its output, which seldom runs for long.
const CLOSED_EVERY: Duration = Duration::from_millis(1);
/// Time for the output of a command that has ended: what it left in the background can hold the pipes.
const REST: Duration = Duration::from_secs(1);
/// The same if there is output all the time.
const LONGEST_REST: Duration = Duration::from_secs(3);
/// Time between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(2);
/// Number of pieces of output that wait to be read. A command that prints more waits.
const PIECES: usize = 16;

/// State of a command.
pub(crate) enum Seen {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    /// It runs.
    Running,
}

/// Follows a command to its end. What it leaves in the background neither holds it nor is ended. `see` gets what is
/// seen of it; on its error, the command and its children are ended. Fails with the error of `see`, or if the output
/// cannot be read.
pub(crate) fn follow(
    child: &mut Child,
    mut see: impl FnMut(Seen, &mut Descendants) -> anyhow::Result<()>,
) -> anyhow::Result<ExitStatus> {
    let (sender, pieces) = mpsc::sync_channel(PIECES);
    read(child.stdout.take(), Seen::Stdout, sender.clone());
    read(child.stderr.take(), Seen::Stderr, sender);
    let mut descendants = Descendants::of(child.id());
    let mut ended: Option<(ExitStatus, Instant)> = None;
    let mut is_open = true;
    loop {
        let piece = match pieces.recv_timeout(CHECK_EVERY) {
            Ok(piece) => Some(piece),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                if !is_open {
                    thread::sleep(CLOSED_EVERY);
                }
                is_open = false;
                None
            }
        };
        if ended.is_none() {
            let status = child.try_wait().context("cannot run git")?;
            ended = status.map(|status| (status, Instant::now()));
        }
        let is_silent = piece.is_none();
        let mut seen = match piece {
            Some(Ok(piece)) => see(piece, &mut descendants),
            Some(Err(error)) => Err(error).context("cannot read the output of git"),
            None => Ok(()),
        };
        if seen.is_ok() && ended.is_none() {
            seen = see(Seen::Running, &mut descendants);
        }
        if let Err(error) = seen {
            end(child, &mut descendants);
            return Err(error);
        }
        if let Some((status, at)) = ended {
            let rest = if is_silent { REST } else { LONGEST_REST };
            if !is_open || at.elapsed() >= rest {
                return Ok(status);
            }
        }
    }
}

/// Reads a pipe to its end, which may be later than that of the command.
fn read(
    pipe: Option<impl Read + Send + 'static>,
    piece_of: fn(Vec<u8>) -> Seen,
    to: SyncSender<io::Result<Seen>>,
) {
    let Some(mut pipe) = pipe else {
        return;
    };
    thread::spawn(move || {
        let mut piece = [0; 8192];
        loop {
            let read = match pipe.read(&mut piece) {
                Ok(0) => return,
                Ok(count) => Ok(piece_of(piece[..count].to_vec())),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
            let is_over = read.is_err();
            // Sending fails if the command is no longer followed.
            if to.send(read).is_err() || is_over {
                return;
            }
        }
    });
}

/// Ends a command with its children, where they can be read.
fn end(child: &mut Child, descendants: &mut Descendants) {
    descendants.look();
    if let Some(process) = ProcessIdentity::of(child.id()) {
        // It may have ended meanwhile.
        let _ = process.signal(ProcessSignal::Terminate);
    }
    let until = Instant::now() + TERM_GRACE;
    while Instant::now() < until && matches!(child.try_wait(), Ok(None)) {
        descendants.look();
        thread::sleep(CHECK_EVERY);
    }
    let _ = child.kill();
    let _ = child.wait();
    let until = Instant::now() + TERM_GRACE;
    while descendants.kill() && Instant::now() < until {
        thread::sleep(CHECK_EVERY);
    }
}
