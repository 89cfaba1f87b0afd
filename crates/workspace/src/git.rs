//! The program git.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use teamster_core::provider::LOCAL_GIT_VARIABLES;
use teamster_core::text::one_line;
use teamster_process::with_advice;

/// Creates a git command in a directory. It is bound to no other repository, speaks English and asks for nothing.
pub(crate) fn command(directory: &Path) -> Command {
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
    let printed = String::from_utf8(git_bytes(directory, args)?).context("git printed no UTF-8")?;
    Ok(printed.trim_end_matches('\n').to_owned())
}

/// Runs git and returns its output. The error has git's message.
pub(crate) fn git_bytes<A: AsRef<OsStr>>(
    directory: &Path,
    args: impl IntoIterator<Item = A>,
) -> anyhow::Result<Vec<u8>> {
    let mut command = command(directory);
    let output = command.args(args).output();
    let output = output.map_err(with_advice).context("cannot run git")?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("git: {}", one_line(stderr.trim()));
    }
    Ok(output.stdout)
}

/// Checks that git can be run.
///
/// # Errors
///
/// Fails if it is not installed, or cannot be started.
pub(crate) fn check() -> anyhow::Result<()> {
    match Command::new("git").arg("--version").output() {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => bail!("git is not installed"),
        Err(error) => Err(with_advice(error)).context("cannot run git"),
    }
}
