//! Splitting of chunks of bytes into lines.

use memchr::memchr;

/// Size of the kept beginning of an over-long line, in bytes.
const HEAD_BYTES: usize = 1024;
/// Minimum room before each read, in bytes.
const ROOM: usize = 64 << 10;
/// Capacity beyond which an empty buffer is freed, in bytes.
const KEEP: usize = 1 << 20;
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Splits a stream of bytes into lines.
///
/// - Only the byte `\n` ends a line: U+2028 and the like are text.
/// - One `\r` before the `\n` is removed, and so is a byte order mark at the start of the stream.
/// - Blank lines are skipped.
/// - Bytes that are not UTF-8 are kept.
/// - A line over the limit is discarded while it is read, so that memory stays within the limit, and reading
///   continues after its newline.
///
/// The result does not depend on the boundaries of the chunks.
///
/// ```
/// use teamster_process::framing::{Frame, LineBuf};
///
/// let mut lines = LineBuf::new(1000);
/// lines.extend(b"{\"a\":1}\r\n\n{\"b\"");
/// assert_eq!(lines.next(), Some(Frame::Line(b"{\"a\":1}")));
/// assert_eq!(lines.next(), None);
/// lines.extend(b":2}");
/// assert_eq!(lines.next(), None);
/// assert_eq!(lines.finish(), Some(Frame::Line(b"{\"b\":2}")));
/// ```
#[derive(Debug)]
pub struct LineBuf {
    buf: Vec<u8>,
    /// Offset of the first line that was not returned.
    start: usize,
    /// Offset up to which there is no newline after `start`, so that no byte is scanned twice.
    scanned: usize,
    max_line_bytes: usize,
    /// Length so far of the over-long line that is being discarded.
    discarded: Option<u64>,
    head: Vec<u8>,
    at_start: bool,
}

/// An item of [`LineBuf`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A line that is not blank, without its end.
    Line(&'a [u8]),
    /// A line that was longer than the limit and was discarded.
    Oversize {
        /// Length of the line without its newline, in bytes.
        bytes: u64,
        /// The beginning of the line: at most 1 KiB.
        head: &'a [u8],
    },
}

impl LineBuf {
    /// Creates a buffer for lines of at most `max_line_bytes` without their newline. The minimum is 3 bytes.
    pub fn new(max_line_bytes: usize) -> Self {
        Self {
            buf: Vec::new(),
            start: 0,
            scanned: 0,
            // A byte order mark must fit, or the result would depend on the chunks.
            max_line_bytes: max_line_bytes.max(BOM.len()),
            discarded: None,
            head: Vec::new(),
            at_start: true,
        }
    }

    /// Returns the buffer to append new bytes to, for example with `read_buf`. It has room for at least 64 KiB without
    /// growing. To be called after [`next`](Self::next) has returned `None`.
    pub fn fill(&mut self) -> &mut Vec<u8> {
        if self.start > 0 {
            self.buf.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        if self.buf.is_empty() && self.buf.capacity() > KEEP {
            self.buf = Vec::new();
        }
        if self.buf.capacity() - self.buf.len() < ROOM {
            // Doubled, so that a long line is not copied for each of its chunks, but not far beyond the limit.
            let most = self.max_line_bytes.saturating_add(ROOM);
            let room = self.buf.len().min(most.saturating_sub(self.buf.len()));
            self.buf.reserve_exact(room.max(ROOM));
        }
        &mut self.buf
    }

    /// Appends bytes that are already in memory.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.fill().extend_from_slice(bytes);
    }

