//! Output as JSON, one entry per line.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use teamster_api::RunLogEntry;

use super::Sink;

/// Sink that writes each entry as one line of JSON.
#[derive(Debug)]
pub(crate) struct Json<O: Write> {
    out: BufWriter<O>,
}

impl<O: Write> Json<O> {
    /// Creates a sink that writes to `out` through a buffer.
    pub(crate) fn new(out: O) -> Self {
        Self {
            out: BufWriter::new(out),
        }
    }
}

impl<O: Write> Sink for Json<O> {
    fn entry(&mut self, entry: &RunLogEntry, _: Duration) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, entry)?;
        self.out.write_all(b"\n")
    }

    fn flush(&mut self) -> io::Result<()> {
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
