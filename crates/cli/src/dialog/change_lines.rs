//! The lines of a change.

use std::time::{Duration, Instant};

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};
use teamster_api::tool_input::Change;

/// Number of unchanged lines around a difference.
const CONTEXT: usize = 3;
/// The time after which a comparison is no longer refined: large texts take no second.
const LONGEST_COMPARISON: Duration = Duration::from_millis(300);
const NO_NEWLINE: ChangeLine<'_> = ChangeLine::Note("No newline at end of file");

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeLine<'a> {
    Added(&'a str),
    Deleted(&'a str),
    Same(&'a str),
    /// A line of a patch that is not one of a file.
    Head(&'a str),
    /// A remark about the line before, or about all lines.
    Note(&'static str),
    /// This number of unchanged lines that are left out.
    Unchanged(usize),
}

/// Returns the lines of a change, with `is_whole` also those that are far from a difference.
pub(super) fn lines_of(change: Change<'_>, is_whole: bool) -> Vec<ChangeLine<'_>> {
    match change {
        Change::Replaced { old, new } => compare(Side::of(old), Side::of(new), is_whole),
        Change::Written(text) => one_side(text, ChangeLine::Added),
        Change::Deleted(text) => one_side(text, ChangeLine::Deleted),
        Change::Patch(text) => of_patch(text),
        _ => Vec::new(),
    }
}

/// The lines of a text.
struct Side<'a> {
    lines: Vec<&'a str>,
    /// The last line ends with a newline.
    ends: bool,
}

impl<'a> Side<'a> {
    fn of(text: &'a str) -> Self {
        let ends = text.is_empty() || text.ends_with('\n');
        let mut lines: Vec<_> = text.split('\n').collect();
        if ends {
            lines.pop();
        }
        Self { lines, ends }
    }

    /// Returns the lines that end with a newline.
    fn ended(&mut self) -> &mut [&'a str] {
        let count = self.lines.len() - usize::from(!self.ends);
        &mut self.lines[..count]
    }

    /// Leaves out the carriage returns if every line ends with one. Returns whether it did.
    fn without_returns(sides: &mut [&mut Self]) -> bool {
        let mut count = 0;
        for line in sides.iter_mut().flat_map(|side| side.ended().iter()) {
            if !line.ends_with('\r') {
                return false;
            }
            count += 1;
        }
        for line in sides.iter_mut().flat_map(|side| side.ended().iter_mut()) {
            *line = line.strip_suffix('\r').unwrap_or(line);
        }
        count > 0
    }
}

const RETURNS: ChangeLine<'_> = ChangeLine::Note("Lines end with CR LF");

fn one_side<'a>(text: &'a str, line: fn(&'a str) -> ChangeLine<'a>) -> Vec<ChangeLine<'a>> {
    let mut side = Side::of(text);
    let has_returns = Side::without_returns(&mut [&mut side]);
    let mut lines: Vec<_> = side.lines.iter().map(|text| line(text)).collect();
    lines.extend((!side.ends).then_some(NO_NEWLINE));
    lines.extend(has_returns.then_some(RETURNS));
    lines
}

fn compare<'a>(mut old: Side<'a>, mut new: Side<'a>, is_whole: bool) -> Vec<ChangeLine<'a>> {
    let has_returns = Side::without_returns(&mut [&mut old, &mut new]);
    // Of a part of a file, the end of the last line matters only where it changes.
    let differs = !old.lines.is_empty() && !new.lines.is_empty() && old.ends != new.ends;
    let keys = |side: &Side<'a>| -> Vec<(&'a str, bool)> {
        let last = side.lines.len().wrapping_sub(1);
        let is_open = |i: usize| differs && !side.ends && i == last;
        let lines = side.lines.iter().enumerate();
        lines.map(|(i, line)| (*line, is_open(i))).collect()
    };
    let (old, new) = (keys(&old), keys(&new));
    let deadline = Instant::now() + LONGEST_COMPARISON;
    let all = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    let groups = if is_whole || old == new {
        vec![all]
    } else {
        group_diff_ops(all, CONTEXT)
    };
    let (mut lines, mut shown) = (Vec::new(), 0);
    let gap = |from, to| (from < to).then(|| ChangeLine::Unchanged(to - from));
    for group in &groups {
        let range = |op: &DiffOp| op.new_range();
        lines.extend(gap(
            shown,
            group.first().map_or(shown, |op| range(op).start),
        ));
        for op in group {
            if op.tag() == DiffTag::Equal {
                push(&mut lines, &new[op.new_range()], ChangeLine::Same);
            } else {
                push(&mut lines, &old[op.old_range()], ChangeLine::Deleted);
                push(&mut lines, &new[op.new_range()], ChangeLine::Added);
            }
        }
        shown = group.last().map_or(shown, |op| range(op).end);
    }
    lines.extend(gap(shown, new.len()));
    lines.extend(has_returns.then_some(RETURNS));
    lines
}

/// Adds lines, each with whether its missing newline is a difference.
fn push<'a>(
    lines: &mut Vec<ChangeLine<'a>>,
    texts: &[(&'a str, bool)],
    line: fn(&'a str) -> ChangeLine<'a>,
) {
    for (text, is_open) in texts {
        lines.push(line(text));
        lines.extend(is_open.then_some(NO_NEWLINE));
    }
}

fn of_patch(text: &str) -> Vec<ChangeLine<'_>> {
    let mut is_in = false;
    let text = text.strip_suffix('\n').unwrap_or(text);
    let line = |line| {
        let has = |mark: &str| str::starts_with(line, mark);
        if has("@@") || has("*** ") {
            is_in = true;
        } else if has("diff ") {
            is_in = false;
        } else if is_in && let Some((mark, rest)) = str::split_at_checked(line, 1) {
            match mark {
                "+" => return ChangeLine::Added(rest),
                "-" => return ChangeLine::Deleted(rest),
                " " => return ChangeLine::Same(rest),
                _ => {}
            }
        }
        ChangeLine::Head(line)
    };
    text.split('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::ChangeLine::{Added, Deleted, Head, Same};
    use super::*;

    /// Returns the lines with their signs; `$` marks a missing newline.
    fn shown(change: Change<'_>, is_whole: bool) -> Vec<String> {
        let lines = lines_of(change, is_whole).into_iter();
        let mut shown: Vec<String> = Vec::new();
        for line in lines {
            match line {
                Added(text) => shown.push(format!("+{text}")),
                Deleted(text) => shown.push(format!("-{text}")),
                Same(text) => shown.push(format!(" {text}")),
                Head(text) => shown.push(text.to_owned()),
                ChangeLine::Unchanged(count) => shown.push(format!("… {count}")),
                NO_NEWLINE => shown.last_mut().unwrap().push('$'),
                ChangeLine::Note(text) => shown.push(format!("({text})")),
            }
        }
        shown
    }

    fn diff(old: &str, new: &str) -> Vec<String> {
        shown(Change::Replaced { old, new }, true)
    }

    // The same cases as those of the page.
    #[test]
    fn the_lines_of_an_edit_are_shown_once() {
        assert_eq!(
            diff("a\nb\nc\nd", "a\nx\nc\ny\nd"),
            [" a", "-b", "+x", " c", "+y", " d"]
        );
        assert_eq!(diff("a", "a\nb"), [" a", "+b"]);
        assert_eq!(diff("a\n", ""), ["-a"]);
        assert_eq!(diff("", "a\n\nb"), ["+a", "+", "+b"]);
        assert_eq!(diff("same\n", "same\n"), [" same"]);
        assert_eq!(diff("a\nb\n", "a\nb"), [" a", "-b", "+b$"]);
        assert_eq!(diff("a\r\nb", "a\nb"), ["-a\r", "+a", " b"]);
        let returns = "(Lines end with CR LF)";
        let written = |text| shown(Change::Written(text), false);
        assert_eq!(written("a\r\nb\r\n"), ["+a", "+b", returns]);
        assert_eq!(written("a\r"), ["+a\r$"]);
        assert_eq!(diff("a\r\nb\r\n", "a\r\n"), [" a", "-b", returns]);
    }

    #[test]
    fn unchanged_lines_that_are_far_away_are_counted() {
        let old: String = (0..30).map(|n| n.to_string() + "\n").collect();
        let new = old.replace("\n9\n", "\nnine\n").replace("\n20\n", "\n");
        let lines = shown(
            Change::Replaced {
                old: &old,
                new: &new,
            },
            false,
        );
        let expected = [
            "… 6", " 6", " 7", " 8", "-9", "+nine", " 10", " 11", " 12", "… 4", " 17", " 18",
            " 19", "-20", " 21", " 22", " 23", "… 6",
        ];
        assert_eq!(lines, expected);
        assert_eq!(diff(&old, &new).len(), 31);
    }

    #[test]
    fn large_texts_are_compared_in_time() {
        let many = |word: &str| -> String {
            (0..60_000)
                .map(|n| [word, &(n % 977).to_string(), "\n"].concat())
                .collect()
        };
        let began = Instant::now();
        let lines = diff(&many("a"), &many("b"));
        let took = began.elapsed();
        assert!(took < Duration::from_secs(10), "{took:?}");
        assert_eq!(lines.len(), 120_000);
    }

    #[test]
    fn lines_of_a_patch_have_signs_only_within_hunks() {
        let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n--- a\n+b\n c\n\\ No\n";
        let lines = lines_of(Change::Patch(patch), false);
        assert_eq!(
            lines,
            [
                Head("diff --git a/x b/x"),
                Head("--- a/x"),
                Head("+++ b/x"),
                Head("@@ -1 +1 @@"),
                Deleted("-- a"),
                Added("b"),
                Same("c"),
                Head("\\ No"),
            ]
        );
    }
}
