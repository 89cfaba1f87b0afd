//! What the agents' CLIs have on disk: commands, and sessions beside the threads, such as those of their own screens.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use teamster_api::{RunEvent, RunLogEntry, RunSummary};
use teamster_core::{AgentEvent, LifecycleEntry, LogEntry, SlashCommand, Text};

use super::Shared;
use crate::Found;

/// Reads the files of the agents' CLIs.
///
/// [`EditorServer`](crate::EditorServer) knows no CLI: the program around it gives it this.
#[async_trait::async_trait]
pub trait CliFiles: Send + Sync {
    /// Returns the agent's commands and skills in this folder, as far as they are known before the CLI is started.
    async fn commands(&self, agent: &str, folder: &Path) -> Vec<SlashCommand>;

    /// Returns sessions of the agent: those of this folder, or all.
    async fn list(&self, agent: &str, folder: Option<&Path>) -> Vec<OwnSession>;

    /// Returns the messages of the agent's session with this id; `None` if there is none that can be resumed.
    async fn messages(&self, agent: &str, id: &str) -> Option<Vec<OwnMessage>>;
}

/// A session in the files of an agent's CLI.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OwnSession {
    /// The CLI's id, by which it resumes the session. The editor knows the session by it, too.
    pub id: String,
    /// The agent's id.
    pub agent: String,
    /// The agent's working directory.
    pub directory: PathBuf,
    /// The first prompt.
    pub first_prompt: String,
    /// The time of the last write, in milliseconds since the Unix epoch.
    pub changed_at_ms: u64,
}

impl OwnSession {
    /// Creates a session that was never written to.
    pub fn new(
        id: impl Into<String>,
        agent: impl Into<String>,
        directory: impl Into<PathBuf>,
        first_prompt: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            agent: agent.into(),
            directory: directory.into(),
            first_prompt: first_prompt.into(),
            changed_at_ms: 0,
        }
    }
}

/// A message of such a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnMessage {
    /// A prompt.
    Prompt(String),
    /// A part of the answer.
    Answer(String),
}

/// Returns the sessions that none of these threads has begun. A thread that continues one has its id.
pub(super) async fn list(
    shared: &Shared,
    folder: Option<&Path>,
    threads: &BTreeMap<String, (u64, Vec<Arc<RunSummary>>)>,
) -> Vec<OwnSession> {
    let Some(own) = &shared.own else {
        return Vec::new();
    };
    let parts = threads.values().flat_map(|(_, parts)| parts);
    let of_parts = parts.filter_map(|it| it.session_id.as_deref());
    let known: HashSet<&str> = of_parts.filter(|id| !threads.contains_key(*id)).collect();
    let mut all = Vec::new();
    for agent in agents(shared) {
        let sessions = own.list(agent, folder).await.into_iter();
        all.extend(sessions.filter(|it| !known.contains(&*it.id)));
    }
    all
}

/// Returns the session with this id, as the log of a thread.
pub(super) async fn find(shared: &Shared, id: &str) -> Option<Found> {
    let own = shared.own.as_ref()?;
    for agent in agents(shared) {
        if let Some(messages) = own.messages(agent, id).await {
            return Some(Found::new(agent, None, entries(id, messages)));
        }
    }
    None
}

/// Returns what the session with this id had before a thread continued it with these prompts, which it has as well.
pub(super) async fn before(
    shared: &Shared,
    agent: &str,
    id: &str,
    prompts: &[&str],
) -> Vec<RunLogEntry> {
    let Some(own) = &shared.own else {
        return Vec::new();
    };
    let mut messages = own.messages(agent, id).await.unwrap_or_default();
    let Some(first) = prompts.first().map(|it| it.trim()) else {
        return entries(id, messages);
    };
    // It may have had the same prompt before.
    let count = prompts.iter().filter(|it| it.trim() == first).count();
    let is_it = |it: &OwnMessage| matches!(it, OwnMessage::Prompt(text) if text == first);
    let indices: Vec<_> = (0..messages.len())
        .filter(|at| is_it(&messages[*at]))
        .collect();
    let begin = indices.get(indices.len().saturating_sub(count));
    messages.truncate(begin.copied().unwrap_or_default());
    entries(id, messages)
}

fn entries(id: &str, messages: Vec<OwnMessage>) -> Vec<RunLogEntry> {
    let entry = |message| match message {
        OwnMessage::Prompt(text) => {
            let event = RunEvent::user_message(id.into(), text, None, false);
            RunLogEntry::Run(LifecycleEntry::new(event))
        }
        OwnMessage::Answer(text) => {
            RunLogEntry::Agent(LogEntry::new(0, 0, AgentEvent::Text(Text::new(text))))
        }
    };
    messages.into_iter().map(entry).collect()
}

/// Returns the agent and the session that the first prompt of a thread with this id continues.
pub(super) async fn continued(
    shared: &Shared,
    agent: Option<&str>,
    id: &str,
) -> Option<(String, String)> {
    let agent = agent?;
    let messages = shared.own.as_ref()?.messages(agent, id).await;
    messages.map(|_| (agent.to_owned(), id.to_owned()))
}

/// Returns the agents that threads may have.
fn agents(shared: &Shared) -> impl Iterator<Item = &str> {
    let agents = shared.catalog.agents.iter().map(|agent| &*agent.id);
    agents.filter(move |agent| shared.agent().is_none_or(|it| it == *agent))
}
