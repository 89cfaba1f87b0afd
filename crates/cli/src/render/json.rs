//! Output as JSON, one event per line.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use serde::Serialize;

use super::Sink;

/// Sink that writes each event as one line of JSON.
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

impl<O: Write, E: Serialize> Sink<E> for Json<O> {
    fn event(&mut self, event: &E, _: Duration) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, event)?;
        self.out.write_all(b"\n")
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use teamster::LogEntry;

    use crate::render::testing::{done, text};

    #[test]
    fn one_event_a_line() {
        let mut bytes = Vec::new();
        let mut sink = Json::new(&mut bytes);
        for event in [text("m1", "a\nb\u{2028}c"), done("a")] {
            sink.event(&LogEntry::from(event), Duration::ZERO).unwrap();
        }
        Sink::<LogEntry>::flush(&mut sink).unwrap();
        drop(sink);
        let lines: Vec<&[u8]> = bytes
            .strip_suffix(b"\n")
            .unwrap()
            .split(|b| *b == b'\n')
            .collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(
            serde_json::from_slice::<LogEntry>(lines[0]).unwrap(),
            text("m1", "a\nb\u{2028}c").into()
        );
        assert!(lines[1].starts_with(br#"{"seq":0,"atMs":0,"attempt":1,"type":"done","#));
    }
}
