//! Reading of lines in bounded memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use ruzstd::decoding::StreamingDecoder;
use teamster_core::provider::mixed_line;

use crate::source::Sink;

/// Size of one read, in bytes.
const CHUNK: usize = 256 << 10;
/// Maximum size of a line, in bytes, as in the engine. A longer line is counted and skipped.
const LONGEST: usize = 64 << 20;

/// A line without its line break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Content of the line.
    pub(crate) bytes: &'a [u8],
    /// True if the line break was there. The last line of a file may still be being written.
    pub(crate) complete: bool,
}

/// Suffix of a compressed file.
pub(crate) const COMPRESSED: &str = ".zst";

fn is_compressed(path: &Path) -> bool {
    path.as_os_str()
        .as_encoded_bytes()
        .ends_with(COMPRESSED.as_bytes())
}

/// Calls `each` with every line of a file from `start` on, until `sink` is done. Counts the lines in the sink.
///
/// If `start` is within a line, reading begins at that line's start. A compressed file is always read from its
/// beginning.
pub(crate) fn read(
    path: &Path,
    start: u64,
    each: &mut dyn FnMut(Line<'_>, &mut Sink<'_>),
    sink: &mut Sink<'_>,
) -> io::Result<()> {
    let mut file = File::open(path)?;
    if is_compressed(path) {
        let mut text = StreamingDecoder::new(file).map_err(io::Error::other)?;
        return read_limited(&mut text, LONGEST, each, sink);
    }
    if start > 0 {
        let start = beginning_of_line(&mut file, start)?;
        file.seek(SeekFrom::Start(start))?;
    }
    read_limited(&mut file, LONGEST, each, sink)
}

/// Calls `each` with the lines in the last `size` bytes before `start`, as context for a reader that continues from
/// `start`. Counts nothing.
pub(crate) fn read_before(
    path: &Path,
    start: u64,
    size: u64,
    each: &mut dyn FnMut(&[u8]),
) -> io::Result<()> {
    if is_compressed(path) {
        return Ok(());
    }
    let mut file = File::open(path)?;
    let start = beginning_of_line(&mut file, start)?;
    let from = start.saturating_sub(size);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(start - from).read_to_end(&mut bytes)?;
    let mut lines = bytes.split(|byte| *byte == b'\n');
    if from > 0 {
        // The first part is the end of a line.
        lines.next();
    }
    lines.for_each(each);
    Ok(())
}

/// Returns the start of the line at a position. A position beyond the end of the file counts as its end.
fn beginning_of_line(file: &mut File, offset: u64) -> io::Result<u64> {
    const BLOCK: u64 = 64 << 10;
    let mut end = offset.min(file.metadata()?.len());
    let limit = end.saturating_sub(LONGEST as u64);
    let mut block = Vec::new();
    while end > limit {
        let from = end.saturating_sub(BLOCK);
        file.seek(SeekFrom::Start(from))?;
        block.clear();
        file.take(end - from).read_to_end(&mut block)?;
        if let Some(newline) = memchr::memrchr(b'\n', &block) {
            return Ok(from + newline as u64 + 1);
        }
        end = from;
    }
    Ok(end)
}

/// Calls `each` with the lines of a reader that have at most `longest` bytes.
fn read_limited(
    file: &mut dyn Read,
    longest: usize,
    each: &mut dyn FnMut(Line<'_>, &mut Sink<'_>),
    sink: &mut Sink<'_>,
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK];
    // Number of bytes of an incomplete line at the start of the buffer.
    let mut kept = 0;
    // True while the rest of a line that is too long is skipped.
    let mut skipping = false;
    loop {
        if kept == buffer.len() {
            // Not larger than needed to see that the line is too long.
            let size = (kept * 2).min(longest + CHUNK);
            buffer.reserve_exact(size - kept);
            buffer.resize(size, 0);
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
        // The kept part has no line break.
        let mut search = kept;
        while let Some(offset) = memchr::memchr(b'\n', &buffer[search..filled]) {
            let end = search + offset;
            sink.diagnostics.lines += 1;
            if skipping {
                skipping = false;
            } else if end - from > longest {
                sink.diagnostics.oversize_lines += 1;
            } else {
                let bytes = &buffer[from..end];
                pass(bytes, each, sink);
            }
            if sink.done {
                return Ok(());
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
        // Release the memory that one long line has needed.
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

/// Passes a complete line to a reader. If it is malformed, the objects in it follow: a process that was killed has left
/// half a line, and the next one went on behind it.
fn pass(bytes: &[u8], each: &mut dyn FnMut(Line<'_>, &mut Sink<'_>), sink: &mut Sink<'_>) {
    let complete = true;
    let malformed = sink.diagnostics.malformed_lines;
    each(Line { bytes, complete }, sink);
    if sink.diagnostics.malformed_lines == malformed {
        return;
    }
    let text = String::from_utf8_lossy(bytes);
    for found in mixed_line::objects(&text).filter(|found| found.json.len() < bytes.len()) {
        let bytes = found.json.as_bytes();
        each(Line { bytes, complete }, sink);
    }
}

#[cfg(test)]
mod tests;
