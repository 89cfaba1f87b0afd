//! Locations of the leased file and of its journal.
//!
//! The journal of `D/file` lies in `D/.teamster-lease-file`. If `D` has to be created, it lies beside the topmost
//! missing folder: in `A/.teamster-lease-d+file` for `A/d/file`. So the created folders are known even if the process
//! ends right after creating them.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// Prefix of the names of all journal folders.
const PREFIX: &str = ".teamster-lease-";

/// Maximum number of links in one path. A longer chain is a loop.
const MOST_LINKS: u32 = 40;

/// Maximum length of the part of a journal folder's name that comes from the file's name.
const LONGEST_NAME: usize = 150;

/// Resolves all symbolic links. The file and its folders may be missing.
pub(super) fn real_file(path: &Path) -> io::Result<PathBuf> {
    let real = follow(&std::path::absolute(path)?)?;
    if real.file_name().is_none() {
        return Err(io::Error::other("not the path of a file"));
    }
    // The file itself is not canonicalized, because that could return another of its names.
    let mut missing = Vec::new();
    let mut existing = real.as_path();
    while let (Some(folder), Some(name)) = (existing.parent(), existing.file_name()) {
        missing.push(name);
        existing = folder;
        match fs::canonicalize(existing) {
            Ok(mut found) => {
                found.extend(missing.iter().rev());
                return Ok(found);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(real)
}

/// Follows links manually, because a link may lead to a missing file.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut todo = parts(path);
    let mut done = PathBuf::new();
    let mut links = 0;
    let mut missing = false;
    while let Some(part) = todo.pop() {
        let name = match part.components().next() {
            Some(Component::Normal(name)) => name,
            Some(Component::ParentDir) if missing => return Err(ErrorKind::NotFound.into()),
            Some(Component::ParentDir) => {
                done.pop();
                continue;
            }
            Some(Component::CurDir) | None => continue,
            Some(Component::Prefix(_) | Component::RootDir) => {
                done.push(&part);
                continue;
            }
        };
        let next = done.join(name);
        if !missing {
            match fs::symlink_metadata(&next) {
                Ok(found) if found.is_symlink() => {
                    links += 1;
                    if links > MOST_LINKS {
                        return Err(io::Error::other("too many symbolic links"));
                    }
                    todo.extend(parts(&fs::read_link(&next)?));
                    continue;
                }
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound => missing = true,
                Err(error) => return Err(error),
            }
        }
        done = next;
    }
    Ok(done)
}

/// Returns the parts of a path, last first.
fn parts(path: &Path) -> Vec<PathBuf> {
    let mut parts: Vec<_> = path
        .components()
        .map(|part| PathBuf::from(part.as_os_str()))
        .collect();
    parts.reverse();
    parts
}

/// A possible folder of a file's journal, and the relative path from it to the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Location {
    /// The folder.
    pub(super) base: PathBuf,
    /// Names of folders, and the file's name.
    pub(super) rest: Vec<OsString>,
}

impl Location {
    /// Returns all possible locations for a file, the nearest first.
    pub(super) fn all(file: &Path) -> Vec<Self> {
        let mut locations = Vec::new();
        let mut rest = Vec::new();
        let mut at = file;
        while let (Some(base), Some(name)) = (at.parent(), at.file_name()) {
            rest.insert(0, name.to_owned());
            locations.push(Self {
                base: base.to_owned(),
                rest: rest.clone(),
            });
            at = base;
        }
        locations
    }

    /// Returns the location for a new journal: the nearest existing folder.
    pub(super) fn for_new(file: &Path) -> io::Result<Self> {
        for location in Self::all(file) {
            match fs::metadata(&location.base) {
                Ok(found) if found.is_dir() => return Ok(location),
                Ok(_) => return Err(ErrorKind::NotADirectory.into()),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(ErrorKind::NotFound.into())
    }

    /// Returns the locations that have a journal folder, the nearest first.
    ///
    /// The order matters: a lease that creates a folder for a file first writes its journal higher up. So a reader that
    /// has seen the folder must look there afterwards.
    pub(super) fn taken(file: &Path) -> Vec<Self> {
        Self::all(file)
            .into_iter()
            // A folder that we cannot see was not created by this user.
            .filter(|location| fs::symlink_metadata(location.journal_folder()).is_ok())
            .collect()
    }

    pub(super) fn file(&self) -> PathBuf {
        self.way(self.rest.len())
    }

    /// Returns the folder of the file.
    pub(super) fn folder(&self) -> PathBuf {
        self.way(self.rest.len() - 1)
    }

    /// Returns the path of the first `parts` parts.
    pub(super) fn way(&self, parts: usize) -> PathBuf {
        let mut path = self.base.clone();
        path.extend(&self.rest[..parts]);
        path
    }

    /// Returns the location of the same file relative to a folder on its path.
    pub(super) fn below(&self, parts: usize) -> Self {
        Self {
            base: self.way(parts),
            rest: self.rest[parts..].to_vec(),
        }
    }

    pub(super) fn journal_folder(&self) -> PathBuf {
        self.base.join(format!("{PREFIX}{}", self.short_name()))
    }

    /// Encodes the relative path as one unique name.
    pub(super) fn name(&self) -> String {
        let parts: Vec<_> = self.rest.iter().map(|part| encode(part)).collect();
        parts.join("+")
    }

    fn short_name(&self) -> String {
        let mut name = self.name();
        if name.len() > LONGEST_NAME {
            let hash = fnv(name.as_bytes());
            let mut end = LONGEST_NAME - 20;
            while !name.is_char_boundary(end) {
                end -= 1;
            }
            name.truncate(end);
            // Writing to a string cannot fail.
            let _ = write!(name, "+{hash:016x}");
        }
        name
    }
}

/// Encodes a part of a path: `+`, `%` and bytes that are not UTF-8 become `%` and two digits.
fn encode(part: &OsStr) -> String {
    let mut name = String::new();
    for chunk in part.as_encoded_bytes().utf8_chunks() {
        for char in chunk.valid().chars() {
            match char {
                '+' => name.push_str("%2B"),
                '%' => name.push_str("%25"),
                _ => name.push(char),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            let _ = write!(name, "%{byte:02X}");
        }
    }
    name
}

/// Returns the FNV-1a hash. The name in the journal distinguishes two files with the same hash.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(rest: &[&str]) -> Location {
        Location {
            base: PathBuf::from("/a"),
            rest: rest.iter().map(OsString::from).collect(),
        }
    }

    #[test]
    fn two_ways_never_share_a_journal_folder() {
        let names = [
            location(&["a+b"]).name(),
            location(&["a", "b"]).name(),
            location(&["a%2Bb"]).name(),
            location(&["a+", "b"]).name(),
            location(&["a", "+b"]).name(),
        ];
        for (i, a) in names.iter().enumerate() {
            assert!(!names[i + 1..].contains(a), "{names:?}");
        }
        assert_eq!(
            location(&[".gemini", "settings.json"]).journal_folder(),
            Path::new("/a/.teamster-lease-.gemini+settings.json")
        );
    }

    #[test]
    fn a_long_way_has_a_name_that_fits() {
        let long = "ü".repeat(120);
        let folder = location(&[&long, &long]).journal_folder();
        let other = location(&[&long, &long, "x"]).journal_folder();
        assert!(folder.file_name().unwrap().len() <= 255);
        assert_ne!(folder, other);
        // The cut is within a character of this one.
        let odd = location(&[&format!("a{long}")]).journal_folder();
        assert!(odd.file_name().unwrap().len() <= 255);
        let fits = "x".repeat(LONGEST_NAME);
        assert_eq!(
            location(&[&fits]).journal_folder(),
            Path::new("/a").join(format!("{PREFIX}{fits}"))
        );
    }

    #[test]
    fn links_are_followed_also_where_they_lead_to_nothing() {
        use std::os::unix::fs::symlink;
        let temp = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(temp.path()).unwrap();
        fs::create_dir(root.join("real")).unwrap();
        symlink("real", root.join("dir")).unwrap();
        symlink("../gone/file", root.join("real/link")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        assert_eq!(
            real_file(&root.join("dir/link")).unwrap(),
            root.join("gone/file")
        );
        symlink("missing", root.join("home")).unwrap();
        assert_eq!(
            real_file(&root.join("home/x/y")).unwrap(),
            root.join("missing/x/y")
        );
        assert!(real_file(&root.join("loop")).is_err());
        let chained = |links: u32| root.join(format!("link{links}"));
        fs::write(chained(0), "").unwrap();
        for links in 0..=MOST_LINKS {
            symlink(chained(links), chained(links + 1)).unwrap();
        }
        assert_eq!(real_file(&chained(MOST_LINKS)).unwrap(), chained(0));
        assert!(real_file(&chained(MOST_LINKS + 1)).is_err());
        fs::write(root.join("plain"), "").unwrap();
        assert!(real_file(&root.join("plain/below")).is_err());
        assert!(real_file(&root.join("nothing/../x")).is_err());
    }
}
