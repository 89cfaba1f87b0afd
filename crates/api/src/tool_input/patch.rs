//! Patches in the input of a tool: unified diffs, and the format of `apply_patch`.

use super::edit::Edit;

/// Whether a text begins as a patch does. The text of a file may have the marks of one elsewhere.
pub(super) fn is_patch(text: &str) -> bool {
    is_apply_patch(text) || is_unified(text)
}

fn is_apply_patch(text: &str) -> bool {
    text.trim_start().starts_with("*** Begin Patch")
}

fn is_unified(text: &str) -> bool {
    ["@@ ", "--- ", "diff "]
        .iter()
        .any(|mark| text.starts_with(mark))
}

/// Returns the changes in a patch, one for each hunk. A unified diff is one of the file at `path`, which it creates if
/// `is_new` is set.
pub(super) fn edits(text: &str, path: Option<&str>, is_new: bool) -> Vec<Edit> {
    match path {
        _ if is_apply_patch(text) => of_apply_patch(text),
        Some(path) => of_unified(path, text, is_new),
        None => Vec::new(),
    }
}

fn of_unified(path: &str, diff: &str, is_new: bool) -> Vec<Edit> {
    let mut hunks = Hunks::new(path, is_new);
    for line in diff.lines() {
        if line.starts_with("@@") {
            hunks.end();
            hunks.in_hunk = true;
        } else if hunks.in_hunk {
            hunks.line(line);
        }
    }
    hunks.finish()
}

fn of_apply_patch(patch: &str) -> Vec<Edit> {
    let mut found = Vec::new();
    let mut hunks: Option<Hunks> = None;
    for line in patch.lines() {
        let named = |prefix: &str| line.strip_prefix(prefix).map(str::trim);
        if let Some(path) = named("*** Add File:") {
            found.extend(hunks.take().map(Hunks::finish).unwrap_or_default());
            let mut new = Hunks::new(path, true);
            new.in_hunk = true;
            hunks = Some(new);
        } else if let Some(path) = named("*** Update File:") {
            found.extend(hunks.take().map(Hunks::finish).unwrap_or_default());
            let mut new = Hunks::new(path, false);
            new.in_hunk = true;
            hunks = Some(new);
        } else if line.starts_with("*** ") {
            if !line.starts_with("*** Move to:") && !line.starts_with("*** End of File") {
                found.extend(hunks.take().map(Hunks::finish).unwrap_or_default());
            }
        } else if let Some(hunks) = &mut hunks {
            if line.starts_with("@@") {
                hunks.end();
            } else {
                hunks.line(line);
            }
        }
    }
    found.extend(hunks.map(Hunks::finish).unwrap_or_default());
    found
}

/// Collects the hunks of a file as changes.
struct Hunks {
    path: String,
    is_new: bool,
    in_hunk: bool,
    old: String,
    new: String,
    done: Vec<Edit>,
}

impl Hunks {
    fn new(path: &str, is_new: bool) -> Self {
        Self {
            path: path.to_owned(),
            is_new,
            in_hunk: false,
            old: String::new(),
            new: String::new(),
            done: Vec::new(),
        }
    }

    fn line(&mut self, line: &str) {
        let (mark, text) = match line.split_at_checked(1) {
            Some((mark, text)) => (mark, text),
            None => (" ", ""),
        };
        let mut push = |old: bool, new: bool| {
            for (included, side) in [(old, &mut self.old), (new, &mut self.new)] {
                if included {
                    side.push_str(text);
                    side.push('\n');
                }
            }
        };
        match mark {
            "+" => push(false, true),
            "-" => push(true, false),
            " " => push(true, true),
            _ => {}
        }
    }

    fn end(&mut self) {
        let (old, new) = (std::mem::take(&mut self.old), std::mem::take(&mut self.new));
        if !(old.is_empty() && new.is_empty()) {
            let old = Some(old).filter(|_| !self.is_new);
            self.done.push(Edit::new(&self.path, old, new));
        }
    }

    fn finish(mut self) -> Vec<Edit> {
        self.end();
        self.done
    }
}
