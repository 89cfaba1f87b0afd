//! Sessions in the CLIs' own files: their ids, directories, prompts and answers.
//!
//! Only the beginnings of the newest files are read for a list, and the text of one file for a conversation. Tools, reasoning
//! and what a CLI adds to a prompt are left out.

use std::collections::HashSet;
use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::lines::COMPRESSED;
use crate::locations::Locations;
use crate::opencode::Listed;
use crate::provider::Provider;
use crate::source::Sources;
use crate::{cline, gemini, kimi, opencode};

/// Maximum number of sessions in a list of a CLI, before those of other directories are left out.
const MAX_SESSIONS: usize = 400;
/// Maximum number of files whose beginnings are read for a list. Most of them may be those of sub-agents.
const MAX_FILES: usize = 10 * MAX_SESSIONS;
/// Maximum size of the beginning of a file that has its directory and first prompt, in bytes.
const HEAD: u64 = 1 << 20;
/// Maximum size of a file whose conversation is read, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// A session in a CLI's files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredSession {
    /// The CLI's id, by which it resumes the session.
    pub id: String,
    /// The agent's working directory.
    pub directory: PathBuf,
    /// The first prompt. Empty if the session has none of text, such as after an image alone; a list leaves such a session out.
    pub first_prompt: String,
    /// The time of the last write.
    pub changed: SystemTime,
    provider: Provider,
    /// The session's file, or the database of all sessions.
    file: PathBuf,
}

/// A message of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredMessage {
    /// A prompt.
    Prompt(String),
    /// A part of the answer.
    Answer(String),
}

/// Returns the sessions of a CLI, the last used first: those of this directory, or all. The number of files that are read is
/// limited, so old sessions may be missing. Of some CLIs no sessions are read ([`has_sessions`]).
pub fn stored_sessions(
    provider: Provider,
    locations: &Locations,
    directory: Option<&Path>,
) -> Vec<StoredSession> {
    if has_database(provider) {
        return in_databases(provider, locations, None, directory);
    }
    // A session may have several files.
    let mut known = HashSet::new();
    let files = files(provider, locations, None).into_iter().take(MAX_FILES);
    let sessions = files
        .filter_map(|(file, at)| head(provider, &file, at, Wanted::Prompt))
        .filter(|it| known.insert(it.id.clone()))
        .take(MAX_SESSIONS);
    let is_selected = |it: &StoredSession| directory.is_none_or(|wanted| wanted == it.directory);
    sessions.filter(is_selected).collect()
}

/// Returns the session of a CLI with this id.
pub fn stored_session(
    provider: Provider,
    locations: &Locations,
    id: &str,
) -> Option<StoredSession> {
    if has_database(provider) {
        return in_databases(provider, locations, Some(id), None).pop();
    }
    let files = files(provider, locations, Some(id));
    [Wanted::Prompt, Wanted::Any]
        .into_iter()
        .find_map(|wanted| {
            let mut sessions = files
                .iter()
                .filter_map(|(file, at)| head(provider, file, *at, wanted));
            sessions.find(|it| it.id == id)
        })
}

/// Returns whether sessions are read from the files of this CLI. Those of `teamster`'s own model loop are not.
pub fn has_sessions(provider: Provider) -> bool {
    provider != Provider::Embedded
}

/// Returns whether a CLI keeps its sessions in a database. Versions that kept them in files are left out.
fn has_database(provider: Provider) -> bool {
    matches!(provider, Provider::OpenCode | Provider::Kilo)
}

/// Returns the sessions of databases, the last used first.
fn in_databases(
    provider: Provider,
    locations: &Locations,
    id: Option<&str>,
    directory: Option<&Path>,
) -> Vec<StoredSession> {
    let mut sources = Sources::new(None);
    provider.sources(locations, &mut sources);
    let databases = sources.found.into_iter().map(|source| source.path);
    let sessions = databases.filter(|path| path.is_file()).flat_map(|file| {
        let listed = opencode::listed(&file, id, directory, MAX_SESSIONS);
        let session = move |it: Listed| StoredSession {
            id: it.id,
            directory: it.directory.into(),
            first_prompt: it.first_prompt,
            changed: SystemTime::UNIX_EPOCH + Duration::from_millis(it.changed_at_ms),
            provider,
            file: file.clone(),
        };
        listed.into_iter().map(session)
    });
    let mut sessions: Vec<_> = sessions.collect();
    sessions.sort_by(|a, b| (b.changed, &b.id).cmp(&(a.changed, &a.id)));
    // A database of another channel may be a copy.
    let mut known = HashSet::new();
    sessions.retain(|it| known.insert(it.id.clone()));
    sessions
}

