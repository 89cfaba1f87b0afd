//! Reader of new lines in a CLI's record files.

mod list;

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use teamster_core::provider::RecordFiles;

use list::List;

/// Limit of the length of a line, in bytes. No longer line has a figure that a decoder requests.
const LARGEST_LINE: u64 = 1 << 20;

/// Time by which the creation time of a file may be behind the clock, because the kernel updates it in ticks.
const TICK: Duration = Duration::from_millis(100);

/// Record files and the offsets up to which they were read.
pub(crate) struct Record {
    files: RecordFiles,
    /// Files created before this time have lines of earlier runs. `None` if the offsets of such files are known.
    begun: Option<SystemTime>,
    offsets: BTreeMap<PathBuf, u64>,
    lists: BTreeMap<PathBuf, List>,
}

impl Record {
    /// Creates a reader before the start of the CLI. Blocks.
    pub(crate) fn begin(files: RecordFiles) -> Self {
        let mut record = Self {
            files,
            begun: None,
            offsets: BTreeMap::new(),
            lists: BTreeMap::new(),
        };
        for (path, _) in record.paths() {
            if let Some(field) = record.files.list {
                let list = List::of_earlier_runs(&path, field);
                record.lists.insert(path, list);
            } else {
                let length = length(&path);
                record.offsets.insert(path, length);
            }
        }
        record
    }

    /// Creates a reader for a CLI that was started at this time. In a file that is older, only lines that are appended
    /// later are known to be of this run.
    pub(crate) fn since(files: RecordFiles, begun: SystemTime) -> Self {
        Self {
            files,
            begun: begun.checked_sub(TICK),
            offsets: BTreeMap::new(),
            lists: BTreeMap::new(),
        }
    }

    /// Follows these files in place of those so far.
    pub(crate) fn follow(&mut self, files: RecordFiles) {
        self.files = files;
    }

    /// Returns the requested lines since the last call. A last line without newline counts only if the CLI is `gone`. A
    /// file that does not exist or was truncated has none. Blocks.
    pub(crate) fn lines(&mut self, gone: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for (path, is_other) in self.paths() {
            let is_asked_for = |line: &str| match &self.files.others {
                Some(others) if is_other => others.containing.iter().all(|it| line.contains(&**it)),
                _ => self.files.containing.iter().any(|it| line.contains(it)),
            };
            let is_old = |data: Option<Metadata>| {
                let made = data.and_then(|data| data.created().ok());
                made.zip(self.begun)
                    .is_some_and(|(made, begun)| made < begun)
            };
            if let Some(field) = self.files.list {
                let list = self.lists.entry(path.clone()).or_insert_with(|| {
                    if is_old(path.metadata().ok()) {
                        List::of_earlier_runs(&path, field)
                    } else {
                        List::default()
                    }
                });
                lines.extend(list.new_items(&path, field, is_asked_for));
                continue;
            }
            // There may be many other files, and few of them grow.
            if self.offsets.get(&path) == Some(&length(&path)) {
                continue;
            }
            let Ok(file) = File::open(&path) else {
                continue;
            };
            let offset = self.offsets.entry(path).or_insert_with(|| {
                let data = file.metadata().ok();
                let length = data.as_ref().map_or(0, Metadata::len);
                if is_old(data) { length } else { 0 }
            });
            read(file, offset, gone, is_asked_for, &mut lines);
        }
        lines
    }

    /// Returns each existing file once, and whether it is one of `others`.
    fn paths(&self) -> BTreeMap<PathBuf, bool> {
        let others = self.files.others.iter().flat_map(|others| &others.paths);
        let all = (self.files.paths.iter().map(|path| (path, false)))
            .chain(others.map(|path| (path, true)));
        let mut paths = BTreeMap::new();
        for (path, is_other) in all {
            let mut found = Vec::new();
            find(&self.files.folder, path, &mut found);
            for path in found {
                paths.entry(path).or_insert(is_other);
            }
        }
        paths
    }
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |data| data.len())
}

