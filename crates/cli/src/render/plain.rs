//! Plain text for pipes, files and simple terminals.
//!
//! The agent's text goes to stdout, everything else to stderr.

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::Duration;

use teamster::{AgentEvent, Id, RunResult, Text};
use teamster_api::{RunEvent, RunLogEntry};
use teamster_core::TextLedger;

use super::line::Line;
use super::{Narrator, Sink, structured_answer};
use crate::words;

/// Sink that writes the agent's text to `out` and everything else to `err`.
///
/// Output to a pipe or file cannot be taken back:
///
/// - By default, a message is written when it is complete. A message that is retracted before is never written.
/// - With [`Self::streaming`], for a CLI that never retracts text, text is written as it comes.
/// - With [`Self::holding_back`], for a run with several attempts, text is written when an attempt resumes the
///   session, or at the end of the run.
#[derive(Debug)]
pub(crate) struct Plain<O, E> {
    out: O,
    err: E,
    narrator: Narrator,
    terminal: bool,
    /// Text that is not written yet.
    unwritten: TextLedger,
    /// Complete messages may still be retracted.
    holds: bool,
    /// Text is written as it comes.
    streams: bool,
    /// The message that is streamed.
    message: Option<Id>,
    /// Its text that is not written yet.
    pending: String,
    /// Set while that message is partly written.
    open: bool,
    /// Set once anything was written to `out`.
    written: bool,
    /// The message that was written last, to report its retraction.
    last_written: Option<Id>,
}

impl<O: Write, E: Write> Plain<O, E> {
    /// Creates a sink for text and the lines of `narrator`. A quiet one writes only the last message.
    ///
    /// If `out` is a `terminal`, control characters are removed from the text; a pipe or file gets it unchanged.
    pub(crate) fn new(out: O, err: E, narrator: Narrator, terminal: bool) -> Self {
        Self {
            out,
            err,
            narrator,
            terminal,
            unwritten: TextLedger::default(),
            holds: false,
            streams: false,
            message: None,
            pending: String::new(),
            open: false,
            written: false,
            last_written: None,
        }
    }

    /// Holds text back, for a run whose attempts can be discarded.
    pub(crate) fn holding_back(mut self) -> Self {
        self.holds = true;
        self
    }

    /// Writes text as it comes, for a CLI whose text is never retracted.
    pub(crate) fn streaming(mut self) -> Self {
        self.streams = true;
        self
    }

    fn quiet(&self) -> bool {
        self.narrator.view().quiet
    }

    fn event(&mut self, event: &AgentEvent) -> io::Result<()> {
        self.update_text(event)?;
        match event {
            AgentEvent::Retract(retract)
                if self.last_written.as_ref() == Some(&retract.message_id) && !self.quiet() =>
            {
                let line = self.narrator.retraction();
                self.lines(line.as_slice());
            }
            AgentEvent::Done(done) => self.end(&done.result)?,
            _ => {}
        }
        Ok(())
    }

    fn run_event(&mut self, event: &RunEvent) -> io::Result<()> {
        match event {
            // After a resumed session no later attempt starts over, so the text so far is final.
            RunEvent::Retry { next, .. } | RunEvent::Fallback { next, .. }
                if next.resumes.is_some() =>
            {
                self.holds = false;
                self.unwritten.end_message();
                self.write_messages()
            }
            _ => Ok(()),
        }
    }

    /// Updates and writes the main agent's text.
    fn update_text(&mut self, event: &AgentEvent) -> io::Result<()> {
        match event {
            _ if self.quiet() => Ok(()),
            _ if !self.streams => {
                self.unwritten.event(event);
                if self.holds {
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

    /// Writes the pending text, without trailing newlines: they may be the end of the message.
    fn stream(&mut self) -> io::Result<()> {
        let text = self.pending.trim_end_matches('\n');
        if text.is_empty() || (!self.open && text.trim().is_empty()) {
            return Ok(());
        }
        let rest = self.pending[text.len()..].to_owned();
        let text = shown(text, self.terminal);
        if self.open {
            self.out.write_all(text.as_bytes())?;
        } else {
            let before = if self.written { "\n" } else { "" };
            let text = text.trim_start_matches('\n');
            // Separate writes avoid a copy of a long text.
            self.out.write_all(before.as_bytes())?;
            self.out.write_all(text.as_bytes())?;
            self.last_written.clone_from(&self.message);
            (self.open, self.written) = (true, true);
        }
        self.pending = rest;
        Ok(())
    }

    /// Ends the streamed message.
    fn end_stream(&mut self) -> io::Result<()> {
        self.pending.clear();
        if std::mem::take(&mut self.open) {
            self.out.write_all(b"\n")?;
            return self.out.flush();
        }
        Ok(())
    }

    /// Writes the complete messages.
    fn write_messages(&mut self) -> io::Result<()> {
        let whole = self.unwritten.count_over();
        if whole == 0 {
            return Ok(());
        }
        let unwritten = std::mem::take(&mut self.unwritten);
        for (index, (message, text)) in unwritten.pieces().enumerate() {
            if index < whole {
                self.write_message(message, text)?;
            } else {
                self.unwritten.push(message, text);
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
        let text = shown(text, self.terminal);
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
        self.unwritten.end_message();
        self.write_messages()?;
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
            // An error on stderr does not fail the run: the answer is on stdout.
            let _ = writeln!(self.err, "{}", line.show(None, false));
        }
    }
}

/// Returns the text as a terminal, or a pipe or file, gets it.
fn shown(text: &str, terminal: bool) -> Cow<'_, str> {
    if terminal {
        words::printable(text).into()
    } else {
        text.into()
    }
}

impl<O: Write, E: Write> Sink for Plain<O, E> {
    fn entry(&mut self, entry: &RunLogEntry, now: Duration) -> io::Result<()> {
        match entry {
            RunLogEntry::Agent(entry) => self.event(&entry.event)?,
            RunLogEntry::Run(entry) => self.run_event(&entry.event)?,
            _ => {}
        }
        let lines = self.narrator.entry(entry, now);
        self.lines(&lines);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn end_turn(&mut self) {
        self.narrator.end_turn();
        self.unwritten = TextLedger::default();
        (self.message, self.written, self.last_written) = (None, false, None);
    }

    fn clear_session(&mut self) {
        self.narrator.clear_session();
    }
}

#[cfg(test)]
mod tests;
