//! What a CLI adds to its own record of the session during a run.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use teamster_core::RecordFile;

/// A longer line is no figure that a decoder asks for.
const LARGEST_LINE: u64 = 1 << 20;

/// The file, with its length before the run.
pub(crate) struct Record {
    file: RecordFile,
    from: u64,
}

impl Record {
    /// To be called before the CLI starts.
    pub(crate) fn begin(file: RecordFile) -> Self {
        let from = file.path.metadata().map_or(0, |data| data.len());
        Self { file, from }
    }

    /// The lines that came since and that are asked for. A file that is not there, or was written
    /// anew, has none. Blocks.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let Ok(mut file) = File::open(&self.file.path) else {
            return lines;
        };
        let length = file.metadata().map_or(0, |data| data.len());
        if length < self.from || file.seek(SeekFrom::Start(self.from)).is_err() {
            return lines;
        }
        // What is appended while this is read belongs to another run.
        let mut rest = BufReader::new(file.take(length - self.from));
        let mut line = Vec::new();
        loop {
            line.clear();
            match rest
                .by_ref()
                .take(LARGEST_LINE)
                .read_until(b'\n', &mut line)
            {
                Ok(0) | Err(_) => return lines,
                Ok(_) => {}
            }
            let whole = line.pop_if(|last| *last == b'\n').is_some();
            if !whole && line.len() as u64 == LARGEST_LINE {
                if rest.skip_until(b'\n').is_err() {
                    return lines;
                }
                continue;
            }
            if let Ok(text) = std::str::from_utf8(&line)
                && self.file.containing.iter().any(|part| text.contains(part))
            {
                lines.push(text.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::path::Path;

    fn record(path: &Path) -> Record {
        Record::begin(RecordFile {
            path: path.to_owned(),
            containing: &["\"usage\"", "\"end\""],
        })
    }

    #[test]
    fn only_new_lines_that_are_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        std::fs::write(&path, "{\"usage\":1}\n").unwrap();
        let record = record(&path);
        assert_eq!(record.lines(), [""; 0]);
        let mut file = File::options().append(true).open(&path).unwrap();
        let long = "x".repeat(2 << 20);
        write!(
            file,
            "{{\"usage\":2}}\n{{\"text\":3}}\n\"usage\"{long}\n{{\"end\":4}}\n{{\"usage\""
        )
        .unwrap();
        assert_eq!(
            record.lines(),
            [r#"{"usage":2}"#, r#"{"end":4}"#, r#"{"usage""#]
        );
    }

    #[test]
    fn a_file_that_is_not_there_or_was_written_anew_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let early = record(&path);
        assert_eq!(early.lines(), [""; 0]);
        std::fs::write(&path, "{\"usage\":1}\n").unwrap();
        assert_eq!(early.lines(), [r#"{"usage":1}"#]);
        let late = record(&path);
        std::fs::write(&path, "{}\n").unwrap();
        assert_eq!(late.lines(), [""; 0]);
    }
}