/// Finds the files at this path in a folder, where `*` matches any text within a name.
fn find(folder: &Path, path: &str, found: &mut Vec<PathBuf>) {
    let (name, rest) = match path.split_once('/') {
        Some((name, rest)) => (name, Some(rest)),
        None => (path, None),
    };
    let mut enter = |at: PathBuf| match rest {
        Some(rest) => find(&at, rest, found),
        None if at.is_file() => found.push(at),
        None => {}
    };
    let Some((head, tail)) = name.split_once('*') else {
        return enter(folder.join(name));
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let fits = |name: &str| {
        let rest = name.strip_prefix(head);
        rest.is_some_and(|rest| rest.ends_with(tail))
    };
    for entry in entries {
        if entry.file_name().to_str().is_some_and(fits) {
            enter(entry.path());
        }
    }
}

/// Reads the lines from the offset and moves the offset behind the last of them.
fn read(
    mut file: File,
    offset: &mut u64,
    gone: bool,
    is_asked_for: impl Fn(&str) -> bool,
    lines: &mut Vec<String>,
) {
    let length = file.metadata().map_or(0, |data| data.len());
    if length <= *offset || file.seek(SeekFrom::Start(*offset)).is_err() {
        return;
    }
    // Lines that are appended during the read are for the next call, or belong to another run.
    let mut rest = BufReader::new(file.take(length - *offset));
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut part = rest.by_ref().take(LARGEST_LINE);
        let Ok(mut bytes @ 1..) = part.read_until(b'\n', &mut line).map(|n| n as u64) else {
            return;
        };
        let mut complete = line.pop_if(|last| *last == b'\n').is_some();
        let long = !complete && bytes == LARGEST_LINE;
        if long {
            bytes += rest.skip_until(b'\n').unwrap_or(0) as u64;
            // If the line ends with the file, it may be incomplete. The next read shows it.
            complete = *offset + bytes < length;
        }
        if !complete && !gone {
            return;
        }
        *offset += bytes;
        if !long
            && let Ok(text) = std::str::from_utf8(&line)
            && is_asked_for(text)
        {
            lines.push(text.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    use teamster_core::provider::OtherRecordFiles;

    fn files(folder: &Path, path: &str) -> RecordFiles {
        RecordFiles::new(folder, vec![path.to_owned()], &["\"usage\"", "\"end\""])
    }

    fn append(path: &Path, text: &str) {
        let mut file = File::options()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    #[test]
    fn only_requested_new_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        append(&path, "{\"usage\":1}\n");
        let mut record = Record::begin(files(dir.path(), "events.jsonl"));
        assert_eq!(record.lines(false), [""; 0]);
        let long = "x".repeat(5 << 19);
        append(
            &path,
            &format!("{{\"usage\":2}}\n{{\"text\":3}}\n\"usage\"{long}"),
        );
        assert_eq!(record.lines(false), [r#"{"usage":2}"#]);
        append(&path, &format!("{long}\n{{\"end\":4}}\n{{\"usage\""));
        assert_eq!(record.lines(false), [r#"{"end":4}"#]);
        append(&path, ":5}\n{\"usage\"");
        assert_eq!(record.lines(false), [r#"{"usage":5}"#]);
        assert_eq!(record.lines(true), [r#"{"usage""#]);
        assert_eq!(record.lines(true), [""; 0]);
    }

    #[test]
    fn a_line_that_is_longer_than_the_limit_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let mut record = Record::begin(files(dir.path(), "events.jsonl"));
        let most = usize::try_from(LARGEST_LINE).unwrap() - 1;
        for bytes in [most, most + 1, 5] {
            let line = format!("\"end\"{}\n", "x".repeat(bytes - 5));
            append(&path, &line);
        }
        let lengths: Vec<_> = record.lines(false).iter().map(String::len).collect();
        assert_eq!(lengths, [most, 5]);
    }

    #[test]
    fn a_missing_or_rewritten_file_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let mut early = Record::begin(files(dir.path(), "events.jsonl"));
        assert_eq!(early.lines(true), [""; 0]);
        append(&path, "{\"usage\":1}\n");
        let mut late = Record::begin(files(dir.path(), "events.jsonl"));
        assert_eq!(early.lines(true), [r#"{"usage":1}"#]);
        fs::write(&path, "{}\n").unwrap();
        assert_eq!(late.lines(true), [""; 0]);
    }

    #[test]
    fn files_are_found_by_a_part_of_their_names_and_as_they_come() {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["a/chats", "b/chats", "b/other"] {
            fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        let mut record = Record::begin(files(dir.path(), "*/chats/s-*-id.jsonl"));
        append(&dir.path().join("a/chats/s-1-id.jsonl"), "{\"usage\":1}\n");
        append(&dir.path().join("b/chats/s-1-no.jsonl"), "{\"usage\":2}\n");
        append(&dir.path().join("b/other/s-1-id.jsonl"), "{\"usage\":3}\n");
        assert_eq!(record.lines(false), [r#"{"usage":1}"#]);
        append(&dir.path().join("b/chats/s-2-id.jsonl"), "{\"usage\":4}\n");
        assert_eq!(record.lines(false), [r#"{"usage":4}"#]);
    }

    #[test]
    fn of_other_files_only_lines_with_all_texts_count() {
        let dir = tempfile::tempdir().unwrap();
        let mut files = files(dir.path(), "own.jsonl");
        files.others = Some(OtherRecordFiles {
            paths: vec!["*.jsonl".to_owned()],
            containing: vec!["\"figure\"".to_owned(), "\"own\"".to_owned()],
        });
        append(
            &dir.path().join("old.jsonl"),
            "{\"figure\":1,\"of\":\"own\"}\n",
        );
        let mut record = Record::begin(files);
        append(
            &dir.path().join("own.jsonl"),
            "{\"usage\":2}\n{\"figure\":3,\"of\":\"own\"}\n",
        );
        append(
            &dir.path().join("new.jsonl"),
            "{\"usage\":4}\n{\"figure\":5,\"of\":\"own\"}\n{\"figure\":6,\"of\":\"another\"}\n",
        );
        append(
            &dir.path().join("old.jsonl"),
            "{\"figure\":7,\"of\":\"own\"}\n",
        );
        let mut lines = record.lines(false);
        lines.sort();
        assert_eq!(
            lines,
            [
                r#"{"figure":5,"of":"own"}"#,
                r#"{"figure":7,"of":"own"}"#,
                r#"{"usage":2}"#
            ]
        );
        assert_eq!(record.lines(true), [""; 0]);
    }

    #[test]
    fn only_new_lines_of_an_existing_file_count() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        append(&path, "{\"usage\":1}\n");
        let made = path.metadata().unwrap().created();
        // Not every file system stores creation times.
        let Ok(made) = made else { return };
        let later = made + 10 * TICK;
        let mut known_late = Record::since(files(dir.path(), "events.jsonl"), later);
        assert_eq!(known_late.lines(false), [""; 0]);
        append(&path, "{\"usage\":2}\n");
        assert_eq!(known_late.lines(false), [r#"{"usage":2}"#]);
        // The clock may be ahead of the time that the file got.
        for begun in [made, made + TICK / 2] {
            let mut new = Record::since(files(dir.path(), "events.jsonl"), begun);
            assert_eq!(new.lines(false).len(), 2);
        }
    }
}
