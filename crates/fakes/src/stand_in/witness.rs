//! Log of the stand-ins, with one JSON object per line in chronological order.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use teamster_core::time::{date_of_day, epoch_ms};

use serde::{Deserialize, Serialize};

use super::act::Act;

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Seen {
    /// Time of the event, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Process id of the stand-in.
    pub pid: u32,
    /// The event.
    #[serde(flatten)]
    pub what: What,
}

/// An event of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
#[non_exhaustive]
pub enum What {
    /// A process was started.
    Start {
        /// Its arguments, without the program's name.
        argv: Vec<String>,
        /// The session to resume.
        resumes: Option<String>,
        /// The id of the run that marks its processes.
        run_id: Option<String>,
        /// Number of this start, from 0.
        number: u64,
        /// True if no other stand-in of the plan is running.
        alone: bool,
    },
    /// The stand-in was started to resume an unknown session, and ends.
    Refused {
        /// The session.
        session: String,
    },
    /// A message arrived.
    Message {
        /// Number of the turn that it begins, from 0 over all processes. `None` for `/clear`.
        turn: Option<u64>,
        /// Kind of the prompt.
        kind: Kind,
        /// The current session.
        session: String,
        /// The flags that existed then.
        flags: Vec<String>,
        /// Beginning of the message: at most 200 characters.
        text: String,
    },
    /// The stand-in is about to act. It may die first.
    Will {
        /// The action.
        act: Act,
    },
    /// The stand-in has acted.
    Did {
        /// The action.
        act: Act,
    },
    /// The stand-in started a process.
    Child {
        /// Process id of the child.
        child: u32,
    },
    /// The stand-in received an interrupt of its turn.
    Interrupted,
    /// The conversation was cleared.
    Cleared {
        /// The previous session.
        from: String,
        /// The new session.
        to: String,
    },
    /// The stand-in is about to print the end of a turn.
    Result(TurnFigures),
    /// The stand-in has printed the end of a turn.
    Ended {
        /// Number of the turn.
        turn: u64,
    },
    /// The test acted from outside.
    Outside {
        /// Description by the test.
        did: String,
    },
    /// The stand-in received the end of its input, a request to end or a signal.
    End {
        /// The reason.
        why: String,
    },
}

/// Figures at the end of a turn, for this turn alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TurnFigures {
    /// Number of the turn, as in its message.
    pub turn: u64,
    /// The session.
    pub session: String,
    /// True if the turn was interrupted.
    pub interrupted: bool,
    /// Tokens that were neither read from nor written to a cache. The number differs for each turn.
    pub input_tokens: u64,
    /// Tokens of the answer.
    pub output_tokens: u64,
    /// Tokens read from a cache.
    pub cache_read_tokens: u64,
    /// The price, in millionths of a dollar.
    pub cost_micro_usd: u64,
}

/// Kind of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Kind {
    /// A full prompt of a tick.
    Full,
    /// A light prompt of a tick.
    Light,
    /// A request to clear the conversation.
    Clear,
}

/// Reads all events until now. An incomplete last line is skipped. A missing file has no events.
///
/// # Errors
///
/// The file cannot be read, or a line of it is not an event.
pub fn read(file: impl AsRef<Path>) -> io::Result<Vec<Seen>> {
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let end = text.rfind('\n').map_or(0, |end| end + 1);
    text[..end]
        .lines()
        .map(|line| serde_json::from_str(line).map_err(io::Error::from))
        .collect()
}

/// Writer of the log.
#[derive(Debug)]
pub struct Witness(File);

impl Witness {
    /// Opens the log ([`Plan::witness`](super::Plan::witness)) to append to it.
    ///
    /// # Errors
    ///
    /// The file cannot be opened.
    pub fn open(file: impl AsRef<Path>) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(file)?;
        Ok(Self(file))
    }

    /// Appends an event with one write, so that concurrent writers do not mix their lines.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn saw(&self, what: What) -> io::Result<()> {
        let seen = Seen {
            at_ms: epoch_ms(),
            pid: std::process::id(),
            what,
        };
        let mut line = serde_json::to_vec(&seen)?;
        line.push(b'\n');
        (&self.0).write_all(&line)
    }
}

/// Formats a time in milliseconds since the Unix epoch, as CLIs print it.
pub(super) fn iso(at_ms: u64) -> String {
    let (seconds, ms) = (at_ms / 1000, at_ms % 1000);
    let (year, month, day) = date_of_day(seconds / 86_400);
    let second = seconds % 86_400;
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{ms:03}Z",
        second / 3600,
        second / 60 % 60,
        second % 60,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_clis_do() {
        assert_eq!(iso(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(iso(1_795_371_221_739), "2026-11-22T18:13:41.739Z");
        assert_eq!(iso(1_798_761_599_999), "2026-12-31T23:59:59.999Z");
    }

    #[test]
    fn the_log_is_read_up_to_the_last_complete_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("witness.jsonl");
        assert_eq!(read(&file).unwrap(), []);
        let witness = Witness::open(&file).unwrap();
        witness.saw(What::Interrupted).unwrap();
        witness
            .saw(What::Message {
                turn: Some(3),
                kind: Kind::Light,
                session: "s".to_owned(),
                flags: vec!["did-work".to_owned()],
                text: "tick".to_owned(),
            })
            .unwrap();
        (&witness.0).write_all(b"{\"at_ms\": 1, ").unwrap();
        let seen = read(&file).unwrap();
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0].what, What::Interrupted);
        assert_eq!(seen[0].pid, std::process::id());
        assert!(matches!(
            &seen[1].what,
            What::Message {
                turn: Some(3),
                kind: Kind::Light,
                ..
            }
        ));
        (&witness.0).write_all(b"no}\n").unwrap();
        read(&file).unwrap_err();
    }
}
