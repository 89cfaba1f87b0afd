//! Stored sessions: one file each, with one JSON line per message.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use teamster_core::provider::{base_directory, is_uuid};
use teamster_core::time::epoch_ms;
use teamster_core::{AgentError, ErrorCode, ErrorKind, Usage};
use uuid::Uuid;

use crate::config::EmbeddedConfig;
use crate::conversation::{CallResult, Message};

/// One line of a session's file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Line {
    /// First line: description of the session.
    #[serde(rename_all = "camelCase")]
    Session {
        id: String,
        created_ms: u64,
        directory: PathBuf,
    },
    #[serde(rename_all = "camelCase")]
    Message { at_ms: u64, message: Message },
    /// Usage of an answer.
    #[serde(rename_all = "camelCase")]
    Usage {
        at_ms: u64,
        model: String,
        usage: Usage,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<f64>,
    },
    /// An entry of a newer version.
    #[serde(other)]
    Newer,
}

pub(crate) fn folder(
    config: &EmbeddedConfig,
    env: &BTreeMap<String, String>,
) -> Result<PathBuf, AgentError> {
    if let Some(folder) = &config.state_dir {
        return Ok(folder.clone());
    }
    let set = |name: &str| config.variable(name, env).map(Into::into);
    let state = base_directory(set, "XDG_STATE_HOME", ".local/state");
    match state {
        Some(state) => Ok(state.join("teamster/embedded/sessions")),
        None => Err(AgentError::new(
            ErrorCode::Io,
            ErrorKind::NotFound,
            "no directory for sessions: set XDG_STATE_HOME or HOME to an absolute path",
        )),
    }
}

/// A session that this process writes. Its file is locked until this value is dropped.
#[derive(Debug)]
pub(crate) struct SessionFile {
    id: String,
    file: File,
    /// Length of the file up to its last complete line, in bytes.
    end: u64,
}

impl SessionFile {
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Creates a session, with a random id if none is given.
    pub(crate) fn create(
        folder: &Path,
        id: Option<&str>,
        directory: &Path,
    ) -> Result<Self, AgentError> {
        let id = match id {
            Some(id) if is_uuid(id) => id.to_ascii_lowercase(),
            Some(_) => {
                let problem = "it must be a UUID, such as 0190b0b6-1f4e-7cc3-98c4-dc0c0c07398f";
                return Err(AgentError::refused("new_session_id", problem));
            }
            None => Uuid::new_v4().to_string(),
        };
        let made = fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder);
        made.map_err(|error| io_error(folder, &error))?;
        let path = path(folder, &id);
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                AgentError::refused("new_session_id", format!("session {id} already exists"))
            }
            _ => io_error(&path, &error),
        })?;
        lock(&file, &id, &path)?;
        let mut session = Self { id, file, end: 0 };
        session.append(&Line::Session {
            id: session.id.clone(),
            created_ms: epoch_ms(),
            directory: directory.to_owned(),
        })?;
        Ok(session)
    }

    /// Resumes a session. Returns its messages.
    pub(crate) fn resume(folder: &Path, id: &str) -> Result<(Self, Vec<Message>), AgentError> {
        let mut options = OpenOptions::new();
        let (id, path, mut file) = open(folder, id, options.read(true).append(true))?;
        lock(&file, &id, &path)?;
        let (messages, end) = read(&mut file, &path)?;
        // A crash can leave an incomplete line.
        file.set_len(end).map_err(|error| io_error(&path, &error))?;
        Ok((Self { id, file, end }, messages))
    }

    /// Creates a session with the messages of another one, to which another run may be writing.
    pub(crate) fn fork(
        folder: &Path,
        from: &str,
        id: Option<&str>,
        directory: &Path,
    ) -> Result<(Self, Vec<Message>), AgentError> {
        let (_, path, mut file) = open(folder, from, OpenOptions::new().read(true))?;
        let (messages, _) = read(&mut file, &path)?;
        let mut session = Self::create(folder, id, directory)?;
        for message in &messages {
            session.message(message)?;
        }
        Ok((session, messages))
    }

    pub(crate) fn message(&mut self, message: &Message) -> Result<(), AgentError> {
        self.append(&Line::Message {
            at_ms: epoch_ms(),
            message: message.clone(),
        })
    }

    /// Appends the usage of an answer.
    pub(crate) fn usage(
        &mut self,
        model: &str,
        usage: Usage,
        cost_usd: Option<f64>,
    ) -> Result<(), AgentError> {
        self.append(&Line::Usage {
            at_ms: epoch_ms(),
            model: model.to_owned(),
            usage,
            cost_usd,
        })
    }

    fn append(&mut self, line: &Line) -> Result<(), AgentError> {
        let written = serde_json::to_vec(line)
            .map_err(io::Error::from)
            .and_then(|mut bytes| {
                bytes.push(b'\n');
                self.file.write_all(&bytes).map(|()| bytes.len() as u64)
            });
        match written {
            Ok(bytes) => {
                self.end += bytes;
                Ok(())
            }
            Err(error) => {
                // Remove a partial line, or the next one would be appended to it.
                let _ = self.file.set_len(self.end);
                let _ = self.file.seek(SeekFrom::End(0));
                Err(AgentError::new(
                    ErrorCode::Io,
                    ErrorKind::Internal,
                    format!("the session {} cannot be written: {error}", self.id),
                ))
            }
        }
    }
}

fn path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.ndjson"))
}

