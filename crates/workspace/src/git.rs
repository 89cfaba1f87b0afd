//! The program git.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, anyhow};
use teamster_core::provider::LOCAL_GIT_VARIABLES;
use teamster_core::text::{one_line, printable};
use teamster_process::with_advice;

use crate::local;

/// Creates a git command in a worktree or a repository that is known. It is bound to no other repository, speaks English and
/// asks for nothing.
///
/// A bare repository is named: with `safe.bareRepository=explicit` among the user's settings, git finds none by a directory.
pub(crate) fn command(repository: &Path) -> Command {
    let mut command = command_at(repository);
    let is_bare = !repository.join(".git").exists()
        && repository.join("HEAD").is_file()
        && repository.join("objects").is_dir();
    if is_bare {
        command.env("GIT_DIR", repository);
    }
    command
}

/// Creates a git command in a directory of the user's, whose repository git finds by the user's rules; else as [`command`].
pub(crate) fn command_at(directory: &Path) -> Command {
    let mut command = Command::new("git");
    // A git hook that starts teamster is bound to its own repository.
    for name in LOCAL_GIT_VARIABLES {
        command.env_remove(name);
    }
    command
        .arg("-C")
        .arg(directory)
        .env("LC_ALL", "C")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null());
    command
}

/// Runs git and returns its output without trailing newlines. The error has git's message.
pub(crate) fn git<A: AsRef<OsStr>>(
    directory: &Path,
    args: impl IntoIterator<Item = A>,
) -> anyhow::Result<String> {
    let printed = String::from_utf8(git_bytes(directory, args)?)
        .context("git printed text that is not UTF-8")?;
    Ok(printed.trim_end_matches('\n').to_owned())
}

/// Runs git and returns the path that it prints.
pub(crate) fn git_path<A: AsRef<OsStr>>(
    directory: &Path,
    args: impl IntoIterator<Item = A>,
) -> anyhow::Result<PathBuf> {
    path_of(command(directory).args(args))
}

/// Runs git in a directory of the user's and returns the path that it prints.
pub(crate) fn git_path_at<A: AsRef<OsStr>>(
    directory: &Path,
    args: impl IntoIterator<Item = A>,
) -> anyhow::Result<PathBuf> {
    path_of(command_at(directory).args(args))
}

/// Runs a git command and returns the path that it prints.
pub(crate) fn path_of(command: &mut Command) -> anyhow::Result<PathBuf> {
    let mut printed = run_bytes(command)?;
    if printed.last() == Some(&b'\n') {
        printed.pop();
    }
    Ok(PathBuf::from(OsString::from_vec(printed)))
}

/// Returns the folder that all worktrees of a directory's repository share.
///
/// # Errors
///
/// Fails if the directory is in no repository.
pub fn common_dir(directory: &Path) -> anyhow::Result<PathBuf> {
    let common = git_path_at(directory, ["rev-parse", "--git-common-dir"])?;
    Ok(directory.join(common).canonicalize()?)
}

/// Returns the folder of the worktree in which a branch, by the full name of its ref, is checked out.
pub(crate) fn checked_out(repository: &Path, full: &str) -> anyhow::Result<Option<PathBuf>> {
    let listed = git(repository, ["worktree", "list", "--porcelain"])?;
    let mut folder = None;
    for line in listed.lines() {
        if let Some(path) = line.strip_prefix("worktree ") {
            folder = Some(PathBuf::from(path));
        } else if line.strip_prefix("branch ") == Some(full) {
            return Ok(folder);
        }
    }
    Ok(None)
}

/// Runs git and returns its output. The error has git's message.
pub(crate) fn git_bytes<A: AsRef<OsStr>>(
    directory: &Path,
    args: impl IntoIterator<Item = A>,
) -> anyhow::Result<Vec<u8>> {
    run_bytes(command(directory).args(args))
}

/// Runs a git command and returns its output. The error has git's message.
pub(crate) fn run_bytes(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    checked(local::output(command, None)?)
}

/// Runs a git command and returns its output without trailing newlines. The error has git's message.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<String> {
    let printed = run_bytes(command)?;
    let printed = String::from_utf8(printed).context("git printed text that is not UTF-8")?;
    Ok(printed.trim_end_matches('\n').to_owned())
}

pub(crate) fn run_with_input(command: Command, input: &[u8]) -> anyhow::Result<Vec<u8>> {
    run_with_input_or(command, input, 0)
}

/// As [`run_with_input`], for a command that also succeeds with this exit code.
pub(crate) fn run_with_input_or(
    mut command: Command,
    input: &[u8],
    success: i32,
) -> anyhow::Result<Vec<u8>> {
    let output = local::output(&mut command, Some(input))?;
    if output.status.code() == Some(success) {
        return Ok(output.stdout);
    }
    checked(output)
}

/// Runs a git command whose output goes to a new file, which is returned.
pub(crate) fn run_to_file(command: &mut Command, to: &Path) -> anyhow::Result<File> {
    let cannot = || format!("cannot write {}", to.display());
    let file = File::create(to).with_context(cannot)?;
    let output = command
        .stdout(file.try_clone().with_context(cannot)?)
        .stderr(Stdio::piped())
        .output();
    checked(output.map_err(not_started)?)?;
    Ok(file)
}

/// Keeps a command from running hooks, a file system monitor and maintenance.
pub(crate) fn without_side_effects(command: &mut Command) {
    for setting in [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "gc.auto=0",
        "maintenance.auto=false",
    ] {
        command.args(["-c", setting]);
    }
}

