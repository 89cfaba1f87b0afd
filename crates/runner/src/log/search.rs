//! Binary search for an entry in a log, whose entries are sorted by number.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use teamster_api::LogLine;

/// Size of a read, in bytes.
const PIECE: usize = 16 * 1024;

/// Returns the offset of a line such that no entry from `seq` on is before it. A few smaller entries may follow
/// it.
pub(super) fn offset_of(file: &File, len: u64, seq: u64) -> io::Result<u64> {
    // Entries before `low` have smaller numbers. The first entry from `seq` on begins before `high`, if there
    // is one.
    let (mut low, mut high) = (0, len);
    while high - low > PIECE as u64 {
        let middle = low + (high - low) / 2;
        match first_line(file, middle, high)? {
            Some((start, found)) if found < seq => low = start,
            _ => high = middle,
        }
    }
    Ok(low)
}

/// Returns offset and number of the first line that begins in `from..to`.
fn first_line(file: &File, from: u64, to: u64) -> io::Result<Option<(u64, u64)>> {
    let mut piece = vec![0; PIECE];
    // The newline of the previous line may be at `from - 1`.
    let mut at = from - 1;
    while at < to {
        let count = file.read_at(&mut piece, at)?;
        if count == 0 {
            return Ok(None);
        }
        if let Some(end) = memchr::memchr(b'\n', &piece[..count]) {
            let start = at + end as u64 + 1;
            if start >= to {
                return Ok(None);
            }
            let mut head = [0; LogLine::HEAD_BYTES];
            let mut filled = 0;
            while filled < head.len() {
                match file.read_at(&mut head[filled..], start + filled as u64)? {
                    0 => break,
                    count => filled += count,
                }
            }
            return Ok(LogLine::seq_of(&head[..filled]).map(|seq| (start, seq)));
        }
        at += count as u64;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_entry_from_the_target_on_is_skipped(
            sizes in prop::collection::vec(0_usize..9_000, 1..60),
            first in 1_u64..1000,
            target in 0_u64..1100,
            torn in 0_usize..50,
        ) {
            let mut file = tempfile::tempfile().unwrap();
            let mut offsets = Vec::new();
            let mut text = Vec::new();
            for (seq, size) in (first..).zip(&sizes) {
                offsets.push((seq, text.len() as u64));
                writeln!(text, r#"{{"seq":{seq},"x":"{}"}}"#, "y".repeat(*size)).unwrap();
            }
            text.truncate(text.len() - torn.min(text.len()));
            file.write_all(&text).unwrap();
            let found = offset_of(&file, text.len() as u64, target).unwrap();
            prop_assert!(found == 0 || text[usize::try_from(found).unwrap() - 1] == b'\n');
            for (seq, offset) in &offsets {
                prop_assert!(*seq < target || *offset >= found, "{seq} at {offset} before {found}");
            }
            // Only a few entries are read in vain. The last one may be torn.
            offsets.pop();
            if let Some((_, offset)) = offsets.iter().find(|(seq, _)| *seq >= target) {
                prop_assert!(*offset < found + 3 * PIECE as u64, "{found} is far before {offset}");
            }
        }
    }
}
