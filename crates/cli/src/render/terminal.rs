//! Output at a terminal.

use std::collections::HashSet;
use std::io::{self, Write};
use std::time::Duration;

use console::measure_text_width;
use teamster::{AgentEvent, Id, Text};
use teamster_api::RunLogEntry;

use super::line::{Line, Tone};
use super::markdown::Markdown;
use super::spinner::{SPINNER_DELAY, Spinner};
use super::{Narrator, Sink, structured_answer};
use crate::words;

/// Silence after which the beginning of a word is shown.
const WORD_DELAY: Duration = Duration::from_millis(100);
/// Silence after which text between marks that are not closed is shown, and a spinner after text without a newline.
const OPEN_DELAY: Duration = Duration::from_secs(1);

/// Sink that shows text as it comes, a line per tool, and a spinner while no event comes.
///
/// The agent's text goes to `out`, everything else to `err`. Both are assumed to be the same terminal, so each is
/// flushed before the other is written.
#[derive(Debug)]
pub(crate) struct Terminal<O, E, S> {
    out: O,
    err: E,
    spinner: S,
    narrator: Narrator,
    width: fn() -> Option<usize>,
    /// Shows the agent's text as Markdown; `None` to show it as it is.
    markdown: Option<Markdown>,
    /// The columns since the last newline of the text; `None` if it has a tab.
    column: Option<usize>,
    block: Block,
    /// Number of newlines at the end of the output; 2 at the start, which needs no separator.
    newlines: usize,
    /// Messages whose text was shown.
    shown: HashSet<Id>,
    last_event: Duration,
}

/// Kind of the last output. A blank line separates different kinds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Block {
    Start,
    /// The first note, which names the agent.
    Head,
    Text(Option<Id>),
    Tools,
    Notes,
    End,
}

impl<O: Write, E: Write, S: Spinner> Terminal<O, E, S> {
    /// Creates a sink for text and the lines of `narrator`. `width` is called for each line: it may change.
    pub(crate) fn new(
        out: O,
        err: E,
        spinner: S,
        narrator: Narrator,
        width: fn() -> Option<usize>,
    ) -> Self {
        Self {
            out,
            err,
            spinner,
            narrator,
            width,
            markdown: None,
            column: Some(0),
            block: Block::Start,
            newlines: 2,
            shown: HashSet::new(),
            last_event: Duration::ZERO,
        }
    }

    /// Shows the agent's text as Markdown.
    pub(crate) fn with_markdown(mut self) -> Self {
        self.markdown = Some(Markdown::new());
        self
    }

    fn text(&mut self, event: &Text) -> io::Result<()> {
        let text = words::printable(&event.text);
        let block = Block::Text(event.message_id.clone());
        let mut text = &*text;
        if self.block != block {
            text = text.trim_start_matches('\n');
        }
        if text.is_empty() {
            return Ok(());
        }
        if let Some(id) = &event.message_id {
            self.shown.insert(id.clone());
        }
        self.enter(block)?;
        match &mut self.markdown {
            Some(markdown) => {
                let shown = markdown.push(text, (self.width)());
                self.write(&shown)
            }
            None => self.write(text),
        }
    }

    /// Writes a piece of text as it is.
    fn write(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.spinner.hide();
        self.out.write_all(text.as_bytes())?;
        let newlines = text.len() - text.trim_end_matches('\n').len();
        self.newlines = if newlines == text.len() {
            self.newlines + newlines
        } else {
            newlines
        };
        let (before, line) = match text.rsplit_once('\n') {
            Some((_, line)) => (Some(0), line),
            None => (self.column, text),
        };
        self.column = before
            .filter(|_| !line.contains('\t'))
            .map(|before| before + measure_text_width(line));
        self.out.flush()
    }

    /// Shows what is left of the text.
    fn end_text(&mut self) -> io::Result<()> {
        match &mut self.markdown {
            Some(markdown) => {
                let rest = markdown.finish();
                self.write(&rest)
            }
            None => Ok(()),
        }
    }

    fn line(&mut self, line: &Line) -> io::Result<()> {
        self.enter(match line.tone {
            Tone::Ok | Tone::Failed | Tone::Ended => Block::Tools,
            Tone::EndWell | Tone::EndBadly => Block::End,
            // Lines after the end belong to it; indented remarks belong to the tool above.
            _ if self.block == Block::End => Block::End,
            _ if line.indent > 0 && line.tone == Tone::Aside => Block::Tools,
            Tone::Aside if self.block == Block::Start => Block::Head,
            _ => Block::Notes,
        })?;
        writeln!(self.err, "{}", line.show((self.width)(), true))?;
        self.err.flush()
    }

