//! Files that are collected from the working directory at the end of a run.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use nix::fcntl::OFlag;
use teamster_api::{ARTIFACTS, RunFile, file_name, file_path};
use teamster_core::AgentError;
use teamster_core::text::{one_line, plural, printable};
use teamster_process::make_private_folder;

/// The folder of the files, in that of the run's result.
const FILES: &str = "files";
/// Reasons why files are missing, one in a line.
const MISSING: &str = "missing";
/// The greatest number of files.
const MOST_FILES: usize = 1000;
/// The greatest size of all files together, in bytes.
const MOST_BYTES: u64 = 1 << 30;
/// The greatest number of entries of directories that are looked at.
const MOST_ENTRIES: usize = 1_000_000;

/// Copies the regular files that match one of the patterns from a directory into the folder of a run's result. Symbolic
/// links are not followed, and `.git` is left out. What is missing, for example because of a limit, is named there.
pub(crate) fn collect(patterns: &[String], directory: &Path, folder: &Path) {
    let mut missing = Vec::new();
    if let Err(error) = copy(patterns, directory, folder, &mut missing) {
        missing.push(format!("files were not collected: {error}"));
    }
    if !missing.is_empty() && make_private_folder(folder).is_ok() {
        // Without this file, a list has the reasons not.
        let _ = fs::write(folder.join(MISSING), missing.join("\n"));
    }
}

/// Returns the collected files of a run, and reasons why others are missing.
pub(crate) fn list(folder: &Path) -> io::Result<(Vec<RunFile>, Vec<String>)> {
    let mut files = Vec::new();
    let root = folder.join(FILES);
    let mut folders = vec![root.clone()];
    while let Some(current) = folders.pop() {
        let entries = match fs::read_dir(&current) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            let entry = entry?;
            let about = entry.metadata()?;
            if about.is_dir() {
                folders.push(entry.path());
            } else if let Ok(path) = entry.path().strip_prefix(&root) {
                let name = format!("{ARTIFACTS}{}", file_name(path));
                files.push(RunFile::new(name, Some(about.len())));
            }
        }
    }
    let missing = match fs::read_to_string(folder.join(MISSING)) {
        Ok(text) => text.lines().map(str::to_owned).collect(),
        Err(_) => Vec::new(),
    };
    Ok((files, missing))
}

/// Returns the path of a collected file with this name; `None` if it is none.
pub(crate) fn collected(folder: &Path, name: &str) -> Option<PathBuf> {
    let path = file_path(name);
    let is_inside = path
        .components()
        .all(|it| matches!(it, Component::Normal(_)));
    // Each file has one name.
    (is_inside && file_name(&path) == name).then(|| folder.join(FILES).join(path))
}

/// Removes the collected files. The folder of the run's result keeps its time, which is that of the end of the run.
pub(crate) fn remove(folder: &Path) {
    let changed = fs::metadata(folder).and_then(|about| about.modified());
    // What stays is removed the next time.
    let _ = fs::remove_dir_all(folder.join(FILES));
    let _ = fs::remove_file(folder.join(MISSING));
    if let (Ok(changed), Ok(folder)) = (changed, File::open(folder)) {
        let _ = folder.set_modified(changed);
    }
}

fn copy(
    patterns: &[String],
    directory: &Path,
    folder: &Path,
    missing: &mut Vec<String>,
) -> anyhow::Result<()> {
    let set = matcher(patterns)?;
    make_private_folder(folder)?;
    let (mut files, mut bytes, mut entries) = (0, 0, 0);
    // Only directories below which a pattern can match.
    let mut starts: Vec<_> = patterns
        .iter()
        .map(|pattern| literal_start(pattern))
        .collect();
    starts.sort();
    starts.dedup();
    let is_below = |path: &Path, other: &Path| path != other && path.starts_with(other);
    let all = starts.clone();
    starts.retain(|path| !all.iter().any(|other| is_below(path, other)));
    let mut left: Vec<PathBuf> = starts;
    let mut over = 0;
    while let Some(path) = left.pop() {
        let full = directory.join(&path);
        // A directory on the way that is a link leads elsewhere.
        if has_link(directory, &path) {
            missing.push(format!("{}: it is a symbolic link", shown(&path)));
            continue;
        }
        let Ok(about) = fs::symlink_metadata(&full) else {
            continue;
        };
        if about.is_dir() {
            for entry in fs::read_dir(&full).into_iter().flatten().flatten() {
                entries += 1;
                if entry.file_name() != ".git" {
                    left.push(path.join(entry.file_name()));
                }
            }
            if entries > MOST_ENTRIES {
                missing.push(format!(
                    "the directory has more than {MOST_ENTRIES} files: name a directory in the pattern"
                ));
                return Ok(());
            }
        } else if set.is_match(&path) {
            if about.is_symlink() {
                missing.push(format!("{}: it is a symbolic link", shown(&path)));
            } else if !about.is_file() {
                missing.push(format!("{}: it is not a regular file", shown(&path)));
            } else if files == MOST_FILES || bytes + about.len() > MOST_BYTES {
                over += 1;
            } else {
                let target = folder.join(FILES).join(&path);
                match copy_file(&full, &target) {
                    Ok(size) => (files, bytes) = (files + 1, bytes + size),
                    Err(error) => missing.push(format!("{}: {error}", shown(&path))),
                }
            }
        }
    }
    if over > 0 {
        let count = plural(over, "file");
        missing.push(format!(
            "{count} beyond the limit of {MOST_FILES} files and {} MiB",
            MOST_BYTES >> 20
        ));
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> io::Result<u64> {
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut source = OpenOptions::new()
        .read(true)
        .custom_flags((OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK).bits())
        .open(from)?;
    let copied = File::create(to).and_then(|mut target| io::copy(&mut source, &mut target));
    if copied.is_err() {
        // Half a file is none.
        let _ = fs::remove_file(to);
    }
    copied
}

/// Returns whether the path or a directory on the way to it is a symbolic link.
fn has_link(directory: &Path, path: &Path) -> bool {
    let is_link =
        |path: &Path| fs::symlink_metadata(directory.join(path)).is_ok_and(|it| it.is_symlink());
    // The last component is reported by its pattern.
    path.ancestors().skip(1).any(is_link)
}

fn matcher(patterns: &[String]) -> anyhow::Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let pattern = pattern.trim_start_matches("./");
        // A directory stands for what is in it.
        for pattern in [pattern, &*format!("{pattern}/**")] {
            // A `*` stays in its directory; `**` does not.
            set.add(GlobBuilder::new(pattern).literal_separator(true).build()?);
        }
    }
    Ok(set.build()?)
}

