//! Changes between two commits as data, from git's own output.

mod patch;

use std::ffi::OsStr;
use std::io::BufReader;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use percent_encoding::{AsciiSet, CONTROLS, percent_encode};
use teamster_api::{DiffFile, DiffQuery, DiffStatus, WorkspaceDiff};
use teamster_core::text::one_line;

use crate::git;

/// Bytes that are encoded in the exact path of a file.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) files: usize,
    /// Size of the lines of one file, in bytes.
    pub(crate) file_bytes: usize,
    /// Size of all lines, in bytes.
    pub(crate) bytes: usize,
}

impl Default for Limits {
    /// Limit of what a page can show and a client reads in one response.
    fn default() -> Self {
        Self {
            files: 3000,
            file_bytes: 512 * 1024,
            bytes: 4 * 1024 * 1024,
        }
    }
}

/// Two commits, or trees, of a repository.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Range<'a> {
    /// A directory of the repository.
    pub(crate) repository: &'a Path,
    pub(crate) base: &'a str,
    pub(crate) head: &'a str,
    /// The folder of new objects that the repository does not have.
    pub(crate) objects: Option<&'a Path>,
}

impl Range<'_> {
    /// Returns the figures, without files.
    pub(crate) fn figures(&self) -> anyhow::Result<WorkspaceDiff> {
        let mut query = DiffQuery::default();
        query.stat = true;
        let mut figures = self.diff(&query, Limits::default())?;
        figures.files.clear();
        Ok(figures)
    }

    pub(crate) fn diff(&self, query: &DiffQuery, limits: Limits) -> anyhow::Result<WorkspaceDiff> {
        let mut diff = WorkspaceDiff::new(self.base, self.head);
        let mut list = self.command(&["--raw", "--numstat", "-z"], &query.paths);
        let printed = git::run_bytes(&mut list)?;
        diff.files = files(&printed).context("git printed an unknown form of changes")?;
        diff.files_changed = diff.files.len() as u64;
        let lines = |count: fn(&DiffFile) -> Option<u64>| diff.files.iter().filter_map(count).sum();
        let (insertions, deletions) = (lines(|it| it.insertions), lines(|it| it.deletions));
        (diff.insertions, diff.deletions) = (insertions, deletions);
        if diff.files.len() > limits.files {
            diff.files.truncate(limits.files);
            diff.truncated = true;
        }
        if !query.stat && !diff.files.is_empty() {
            self.add_hunks(query, limits, &mut diff)?;
        }
        Ok(diff)
    }

    /// Returns the command that prints the changes as a patch which `git apply` takes.
    pub(crate) fn patch(&self) -> Command {
        self.command(&["--patch", "--binary", "--full-index"], &[])
    }

    fn add_hunks(
        &self,
        query: &DiffQuery,
        limits: Limits,
        diff: &mut WorkspaceDiff,
    ) -> anyhow::Result<()> {
        let mut command = self.command(&["--patch"], &query.paths);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot run git")?;
        let stdout = child.stdout.take().context("git has no output")?;
        let read = patch::add_hunks(BufReader::new(stdout), limits, diff);
        // Git may still be writing what is not wanted: its pipe is closed now.
        let ended = child.wait_with_output().context("cannot run git")?;
        let is_read = read.context("cannot read the output of git")?;
        if is_read && !ended.status.success() {
            bail!(
                "git: {}",
                one_line(String::from_utf8_lossy(&ended.stderr).trim())
            );
        }
        Ok(())
    }

    /// Creates a command that compares the commits. As a command for programs, it does not depend on the user's settings
    /// of diffs; programs that a setting names are not run.
    fn command(&self, form: &[&str], paths: &[String]) -> Command {
        let mut command = git::command(self.repository);
        git::without_side_effects(&mut command);
        if let Some(objects) = self.objects {
            command.env("GIT_OBJECT_DIRECTORY", objects);
        }
        command
            .env("GIT_LITERAL_PATHSPECS", "1")
            .args([
                "diff-tree",
                "-r",
                "--find-renames",
                "--no-color",
                "--unified=3",
            ])
            .args(["--no-ext-diff", "--no-textconv", "--submodule=short"])
            .args(["--src-prefix=a/", "--dst-prefix=b/"])
            .args(form)
            .args([self.base, self.head, "--"])
            .args(paths);
        command
    }
}