/// Opens the file of a session. Returns the session's id and the file's path too.
fn open(
    folder: &Path,
    id: &str,
    options: &OpenOptions,
) -> Result<(String, PathBuf, File), AgentError> {
    let not_found = || {
        AgentError::new(
            ErrorCode::CliError,
            ErrorKind::SessionNotFound,
            format!(
                "no session {} in {}",
                teamster_core::text::excerpt(id, 100),
                folder.display()
            ),
        )
    };
    if !is_uuid(id) {
        return Err(not_found());
    }
    let id = id.to_ascii_lowercase();
    let path = path(folder, &id);
    let file = options.open(&path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => not_found(),
        _ => io_error(&path, &error),
    })?;
    Ok((id, path, file))
}

/// Reads the messages of a session. Returns the end of its last complete line too.
fn read(file: &mut File, path: &Path) -> Result<(Vec<Message>, u64), AgentError> {
    let mut text = Vec::new();
    file.read_to_end(&mut text)
        .map_err(|error| io_error(path, &error))?;
    let end = text
        .iter()
        .rposition(|b| *b == b'\n')
        .map_or(0, |at| at + 1);
    let mut messages = Vec::new();
    for (number, line) in text[..end].split(|b| *b == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice(line) {
            Ok(Line::Message { message, .. }) => messages.push(message),
            Ok(_) => {}
            Err(error) => {
                return Err(AgentError::new(
                    ErrorCode::Io,
                    ErrorKind::Invalid,
                    format!(
                        "line {} of {} is not a line of a session: {error}",
                        number + 1,
                        path.display()
                    ),
                ));
            }
        }
    }
    Ok((repaired(messages), end as u64))
}

fn lock(file: &File, id: &str, path: &Path) -> Result<(), AgentError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(AgentError::new(
            ErrorCode::CliError,
            ErrorKind::Invalid,
            format!("another run is writing to the session {id}; wait for its end, or fork it"),
        )),
        Err(TryLockError::Error(error)) => Err(io_error(path, &error)),
    }
}

fn io_error(path: &Path, error: &io::Error) -> AgentError {
    AgentError::new(
        ErrorCode::Io,
        ErrorKind::Internal,
        format!("{}: {error}", path.display()),
    )
}

/// Adds the missing results of calls. Services reject a conversation without them.
fn repaired(messages: Vec<Message>) -> Vec<Message> {
    let mut whole: Vec<Message> = Vec::with_capacity(messages.len());
    let mut missing: Vec<CallResult> = Vec::new();
    for mut message in messages {
        match &mut message {
            Message::Tool { results } => {
                missing.retain(|open| results.iter().all(|result| result.id != open.id));
                results.append(&mut missing);
            }
            _ => close(&mut whole, &mut missing),
        }
        if let Message::Assistant(answer) = &message {
            missing.extend(answer.calls().map(CallResult::none));
        }
        whole.push(message);
    }
    close(&mut whole, &mut missing);
    whole
}

fn close(messages: &mut Vec<Message>, missing: &mut Vec<CallResult>) {
    if !missing.is_empty() {
        let results = std::mem::take(missing);
        messages.push(Message::Tool { results });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{Answer, Block, Call};
    use serde_json::json;

    fn call(id: &str) -> Call {
        Call {
            id: id.into(),
            name: "bash".into(),
            input: json!({"command": "true"}),
            signature: None,
        }
    }

    #[test]
    fn half_a_line_at_the_end_is_left_out_and_overwritten() {
        let temp = tempfile::tempdir().unwrap();
        let mut session = SessionFile::create(temp.path(), None, temp.path()).unwrap();
        let id = session.id().to_owned();
        session.message(&Message::user("hi")).unwrap();
        session.file.write_all(b"{\"type\":\"mess").unwrap();
        drop(session);
        let (mut session, messages) = SessionFile::resume(temp.path(), &id).unwrap();
        assert_eq!(messages, [Message::user("hi")]);
        session.message(&Message::user("next")).unwrap();
        drop(session);
        let (_, messages) = SessionFile::resume(temp.path(), &id).unwrap();
        assert_eq!(messages.len(), 2);
    }

    #[test]
    fn session_in_use_is_forked_up_to_its_last_line() {
        let temp = tempfile::tempdir().unwrap();
        let mut session = SessionFile::create(temp.path(), None, temp.path()).unwrap();
        session.message(&Message::user("hi")).unwrap();
        session.file.write_all(b"{\"type\":\"mess").unwrap();
        let id = session.id().to_owned();
        assert!(SessionFile::resume(temp.path(), &id).is_err());
        let (fork, messages) = SessionFile::fork(temp.path(), &id, None, temp.path()).unwrap();
        assert_eq!(messages, [Message::user("hi")]);
        assert_ne!(fork.id(), id);
    }

    #[test]
    fn a_file_that_is_none_is_an_error_that_names_the_line() {
        let temp = tempfile::tempdir().unwrap();
        let id = Uuid::new_v4().to_string();
        fs::write(path(temp.path(), &id), "{}\nno\n").unwrap();
        let error = SessionFile::resume(temp.path(), &id).unwrap_err();
        assert!(error.message.starts_with("line 1 of "), "{error}");
    }

    #[test]
    fn every_call_has_a_result() {
        let called = |id: &str| Message::Assistant(Answer::new(vec![Block::Call(call(id))]));
        let result = |id: &str| CallResult::none(&call(id));
        let tool = |results| Message::Tool { results };
        assert_eq!(
            repaired(vec![called("a"), Message::user("x"), called("b")]),
            [
                called("a"),
                tool(vec![result("a")]),
                Message::user("x"),
                called("b"),
                tool(vec![result("b")])
            ]
        );
        let whole = vec![called("a"), tool(vec![result("a")])];
        assert_eq!(repaired(whole.clone()), whole);
    }
}
