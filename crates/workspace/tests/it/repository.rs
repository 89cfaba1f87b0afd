//! A repository of a test, and a check that nothing in it has changed.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A repository with one commit.
pub(crate) struct Repository {
    folder: TempDir,
}

/// Content and modes of all files of a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Files(BTreeMap<PathBuf, (u32, Vec<u8>)>);

impl Repository {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let this = Self { folder };
        this.git(["init", "--quiet", "--initial-branch=main"]);
        this.git(["config", "user.name", "A User"]);
        this.git(["config", "user.email", "user@example.org"]);
        this.write("a.txt", "one\n");
        this.write("sub/b.txt", "b\n");
        this.commit("first");
        this
    }

    pub(crate) fn at(folder: TempDir) -> Self {
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, text: &str) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(["add", "--all"]);
        self.git(["commit", "--quiet", "-m", message]);
        self.git(["rev-parse", "HEAD"])
    }

    pub(crate) fn commit_empty(&self, message: &str) {
        self.git(["commit", "--quiet", "--allow-empty", "-m", message]);
    }

    pub(crate) fn git<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> String {
        git(self.path(), args)
    }

    /// Returns all files, those of git too.
    pub(crate) fn files(&self) -> Files {
        files_of(self.path(), |_| true)
    }
}

/// Returns the files of a folder whose paths in it `wanted` accepts.
pub(crate) fn files_of(root: &Path, wanted: impl Fn(&Path) -> bool) -> Files {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_owned();
            if !wanted(&name) {
                continue;
            }
            let about = fs::symlink_metadata(&path).unwrap();
            if about.is_dir() {
                folders.push(path);
            } else {
                let content = if about.is_symlink() {
                    fs::read_link(&path)
                        .unwrap()
                        .as_os_str()
                        .as_bytes()
                        .to_owned()
                } else {
                    fs::read(&path).unwrap()
                };
                found.insert(name, (about.mode(), content));
            }
        }
    }
    Files(found)
}

/// Runs git and returns its output.
pub(crate) fn git<A: AsRef<OsStr>>(directory: &Path, args: impl IntoIterator<Item = A>) -> String {
    let output = Command::new("git")
        .arg("-C")
        .arg(directory)
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}
