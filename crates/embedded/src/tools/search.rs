//! `grep` and `glob`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use globset::{Glob, GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use regex::bytes::RegexBuilder;
use serde_json::Value;
use teamster_core::CancellationToken;
use teamster_core::text::excerpt;

use super::{Output, Roots, count, text};

/// Default limit of lines, and limit of files.
const LINES: usize = 200;
const FILES: usize = 500;
/// Maximum length of a line in the output, in bytes.
const LONGEST_LINE: usize = 400;
/// Maximum length of a line to search, in bytes. A longer line is searched in pieces.
const LONGEST_READ: u64 = 1 << 20;
/// Number of bytes at the start of a file that are checked for NUL. A file with one is binary.
const CHECKED_BYTES: usize = 8 << 10;

/// Scope of a search.
pub(super) struct Search<'s> {
    pub(super) roots: &'s Roots,
    /// Folder or file to search.
    pub(super) start: &'s Path,
    /// Returns whether a file is left out.
    pub(super) leaves_out: &'s dyn Fn(&Path) -> bool,
    /// Stops the search.
    pub(super) stop: &'s CancellationToken,
}

pub(super) fn grep(search: &Search<'_>, input: &Value) -> Result<Output, String> {
    let pattern = text(input, "pattern").unwrap_or_default();
    let regex = RegexBuilder::new(pattern)
        .case_insensitive(input["ignore_case"].as_bool().unwrap_or_default())
        .size_limit(4 << 20)
        .build()
        .map_err(|error| format!("pattern: {error}"))?;
    let glob = text(input, "glob").map(matcher).transpose()?;
    let most = count(input, "limit").unwrap_or(LINES);
    let mut found = String::new();
    let mut lines = 0;
    for path in search.files() {
        if search.stop.is_cancelled() {
            break;
        }
        let relative = path.strip_prefix(search.start).unwrap_or(&path);
        let named = relative.file_name().map(Path::new);
        let fits = |glob: &GlobMatcher| {
            glob.is_match(relative) || named.is_some_and(|name| glob.is_match(name))
        };
        if !glob.as_ref().is_none_or(fits) {
            continue;
        }
        let shown = search.roots.shown(&path);
        let Ok(file) = File::open(&path) else {
            continue;
        };
        let mut file = BufReader::with_capacity(CHECKED_BYTES, file);
        if file.fill_buf().is_ok_and(|bytes| bytes.contains(&0)) {
            continue;
        }
        let mut number = 0;
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut file).take(LONGEST_READ).read_until(b'\n', &mut line);
            if !read.is_ok_and(|bytes| bytes > 0) || search.stop.is_cancelled() {
                break;
            }
            number += 1;
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            if !regex.is_match(line) {
                continue;
            }
            if lines == most {
                found.push_str("[… there are more; narrow the search, or raise `limit`]");
                return Ok(Output::text(found));
            }
            lines += 1;
            let line = excerpt(&String::from_utf8_lossy(line), LONGEST_LINE);
            // Writing to a string cannot fail.
            let _ = writeln!(found, "{shown}:{number}:{line}");
        }
    }
    if found.is_empty() {
        found.push_str("No line matches.");
    }
    Ok(Output::text(found))
}

pub(super) fn glob(search: &Search<'_>, input: &Value) -> Result<Output, String> {
    let glob = matcher(text(input, "pattern").unwrap_or_default())?;
    let mut found = Vec::new();
    for path in search.files() {
        if search.stop.is_cancelled() {
            break;
        }
        if glob.is_match(path.strip_prefix(search.start).unwrap_or(&path)) {
            found.push(search.roots.shown(&path));
        }
    }
    let paths = &found[..found.len().min(FILES)];
    let mut text = paths.join("\n");
    if found.len() > FILES {
        let _ = write!(text, "\n[… and {} more]", found.len() - FILES);
    }
    if text.is_empty() {
        text.push_str("No file matches.");
    }
    Ok(Output::text(text))
}

