//! Plain text, for pipes, files and simple terminals: the agent's text on stdout, everything else on
//! stderr.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use teamster::{AgentEvent, Id, RunResult, Text};

use super::line::Line;
use super::{Before, Narrator, Sink, structured_answer};
use crate::words;

/// Writes the agent's text to `out` and the rest to `err`.
///
/// What is written to a pipe or a file cannot be taken back. So a message is written when it is whole,
/// and one that is retracted before is not written at all. Text of a CLI that never retracts any is
/// written as it comes. Where another attempt may make void all that this one has said, nothing is
/// written before the end of the run, or before it has gone on with its session.
#[derive(Debug)]
pub(crate) struct Plain<O, E> {
    out: O,
    err: E,
    narrator: Narrator,
    terminal: bool,
    /// The message that is not whole yet, as far as it is not written.
    pending: String,
    message: Option<Id>,
    /// Text is written as it comes.
    streams: bool,
    /// The beginning of the message is written.
    open: bool,
    /// Whole messages that may still become void; nothing if none can.
    held: Option<Vec<(Option<Id>, String)>>,
    /// Whether anything was written to `out`.
    written: bool,
    /// The message that was written last, to tell if it is withdrawn.
    last_written: Option<Id>,
}

impl<O: Write, E: Write> Plain<O, E> {
    /// Writes what `narrator` tells and the text; if it is quiet, only the last message.
    ///
    /// To a pipe the text goes as it is; if `out` is a `terminal`, without control characters, by
    /// which an agent's words could do more there than be read.
    pub(crate) fn new(out: O, err: E, narrator: Narrator, terminal: bool) -> Self {
        Self {
            out,
            err,
            narrator,
            terminal,
            pending: String::new(),
            message: None,
            streams: false,
            open: false,
            held: None,
            written: false,
            last_written: None,
        }
    }

    /// The same for a run whose attempts can be made void by another.
    pub(crate) fn holding_back(mut self) -> Self {
        self.held = Some(Vec::new());
        self
    }

    /// The same for a CLI whose text is never retracted.
    pub(crate) fn streaming(mut self) -> Self {
        self.streams = true;
        self
    }

    fn quiet(&self) -> bool {
        self.narrator.view().quiet
    }

    fn text(&mut self, event: &Text) -> io::Result<()> {
        if self.message != event.message_id {
            self.write_message()?;
            self.message.clone_from(&event.message_id);
        }
        self.pending.push_str(&event.text);
        if self.streams && self.held.is_none() && !self.quiet() {
            return self.stream();
        }
        Ok(())
    }

    /// Writes what there is of the message, but for empty lines that may turn out to be its end.
    fn stream(&mut self) -> io::Result<()> {
        let text = self.pending.trim_end_matches('\n');
        if text.is_empty() || (!self.open && text.trim().is_empty()) {
            return Ok(());
        }
        let rest = self.pending[text.len()..].to_owned();
        let text = if self.terminal {
            Cow::Owned(words::printable(text))
        } else {
            Cow::Borrowed(text)
        };
        if self.open {
            self.out.write_all(text.as_bytes())?;
        } else {
            let before = if self.written { "\n" } else { "" };
            let text = text.trim_start_matches('\n');
            // Piece by piece: the text may be long, and a copy of it is not needed.
            self.out.write_all(before.as_bytes())?;
            self.out.write_all(text.as_bytes())?;
            self.last_written.clone_from(&self.message);
            (self.open, self.written) = (true, true);
        }
        self.pending = rest;
        Ok(())
    }

    fn write_message(&mut self) -> io::Result<()> {
        let text = std::mem::take(&mut self.pending);
        if std::mem::take(&mut self.open) {
            self.out.write_all(b"\n")?;
            return self.out.flush();
        }
        if self.quiet() || text.trim().is_empty() {
            return Ok(());
        }
        if let Some(held) = &mut self.held {
            held.push((self.message.clone(), text));
        } else {
            self.last_written.clone_from(&self.message);
            self.write(&text)?;
        }
        Ok(())
    }

    /// What was said so far cannot become void any more, nor what comes.
    fn write_held(&mut self) -> io::Result<()> {
        self.write_message()?;
        for (_, text) in self.held.take().into_iter().flatten() {
            self.write(&text)?;
        }
        Ok(())
    }

    /// Writes a paragraph.
    fn write(&mut self, text: &str) -> io::Result<()> {
        let before = if self.written { "\n" } else { "" };
        self.written = true;
        let text = if self.terminal {
            Cow::Owned(words::printable(text))
        } else {
            Cow::Borrowed(text)
        };
        let text = text.trim_matches('\n');
        self.out.write_all(before.as_bytes())?;
        self.out.write_all(text.as_bytes())?;
        self.out.write_all(b"\n")?;
        self.out.flush()
    }

    fn end(&mut self, result: &RunResult) -> io::Result<()> {
        self.write_held()?;
        if let Some(answer) = structured_answer(result) {
            return self.write(&answer);
        }
        let answer = result.final_message.as_deref().unwrap_or(&result.text);
        if self.quiet() && !answer.trim().is_empty() {
            self.write(answer)?;
        }
        Ok(())
    }

    fn lines(&mut self, lines: &[Line]) {
        for line in lines {
            // If nobody reads stderr the answer still counts.
            let _ = writeln!(self.err, "{}", line.show(None, false));
        }
    }
}

impl<O: Write, E: Write> Sink<AgentEvent> for Plain<O, E> {
    fn event(&mut self, event: &AgentEvent, now: Duration) -> io::Result<()> {
        match event {
            AgentEvent::Text(text) if text.parent_tool_id.is_none() => self.text(text)?,
            AgentEvent::Retract(retract) => {
                if self.message.as_ref() == Some(&retract.message_id) {
                    self.pending.clear();
                }
                if let Some(held) = &mut self.held {
                    held.retain(|(id, _)| id.as_ref() != Some(&retract.message_id));
                }
                if self.last_written.as_ref() == Some(&retract.message_id)
                    && !self.quiet()
                    && self.narrator.view().current.before().is_none()
                {
                    self.lines(&[Line::aside(
                        "(that message was withdrawn, the agent asks again)",
                    )]);
                }
            }
            AgentEvent::ToolUse(_) | AgentEvent::TurnEnd(_) => self.write_message()?,
            // Once a session had to go on, because of what was done in it, nothing is started over.
            AgentEvent::Retry(_)
                if self.narrator.view().current.before() == Some(Before::Stands) =>
            {
                self.write_held()?;
            }
            AgentEvent::Done(done) => self.end(&done.result)?,
            _ => {}
        }
        let lines = self.narrator.event(event, now);
        self.lines(&lines);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests;
