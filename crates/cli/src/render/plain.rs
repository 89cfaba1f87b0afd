//! Plain text, for pipes, files and simple terminals: the agent's text on stdout, everything else on
//! stderr.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use teamster::{AgentEvent, Id, RunResult, Text};
use teamster_core::TextLedger;

use super::line::Line;
use super::{Before, Narrator, Sink, structured_answer};
use crate::words;

/// How much text is held back; of more only where its messages end.
const HELD_BYTES: usize = 1 << 20;

/// Writes the agent's text to `out` and the rest to `err`.
///
/// What is written to a pipe or a file cannot be taken back. So a message is written when it is whole,
/// and one that is retracted before is not written at all. Text of a CLI that never retracts any is
/// written as it comes. Where another attempt may withdraw all text of this one, nothing is
/// written before the end of the run, or before it has gone on with its session; of a long text, only at the
/// end, where the result has it.
#[derive(Debug)]
pub(crate) struct Plain<O, E> {
    out: O,
    err: E,
    narrator: Narrator,
    terminal: bool,
    /// What is not written yet.
    said: TextLedger,
    /// Complete messages may still be withdrawn.
    holds: bool,
    /// Text is written as it comes.
    streams: bool,
    /// Of text that is: its message, and what of it is not written.
    message: Option<Id>,
    pending: String,
    /// The beginning of the message is written.
    open: bool,
    /// Whether anything was written to `out`.
    written: bool,
    /// The message that was written last, to report if it is withdrawn.
    last_written: Option<Id>,
}

impl<O: Write, E: Write> Plain<O, E> {
    /// Writes the lines of `narrator` and the text; if it is quiet, only the last message.
    ///
    /// To a pipe the text goes as it is; if `out` is a `terminal`, without control characters, by
    /// which an agent's words could do more there than be read.
    pub(crate) fn new(out: O, err: E, narrator: Narrator, terminal: bool) -> Self {
        Self {
            out,
            err,
            narrator,
            terminal,
            said: TextLedger::default(),
            holds: false,
            streams: false,
            message: None,
            pending: String::new(),
            open: false,
            written: false,
            last_written: None,
        }
    }

    /// The same for a run whose attempts can be withdrawn.
    pub(crate) fn holding_back(mut self) -> Self {
        self.holds = true;
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

    /// Takes an event of the main agent's text into account.
    fn said(&mut self, event: &AgentEvent) -> io::Result<()> {
        match event {
            _ if self.quiet() => Ok(()),
            _ if !self.streams => {
                self.said.event(event);
                if self.holds {
                    if self.said.len() > HELD_BYTES {
                        self.said.forget_text();
                    }
                    return Ok(());
                }
                self.write_messages()
            }
            AgentEvent::Text(text) if text.parent_tool_id.is_none() => self.stream_text(text),
            AgentEvent::Retract(retract) => {
                if self.message.as_ref() == Some(&retract.message_id) {
                    self.pending.clear();
                }
                Ok(())
            }
            AgentEvent::ToolUse(_) | AgentEvent::TurnEnd(_) => self.end_stream(),
            _ => Ok(()),
        }
    }

    fn stream_text(&mut self, event: &Text) -> io::Result<()> {
        if self.message != event.message_id {
            self.end_stream()?;
            self.message.clone_from(&event.message_id);
        }
        self.pending.push_str(&event.text);
        self.stream()
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

    /// Ends the message that is written as it comes.
    fn end_stream(&mut self) -> io::Result<()> {
        self.pending.clear();
        if std::mem::take(&mut self.open) {
            self.out.write_all(b"\n")?;
            return self.out.flush();
        }
        Ok(())
    }

    /// Writes the messages that are whole.
    fn write_messages(&mut self) -> io::Result<()> {
        let whole = self.said.count_over();
        if whole == 0 {
            return Ok(());
        }
        let said = std::mem::take(&mut self.said);
        for (index, (message, text)) in said.pieces().enumerate() {
            if index < whole {
                self.write_message(message, text)?;
            } else {
                self.said.push(message, text);
            }
        }
        Ok(())
    }

    fn write_message(&mut self, message: Option<&Id>, text: &str) -> io::Result<()> {
        if text.trim().is_empty() {
            return Ok(());
        }
        self.last_written = message.cloned();
        self.write(text)
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
        if self.streams {
            self.end_stream()?;
        }
        self.said.end_message();
        if self.said.keeps_text() {
            self.write_messages()?;
        } else {
            for (message, text) in std::mem::take(&mut self.said).pieces_of(&result.text) {
                self.write_message(message, text)?;
            }
        }
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
            // Without a reader of stderr the answer still counts.
            let _ = writeln!(self.err, "{}", line.show(None, false));
        }
    }
}

impl<O: Write, E: Write> Sink<AgentEvent> for Plain<O, E> {
    fn event(&mut self, event: &AgentEvent, now: Duration) -> io::Result<()> {
        self.said(event)?;
        match event {
            AgentEvent::Retract(retract)
                if self.last_written.as_ref() == Some(&retract.message_id)
                    && !self.quiet()
                    && self.narrator.view().current.before().is_none() =>
            {
                self.lines(&[Line::aside(
                    "(that message was withdrawn, the agent asks again)",
                )]);
            }
            // Once a session had to go on, because of what was done in it, nothing is started over.
            AgentEvent::Retry(_)
                if self.narrator.view().current.before() == Some(Before::Stands)
                    && self.said.keeps_text() =>
            {
                self.holds = false;
                self.said.end_message();
                self.write_messages()?;
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
