//! `teamster agents logs`.

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, anyhow};
use teamster::agent_loop::LogReader;
use teamster::agent_loop::supervisor::log_path;
use tokio::time::sleep;

use super::args::AgentsLogsArgs;
use super::{Supervisor, coded};
use crate::report::note;
use crate::{exit_code, words};

/// Interval between checks for new lines.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum length of a buffered line, in bytes. A longer one is written in pieces.
const MAX_LINE: usize = 1 << 20;
/// Maximum size of the end that is searched for the first requested line, in bytes.
const MAX_SEARCHED: u64 = 64 << 20;

pub(super) async fn main(args: &AgentsLogsArgs, supervisor: &Supervisor) -> anyhow::Result<u8> {
    let status = supervisor.status_with([&args.agent]).await?;
    let agent = status.agents.iter().find(|it| it.id == args.agent);
    let directory = &*agent
        .context("the status is without this agent")?
        .working_dir;
    let mut out = Output::new(io::stdout(), io::stdout().is_terminal());
    if !supervisor.is_here() {
        let text = supervisor.machine.loop_log(&args.agent, args.lines).await;
        let text = text.map_err(coded)?;
        return exit_code::of_printed(out.write(text.as_bytes()).and_then(|()| out.end()));
    }
    let mut log = open(directory, args).await?;
    loop {
        let written = match log
            .read()
            .map_err(|error| unreadable(directory, args, &error))?
        {
            [] if !args.follow => return exit_code::of_printed(out.end()),
            [] => {
                let flushed = out.flush();
                sleep(POLL_INTERVAL).await;
                flushed
            }
            piece => out.write(piece),
        };
        if written.is_err() {
            return exit_code::of_printed(written);
        }
    }
}

/// Opens the log in this directory. If it is followed, waits until it exists.
async fn open(directory: &Path, args: &AgentsLogsArgs) -> anyhow::Result<LogReader> {
    let mut is_reported = false;
    loop {
        match LogReader::open(directory, args.lines, MAX_SEARCHED) {
            Err(error) if args.follow && error.kind() == io::ErrorKind::NotFound => {
                if !std::mem::replace(&mut is_reported, true) {
                    let agent = words::one_line(&args.agent);
                    note(&format!("no log of {agent} yet: waiting for it"));
                }
                sleep(POLL_INTERVAL).await;
            }
            opened => return opened.map_err(|error| unreadable(directory, args, &error)),
        }
    }
}

fn unreadable(directory: &Path, args: &AgentsLogsArgs, error: &io::Error) -> anyhow::Error {
    let path = log_path(directory);
    let path = path.display();
    if error.kind() == io::ErrorKind::NotFound {
        let agent = &args.agent;
        return anyhow!("no log of {agent} yet: {path} is missing");
    }
    anyhow!("cannot read {path}: {error}")
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

    #[test]
    fn terminal_gets_no_escape_sequences_and_a_file_gets_the_bytes() {
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
