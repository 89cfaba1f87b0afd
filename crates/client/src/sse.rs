//! A parser of server-sent events.

use bytes::{Buf, BytesMut};

/// An event with data.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// The type; empty if the event has none.
    pub(crate) name: Vec<u8>,
    pub(crate) data: Vec<u8>,
}

/// Parses bytes in pieces of any size. A line ends with LF, CRLF or CR.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    bytes: BytesMut,
    /// The number of leading bytes known to contain no end of a line.
    searched: usize,
    /// The last line ended with CR, so a LF that follows belongs to it.
    is_after_cr: bool,
    /// The first line, which may begin with a byte order mark, has been read.
    has_begun: bool,
    name: Vec<u8>,
    data: Option<Vec<u8>>,
}

impl SseParser {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the number of bytes of the incomplete event.
    pub(crate) fn pending(&self) -> usize {
        self.bytes.len() + self.data.as_ref().map_or(0, Vec::len)
    }

    /// Returns the next event that is complete.
    pub(crate) fn next(&mut self) -> Option<SseEvent> {
        while let Some(line) = self.line() {
            if line.is_empty() {
                let name = std::mem::take(&mut self.name);
                if let Some(data) = self.data.take() {
                    return Some(SseEvent { name, data });
                }
                continue;
            }
            let colon = line.iter().position(|byte| *byte == b':');
            let (field, value) = line.split_at(colon.unwrap_or(line.len()));
            let value = value.strip_prefix(b":").unwrap_or(value);
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match (field, &mut self.data) {
                (b"data", Some(data)) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                (b"data", data @ None) => *data = Some(value.to_vec()),
                (b"event", _) => self.name = value.to_vec(),
                _ => {}
            }
        }
        None
    }

    fn line(&mut self) -> Option<BytesMut> {
        if self.is_after_cr {
            let first = *self.bytes.first()?;
            self.is_after_cr = false;
            if first == b'\n' {
                self.bytes.advance(1);
            }
        }
        let rest = &self.bytes[self.searched..];
        let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.searched = self.bytes.len();
            return None;
        };
        let mut line = self.bytes.split_to(self.searched + end);
        self.searched = 0;
        self.is_after_cr = self.bytes.get_u8() == b'\r';
        if !std::mem::replace(&mut self.has_begun, true) && line.starts_with(b"\xef\xbb\xbf") {
            line.advance(3);
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Made by hand: comments, fields that are unknown or without a value, and data of several lines.
    const LINES: [&str; 14] = [
        ": a comment",
        "retry: 1000",
        "",
        "id: 1",
        "data: {\"seq\":1,\"text\":\"a\u{2028}ü\"}",
        "",
        "unknown: x",
        "event",
        "data:one",
        "data: two",
        "",
        "event: empty",
        "",
        "",
    ];

    fn event(name: &str, data: &str) -> SseEvent {
        SseEvent {
            name: name.into(),
            data: data.into(),
        }
    }

    fn parse<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<SseEvent> {
        let mut parser = SseParser::default();
        let mut events = Vec::new();
        for piece in pieces {
            parser.push(piece);
            events.extend(std::iter::from_fn(|| parser.next()));
        }
        assert_eq!(parser.pending(), 0);
        events
    }

    #[test]
    fn events_are_read_in_any_pieces_and_with_any_end_of_lines() {
        let expected = [
            event("", "{\"seq\":1,\"text\":\"a\u{2028}ü\"}"),
            event("", "one\ntwo"),
            event("end", "{}"),
        ];
        for end in ["\n", "\r\n", "\r"] {
            for begin in ["", "\u{feff}"] {
                let text = format!(
                    "{begin}{}event: end{end}data: {{}}{end}{end}",
                    LINES.map(|line| format!("{line}{end}")).concat()
                );
                for cut in 0..=text.len() {
                    let (first, rest) = text.as_bytes().split_at(cut);
                    let found = parse([first, b"", rest].into_iter());
                    assert_eq!(found, expected, "{end:?} {cut}");
                }
                assert_eq!(parse(text.as_bytes().chunks(1)), expected);
            }
        }
    }
}
