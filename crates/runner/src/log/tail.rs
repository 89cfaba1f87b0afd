//! Last entry of a log, even after a killed writer or a power failure.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use teamster_api::LogLine;

/// Returns the last complete entry of this run's log, and the offset of its end.
pub(crate) fn last_entry(file: &File, run_id: &str) -> io::Result<(u64, Option<LogLine>)> {
    loop {
        match find_last_entry(file, run_id) {
            // Another process has just truncated an incomplete line.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            found => return found,
        }
    }
}

fn find_last_entry(file: &File, run_id: &str) -> io::Result<(u64, Option<LogLine>)> {
    let mut end = file.metadata()?.len();
    loop {
        // After the last newline there is nothing or an incomplete line.
        let Some(newline) = newline_before(file, end)? else {
            return Ok((0, None));
        };
        let start = newline_before(file, newline)?.map_or(0, |at| at + 1);
        let mut json = vec![0; usize::try_from(newline - start).map_err(io::Error::other)?];
        file.read_exact_at(&mut json, start)?;
        if LogLine::is_complete(&json) {
            return Ok((newline + 1, LogLine::from_json(json, run_id)));
        }
        end = newline;
    }
}

/// Returns the offset of the last `\n` before `end`.
fn newline_before(file: &File, mut end: u64) -> io::Result<Option<u64>> {
    let mut piece = vec![0; 16 * 1024];
    while end > 0 {
        let start = end.saturating_sub(piece.len() as u64);
        let piece = &mut piece[..usize::try_from(end - start).map_err(io::Error::other)?];
        file.read_exact_at(piece, start)?;
        if let Some(at) = memchr::memrchr(b'\n', piece) {
            return Ok(Some(start + at as u64));
        }
        end = start;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_disk_is_not_tried_again() {
        // A folder has a length and cannot be read.
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("x"), "").unwrap();
        let folder = File::open(dir.path()).unwrap();
        assert!(last_entry(&folder, "r").is_err());
    }
}
