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
            is_shown.then(|| (file, entry.path()))
        })
        .collect();
    found.sort_unstable();
    found.truncate(MOST);
    let typed = |(file, path): (String, PathBuf)| {
        let slash = if path.is_dir() { "/" } else { "" };
        format!("{folder}{file}{slash}")
    };
    found.into_iter().map(typed).collect()
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
        let many = directory.join("many");
        fs::create_dir(&many).unwrap();
        for i in (100..=MOST + 100).rev() {
            fs::write(many.join(i.to_string()), "").unwrap();
        }
        let found = of("many/");
        assert_eq!((found.len(), &*found[0]), (MOST, "many/100"));
        assert_eq!(found[MOST - 1], format!("many/{}", MOST + 99));
        // Tests run in the folder of the crate.
        assert_eq!(completions("Cargo.t", Path::new("")), ["Cargo.toml"]);
        let absolute = format!("{}/se", directory.display());
        assert_eq!(of(&absolute), [format!("{absolute}tup.sh")]);
    }
}
