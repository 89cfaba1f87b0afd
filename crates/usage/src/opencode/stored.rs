//! Sessions in OpenCode's database: their directories, prompts and answers.

use std::io;
use std::path::Path;

use serde_json::Value;
use sqlx::{Connection, SqliteConnection};
use teamster_core::blocking::wait;

use super::database::Readable;
use crate::sessions::StoredMessage;

/// Query of the sessions without those of sub-agents, the last used first. The parameters are a session's id and a directory,
/// or none, and the maximum number.
const SESSIONS: &str = "SELECT id, directory, time_updated FROM session WHERE parent_id IS NULL \
                        AND (?1 IS NULL OR id = ?1) AND (?2 IS NULL OR directory = ?2) \
                        ORDER BY time_updated DESC, id DESC LIMIT ?3";
/// Query of the texts of a session's first message.
const FIRST: &str = "SELECT m.id, m.data, p.data FROM part p JOIN message m ON m.id = p.message_id \
                     WHERE p.message_id = (SELECT id FROM message WHERE session_id = ?1 \
                     ORDER BY time_created, id LIMIT 1) \
                     AND instr(p.data, '\"text\"') > 0 ORDER BY p.id";
/// Query of the texts of a session's messages.
const ALL: &str = "SELECT m.id, m.data, p.data FROM message m JOIN part p ON p.message_id = m.id \
                   WHERE m.session_id = ?1 AND instr(p.data, '\"text\"') > 0 \
                   ORDER BY m.time_created, m.id, p.id";

/// A session of the database.
pub(crate) struct Listed {
    pub(crate) id: String,
    pub(crate) directory: String,
    pub(crate) first_prompt: String,
    /// The time of the last change, in milliseconds since the Unix epoch.
    pub(crate) changed_at_ms: u64,
}

/// Returns the sessions of a database that have a prompt, the last used first: with this id, and of this directory, if they
/// are set. None of a database that cannot be read.
pub(crate) fn listed(
    database: &Path,
    id: Option<&str>,
    directory: Option<&Path>,
    most: usize,
) -> Vec<Listed> {
    let Ok(readable) = Readable::of(database) else {
        return Vec::new();
    };
    wait(read_list(&readable, id, directory, most)).unwrap_or_default()
}

async fn read_list(
    readable: &Readable,
    id: Option<&str>,
    directory: Option<&Path>,
    most: usize,
) -> Result<Vec<Listed>, sqlx::Error> {
    let mut connection = readable.connect().await?;
    let rows: Vec<(String, String, i64)> = sqlx::query_as(SESSIONS)
        .bind(id)
        .bind(directory.map(|it| it.to_string_lossy().into_owned()))
        .bind(i64::try_from(most).unwrap_or(i64::MAX))
        .fetch_all(&mut connection)
        .await?;
    let mut sessions = Vec::new();
    for (id, directory, changed) in rows {
        let messages = messages(FIRST, &id, &mut connection).await?;
        if let Some(StoredMessage::Prompt(first_prompt)) = messages.into_iter().next() {
            sessions.push(Listed {
                id,
                directory,
                first_prompt,
                changed_at_ms: u64::try_from(changed).unwrap_or_default(),
            });
        }
    }
    connection.close().await?;
    Ok(sessions)
}

/// Returns the messages of a session.
pub(crate) fn conversation(database: &Path, id: &str) -> io::Result<Vec<StoredMessage>> {
    let readable = Readable::of(database)?;
    let all = async {
        let mut connection = readable.connect().await?;
        let messages = messages(ALL, id, &mut connection).await?;
        connection.close().await?;
        Ok::<_, sqlx::Error>(messages)
    };
    wait(all).map_err(io::Error::other)
}

async fn messages(
    query: &'static str,
    session: &str,
    connection: &mut SqliteConnection,
) -> Result<Vec<StoredMessage>, sqlx::Error> {
    let rows: Vec<(String, String, String)> = sqlx::query_as(query)
        .bind(session)
        .fetch_all(connection)
        .await?;
    let mut messages: Vec<(String, StoredMessage)> = Vec::new();
    for (id, message, part) in rows {
        let Some(text) = text_of(&part) else {
            continue;
        };
        // A message may have several texts.
        if let Some((last, known)) = messages.last_mut()
            && *last == id
        {
            let (StoredMessage::Prompt(known) | StoredMessage::Answer(known)) = known;
            known.push('\n');
            known.push_str(&text);
            continue;
        }
        let message: Value = serde_json::from_str(&message).unwrap_or_default();
        match message["role"].as_str() {
            Some("user") => messages.push((id, StoredMessage::Prompt(text))),
            Some("assistant") => messages.push((id, StoredMessage::Answer(text))),
            _ => {}
        }
    }
    Ok(messages.into_iter().map(|(_, message)| message).collect())
}

/// Returns the text of a part, without what the CLI adds to a prompt.
fn text_of(part: &str) -> Option<String> {
    let part: Value = serde_json::from_str(part).ok()?;
    if part["type"] != "text" || part["synthetic"] == true {
        return None;
    }
    let text = part["text"].as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