/// Returns the directories at the beginning of a pattern that have no special character.
fn literal_start(pattern: &str) -> PathBuf {
    let is_literal = |part: &&str| !part.contains(['*', '?', '[', ']', '{', '}', '\\']);
    pattern
        .split('/')
        .take_while(is_literal)
        .filter(|it| *it != ".")
        .collect()
}

fn shown(path: &Path) -> String {
    one_line(&printable(&OsStr::new(path).to_string_lossy()))
}

/// Checks that patterns stay in the directory and can be read. Fails with the reason if one does not.
pub(crate) fn check(patterns: &[String]) -> Result<(), AgentError> {
    for pattern in patterns {
        let is_inside = (Path::new(pattern).components())
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        let is_of_git = Path::new(pattern)
            .components()
            .any(|part| part.as_os_str() == ".git");
        if pattern.is_empty() || !is_inside || is_of_git {
            let problem = "expected a pattern of paths inside the working directory";
            return Err(AgentError::refused("artifacts", problem));
        }
    }
    let checked = matcher(patterns);
    checked.map_err(|error| AgentError::refused("artifacts", error.to_string()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use super::*;

    fn collected(patterns: &[&str], directory: &Path) -> (Vec<String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let patterns: Vec<_> = patterns.iter().map(|it| (*it).to_owned()).collect();
        collect(&patterns, directory, folder.path());
        let (files, missing) = list(folder.path()).unwrap();
        let mut names: Vec<_> = files.into_iter().map(|it| it.name).collect();
        names.sort();
        for name in &names {
            let path =
                super::collected(folder.path(), name.strip_prefix(ARTIFACTS).unwrap()).unwrap();
            assert!(path.is_file(), "{name}");
        }
        (names, missing)
    }

    fn directory() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &Path| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        for name in [
            "a.html",
            "out/b.html",
            "out/deep/c.html",
            ".git/d.html",
            "100%.txt",
            "new\nline.txt",
        ] {
            write(Path::new(name));
        }
        write(Path::new(OsStr::from_bytes(b"\xff.txt")));
        directory
    }

    #[test]
    fn a_pattern_stays_in_its_directory_unless_it_says_otherwise() {
        let directory = directory();
        let of = |patterns: &[&str]| collected(patterns, directory.path()).0;
        assert_eq!(of(&["*.html"]), ["files/a.html"]);
        assert_eq!(
            of(&["out/*.html", "./a.html"]),
            ["files/a.html", "files/out/b.html"]
        );
        assert_eq!(of(&["out/deep"]), ["files/out/deep/c.html"]);
        assert_eq!(
            of(&["out/**"]),
            ["files/out/b.html", "files/out/deep/c.html"]
        );
        assert_eq!(
            of(&["**/*.html"]),
            ["files/a.html", "files/out/b.html", "files/out/deep/c.html"]
        );
        assert_eq!(of(&["nothing/*"]), [""; 0]);
    }

    #[test]
    fn each_name_is_text_and_leads_to_its_file_alone() {
        let directory = directory();
        let (names, missing) = collected(&["*.txt"], directory.path());
        assert_eq!(
            names,
            ["files/%FF.txt", "files/100%25.txt", "files/new\nline.txt"]
        );
        assert_eq!(missing, [""; 0]);
        for name in ["../x", "a/../../x", "%2e%2e/x", "/etc/passwd", "a%62c"] {
            assert_eq!(super::collected(Path::new("/r"), name), None, "{name}");
        }
    }

    #[test]
    fn symbolic_links_are_named_and_not_followed() {
        let directory = directory();
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("secret.html"), "x").unwrap();
        symlink(
            outside.path().join("secret.html"),
            directory.path().join("l.html"),
        )
        .unwrap();
        symlink(outside.path(), directory.path().join("linked")).unwrap();
        let (names, missing) = collected(&["*.html", "linked/*.html"], directory.path());
        assert_eq!(names, ["files/a.html"]);
        assert_eq!(missing, ["l.html: it is a symbolic link"]);
        let linked = collected(&["linked"], directory.path());
        assert_eq!(
            linked,
            (Vec::new(), vec!["linked: it is a symbolic link".to_owned()])
        );
    }

    #[test]
    fn a_pattern_that_leaves_the_directory_is_refused() {
        for pattern in ["", "/etc/*", "../*", "a/../../b", "[a"] {
            assert!(check(&[pattern.to_owned()]).is_err(), "{pattern}");
        }
        for pattern in ["*.html", "./out/**", "a..b"] {
            check(&[pattern.to_owned()]).unwrap();
        }
    }
}
