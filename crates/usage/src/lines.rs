//! Lines of a file, in bounded memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::source::Sink;

/// How much is read at once, in bytes.
const CHUNK: usize = 256 << 10;
/// The longest line that is read, in bytes: that of the engine. A longer one is counted and left out.
const LONGEST: usize = 64 << 20;

/// A line without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Its bytes.
    pub(crate) bytes: &'a [u8],
    /// Whether its end was there. The last line of a file may still be written.
    pub(crate) complete: bool,
}

/// Calls `each` with every line of a file from `start` on, and counts them in `sink`.
pub(crate) fn read(
    path: &Path,
    start: u64,
    each: &mut dyn FnMut(Line<'_>, &mut Sink<'_>),
    sink: &mut Sink<'_>,
) -> io::Result<()> {
    let mut file = File::open(path)?;
    if start > 0 {
        file.seek(SeekFrom::Start(start))?;
    }
    read_limited(&mut file, LONGEST, each, sink)
}

/// The same of anything, with lines of at most `longest` bytes.
fn read_limited(
    file: &mut dyn Read,
    longest: usize,
    each: &mut dyn FnMut(Line<'_>, &mut Sink<'_>),
    sink: &mut Sink<'_>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    // What of the buffer is filled with the beginning of a line.
    let mut kept = 0;
    // Whether the rest of a line that is too long is being left out.
    let mut skipping = false;
    loop {
        if kept == buffer.len() {
            buffer.resize(kept * 2, 0);
        }
        let count = match file.read(&mut buffer[kept..]) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        sink.diagnostics.bytes += count as u64;
        let filled = kept + count;
        let mut from = 0;
        // What was kept has no end of a line in it.
        let mut search = kept;
        while let Some(place) = memchr::memchr(b'\n', &buffer[search..filled]) {
            let end = search + place;
            sink.diagnostics.lines += 1;
            if skipping {
                skipping = false;
            } else if end - from > longest {
                sink.diagnostics.oversize_lines += 1;
            } else {
                let bytes = &buffer[from..end];
                each(
                    Line {
                        bytes,
                        complete: true,
                    },
                    sink,
                );
            }
            from = end + 1;
            search = from;
        }
        if from > 0 {
            buffer.copy_within(from..filled, 0);
        }
        kept = filled - from;
        if skipping {
            kept = 0;
        } else if kept > longest {
            sink.diagnostics.oversize_lines += 1;
            skipping = true;
            kept = 0;
        }
        // One long line must not be paid for by all that follow.
        if kept < CHUNK && buffer.len() > CHUNK {
            buffer.truncate(CHUNK);
            buffer.shrink_to_fit();
        }
    }
    if kept > 0 {
        sink.diagnostics.lines += 1;
        let bytes = &buffer[..kept];
        each(
            Line {
                bytes,
                complete: false,
            },
            sink,
        );
    }
    Ok(())
}
