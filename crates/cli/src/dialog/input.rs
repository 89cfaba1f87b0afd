//! Sources of messages.

use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use tokio::sync::mpsc;

/// Maximum length of a line or message, in bytes.
const MAX_LENGTH: u64 = 16 << 20;

/// An item of input.
#[derive(Debug)]
pub(crate) enum Entry {
    Text(String),
    /// The user cleared the line.
    Cleared,
    /// Input that cannot be sent, with the reason. Later entries may be valid.
    Invalid(String),
    End,
    /// The source failed; no entry follows.
    Failed(String),
}

/// A blocking source of messages.
pub(crate) trait Source {
    fn read(&mut self) -> Entry;
}

/// Async access to a [`Source`], which blocks in its own thread. The end of the chat does not wait for that thread.
pub(crate) struct Input {
    requests: Sender<()>,
    entries: mpsc::UnboundedReceiver<Entry>,
    waiting: bool,
}

impl Input {
    /// Starts the thread, in which `source` creates the source.
    pub(crate) fn new<S: Source>(source: impl FnOnce() -> S + Send + 'static) -> io::Result<Self> {
        let (requests, receiver) = channel();
        let (sender, entries) = mpsc::unbounded_channel();
        thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || read_on_request(&mut source(), &receiver, &sender))?;
        Ok(Self {
            requests,
            entries,
            waiting: false,
        })
    }

    /// Returns the next entry. Nothing is read ahead.
    ///
    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> Entry {
        if !self.waiting {
            // If the thread has ended, `recv` below returns `None`.
            let _ = self.requests.send(());
            self.waiting = true;
        }
        let entry = self.entries.recv().await.unwrap_or(Entry::End);
        self.waiting = false;
        entry
    }
}

fn read_on_request(
    source: &mut impl Source,
    receiver: &Receiver<()>,
    sender: &mpsc::UnboundedSender<Entry>,
) {
    while receiver.recv().is_ok() {
        if sender.send(source.read()).is_err() {
            return;
        }
    }
}

/// A source with one message per line. A line that ends with `\` continues in the next one.
pub(crate) struct Lines<R> {
    reader: R,
    prompt: Option<String>,
    past_first_line: bool,
}

impl<R: BufRead> Lines<R> {
    /// Reads from `reader`. `prompt` is printed on stderr before each message.
    pub(crate) fn new(reader: R, prompt: Option<String>) -> Self {
        Self {
            reader,
            prompt,
            past_first_line: false,
        }
    }

    /// Returns the next line without its end; `None` at the end of input.
    fn line(&mut self) -> io::Result<Option<Result<String, String>>> {
        let mut line = Vec::new();
        let mut limited = (&mut self.reader).take(MAX_LENGTH);
        if limited.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        if line.last() == Some(&b'\n') {
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
        } else if line.len() as u64 == MAX_LENGTH {
            self.reader.skip_until(b'\n')?;
            let mib = MAX_LENGTH >> 20;
            return Ok(Some(Err(format!(
                "a line on stdin is longer than {mib} MiB and was skipped"
            ))));
        }
        let not_utf8 = "a line on stdin is not UTF-8 text and was skipped";
        let mut line = String::from_utf8(line).map_err(|_| not_utf8.to_owned());
        if !self.past_first_line
            && let Ok(line) = &mut line
            && line.starts_with('\u{feff}')
        {
            line.drain(..'\u{feff}'.len_utf8());
        }
        self.past_first_line = true;
        Ok(Some(line))
    }

    fn message(&mut self) -> io::Result<Entry> {
        let mut message = String::new();
        let mut invalid = None;
        loop {
            let Some(line) = self.line()? else {
                if message.is_empty() && invalid.is_none() {
                    return Ok(Entry::End);
                }
                break;
            };
            let continues = match line {
                Ok(line) => {
                    let whole = line.strip_suffix('\\');
                    message.push_str(whole.unwrap_or(&line));
                    whole.is_some()
                }
                Err(why) => {
                    invalid.get_or_insert(why);
                    false
                }
            };
            if message.len() as u64 > MAX_LENGTH {
                message.clear();
                let mib = MAX_LENGTH >> 20;
                invalid.get_or_insert(format!("a message is longer than {mib} MiB"));
            }
            if !continues {
                break;
            }
            message.push('\n');
        }
        Ok(invalid.map_or(Entry::Text(message), Entry::Invalid))
    }
}

impl<R: BufRead> Source for Lines<R> {
    fn read(&mut self) -> Entry {
        if let Some(prompt) = &self.prompt {
            // Without stderr the message cannot be shown.
            let _ = write!(io::stderr(), "{prompt}");
        }
        self.message()
            .unwrap_or_else(|error| Entry::Failed(format!("cannot read stdin: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(bytes: &[u8]) -> Vec<String> {
        let mut lines = Lines::new(bytes, None);
        let mut all = Vec::new();
        loop {
            all.push(match lines.read() {
                Entry::Text(text) => text,
                Entry::Invalid(why) => format!("! {why}"),
                Entry::End => return all,
                other => panic!("{other:?}"),
            });
        }
    }

    #[test]
    fn every_line_is_a_message() {
        assert_eq!(entries(b""), [""; 0]);
        assert_eq!(entries(b"\xef\xbb\xbfone\r\n\ntwo"), ["one", "", "two"]);
        assert_eq!(
            entries(b"one\\\ntwo\\\r\n three\nfour\\"),
            ["one\ntwo\n three", "four\n"]
        );
    }

    #[test]
    fn invalid_lines_are_skipped() {
        let shown = entries(b"a\xffb\ntwo\n");
        assert_eq!(
            shown,
            ["! a line on stdin is not UTF-8 text and was skipped", "two"]
        );
        let mut long = vec![b'x'; usize::try_from(MAX_LENGTH).unwrap() + 5];
        long.extend(b"\ntwo\n");
        let shown = entries(&long);
        assert_eq!(
            shown,
            [
                "! a line on stdin is longer than 16 MiB and was skipped",
                "two"
            ]
        );
    }

    #[tokio::test]
    async fn input_is_not_read_ahead_and_keeps_its_entries() {
        struct Count(u32);
        impl Source for Count {
            fn read(&mut self) -> Entry {
                self.0 += 1;
                thread::sleep(std::time::Duration::from_millis(20));
                Entry::Text(self.0.to_string())
            }
        }
        let mut input = Input::new(|| Count(0)).unwrap();
        let now = std::time::Duration::ZERO;
        assert!(tokio::time::timeout(now, input.next()).await.is_err());
        for expected in ["1", "2"] {
            match input.next().await {
                Entry::Text(text) => assert_eq!(text, expected),
                other => panic!("{other:?}"),
            }
        }
    }
}