    /// Begins a block or continues it.
    fn enter(&mut self, block: Block) -> io::Result<()> {
        self.spinner.hide();
        if self.block == block {
            return Ok(());
        }
        self.end_line()?;
        // No blank line between notes and tools.
        let close = matches!(
            (&self.block, &block),
            (Block::Tools, Block::Notes) | (Block::Notes, Block::Tools)
        );
        if self.newlines < 2 && !close {
            self.out.write_all(b"\n")?;
            self.out.flush()?;
        }
        self.newlines = 1;
        self.block = block;
        Ok(())
    }

    /// Ends text whose line has not ended yet.
    fn end_line(&mut self) -> io::Result<()> {
        // From the next line, it could not be removed.
        self.spinner.hide();
        self.end_text()?;
        if self.newlines == 0 {
            self.out.write_all(b"\n")?;
            self.out.flush()?;
            self.newlines = 1;
        }
        Ok(())
    }

    /// Returns the columns that are free after the text, also for the `^C` that a terminal echoes.
    fn room(&self) -> Option<usize> {
        let width = (self.width)()?;
        let used = self.column? % width.max(1);
        Some(width.saturating_sub(used + 4))
    }
}

impl<O: Write, E: Write, S: Spinner> Sink for Terminal<O, E, S> {
    fn entry(&mut self, entry: &RunLogEntry, now: Duration) -> io::Result<()> {
        let event = match entry {
            RunLogEntry::Agent(entry) => Some(&entry.event),
            _ => None,
        };
        if event.is_some() {
            self.last_event = now;
        }
        if let Some(AgentEvent::Done(done)) = event {
            self.spinner.hide();
            if let Some(answer) = structured_answer(&done.result) {
                self.enter(Block::Text(None))?;
                writeln!(self.out, "{}", words::printable(&answer))?;
                self.out.flush()?;
                self.newlines = 1;
            }
        }
        for line in self.narrator.entry(entry, now) {
            self.line(&line)?;
        }
        match event {
            Some(AgentEvent::Text(text)) if text.parent_tool_id.is_none() => self.text(text)?,
            // Shown text cannot be removed, so its retraction is reported.
            Some(AgentEvent::Retract(retract)) if self.shown.remove(&retract.message_id) => {
                if let Some(line) = self.narrator.retraction() {
                    self.line(&line)?;
                }
            }
            // The text before a tool has ended; the spinner needs its own line.
            Some(AgentEvent::ToolUse(_) | AgentEvent::TurnEnd(_)) => self.end_line()?,
            _ => {}
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn tick(&mut self, now: Duration) {
        let silence = now.saturating_sub(self.last_event);
        if let Some(markdown) = &mut self.markdown {
            let held = if silence >= OPEN_DELAY {
                markdown.release()
            } else if silence >= WORD_DELAY {
                markdown.flush()
            } else {
                String::new()
            };
            // A write error is reported with the next event.
            let _ = self.write(&held);
        }
        // Nothing streams before the first output.
        let is_first = self.block == Block::Start;
        if self.newlines > 0 && (is_first || silence >= SPINNER_DELAY) {
            self.spinner.show(&self.narrator.spinner_text(now));
        } else if self.newlines == 0
            && silence >= OPEN_DELAY
            && let Some(room) = self.room()
        {
            // The text may continue in its line.
            self.spinner
                .show_after(&self.narrator.spinner_text(now), room);
        }
    }

    fn stopping(&mut self, now: Duration) {
        self.narrator.stopping();
        // The terminal has echoed `^C` in this line. A write error is reported with the next event.
        let _ = self.end_line();
        self.last_event = Duration::ZERO;
        self.tick(now);
    }

    fn clear_line(&mut self) {
        self.spinner.hide();
        // A write error is reported with the next event.
        let _ = self.end_line();
    }

    fn end_turn(&mut self) {
        self.spinner.hide();
        self.narrator.end_turn();
        // Shown by the last event of the turn; a write error is reported with the next one.
        let _ = self.end_text();
        (self.block, self.newlines) = (Block::Start, 2);
        self.shown.clear();
        self.last_event = Duration::ZERO;
    }

    fn clear_session(&mut self) {
        self.narrator.clear_session();
    }
}

#[cfg(test)]
mod tests;
