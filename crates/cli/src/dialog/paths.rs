//! Paths that a person types.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::words;

/// Maximum number of completions.
const MOST: usize = 200;

/// Returns the path with the user's home in place of `~/`.
pub(crate) fn expanded(typed: &str) -> PathBuf {
    match (typed.strip_prefix("~/"), env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(typed),
    }
}

/// Returns the completions of a path, which is relative to the directory. Those of a folder end with a slash.
pub(crate) fn completions(typed: &str, directory: &Path) -> Vec<String> {
    let (folder, name) = match typed.rfind('/') {
        Some(at) => typed.split_at(at + 1),
        None => ("", typed),
    };
    // An empty path is no folder.
    let here = Path::new(".").join(directory);
    let Ok(entries) = fs::read_dir(here.join(expanded(folder))) else {
        return Vec::new();
    };
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let file = entry.file_name().into_string().ok()?;
            let is_hidden = file.starts_with('.') && !name.starts_with('.');
            // A name with control characters would move the cursor.
            let is_shown = file.starts_with(name) && !is_hidden && words::one_line(&file) == file;
            let slash = if entry.path().is_dir() { "/" } else { "" };
            is_shown.then(|| format!("{folder}{file}{slash}"))
        })
        .take(MOST)
        .collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_completed() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path();
        fs::create_dir_all(directory.join("src/deep")).unwrap();
        for name in ["src/a.rs", "src/b.rs", "setup.sh", ".hidden", "s\u{1b}[2J"] {
            fs::write(directory.join(name), "").unwrap();
        }
        let of = |typed: &str| completions(typed, directory);
        assert_eq!(of("s"), ["setup.sh", "src/"]);
        assert_eq!(of("src/"), ["src/a.rs", "src/b.rs", "src/deep/"]);
        assert_eq!(of("src/b"), ["src/b.rs"]);
        assert_eq!(of("."), [".hidden"]);
        assert_eq!(of("gone/"), [""; 0]);
        // Tests run in the folder of the crate.
        assert_eq!(completions("Cargo.t", Path::new("")), ["Cargo.toml"]);
        let absolute = format!("{}/se", directory.display());
        assert_eq!(of(&absolute), [format!("{absolute}tup.sh")]);
    }
}
