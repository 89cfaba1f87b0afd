//! `teamster agents logs`.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use teamster::agent_loop::supervisor::log_path;
use tokio::time::sleep;

use super::args::AgentsLogsArgs;
use super::{Failure, Target, of_printed, status_with};
use crate::remote::RemoteSupervisor;
use crate::{exit_code, words};

/// Interval between checks for new lines.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Size of a read, in bytes.
const READ_SIZE: usize = 64 << 10;
/// Maximum length of a buffered line, in bytes. A longer one is written in pieces.
const MAX_LINE: usize = 1 << 20;
/// Maximum size of the end that is searched for the first requested line, in bytes.
const MAX_SEARCHED: u64 = 64 << 20;

pub(super) async fn main(args: &AgentsLogsArgs, target: Target<'_>) -> Result<u8, Failure> {
    let status = status_with(target, [&args.agent]).await?;
    let Some(agent) = status.agents.iter().find(|it| it.id == args.agent) else {
        return Ok(exit_code::USAGE);
    };
    let mut out = Output::new(io::stdout(), io::stdout().is_terminal());
    if let Target::Server(machine) = target {
        let supervisor = RemoteSupervisor::of(machine);
        let text = supervisor.log(&agent.id, args.lines).await?;
        return of_printed(out.write(text.as_bytes()).and_then(|()| out.end()));
    }
    let path = log_path(&agent.working_dir);
    let shown = show(&path, args, &mut out).await;
    match shown {
        Ok(()) => Ok(exit_code::SUCCESS),
        Err(LogError::Output(error)) => of_printed(Err(error)),
        Err(LogError::Log(error)) => {
            let path = path.display();
            let message = if error.kind() == io::ErrorKind::NotFound {
                format!("there is no log of {} yet: {path} is missing", agent.id)
            } else {
                format!("cannot read {path}: {error}")
            };
            crate::report::fail(&anyhow::Error::msg(message));
            Ok(exit_code::AGENT_ERROR)
        }
    }
}

enum LogError {
    /// The output cannot be written, usually because its reader is gone.
    Output(io::Error),
    Log(io::Error),
}

async fn show<W: Write>(
    path: &Path,
    args: &AgentsLogsArgs,
    out: &mut Output<W>,
) -> Result<(), LogError> {
    let mut reported = false;
    let mut file = loop {
        match File::open(path) {
            Err(error) if args.follow && error.kind() == io::ErrorKind::NotFound => {
                if !std::mem::replace(&mut reported, true) {
                    let agent = words::one_line(&args.agent);
                    let note = format!("there is no log of {agent} yet: waiting for it");
                    // Without stderr the message cannot be shown.
                    let _ = writeln!(anstream::stderr(), "{note}");
                }
                sleep(POLL_INTERVAL).await;
            }
            opened => break opened.map_err(LogError::Log)?,
        }
    };
    let (mut at, missing) = last_lines_offset(&mut file, args.lines).map_err(LogError::Log)?;
    // The log was rotated: earlier lines are in the previous file.
    if missing > 0
        && let Ok(mut before) = File::open(path.with_extension("log.1"))
    {
        let (from, _) = last_lines_offset(&mut before, missing).map_err(LogError::Log)?;
        copy(&mut before, from, out)?;
    }
    loop {
        at = copy(&mut file, at, out)?;
        if !args.follow {
            return out.end().map_err(LogError::Output);
        }
        out.flush().map_err(LogError::Output)?;
        sleep(POLL_INTERVAL).await;
        // The log may have been rotated or truncated.
        let now = file.metadata().map_err(LogError::Log)?;
        if now.len() < at {
            at = 0;
        } else if now.len() == at
            && let Ok(new) = File::open(path)
            && let Ok(found) = new.metadata()
            && (found.dev(), found.ino()) != (now.dev(), now.ino())
        {
            (file, at) = (new, 0);
        }
    }
}