fn matcher(pattern: &str) -> Result<GlobMatcher, String> {
    let glob: Result<Glob, _> = GlobBuilder::new(pattern).literal_separator(true).build();
    glob.map(|glob| glob.compile_matcher())
        .map_err(|error| format!("`{pattern}`: {}", error.kind()))
}

impl Search<'_> {
    /// Returns the files to search, without ignored and denied ones, in the order of their paths. Links are not
    /// followed.
    fn files(&self) -> impl Iterator<Item = PathBuf> {
        let walk = WalkBuilder::new(self.start)
            .hidden(false)
            .require_git(false)
            .filter_entry(|entry| entry.file_name() != ".git")
            .sort_by_file_name(Ord::cmp)
            .build();
        walk.filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
            .map(ignore::DirEntry::into_path)
            .filter(|path| self.roots.holds(path) && !(self.leaves_out)(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tree() -> (tempfile::TempDir, Roots) {
        let temp = tempfile::tempdir().unwrap();
        for (path, content) in [
            (".gitignore", "target\n"),
            ("src/a.rs", "fn alpha() {}\nfn beta() {}\n"),
            ("src/b.txt", "Alpha\n"),
            ("src/denied.rs", "fn alpha() {}\n"),
            ("target/c.rs", "fn alpha() {}\n"),
            ("bin", "fn alpha\0"),
        ] {
            let path = temp.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let roots = Roots::new(vec![temp.path().canonicalize().unwrap()]);
        (temp, roots)
    }

    /// Calls a search in the input's path, without the files `denied.rs`.
    fn search(
        roots: &Roots,
        input: &Value,
        call: fn(&Search<'_>, &Value) -> Result<Output, String>,
    ) -> Result<Output, String> {
        let search = Search {
            roots,
            start: &roots.existing(text(input, "path").unwrap_or(".")).real?,
            leaves_out: &|path| path.ends_with("denied.rs"),
            stop: &CancellationToken::new(),
        };
        call(&search, input)
    }

    fn lines(output: Result<Output, String>) -> Vec<String> {
        let text = output.unwrap().text;
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn lines_are_found_in_text_that_is_not_ignored() {
        let (_temp, roots) = tree();
        let grep = |input: Value| search(&roots, &input, grep);
        assert_eq!(
            lines(grep(json!({"pattern": "alpha"}))),
            ["src/a.rs:1:fn alpha() {}"]
        );
        assert_eq!(
            lines(grep(json!({"pattern": "alpha", "ignore_case": true}))),
            ["src/a.rs:1:fn alpha() {}", "src/b.txt:1:Alpha"]
        );
        assert_eq!(
            lines(grep(json!({"pattern": "(?i)alpha", "glob": "*.txt"}))),
            ["src/b.txt:1:Alpha"]
        );
        assert_eq!(
            lines(grep(json!({"pattern": "^fn b", "path": "src/a.rs"}))),
            ["src/a.rs:2:fn beta() {}"]
        );
        assert_eq!(
            lines(grep(json!({"pattern": "gamma"}))),
            ["No line matches."]
        );
        assert!(
            grep(json!({"pattern": "("}))
                .unwrap_err()
                .starts_with("pattern: ")
        );
        let one = grep(json!({"pattern": "fn", "limit": 1})).unwrap().text;
        assert!(one.ends_with("raise `limit`]"), "{one}");
        assert!(
            grep(json!({"pattern": "x", "path": "/etc"}))
                .unwrap_err()
                .contains("leads out")
        );
    }

    #[test]
    fn files_are_found_by_their_paths() {
        let (_temp, roots) = tree();
        let glob = |pattern: &str| lines(search(&roots, &json!({"pattern": pattern}), glob));
        assert_eq!(glob("**/*.rs"), ["src/a.rs"]);
        assert_eq!(glob("*.rs"), ["No file matches."]);
        assert_eq!(glob("src/*"), ["src/a.rs", "src/b.txt"]);
    }
}
