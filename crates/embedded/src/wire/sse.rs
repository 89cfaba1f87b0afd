//! Parser of server-sent events.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// Data of the event. Several lines are joined by newlines.
    pub(crate) data: String,
    /// True if the event is named `error`.
    pub(crate) is_error: bool,
}

/// Splits a stream into events.
#[derive(Debug, Default)]
pub(crate) struct Sse {
    buf: Vec<u8>,
    /// Start of the next line in `buf`.
    at: usize,
    /// Offset up to which no line ends after `at`, so that no byte is searched twice.
    searched: usize,
    /// True if the last line ended with CR: an LF after it belongs to the same end.
    after_cr: bool,
    data: Option<String>,
    is_error: bool,
    /// Lines outside of events: errors between events, or a whole body that is no stream.
    rest: String,
}

/// Maximum bytes kept of lines outside of events.
const MOST_REST: usize = 8 << 20;

impl Sse {
    /// Appends the next bytes of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.buf.extend_from_slice(bytes);
    }

    pub(crate) fn next_event(&mut self) -> Option<SseEvent> {
        let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
        while let Some(length) = self.buf[self.searched..].iter().position(is_end) {
            let end = self.searched + length;
            let is_rest_of_end = self.after_cr && end == self.at && self.buf[end] == b'\n';
            self.after_cr = self.buf[end] == b'\r';
            let line = String::from_utf8_lossy(&self.buf[self.at..end]).into_owned();
            self.at = end + 1;
            self.searched = self.at;
            if is_rest_of_end {
                continue;
            }
            let event = self.line(&line);
            if event.is_some() {
                return event;
            }
        }
        // Once for all events of a piece.
        self.buf.drain(..self.at);
        self.at = 0;
        self.searched = self.buf.len();
        None
    }

    fn line(&mut self, line: &str) -> Option<SseEvent> {
        let line = line.trim_start_matches('\u{feff}');
        if line.is_empty() {
            return self.event();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                none => *none = Some(value.to_owned()),
            },
            "event" => self.is_error = value.trim() == "error",
            // Ignore comments, ids and other names of events: the data identifies the event.
            "" | "id" | "retry" => {}
            _ => {
                if self.rest.len() + line.len() < MOST_REST {
                    self.rest.push_str(line);
                    self.rest.push('\n');
                }
            }
        }
        None
    }

    fn event(&mut self) -> Option<SseEvent> {
        let is_error = std::mem::take(&mut self.is_error);
        let data = self.data.take()?;
        Some(SseEvent { data, is_error })
    }

    /// Ends the stream. Returns a last event without its empty line, and the lines outside of events.
    pub(crate) fn finish(mut self) -> (Option<SseEvent>, String) {
        let last = String::from_utf8_lossy(&self.buf[self.at..]).into_owned();
        if !last.is_empty() {
            self.line(&last);
        }
        (self.event(), self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(pieces: &[&[u8]]) -> (Vec<String>, String) {
        let mut sse = Sse::default();
        let mut events = Vec::new();
        for piece in pieces {
            sse.push(piece);
            while let Some(event) = sse.next_event() {
                events.push(event.data);
            }
        }
        let (last, rest) = sse.finish();
        events.extend(last.map(|event| event.data));
        (events, rest)
    }

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        let stream = ": hi\r\nevent: a\r\ndata: {\"x\":\"ä\"}\r\n\r\ndata: one\ndata:two\n\n{\"error\": 1}\ndata: last";
        let expected = events(&[stream.as_bytes()]);
        assert_eq!(expected.0, ["{\"x\":\"ä\"}", "one\ntwo", "last"]);
        assert_eq!(expected.1, "{\"error\": 1}\n");
        for cut in 0..stream.len() {
            let (a, b) = stream.as_bytes().split_at(cut);
            assert_eq!(events(&[a, b]), expected, "{cut}");
        }
    }

    // Made by hand, by the standard.
    #[test]
    fn lines_may_end_with_cr_alone() {
        let (found, rest) = events(&[
            b"data: one\rdata: two\r\rdata: three\r",
            b"\n\r\ndata: four",
        ]);
        assert_eq!(found, ["one\ntwo", "three", "four"]);
        assert_eq!(rest, "");
    }

    // Made by hand. With work for each piece that grows with the line, or for each event with what follows it, this does
    // not end in minutes.
    #[test]
    fn a_long_line_and_many_events_take_linear_time() {
        let mut sse = Sse::default();
        sse.push(b"data: ");
        for _ in 0..1 << 18 {
            sse.push(&[b'x'; 64]);
            assert_eq!(sse.next_event(), None);
        }
        sse.push(b"\n\n");
        assert_eq!(
            sse.next_event().map(|event| event.data.len()),
            Some(1 << 24)
        );
        sse.push(&b"data: x\n\n".repeat(1 << 18));
        let count = std::iter::from_fn(|| sse.next_event()).count();
        assert_eq!(count, 1 << 18);
    }
}