/// Writes a file from the offset `at`, and returns the offset of its end.
fn copy<W: Write>(file: &mut File, mut at: u64, out: &mut Output<W>) -> Result<u64, LogError> {
    file.seek(SeekFrom::Start(at)).map_err(LogError::Log)?;
    let mut piece = vec![0; READ_SIZE];
    loop {
        let length = file.read(&mut piece).map_err(LogError::Log)?;
        if length == 0 {
            return Ok(at);
        }
        at += length as u64;
        out.write(&piece[..length]).map_err(LogError::Output)?;
    }
}

/// Returns the offset of the last `lines` lines, and the number of lines that the file is short of.
fn last_lines_offset(file: &mut File, lines: usize) -> io::Result<(u64, usize)> {
    let end = file.metadata()?.len();
    if lines == 0 || end == 0 {
        return Ok((end, lines));
    }
    let mut at = end;
    let mut found = 0;
    let mut piece = vec![0; READ_SIZE];
    while at > 0 && end - at < MAX_SEARCHED {
        let length = at.min(READ_SIZE as u64);
        at -= length;
        let piece = &mut piece[..usize::try_from(length).unwrap_or(READ_SIZE)];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(piece)?;
        for (index, _) in piece.iter().enumerate().rev().filter(|(_, b)| **b == b'\n') {
            let behind = at + index as u64 + 1;
            // A newline at the end of the file ends the last line.
            if behind < end {
                found += 1;
            }
            if found == lines {
                return Ok((behind, 0));
            }
        }
    }
    // The first line has no newline before it, so it is not in `found`.
    let missing = if at > 0 { 0 } else { lines - found - 1 };
    Ok((at, missing))
}

/// Writer of log lines. At a terminal, it removes control characters from complete lines.
struct Output<W: Write> {
    to: W,
    terminal: bool,
    /// The incomplete last line.
    rest: Vec<u8>,
}

impl<W: Write> Output<W> {
    fn new(to: W, terminal: bool) -> Self {
        Self {
            to,
            terminal,
            rest: Vec::new(),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.terminal {
            return self.to.write_all(bytes);
        }
        self.rest.extend_from_slice(bytes);
        // Characters and escape sequences do not span lines.
        let whole = match self.rest.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            None if self.rest.len() > MAX_LINE => self.rest.len(),
            None => return Ok(()),
        };
        let rest = self.rest.split_off(whole);
        let text = std::mem::replace(&mut self.rest, rest);
        let text = words::printable(&String::from_utf8_lossy(&text));
        self.to.write_all(text.as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    fn end(&mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.rest);
        let text = words::printable(&String::from_utf8_lossy(&rest));
        self.to.write_all(text.as_bytes())?;
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(text: &str, lines: usize) -> String {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let (at, missing) = last_lines_offset(&mut file, lines).unwrap();
        assert_eq!(missing, lines.saturating_sub(text.lines().count()));
        text[usize::try_from(at).unwrap()..].to_owned()
    }

    #[test]
    fn the_last_lines() {
        assert_eq!(last("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last("a\nb\nc", 2), "b\nc");
        assert_eq!(last("a\nb\nc\n", 3), "a\nb\nc\n");
        assert_eq!(last("a\nb\nc\n", 9), "a\nb\nc\n");
        assert_eq!(last("a\n\n\n", 2), "\n\n");
        assert_eq!(last("a\nb\n", 0), "");
        assert_eq!(last("a", 0), "");
        assert_eq!(last("", 5), "");
        // More than one piece.
        let long = format!("{}\n", "x".repeat(READ_SIZE));
        assert_eq!(
            last(&format!("{long}{long}{long}"), 2),
            format!("{long}{long}")
        );
    }

    #[test]
    fn a_terminal_gets_no_escape_sequences_and_a_file_gets_the_bytes() {
        let text = "a\u{1b}[2Jb\nfür\n\u{9b}31m".as_bytes();
        let shown = |terminal| {
            let mut bytes = Vec::new();
            let mut out = Output::new(&mut bytes, terminal);
            for byte in text {
                out.write(&[*byte]).unwrap();
            }
            out.end().unwrap();
            bytes
        };
        assert_eq!(shown(false), text);
        assert_eq!(shown(true), "a[2Jb\nfür\n31m".as_bytes());
    }
}
