//! The sessions and commands that the agents' CLIs have on this machine.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use teamster::usage::{
    Locations, Provider, StoredMessage, StoredSession, stored_session, stored_sessions,
};
use teamster_acp_server::{CliFiles, OwnMessage, OwnSession};
use teamster_core::SlashCommand;
use teamster_core::time::millis;
use teamster_host::cli_commands;
use tokio::task::spawn_blocking;

use crate::global::host;

/// Reads them in the places that the environment names.
pub(super) struct OfFiles;

#[async_trait::async_trait]
impl CliFiles for OfFiles {
    async fn commands(&self, agent: &str, folder: &Path) -> Vec<SlashCommand> {
        let Ok(info) = host().agent(agent) else {
            return Vec::new();
        };
        let folder = folder.to_owned();
        let commands = spawn_blocking(move || cli_commands(info, &folder));
        commands.await.unwrap_or_default()
    }

    async fn list(&self, agent: &str, folder: Option<&Path>) -> Vec<OwnSession> {
        let folder = folder.map(PathBuf::from);
        let sessions = read(agent, move |provider, locations| {
            Some(stored_sessions(provider, locations, folder.as_deref()))
        });
        let sessions = sessions.await.unwrap_or_default().into_iter();
        sessions.map(|it| own(agent, it)).collect()
    }

    async fn messages(&self, agent: &str, id: &str) -> Option<Vec<OwnMessage>> {
        let id = id.to_owned();
        let messages = read(agent, move |provider, locations| {
            let session = stored_session(provider, locations, &id)?;
            // One that is too large can be resumed, too.
            Some(session.messages().unwrap_or_default())
        });
        let messages = messages.await?.into_iter();
        let message = |message| match message {
            StoredMessage::Prompt(text) => Some(OwnMessage::Prompt(text)),
            StoredMessage::Answer(text) => Some(OwnMessage::Answer(text)),
            _ => None,
        };
        Some(messages.filter_map(message).collect())
    }
}

/// Reads files in a thread of its own. `None` for an agent whose files are not read.
async fn read<T: Send + 'static>(
    agent: &str,
    read: impl FnOnce(Provider, &Locations) -> Option<T> + Send + 'static,
) -> Option<T> {
    let provider = agent.parse::<Provider>().ok()?;
    let read = move || read(provider, &Locations::from_env());
    spawn_blocking(read).await.ok()?
}

fn own(agent: &str, stored: StoredSession) -> OwnSession {
    let StoredSession {
        id,
        directory,
        first_prompt,
        changed,
        ..
    } = stored;
    let mut session = OwnSession::new(id, agent, directory, first_prompt);
    let since = changed.duration_since(UNIX_EPOCH);
    session.changed_at_ms = since.map(millis).unwrap_or_default();
    session
}
