//! Changes as text for people.

use std::io::{self, Write};

use anstyle::Style;
use teamster_api::{DiffFile, DiffLineKind, DiffStatus, Hunk, WorkspaceDiff};

use crate::style::{ADDED, BOLD, DELETED, HUNK};
use crate::words;

/// Widths of the columns of figures, in characters.
const LONGEST_PATH: usize = 60;
const LONGEST_BAR: u64 = 40;

/// Writes the changes in the form of a patch.
pub(super) fn write(diff: &WorkspaceDiff, out: &mut impl Write) -> io::Result<()> {
    for file in &diff.files {
        write_file(file, out)?;
    }
    Ok(())
}

fn write_file(file: &DiffFile, out: &mut impl Write) -> io::Result<()> {
    let new = words::one_line(&file.path);
    let old = file
        .old_path
        .as_deref()
        .map_or_else(|| new.clone(), words::one_line);
    let mut line = |text: String| writeln!(out, "{BOLD}{text}{BOLD:#}");
    line(format!("diff --git a/{old} b/{new}"))?;
    let mode = |mode: &Option<String>| mode.clone().unwrap_or_default();
    match file.status {
        DiffStatus::Added => line(format!("new file mode {}", mode(&file.new_mode)))?,
        DiffStatus::Deleted => line(format!("deleted file mode {}", mode(&file.old_mode)))?,
        _ if file.old_mode != file.new_mode => {
            line(format!("old mode {}", mode(&file.old_mode)))?;
            line(format!("new mode {}", mode(&file.new_mode)))?;
        }
        _ => {}
    }
    if file.status == DiffStatus::Renamed {
        line(format!("rename from {old}"))?;
        line(format!("rename to {new}"))?;
    }
    let has = |exists: bool, side: &str, path: &str| {
        if exists {
            format!("{side}/{path}")
        } else {
            "/dev/null".to_owned()
        }
    };
    let old = has(file.status != DiffStatus::Added, "a", &old);
    let new = has(file.status != DiffStatus::Deleted, "b", &new);
    if file.binary {
        return writeln!(out, "Binary files {old} and {new} differ");
    }
    if !file.hunks.is_empty() {
        line(format!("--- {old}"))?;
        line(format!("+++ {new}"))?;
    }
    for hunk in &file.hunks {
        write_hunk(hunk, out)?;
    }
    Ok(())
}

fn write_hunk(hunk: &Hunk, out: &mut impl Write) -> io::Result<()> {
    let range = |start: u64, lines: u64| match lines {
        1 => start.to_string(),
        _ => format!("{start},{lines}"),
    };
    let old = range(hunk.old_start, hunk.old_lines);
    let new = range(hunk.new_start, hunk.new_lines);
    let section = hunk
        .section
        .as_deref()
        .map(|it| format!(" {}", words::one_line(it)));
    let section = section.unwrap_or_default();
    writeln!(out, "{HUNK}@@ -{old} +{new} @@{HUNK:#}{section}")?;
    for line in &hunk.lines {
        let (mark, style) = match line.kind {
            DiffLineKind::Added => ('+', ADDED),
            DiffLineKind::Deleted => ('-', DELETED),
            _ => (' ', Style::new()),
        };
        let text = words::printable(&line.text);
        writeln!(out, "{style}{mark}{text}{style:#}")?;
        if line.no_newline {
            writeln!(out, "\\ No newline at end of file")?;
        }
    }
    Ok(())
}