/// Returns a path in the quoted form of C, which git reads where a line has one path.
pub(crate) fn in_c(path: &[u8]) -> Vec<u8> {
    let escaped = path.iter().flat_map(|byte| match byte {
        b'\n' => vec![b'\\', b'n'],
        b'"' | b'\\' => vec![b'\\', *byte],
        _ => vec![*byte],
    });
    [b'"'].into_iter().chain(escaped).chain([b'"']).collect()
}

/// Lets the folder of objects `to` have those of another one too.
pub(crate) fn share_objects(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to.join("info"))?;
    let mut file = File::options()
        .create(true)
        .append(true)
        .open(to.join("info/alternates"))?;
    let mut line = from.as_os_str().as_bytes().to_vec();
    // In the form of C where a path has a line end. Not every command knows that form.
    if line.contains(&b'\n') {
        line = in_c(&line);
    }
    line.push(b'\n');
    file.write_all(&line)
}

/// Lets a command make commits with an author of its own, unsigned and without hooks.
pub(crate) fn as_teamster(command: &mut Command) {
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "teamster");
        command.env(format!("GIT_{role}_EMAIL"), "teamster@localhost");
    }
    command.args(["-c", "commit.gpgSign=false"]);
}

fn checked(output: Output) -> anyhow::Result<Vec<u8>> {
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        if let Some(owned) = foreign(&stderr) {
            return Err(Foreign(owned.to_owned()).into());
        }
        return Err(failed(&output, &stderr));
    }
    Ok(output.stdout)
}

/// Returns the error of a git command that has failed with this message.
pub(crate) fn failed(output: &Output, message: &str) -> anyhow::Error {
    let error = match message.trim() {
        // A hook may have failed without one.
        "" => return anyhow!("git has failed without a message ({})", output.status),
        message => anyhow!("git: {}", one_line(message)),
    };
    let of_full_disk = [
        "No space left on device",
        "Disk quota exceeded",
        "unable to write file",
    ];
    if of_full_disk.iter().any(|it| message.contains(it)) {
        return error.context("a file cannot be written: free space on its disk");
    }
    error
}

/// Returns the error of a git that cannot be started.
pub(crate) fn not_started(error: io::Error) -> anyhow::Error {
    if error.kind() == io::ErrorKind::NotFound {
        return anyhow!("git is not installed");
    }
    anyhow::Error::new(with_advice(error)).context("cannot run git")
}

/// A repository of another user, which git does not use unless it is listed as safe.
#[derive(Debug, thiserror::Error)]
#[error(
    "the repository {shown} belongs to another user, so git does not use it: if you trust it, run \
     `git config --global --add safe.directory {shown}`",
    shown = printable(.0)
)]
struct Foreign(String);

/// Returns whether git did not use a repository because of its owner.
pub(crate) fn is_foreign(error: &anyhow::Error) -> bool {
    error.is::<Foreign>()
}

/// Returns the repository that git did not use because of its owner.
fn foreign(stderr: &str) -> Option<&str> {
    let (_, rest) = stderr.split_once("dubious ownership in repository at '")?;
    let (path, _) = rest.split_once("'\n")?;
    Some(path)
}

/// The oldest git with all that this crate uses: `git fetch --no-write-fetch-head` and `git init --object-format` are of
/// 2.29 (<https://github.com/git/git/blob/master/Documentation/RelNotes/2.29.0.txt>).
const OLDEST: (u32, u32) = (2, 29);

/// Adds to an error of git that it is too old, if it is.
pub(crate) fn with_version(error: anyhow::Error) -> anyhow::Error {
    let output = Command::new("git").arg("version").output();
    let printed = output.map(|it| String::from_utf8_lossy(&it.stdout).into_owned());
    match printed.ok().as_deref().and_then(version) {
        Some((major, minor)) if (major, minor) < OLDEST => error.context(format!(
            "git {major}.{minor} is too old: install {}.{} or a newer one",
            OLDEST.0, OLDEST.1
        )),
        _ => error,
    }
}

/// Returns the version in the output of `git version`.
fn version(printed: &str) -> Option<(u32, u32)> {
    let mut numbers = printed.strip_prefix("git version ")?.split('.');
    let mut next = || numbers.next()?.trim().parse().ok();
    Some((next()?, next()?))
}

/// Checks that git can be run. Fails if it is not installed, or cannot be started.
pub(crate) fn check() -> anyhow::Result<()> {
    let started = Command::new("git").arg("--version").output();
    started.map(drop).map_err(not_started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_named_with_the_next_step() {
        use std::os::unix::process::ExitStatusExt;

        let output = Output {
            status: std::process::ExitStatus::from_raw(256),
            stdout: Vec::new(),
            // Made by hand: as git 2.47 prints it.
            stderr: b"error: unable to write file large\nfatal: Could not reset index file to revision 'HEAD'.\n".to_vec(),
        };
        let error = format!("{:#}", checked(output).unwrap_err());
        let expected = "a file cannot be written: free space on its disk: git: error: unable to write file large";
        assert!(error.starts_with(expected), "{error}");
    }

    #[test]
    fn the_version_of_git_is_read() {
        assert_eq!(
            version("git version 2.39.5 (Apple Git-154)\n"),
            Some((2, 39))
        );
        assert_eq!(version("git version 2.47.3\n"), Some((2, 47)));
        assert_eq!(version("git version 3.0\n"), Some((3, 0)));
        assert_eq!(version("hub"), None);
    }
}
