//! The end of the stream that carries no events.

/// Keeps the last `max` bytes of a stream, in a buffer of about twice that size.
#[derive(Debug)]
pub(crate) struct Tail {
    buf: Vec<u8>,
    max: usize,
    cut: bool,
}

/// Minimum room before each read, in bytes.
const ROOM: usize = 8 << 10;

impl Tail {
    pub(crate) fn new(max: usize) -> Self {
        Self {
            buf: Vec::new(),
            max,
            cut: false,
        }
    }

    /// Returns the buffer to append new bytes to.
    pub(crate) fn fill(&mut self) -> &mut Vec<u8> {
        if self.buf.len() > self.max.saturating_mul(2) {
            self.cut();
        }
        self.buf.reserve(ROOM);
        &mut self.buf
    }

    fn cut(&mut self) {
        if let Some(extra @ 1..) = self.buf.len().checked_sub(self.max) {
            self.buf.drain(..extra);
            self.cut = true;
        }
    }

    /// Returns the text so far.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.buf).into_owned()
    }

    /// Takes the text. A cut is marked by a leading `…`.
    pub(crate) fn take(&mut self) -> String {
        self.cut();
        let mut bytes = std::mem::take(&mut self.buf);
        if !self.cut {
            return String::from_utf8_lossy(&bytes).into_owned();
        }
        // The cut may be inside a character.
        let start = bytes
            .iter()
            .take(3)
            .take_while(|byte| **byte & 0xc0 == 0x80)
            .count();
        bytes.drain(..start);
        format!("…{}", String::from_utf8_lossy(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail(max: usize, chunks: &[&[u8]]) -> String {
        let mut tail = Tail::new(max);
        for chunk in chunks {
            tail.fill().extend_from_slice(chunk);
        }
        tail.take()
    }

    #[test]
    fn a_short_text_is_complete() {
        assert_eq!(tail(10, &[b"one\n", b"two\n\xff"]), "one\ntwo\n\u{fffd}");
    }

    #[test]
    fn of_a_long_text_the_end_is_kept_and_the_cut_is_marked() {
        assert_eq!(tail(3, &[b"abcdefg", b"hij", b"k"]), "…ijk");
        assert_eq!(tail(3, &["aaaéö".as_bytes()]), "…ö");
        assert_eq!(tail(3, &["a\u{1f600}".as_bytes()]), "…");
        assert_eq!(tail(0, &[b"abc"]), "…");
    }

    #[test]
    fn memory_is_bounded() {
        let mut tail = Tail::new(1000);
        for _ in 0..1000 {
            tail.fill().extend_from_slice(&[b'x'; 4096]);
        }
        assert!(tail.buf.capacity() <= 4 * ROOM);
        assert_eq!(tail.take().len(), "…".len() + 1000);
    }
}
