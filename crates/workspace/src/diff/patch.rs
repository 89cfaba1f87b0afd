//! The hunks of a patch.

use std::io::{self, BufRead};

use teamster_api::{DiffLine, DiffLineKind, DiffStatus, Hunk, WorkspaceDiff};

use super::Limits;

/// Reads the patch of a diff's files, which has them in the same order, and adds the hunks. Returns `false` if the rest of
/// the patch was not wanted.
///
/// Lines are counted by the numbers in the header of their hunk, so no content can be taken for a header.
pub(super) fn add_hunks(
    mut patch: impl BufRead,
    limits: Limits,
    diff: &mut WorkspaceDiff,
) -> io::Result<bool> {
    let mut left = limits.bytes;
    let mut left_of_file = 0;
    let mut line = Vec::new();
    // Of a file whose type was changed there are two parts: its end and its beginning.
    let parts = |status| if status == DiffStatus::Type { 2 } else { 1 };
    let mut parts_left = 0;
    let mut next = 0;
    loop {
        let cap = left.min(left_of_file);
        if read_line(&mut patch, &mut line, cap)?.is_none() {
            return Ok(true);
        }
        if line.starts_with(b"diff --git ") {
            if parts_left == 0 {
                let Some(file) = diff.files.get(next) else {
                    return Ok(false);
                };
                parts_left = parts(file.status);
                left_of_file = limits.file_bytes;
                next += 1;
            }
            parts_left -= 1;
        } else if line.starts_with(b"@@ ")
            && let Some(file) = next.checked_sub(1).and_then(|it| diff.files.get_mut(it))
            && let Some(mut hunk) = header(&line)
        {
            let is_whole = read_hunk(&mut patch, &mut hunk, &mut left, &mut left_of_file)?;
            if !is_whole {
                file.truncated = true;
                diff.truncated = true;
            }
            if is_whole || !hunk.lines.is_empty() {
                file.hunks.push(hunk);
            }
        }
    }
}

/// Reads the lines of a hunk. Returns whether all are in it.
fn read_hunk(
    patch: &mut impl BufRead,
    hunk: &mut Hunk,
    left: &mut usize,
    left_of_file: &mut usize,
) -> io::Result<bool> {
    let (mut old, mut new) = (hunk.old_lines, hunk.new_lines);
    let mut line = Vec::new();
    let mut is_whole = true;
    loop {
        let is_over = old == 0 && new == 0;
        // After the last line, only the mark that it has no line feed can follow.
        if is_over && patch.fill_buf()?.first() != Some(&b'\\') {
            return Ok(is_whole);
        }
        let cap = (*left).min(*left_of_file);
        let Some(bytes) = read_line(patch, &mut line, cap)? else {
            return Ok(is_whole);
        };
        let kind = match line.first() {
            Some(b'\\') => {
                if let Some(last) = hunk.lines.last_mut().filter(|_| is_whole) {
                    last.no_newline = true;
                }
                continue;
            }
            Some(b'+') => DiffLineKind::Added,
            Some(b'-') => DiffLineKind::Deleted,
            _ => DiffLineKind::Context,
        };
        old -= u64::from(kind != DiffLineKind::Added && old > 0);
        new -= u64::from(kind != DiffLineKind::Deleted && new > 0);
        // Once a line was left out, the hunk ends before it.
        is_whole &= bytes <= cap;
        if is_whole {
            *left -= bytes;
            *left_of_file -= bytes;
            let text = line.get(1..).unwrap_or_default();
            let text = String::from_utf8_lossy(text);
            hunk.lines.push(DiffLine::new(kind, text));
        } else {
            if bytes > *left {
                *left = 0;
            }
            *left_of_file = 0;
        }
    }
}

/// Reads a line without its line feed, and returns its size in bytes; `None` at the end. Beyond `cap`, and enough for any
/// header, the bytes are only counted.
fn read_line(from: &mut impl BufRead, line: &mut Vec<u8>, cap: usize) -> io::Result<Option<usize>> {
    const HEADER: usize = 16 * 1024;

    let kept = cap.max(HEADER);
    line.clear();
    let mut size = 0;
    loop {
        let buffer = from.fill_buf()?;
        if buffer.is_empty() {
            return Ok((size > 0).then_some(size));
        }
        let end = memchr::memchr(b'\n', buffer);
        let found = &buffer[..end.unwrap_or(buffer.len())];
        let room = kept.saturating_sub(line.len()).min(found.len());
        line.extend_from_slice(&found[..room]);
        let taken = end.map_or(found.len(), |end| end + 1);
        size += taken;
        from.consume(taken);
        if end.is_some() {
            return Ok(Some(size));
        }
    }
}

