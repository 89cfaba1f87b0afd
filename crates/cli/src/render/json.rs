//! Output as JSON, one entry per line.

use std::io::{self, Write};
use std::time::Duration;

use teamster_api::RunLogEntry;

use super::Sink;

/// Size of the pending lines at which they are written, in bytes: what a pipe holds.
const FULL: usize = 64 << 10;

/// Sink that writes each entry as one line of JSON.
#[derive(Debug)]
pub(crate) struct Json<O: Write> {
    out: O,
    /// Lines that were not written yet.
    pending: Vec<u8>,
}

impl<O: Write> Json<O> {
    /// Creates a sink that writes to `out` through a buffer.
    pub(crate) fn new(out: O) -> Self {
        Self {
            out,
            pending: Vec::new(),
        }
    }

    fn write_pending(&mut self) -> io::Result<()> {
        self.out.write_all(&self.pending)?;
        self.pending.clear();
        // After an entry that was longer than the others. Otherwise it would grow again at once.
        if self.pending.capacity() > 4 * FULL {
            self.pending.shrink_to(FULL);
        }
        Ok(())
    }
}

impl<O: Write> Sink for Json<O> {
    fn entry(&mut self, entry: &RunLogEntry, _: Duration) -> io::Result<()> {
        entry.append_json(&mut self.pending)?;
        self.pending.push(b'\n');
        if self.pending.len() < FULL {
            return Ok(());
        }
        self.write_pending()
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_pending()?;
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::tests::{agent, done, of_run, retried, text};

    #[test]
    fn json_output_has_an_entry_on_each_line() {
        let mut bytes = Vec::new();
        let mut sink = Json::new(&mut bytes);
        let first = agent(text("m1", "a\nb\u{2028}c"));
        for entry in [&first, &of_run(retried(None)), &agent(done("a"))] {
            sink.entry(entry, Duration::ZERO).unwrap();
        }
        sink.flush().unwrap();
        drop(sink);
        let lines: Vec<&[u8]> = bytes
            .strip_suffix(b"\n")
            .unwrap()
            .split(|b| *b == b'\n')
            .collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(
            serde_json::from_slice::<RunLogEntry>(lines[0]).unwrap(),
            first
        );
        for (line, name) in lines[1..].iter().zip(["run:retry", "done"]) {
            let start = format!(r#"{{"seq":0,"atMs":0,"attempt":1,"type":"{name}","#);
            assert!(line.starts_with(start.as_bytes()), "{name}");
        }
    }
}