impl StoredSession {
    /// Returns the file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Reads the prompts and answers.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, or if it is larger than 64 MiB.
    pub fn messages(&self) -> io::Result<Vec<StoredMessage>> {
        if has_database(self.provider) {
            return opencode::conversation(&self.file, &self.id);
        }
        let file = File::open(&self.file)?;
        if file.metadata()?.len() > MAX_FILE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if self.provider == Provider::Cline {
            // It is one JSON value.
            let all: Value = serde_json::from_reader(BufReader::new(file.take(MAX_FILE)))?;
            let all = all["messages"].as_array().cloned().unwrap_or_default();
            let messages = all.iter().filter_map(|it| message(self.provider, it));
            return Ok(messages.collect());
        }
        let mut messages = Vec::new();
        // Gemini repeats messages under their ids: with the results of tools, and when a session is resumed.
        let mut known = HashSet::new();
        each_line(file.take(MAX_FILE), |line| {
            for line in messages_of(self.provider, line) {
                let Some(message) = message(self.provider, line) else {
                    continue;
                };
                let id = line["id"].as_str();
                let id = id.filter(|_| self.provider == Provider::Gemini);
                if id.is_none_or(|id| known.insert(id.to_owned())) {
                    messages.push(message);
                }
            }
            true
        })?;
        Ok(messages)
    }
}

/// Returns the files of sessions with their times, the newest first.
fn files(
    provider: Provider,
    locations: &Locations,
    session: Option<&str>,
) -> Vec<(PathBuf, SystemTime)> {
    if !has_sessions(provider) {
        return Vec::new();
    }
    let mut sources = Sources::new(None);
    match session {
        Some(session) => provider.of_session(locations, session, &mut sources),
        None => provider.sources(locations, &mut sources),
    }
    let time = |path: &Path| path.metadata().and_then(|it: Metadata| it.modified()).ok();
    let mut files: Vec<_> = (sources.found.into_iter())
        .map(|source| source.path)
        .filter(|path| {
            !path
                .as_os_str()
                .as_encoded_bytes()
                .ends_with(COMPRESSED.as_bytes())
        })
        .filter_map(|path| Some((time(&path)?, path)))
        .map(|(at, path)| (path, at))
        .collect();
    files.sort_by(|(a, a_at), (b, b_at)| (b_at, b).cmp(&(a_at, a)));
    files
}

/// Sessions that are wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// Those with a prompt in the beginning of their file.
    Prompt,
    /// Those without one too.
    Any,
}

/// Reads the beginning of a file. `None` if it is not the file of a session that is wanted, such as that of a sub-agent.
fn head(
    provider: Provider,
    file: &Path,
    changed: SystemTime,
    wanted: Wanted,
) -> Option<StoredSession> {
    let needs_prompt = wanted == Wanted::Prompt;
    let (mut id, mut directory, mut prompt) = (None, None, None);
    // What is not in the file itself. Those of sub-agents have none, or are in other folders.
    match provider {
        Provider::Gemini => {
            let chats = file.parent().filter(|folder| folder.ends_with("chats"))?;
            directory = gemini::directory_of(chats).map(PathBuf::from);
        }
        Provider::Kimi => {
            let (session, its_directory) = kimi::session_of(file)?;
            (id, directory) = (Some(session), Some(its_directory.into()));
        }
        Provider::Cline => {
            let about = cline::about(file)?;
            return Some(StoredSession {
                id: about.id,
                directory: about.directory.into(),
                first_prompt: cline::without_tag(&about.prompt?).to_owned(),
                changed,
                provider,
                file: file.to_owned(),
            });
        }
        _ => {}
    }
    let mut is_session = true;
    let limit = if needs_prompt { HEAD } else { MAX_FILE };
    let read = each_line(File::open(file).ok()?.take(limit), |line| {
        is_session &= !is_of_sub_agent(provider, line);
        let (its_id, its_directory) = identity(provider, line);
        id = id.take().or_else(|| its_id.map(str::to_owned));
        directory = directory
            .take()
            .or_else(|| its_directory.map(PathBuf::from));
        let first = |line: &Value| match message(provider, line) {
            Some(StoredMessage::Prompt(text)) => Some(text),
            _ => None,
        };
        if prompt.is_none() {
            prompt = messages_of(provider, line).into_iter().find_map(first);
        }
        is_session && (id.is_none() || directory.is_none() || (needs_prompt && prompt.is_none()))
    });
    read.ok()?;
    let id = match provider {
        // The lines of a fork may be those of the first session.
        Provider::Claude | Provider::Qwen => file.file_stem()?.to_str()?.to_owned(),
        _ => id?,
    };
    if !is_session {
        return None;
    }
    Some(StoredSession {
        id,
        directory: directory?,
        first_prompt: if needs_prompt {
            prompt?
        } else {
            prompt.unwrap_or_default()
        },
        changed,
        provider,
        file: file.to_owned(),
    })
}