/// Reads the output of `--raw --numstat -z`.
fn files(printed: &[u8]) -> Option<Vec<DiffFile>> {
    let mut fields = printed.split(|byte| *byte == 0).peekable();
    let mut files = Vec::new();
    while let Some(about) = fields.next_if(|field| field.starts_with(b":")) {
        let about = str::from_utf8(about.get(1..)?).ok()?;
        let mut parts = about.split(' ');
        let (old_mode, new_mode) = (parts.next()?, parts.next()?);
        let (old, new, status) = (parts.next()?, parts.next()?, parts.next()?);
        let path = fields.next()?;
        let status = match status.chars().next()? {
            'A' => DiffStatus::Added,
            'D' => DiffStatus::Deleted,
            'R' => DiffStatus::Renamed,
            'T' => DiffStatus::Type,
            'M' if old == new => DiffStatus::Mode,
            'M' => DiffStatus::Modified,
            _ => DiffStatus::Other,
        };
        let mut file = if status == DiffStatus::Renamed {
            let mut file = named(status, fields.next()?);
            file.old_path = Some(lossy(path));
            file.raw_old_path = exact(path);
            file
        } else {
            named(status, path)
        };
        let mode = |mode: &str| (mode != "000000").then(|| mode.to_owned());
        (file.old_mode, file.new_mode) = (mode(old_mode), mode(new_mode));
        files.push(file);
    }
    for file in &mut files {
        let counts = fields.next()?;
        let mut counts = counts.splitn(3, |byte| *byte == b'\t');
        let mut count = || match str::from_utf8(counts.next()?).ok()? {
            "-" => Some(None),
            text => text.parse::<u64>().ok().map(Some),
        };
        (file.insertions, file.deletions) = (count()?, count()?);
        file.binary = file.insertions.is_none();
        // Of a rename, both paths follow.
        if counts.next()?.is_empty() {
            fields.nth(1)?;
        }
    }
    Some(files)
}

fn named(status: DiffStatus, path: &[u8]) -> DiffFile {
    let mut file = DiffFile::new(status, lossy(path));
    file.raw_path = exact(path);
    file
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the exact path of a file whose path is not UTF-8.
fn exact(path: &[u8]) -> Option<String> {
    str::from_utf8(path)
        .is_err()
        .then(|| encoded(OsStr::from_bytes(path)))
}

/// Returns a path as text. Bytes that are not ASCII, control characters and `%` are percent-encoded.
pub(crate) fn encoded(path: &OsStr) -> String {
    percent_encode(path.as_bytes(), ENCODED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Made by hand: the form is that of git 2.47.
    #[test]
    fn names_with_any_bytes_are_read() {
        let printed = b":100644 100755 aa aa M\0run\0\
            :100644 000000 aa 00 D\0a\nb\0\
            :100644 100644 aa bb R090\0old\xff\0new\xff\0\
            0\t0\trun\x000\t1\ta\nb\x001\t1\t\0old\xff\0new\xff\0";
        let files = files(printed).unwrap();
        let about: Vec<_> = files
            .iter()
            .map(|it| (it.status, &*it.path, it.insertions, it.deletions))
            .collect();
        assert_eq!(
            about,
            [
                (DiffStatus::Mode, "run", Some(0), Some(0)),
                (DiffStatus::Deleted, "a\nb", Some(0), Some(1)),
                (DiffStatus::Renamed, "new\u{fffd}", Some(1), Some(1)),
            ]
        );
        let renamed = &files[2];
        assert_eq!(renamed.raw_path.as_deref(), Some("new%FF"));
        assert_eq!(renamed.raw_old_path.as_deref(), Some("old%FF"));
        assert_eq!(renamed.old_path.as_deref(), Some("old\u{fffd}"));
        assert_eq!(files[1].new_mode, None);
    }

    #[test]
    fn an_unknown_form_is_an_error() {
        for printed in [&b":100644\0"[..], b":1 2 a b M\0x\0x\tx\tx"] {
            assert_eq!(files(printed), None);
        }
    }
}
