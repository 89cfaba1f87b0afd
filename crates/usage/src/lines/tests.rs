use std::io::Write;

use proptest::prelude::*;

use super::*;
use crate::source::Found;

/// Returns this number of bytes per read.
struct Slow<'a>(&'a [u8], usize);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(buffer.len());
        self.0.read(&mut buffer[..count])
    }
}

/// Returns the lines of a text, and the number of lines that were too long.
fn lines(text: &[u8], at_once: usize, longest: usize) -> (Vec<(Vec<u8>, bool)>, u64) {
    let mut nowhere = |_: Found| {};
    let mut sink = Sink::new(&mut nowhere);
    let mut found = Vec::new();
    let mut take = |line: Line<'_>, _: &mut Sink<'_>| {
        found.push((line.bytes.to_vec(), line.complete));
    };
    read_limited(&mut Slow(text, at_once), longest, &mut take, &mut sink).unwrap();
    assert_eq!(sink.diagnostics.bytes, text.len() as u64);
    (found, sink.diagnostics.oversize_lines)
}

proptest! {
    #[test]
    fn a_text_has_the_same_lines_however_it_is_read(
        text in "[a-c\n]{0,60}",
        at_once in 1_usize..70,
    ) {
        let mut expected: Vec<_> = text
            .split('\n')
            .map(|line| (line.as_bytes().to_vec(), true))
            .collect();
        let last = expected.pop().unwrap();
        if !last.0.is_empty() {
            expected.push((last.0, false));
        }
        prop_assert_eq!(lines(text.as_bytes(), at_once, 1000), (expected, 0));
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out_and_reported(
        lengths in prop::collection::vec(0_usize..20, 0..20),
        at_once in 1_usize..70,
    ) {
        let text: String = lengths.iter().map(|length| "x".repeat(*length) + "\n").collect();
        let (short, long): (Vec<usize>, Vec<usize>) = lengths.iter().copied().partition(|length| *length <= 8);
        let (found, oversize) = lines(text.as_bytes(), at_once, 8);
        let found: Vec<_> = found.iter().map(|(line, _)| line.len()).collect();
        prop_assert_eq!(found, short);
        prop_assert_eq!(oversize, long.len() as u64);
    }
}

#[test]
fn lines_longer_than_the_buffer_are_complete() {
    let long = "y".repeat(3 * CHUNK + 1);
    let text = format!("a\n{long}\nb\n");
    let (found, oversize) = lines(text.as_bytes(), usize::MAX, LONGEST);
    let lengths: Vec<_> = found.iter().map(|(line, _)| line.len()).collect();
    assert_eq!((lengths, oversize), (vec![1, long.len(), 1], 0));
}

#[test]
fn reading_begins_with_a_complete_line() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"one\ntwo\nthree").unwrap();
    for (start, expected) in [
        (0, "one two three"),
        (3, "one two three"),
        (4, "two three"),
        (6, "two three"),
        (8, "three"),
        (13, "three"),
        (99, "three"),
    ] {
        let mut nowhere = |_: Found| {};
        let mut found = Vec::new();
        let mut take = |line: Line<'_>, _: &mut Sink<'_>| {
            found.push(String::from_utf8(line.bytes.to_vec()).unwrap());
        };
        read(file.path(), start, &mut take, &mut Sink::new(&mut nowhere)).unwrap();
        assert_eq!(found.join(" "), expected, "{start}");
    }
    let mut before = Vec::new();
    read_before(file.path(), 13, 6, &mut |line| before.push(line.to_vec())).unwrap();
    assert_eq!(before, [b"two".to_vec(), Vec::new()]);
}

#[test]
fn endless_line_takes_little_more_memory_than_the_longest() {
    /// Returns a line without an end, and records the size of the reads.
    struct Endless(usize, usize);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(b'x');
            self.1 = self.1.max(buffer.len());
            let count = buffer.len().min(self.0);
            self.0 -= count;
            Ok(count)
        }
    }
    let longest = 4 * CHUNK;
    let mut file = Endless(10 * longest, 0);
    let mut nowhere = |_: Found| {};
    let mut sink = Sink::new(&mut nowhere);
    read_limited(&mut file, longest, &mut |_, _| {}, &mut sink).unwrap();
    assert_eq!(sink.diagnostics.oversize_lines, 1);
    // A read goes behind the present content.
    assert!(file.1 <= longest / 2, "{}", file.1);
}