/// Calls `each` with the lines that are JSON, until it returns `false`.
fn each_line(reader: impl Read, mut each: impl FnMut(&Value) -> bool) -> io::Result<()> {
    for line in BufReader::new(reader).split(b'\n') {
        // The last line may be cut off.
        if let Ok(line) = serde_json::from_slice(&line?)
            && !each(&line)
        {
            break;
        }
    }
    Ok(())
}

fn is_of_sub_agent(provider: Provider, line: &Value) -> bool {
    match provider {
        Provider::Claude | Provider::Qwen => line["isSidechain"] == true,
        Provider::Codex => {
            line["type"] == "session_meta" && line["payload"]["source"]["subagent"].is_object()
        }
        Provider::Gemini => line["kind"] == "subagent",
        _ => false,
    }
}

/// Returns the id of the session and its directory, as far as a line has them.
fn identity(provider: Provider, line: &Value) -> (Option<&str>, Option<&str>) {
    let (id, directory) = match provider {
        Provider::Claude | Provider::Qwen => (&line["sessionId"], &line["cwd"]),
        Provider::Codex if line["type"] == "session_meta" => {
            (&line["payload"]["id"], &line["payload"]["cwd"])
        }
        Provider::Copilot if line["type"] == "session.start" => {
            (&line["data"]["sessionId"], &line["data"]["context"]["cwd"])
        }
        Provider::Pi if line["type"] == "session" => (&line["id"], &line["cwd"]),
        // Its directory is in a file beside it.
        Provider::Gemini => return (line["sessionId"].as_str(), None),
        _ => return (None, None),
    };
    (id.as_str(), directory.as_str())
}

/// Returns the parts of a line that may be messages: usually the line itself.
fn messages_of(provider: Provider, line: &Value) -> Vec<&Value> {
    let of_change = line["$set"]["messages"].as_array();
    match of_change.filter(|_| provider == Provider::Gemini) {
        Some(messages) => messages.iter().collect(),
        None => vec![line],
    }
}

/// Returns the message of a line: a prompt of the user, or a part of the agent's answer.
fn message(provider: Provider, line: &Value) -> Option<StoredMessage> {
    let kind = line["type"].as_str().unwrap_or_default();
    let (role, content) = match (provider, kind) {
        (Provider::Claude, "user" | "assistant")
            if line["isMeta"] != true && line["isCompactSummary"] != true =>
        {
            (kind, &line["message"]["content"])
        }
        (Provider::Qwen, "user" | "assistant") => (kind, &line["message"]["parts"]),
        (Provider::Gemini, "user") => (kind, &line["content"]),
        (Provider::Gemini, "gemini") => ("assistant", &line["content"]),
        (Provider::Kimi, "agent.message.appended") => {
            let message = &line["message"]["message"];
            (message["role"].as_str()?, &message["content"])
        }
        (Provider::Cline, "") => (line["role"].as_str()?, &line["content"]),
        (Provider::Codex, "response_item") if line["payload"]["type"] == "message" => (
            line["payload"]["role"].as_str()?,
            &line["payload"]["content"],
        ),
        // Those of a sub-agent are its own.
        (Provider::Copilot, _) if line["agentId"].is_string() => return None,
        (Provider::Copilot, "user.message") => ("user", &line["data"]["content"]),
        (Provider::Copilot, "assistant.message") => ("assistant", &line["data"]["content"]),
        (Provider::Pi, "message") => {
            let message = &line["message"];
            (message["role"].as_str()?, &message["content"])
        }
        _ => return None,
    };
    let text = text_of(content);
    let text = match provider {
        Provider::Cline => cline::without_tag(text.trim()),
        _ => text.trim(),
    };
    match role {
        // What a CLI adds is in tags, or begins with the name of a file.
        "user" if text.starts_with('<') || text.starts_with("# AGENTS.md instructions") => None,
        _ if text.is_empty() => None,
        "user" => Some(StoredMessage::Prompt(text.to_owned())),
        "assistant" => Some(StoredMessage::Answer(text.to_owned())),
        _ => None,
    }
}

/// Returns the text of a message without reasoning, tools and images.
fn text_of(content: &Value) -> String {
    let part = |part: &Value| {
        let is_text = matches!(
            part["type"].as_str(),
            None | Some("text" | "input_text" | "output_text")
        );
        let text = part["text"]
            .as_str()
            .filter(|_| is_text && part["thought"] != true);
        text.map(str::to_owned)
    };
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let parts: Vec<String> = parts.iter().filter_map(part).collect();
            parts.join("\n")
        }
        _ => String::new(),
    }
}