/// Writes the figures of each file and of all together.
pub(super) fn write_stat(diff: &WorkspaceDiff, out: &mut impl Write) -> io::Result<()> {
    let names: Vec<_> = diff.files.iter().map(name).collect();
    let width = names
        .iter()
        .map(|name| name.chars().count())
        .max()
        .unwrap_or(0);
    let width = width.min(LONGEST_PATH);
    let changed = |file: &DiffFile| file.insertions.unwrap_or(0) + file.deletions.unwrap_or(0);
    let most = diff.files.iter().map(changed).max().unwrap_or(0);
    let digits = most.to_string().len().max(3);
    for (file, name) in diff.files.iter().zip(&names) {
        let name = words::cut_beginning(name, width);
        let padding = " ".repeat(width.saturating_sub(name.chars().count()));
        if file.binary {
            writeln!(out, " {name}{padding} | {:>digits$}", "Bin")?;
            continue;
        }
        let bar = |count: Option<u64>, mark: &str| {
            let count = count.unwrap_or(0);
            let scaled = if most > LONGEST_BAR {
                (count * LONGEST_BAR).div_ceil(most)
            } else {
                count
            };
            mark.repeat(usize::try_from(scaled).unwrap_or(0))
        };
        writeln!(
            out,
            " {name}{padding} | {:>digits$} {ADDED}{}{ADDED:#}{DELETED}{}{DELETED:#}",
            changed(file),
            bar(file.insertions, "+"),
            bar(file.deletions, "-"),
        )?;
    }
    if diff.files_changed > 0 {
        writeln!(
            out,
            " {} changed, {}, {}",
            words::plural(diff.files_changed, "file"),
            words::plural(diff.insertions, "insertion"),
            words::plural(diff.deletions, "deletion")
        )?;
    }
    Ok(())
}

fn name(file: &DiffFile) -> String {
    let new = words::one_line(&file.path);
    match &file.old_path {
        Some(old) => format!("{} => {new}", words::one_line(old)),
        None => new,
    }
}

#[cfg(test)]
mod tests {
    use teamster_api::DiffLine;

    use super::*;

    fn plain(write: impl Fn(&mut Vec<u8>) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        write(&mut out).unwrap();
        anstream::adapter::strip_bytes(&out)
            .into_vec()
            .try_into()
            .unwrap()
    }

    fn diff() -> WorkspaceDiff {
        let mut diff = WorkspaceDiff::new("a", "b");
        let mut file = DiffFile::new(DiffStatus::Renamed, "new\u{1b}[1m.txt");
        file.old_path = Some("old.txt".to_owned());
        (file.insertions, file.deletions) = (Some(100), Some(1));
        (file.old_mode, file.new_mode) = (Some("100644".into()), Some("100644".into()));
        let mut hunk = Hunk::new((1, 1), (1, 2));
        hunk.section = Some("fn main()".to_owned());
        hunk.lines = vec![
            DiffLine::new(DiffLineKind::Deleted, "a\r"),
            DiffLine::new(DiffLineKind::Added, "b\u{1b}[2J"),
        ];
        hunk.lines[1].no_newline = true;
        file.hunks.push(hunk);
        let mut binary = DiffFile::new(DiffStatus::Added, "image.png");
        binary.binary = true;
        binary.new_mode = Some("100644".into());
        diff.files = vec![file, binary];
        (diff.files_changed, diff.insertions, diff.deletions) = (2, 100, 1);
        diff
    }

    #[test]
    fn changes_are_shown_as_a_patch_without_control_characters() {
        let text = plain(|out| write(&diff(), out));
        assert!(!text.contains('\u{1b}'), "{text}");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[1..3],
            ["rename from old.txt", "rename to new [1m.txt"]
        );
        assert_eq!(lines[5], "@@ -1 +1,2 @@ fn main()");
        assert_eq!(lines[8], "\\ No newline at end of file");
        assert_eq!(
            lines[9..],
            [
                "diff --git a/image.png b/image.png",
                "new file mode 100644",
                "Binary files /dev/null and b/image.png differ"
            ]
        );
    }

    #[test]
    fn figures_have_a_bar_of_limited_length() {
        let text = plain(|out| write_stat(&diff(), out));
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[0].starts_with(" old.txt => new [1m.txt | 101 +++"),
            "{text}"
        );
        assert_eq!(lines[0].matches(['+', '-']).count(), 41);
        assert_eq!(lines[1], " image.png              | Bin");
        assert_eq!(lines[2], " 2 files changed, 100 insertions, 1 deletion");
    }
}