    /// Returns the next complete line; `None` if more bytes are needed.
    #[expect(
        clippy::should_implement_trait,
        reason = "a frame borrows the buffer, which an iterator cannot say"
    )]
    pub fn next(&mut self) -> Option<Frame<'_>> {
        loop {
            let Some(found) = memchr(b'\n', &self.buf[self.scanned..]) else {
                self.keep_within_limit();
                return None;
            };
            let start = self.start;
            let end = self.scanned + found;
            self.start = end + 1;
            self.scanned = self.start;
            if let Some(bytes) = self.discarded.take() {
                self.keep_head(start, end);
                return Some(self.oversize(bytes + (end - start) as u64));
            }
            if end - start > self.max_line_bytes {
                self.begin_head(start, end);
                return Some(self.oversize((end - start) as u64));
            }
            let (from, to) = self.trim(start, end);
            if from < to {
                return Some(Frame::Line(&self.buf[from..to]));
            }
        }
    }

    /// Returns the last line without newline at the end of the input. To be called after [`next`](Self::next) has
    /// returned `None`. Afterwards the buffer is empty.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        let (start, end) = (self.start, self.buf.len());
        self.start = end;
        self.scanned = end;
        if let Some(bytes) = self.discarded.take() {
            self.keep_head(start, end);
            return Some(self.oversize(bytes + (end - start) as u64));
        }
        let (from, to) = self.trim(start, end);
        (from < to).then(|| Frame::Line(&self.buf[from..to]))
    }

    /// Handles remaining bytes without a newline: marks them as scanned, and discards them if they are over the limit.
    fn keep_within_limit(&mut self) {
        let (start, end) = (self.start, self.buf.len());
        if let Some(bytes) = &mut self.discarded {
            *bytes += (end - start) as u64;
            self.keep_head(start, end);
        } else if end - start > self.max_line_bytes {
            self.begin_head(start, end);
            self.discarded = Some((end - start) as u64);
        } else {
            self.scanned = end;
            return;
        }
        self.buf.clear();
        self.start = 0;
        self.scanned = 0;
    }

    fn begin_head(&mut self, start: usize, end: usize) {
        let (from, _) = self.trim(start, end);
        self.head.clear();
        self.keep_head(from, end);
    }

    fn keep_head(&mut self, start: usize, end: usize) {
        let room = HEAD_BYTES - self.head.len();
        self.head
            .extend_from_slice(&self.buf[start..end.min(start + room)]);
    }

    fn oversize(&self, bytes: u64) -> Frame<'_> {
        Frame::Oversize {
            bytes,
            head: &self.head,
        }
    }

    /// Returns the bounds of a line without a leading byte order mark and a trailing carriage return.
    fn trim(&mut self, mut start: usize, mut end: usize) -> (usize, usize) {
        if std::mem::take(&mut self.at_start) && self.buf[start..end].starts_with(BOM) {
            start += BOM.len();
        }
        if self.buf[start..end].ends_with(b"\r") {
            end -= 1;
        }
        (start, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq)]
    enum Owned {
        Line(Vec<u8>),
        Oversize(u64, Vec<u8>),
    }

    fn own(frame: Frame<'_>) -> Owned {
        match frame {
            Frame::Line(line) => Owned::Line(line.to_vec()),
            Frame::Oversize { bytes, head } => Owned::Oversize(bytes, head.to_vec()),
        }
    }

    fn frames(max: usize, chunks: &[&[u8]]) -> Vec<Owned> {
        let mut buf = LineBuf::new(max);
        let mut frames = Vec::new();
        for chunk in chunks {
            buf.extend(chunk);
            while let Some(frame) = buf.next() {
                frames.push(own(frame));
            }
        }
        frames.extend(buf.finish().map(own));
        assert_eq!(buf.finish(), None);
        frames
    }

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        frames(100, chunks)
            .into_iter()
            .map(|frame| match frame {
                Owned::Line(line) => String::from_utf8_lossy(&line).into_owned(),
                Owned::Oversize(..) => panic!("{frame:?}"),
            })
            .collect()
    }

    #[test]
    fn only_a_newline_ends_a_line() {
        assert_eq!(
            lines(&["a\u{2028}b\u{85}\x0bc\rd\ne\n".as_bytes()]),
            ["a\u{2028}b\u{85}\x0bc\rd", "e"]
        );
    }

    #[test]
    fn crlf_bom_and_blank_lines_go() {
        assert_eq!(
            lines(&[b"\xef\xbb", b"\xbfa\r", b"\n\r\n\n\nb\r\r\nc"]),
            ["a", "b\r", "c"]
        );
        assert_eq!(
            lines(&[b"\n\xef\xbb\xbfa\n"]),
            ["\u{feff}a"],
            "not at the start"
        );
        assert_eq!(lines(&[b"\xef\xbb\xbf\n"]), Vec::<String>::new());
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        assert_eq!(
            frames(10, &[b"\xff\x00\n"]),
            [Owned::Line(vec![0xff, 0x00])]
        );
    }

    #[test]
    fn a_last_line_needs_no_newline() {
        assert_eq!(lines(&[b"a\n{\"half"]), ["a", "{\"half"]);
        assert_eq!(lines(&[b"a\n\r"]), ["a"]);
    }

    #[test]
    fn an_over_long_line_is_reported_and_reading_continues() {
        for chunk in [1, 2, 3, 7, 100] {
            let input = b"ok\n12345678901\n1234567890\nnext\n12345678901";
            let chunks: Vec<_> = input.chunks(chunk).collect();
            assert_eq!(
                frames(10, &chunks),
                [
                    Owned::Line(b"ok".to_vec()),
                    Owned::Oversize(11, b"12345678901".to_vec()),
                    Owned::Line(b"1234567890".to_vec()),
                    Owned::Line(b"next".to_vec()),
                    Owned::Oversize(11, b"12345678901".to_vec()),
                ],
                "chunks of {chunk}"
            );
        }
    }

    #[test]
    fn memory_stays_at_the_limit_and_is_given_back() {
        let limit = 4 << 20;
        let mut buf = LineBuf::new(limit);
        let chunk = vec![b'x'; 32 << 10];
        for _ in 0..1000 {
            buf.extend(&chunk);
            assert_eq!(buf.next(), None);
            assert!(buf.buf.capacity() <= limit + 2 * ROOM);
        }
        buf.extend(b"\nsmall\n");
        assert!(matches!(
            buf.next(),
            Some(Frame::Oversize {
                bytes: 32_768_000,
                head,
            }) if head.len() == HEAD_BYTES
        ));
        assert_eq!(buf.next(), Some(Frame::Line(b"small")));
        assert_eq!(buf.next(), None);
        buf.fill();
        assert!(buf.buf.capacity() <= KEEP);
    }

    #[test]
    fn a_long_line_in_small_pieces_takes_linear_time() {
        // A scan or a copy of the whole line for each piece would take minutes.
        let mut buf = LineBuf::new(64 << 20);
        let piece = vec![b'x'; 4096];
        for _ in 0..(64 << 20) / 4096 {
            buf.extend(&piece);
            assert_eq!(buf.next(), None);
        }
        buf.extend(b"\n");
        assert!(matches!(buf.next(), Some(Frame::Line(line)) if line.len() == 64 << 20));
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_frames(
            input in proptest::collection::vec(
                prop_oneof![
                    3 => Just(b'\n'), 1 => Just(b'\r'), 5 => Just(b'a'),
                    1 => Just(0xef), 1 => Just(0xbb), 1 => Just(0xbf), 1 => any::<u8>(),
                ],
                0..200,
            ),
            bom in any::<bool>(),
            max in 0_usize..12,
            sizes in proptest::collection::vec(1_usize..20, 1..20),
        ) {
            let input = if bom { [BOM, &input].concat() } else { input };
            let expected = frames(max, &[&input]);
            let mut rest = &input[..];
            let mut chunks = Vec::new();
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, after) = rest.split_at(rest.len().min(*size));
                chunks.push(chunk);
                rest = after;
            }
            prop_assert_eq!(&frames(max, &chunks), &expected);

            // The lines equal those of a simple split.
            let text = input.strip_prefix(BOM).unwrap_or(&input);
            let lines: Vec<_> = text
                .split(|b| *b == b'\n')
                .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
                .filter(|line| !line.is_empty())
                .map(<[u8]>::to_vec)
                .collect();
            let roomy: Vec<_> = frames(1000, &chunks)
                .into_iter()
                .map(|frame| match frame {
                    Owned::Line(line) => line,
                    Owned::Oversize(..) => unreachable!(),
                })
                .collect();
            prop_assert_eq!(roomy, lines);
        }
    }
}