fn header(line: &[u8]) -> Option<Hunk> {
    let line = String::from_utf8_lossy(line);
    let (ranges, section) = line.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| {
        let (start, lines) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, lines.parse().ok()?))
    };
    let mut hunk = Hunk::new(range(old)?, range(new)?);
    hunk.section = Some(section.trim())
        .filter(|section| !section.is_empty())
        .map(str::to_owned);
    Some(hunk)
}

#[cfg(test)]
mod tests {
    use teamster_api::DiffFile;

    use super::*;

    fn read(patch: &str, statuses: &[DiffStatus], limits: Limits) -> (WorkspaceDiff, bool) {
        let mut diff = WorkspaceDiff::new("a", "b");
        diff.files = statuses
            .iter()
            .map(|status| DiffFile::new(*status, "file"))
            .collect();
        let all = add_hunks(patch.as_bytes(), limits, &mut diff).unwrap();
        (diff, all)
    }

    fn lines(hunk: &Hunk) -> Vec<(DiffLineKind, &str, bool)> {
        (hunk.lines.iter())
            .map(|line| (line.kind, &*line.text, line.no_newline))
            .collect()
    }

    // Made by hand, as are the other patches here: the form is that of git 2.47.
    #[test]
    fn content_that_looks_like_a_header_is_content() {
        let patch = "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@ fn main()\n\
            -diff --git a/y b/y\n+@@ -1 +1 @@\n context\n\\ No newline at end of file\n\
            diff --git a/z b/z\nold mode 100644\nnew mode 100755\n";
        let statuses = [DiffStatus::Modified, DiffStatus::Mode];
        let (diff, all) = read(patch, &statuses, Limits::default());
        assert!(all);
        let [hunk] = &*diff.files[0].hunks else {
            panic!("{diff:?}");
        };
        assert_eq!(hunk.section.as_deref(), Some("fn main()"));
        assert_eq!(
            lines(hunk),
            [
                (DiffLineKind::Deleted, "diff --git a/y b/y", false),
                (DiffLineKind::Added, "@@ -1 +1 @@", false),
                (DiffLineKind::Context, "context", true),
            ]
        );
        assert!(diff.files[1].hunks.is_empty());
    }

    #[test]
    fn a_change_of_type_has_both_parts() {
        let patch = "diff --git a/x b/x\ndeleted file mode 100644\n--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-text\n\
            diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+target\n\
            \\ No newline at end of file\ndiff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n-a\n+b\n";
        let statuses = [DiffStatus::Type, DiffStatus::Modified];
        let (diff, _) = read(patch, &statuses, Limits::default());
        let counts: Vec<_> = diff.files.iter().map(|file| file.hunks.len()).collect();
        assert_eq!(counts, [2, 1]);
        assert_eq!(
            lines(&diff.files[0].hunks[1]),
            [(DiffLineKind::Added, "target", true)]
        );
    }

    #[test]
    fn a_limit_of_a_file_keeps_the_others() {
        let long = "x".repeat(100);
        let patch = format!(
            "diff --git a/x b/x\n@@ -0,0 +1,3 @@\n+a\n+{long}\n+b\n@@ -9,0 +9 @@\n+c\ndiff --git a/y b/y\n@@ -0,0 +1 @@\n+d\n"
        );
        let limits = Limits {
            files: 9,
            file_bytes: 50,
            bytes: 1000,
        };
        let statuses = [DiffStatus::Modified, DiffStatus::Modified];
        let (diff, all) = read(&patch, &statuses, limits);
        assert!(all && diff.truncated && diff.files[0].truncated && !diff.files[1].truncated);
        let [hunk] = &*diff.files[0].hunks else {
            panic!("{diff:?}");
        };
        assert_eq!(lines(hunk), [(DiffLineKind::Added, "a", false)]);
        assert_eq!(hunk.new_lines, 3);
        assert_eq!(
            lines(&diff.files[1].hunks[0]),
            [(DiffLineKind::Added, "d", false)]
        );
    }

    #[test]
    fn files_beyond_the_limit_are_not_read() {
        let patch =
            "diff --git a/x b/x\n@@ -0,0 +1 @@\n+a\ndiff --git a/y b/y\n@@ -0,0 +1 @@\n+b\n";
        let (diff, all) = read(patch, &[DiffStatus::Modified], Limits::default());
        assert!(!all);
        assert_eq!(diff.files.len(), 1);
    }
}
