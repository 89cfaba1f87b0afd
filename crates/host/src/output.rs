//! The file that gets the agent's last message.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use teamster_core::{AgentError, RunResult};
use teamster_process::{FileMode, replace_file};

use crate::{Host, Notice};

/// A file for the last message. Its content is kept until there is one.
pub struct Output {
    path: PathBuf,
    /// The open file, if it cannot be replaced, such as a pipe or a device.
    stream: Option<File>,
}

impl Output {
    /// Checks that the file can be written, without changing its content.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn open(path: &Path) -> Result<Self, AgentError> {
        let path = path.to_owned();
        match check_writable(&path) {
            Ok(stream) => Ok(Self { path, stream }),
            Err(error) => Err(cannot_write(&path, &error)),
        }
    }

    /// Replaces the content of the file with the last message. Returns `false`, and writes nothing, if there is none.
    ///
    /// # Errors
    ///
    /// Fails if it cannot be written.
    pub fn write(mut self, result: &RunResult) -> Result<bool, AgentError> {
        let message = with_newline(last_message(result));
        if message.is_empty() {
            return Ok(false);
        }
        let written = match &mut self.stream {
            Some(stream) => stream.write_all(message.as_bytes()),
            None => replace(&self.path, message.as_bytes()),
        };
        match written {
            Ok(()) => Ok(true),
            Err(error) => Err(cannot_write(&self.path, &error)),
        }
    }
}

fn cannot_write(path: &Path, error: &io::Error) -> AgentError {
    let problem = format!("cannot write to {}: {error}", path.display());
    AgentError::refused("output_file", problem)
}

/// Returns the structured answer, else the agent's last message.
fn last_message(result: &RunResult) -> String {
    structured_answer(result).unwrap_or_else(|| {
        result
            .final_message
            .as_ref()
            .unwrap_or(&result.text)
            .clone()
    })
}

/// Returns the structured answer of a run as text, unless the last message is the same JSON.
pub fn structured_answer(result: &RunResult) -> Option<String> {
    let value = result.structured_output.as_ref()?;
    let message = result.final_message.as_deref().unwrap_or(&result.text);
    if serde_json::from_str::<serde_json::Value>(message).is_ok_and(|message| message == *value) {
        return None;
    }
    Some(format!("{value:#}"))
}

/// Checks that a message can be written to this path. Returns the open file unless it is a regular one.
fn check_writable(path: &Path) -> io::Result<Option<File>> {
    if fs::symlink_metadata(path).is_err() {
        // The path must name a file.
        path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
        tempfile::tempfile_in(folder_of(path))?;
        return Ok(None);
    }
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)?;
    let is_regular = file.metadata()?.is_file();
    Ok((!is_regular).then_some(file))
}

/// Replaces the file atomically. Writes in place if its folder is not writable.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    // Replace the target of a symlink, not the link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match replace_file(path, content, FileMode::Kept) {
        // The file may be writable although its folder is not.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            fs::write(path, content)
        }
        done => done,
    }
}

fn folder_of(path: &Path) -> &Path {
    let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn with_newline(mut message: String) -> String {
    if !message.is_empty() && !message.ends_with('\n') {
        message.push('\n');
    }
    message
}

/// Writes the last message to the file, if there is one. Returns `false` on an error, of which there is a notice.
pub fn write(host: &Host, output: Option<Output>, result: Option<&RunResult>) -> bool {
    let Some(output) = output else {
        return true;
    };
    match result.map_or(Ok(false), |result| output.write(result)) {
        Ok(true) => true,
        Ok(false) => {
            let warning = "`output_file`: nothing was written: the run has no answer";
            host.notice(Notice::Warning(warning.to_owned()));
            true
        }
        Err(error) => {
            host.notice(Notice::Error(error.message));
            false
        }
    }
}
