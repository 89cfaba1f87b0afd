//! Conversations on this machine: each has one machine, and one run at a time.

use std::collections::BTreeSet;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use teamster_api::{ProblemCode, ServiceError, Spec, either};
use teamster_core::AgentError;
use teamster_core::sync::lock;
use teamster_host::state;
use tokio::time::sleep;

use super::{Shared, unwritable};
use crate::homes::{ConversationKey, FoundHome, instead_of, unknown_session};
use crate::names::RunKey;
use crate::protocol::{Conversation, Home, Settle, Tag, settle};
use crate::record::Record;
use crate::records::PAUSE;

/// The folder of the workspaces that are made for runs, in the user's state directory.
const WORKTREES: &str = "teamster/worktrees";
/// Before the name of a worker that was another machine. No worker has such a name.
const EARLIER: char = '=';
/// How often an entry is written again that another worker has changed, or of which no answer has come.
const TRIES: u32 = 20;

/// Where a run can be carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Location {
    Here,
    /// On this worker.
    Elsewhere(String),
}

/// A conversation of which this process has a run under way, until it is dropped.
pub(super) struct Held {
    shared: Arc<Shared>,
    key: ConversationKey,
}

impl Held {
    /// Returns `None` if another run of the conversation is under way.
    pub(super) fn new(shared: &Arc<Shared>, key: &ConversationKey) -> Option<Self> {
        lock(&shared.conversations)
            .insert(key.clone())
            .then(|| Self {
                shared: shared.clone(),
                key: key.clone(),
            })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        lock(&self.shared.conversations).remove(&self.key);
    }
}

/// The conversations of which runs are under way.
pub(super) type Conversations = BTreeSet<ConversationKey>;

/// A run's conversation, as it is here.
pub(super) struct Found {
    pub(super) location: Location,
    /// The conversation is held as long as this is.
    pub(super) held: Option<Held>,
    /// Where the agent works, if the run does not name it.
    pub(super) directory: Option<PathBuf>,
}

impl Found {
    pub(super) fn elsewhere(worker: String) -> Self {
        Self {
            location: Location::Elsewhere(worker),
            held: None,
            directory: None,
        }
    }
}

/// Finds the machine of a run's conversation. Nothing is written.
pub(super) async fn find(
    shared: &Arc<Shared>,
    key: &RunKey,
    spec: &Spec,
) -> Result<Found, ServiceError> {
    let mut found = Found {
        location: Location::Here,
        held: None,
        directory: None,
    };
    let Some((conversation, wants)) = ConversationKey::of(&key.owner, spec) else {
        return Ok(found);
    };
    let held = Held::new(shared, &conversation);
    found.held = Some(held.ok_or_else(|| in_progress("another run"))?);
    let (settled, directory) = look(shared, key, &conversation, wants).await?;
    match settled {
        Settle::Take(_) if wants == Conversation::Session => {
            // The policy may have changed since then.
            let is_allowed = |directory: &PathBuf| {
                is_made_here(shared, &key.owner, directory) || shared.allows(directory)
            };
            if !directory.as_ref().is_none_or(is_allowed) {
                let problem = "the directory of this session is gone, or the worker does not allow it any more";
                return Err(AgentError::refused("session_id", problem).into());
            }
            found.directory = directory;
        }
        Settle::Take(_) => {
            if either!(spec, spec => spec.location()).is_none() {
                // The same for all its runs: a session is resumed where it began.
                let root = shared.conversations_folder.join(conversation.folder());
                let mut builder = DirBuilder::new();
                let made = builder.recursive(true).mode(0o700).create(&root);
                made.map_err(|error| unwritable(&error))?;
                found.directory = Some(root);
            }
        }
        Settle::Forward(other) => return Ok(Found::elsewhere(reachable(other, wants)?)),
        other => return Err(refused(other)),
    }
    Ok(found)
}

/// Returns whether a directory is one that was made here for the runs of this owner.
fn is_made_here(shared: &Shared, owner: &str, directory: &Path) -> bool {
    let Ok(directory) = directory.canonicalize() else {
        return false;
    };
    let of_owner = |root: &Path, before: &str| {
        let root = root.canonicalize().ok()?;
        let below = directory.strip_prefix(root).ok()?;
        let name = below.components().next()?.as_os_str().to_str()?;
        name.starts_with(before).then_some(())
    };
    let worktrees = state::file(WORKTREES);
    of_owner(&shared.conversations_folder, &format!("{owner}.")).is_some()
        || worktrees.is_some_and(|root| of_owner(&root, &format!("{owner}@")).is_some())
}

/// Makes this machine that of a run's conversation, unless it is another one. Then the run can be claimed.
pub(super) async fn take(
    shared: &Arc<Shared>,
    key: &RunKey,
    spec: &Spec,
) -> Result<Location, ServiceError> {
    let Some((conversation, wants)) = ConversationKey::of(&key.owner, spec) else {
        return Ok(Location::Here);
    };
    for _ in 0..TRIES {
        let (settled, directory) = look(shared, key, &conversation, wants).await?;
        match settled {
            Settle::Take(expected) => {
                if try_take(shared, key, &conversation, directory, expected).await? {
                    return Ok(Location::Here);
                }
            }
            Settle::Forward(other) => return Ok(Location::Elsewhere(reachable(other, wants)?)),
            other => return Err(refused(other)),
        }
    }
    let message =
        "the entry of the conversation was not written: no answer, or other workers change it";
    Err(ServiceError::unreachable(message))
}

/// Returns the name of the worker to which a run is left, if that can be reached.
fn reachable(worker: String, wants: Conversation) -> Result<String, ServiceError> {
    let Some(name) = worker.strip_prefix(EARLIER) else {
        return Ok(worker);
    };
    let message = format!(
        "another machine, or another state directory, was the worker {name} and has this conversation: {}",
        instead_of(wants)
    );
    Err(ServiceError::new(ProblemCode::RunnerNotResponding, message))
}

async fn look(
    shared: &Shared,
    key: &RunKey,
    conversation: &ConversationKey,
    wants: Conversation,
) -> Result<(Settle<String>, Option<PathBuf>), ServiceError> {
    let (fleet, own) = (&shared.fleet, &shared.config.name);
    // First: what is read after it is not older.
    let FoundHome {
        mut seen,
        machine,
        directory,
    } = fleet.home(conversation).await?;
    let is_other = |tag: Option<Tag>| machine.is_some_and(|it| tag.is_some_and(|tag| tag != it));
    let last = fleet.last_run(&key.owner, &seen).await?;
    let state = fleet.state_of(key).await?;
    let is_absent = match &mut seen.home {
        // A name is that of one state directory at a time, and now it is this one.
        Some(home) if home.worker == *own && is_other(Some(shared.machine_tag)) => {
            home.worker.insert(0, EARLIER);
            true
        }
        Some(home) if home.worker != *own && wants == Conversation::NewSession => {
            let workers = fleet.workers().await?;
            workers
                .iter()
                .all(|present| present.worker != home.worker || is_other(Some(present.machine)))
        }
        _ => false,
    };
    let settled = settle(&seen, own, &key.run, wants, state, last, is_absent);
    Ok((settled, directory))
}

fn refused(settled: Settle<String>) -> ServiceError {
    match settled {
        Settle::Busy(run) => in_progress(&format!("run {run}")),
        Settle::Unknown => unknown_session(),
        _ => ServiceError::unreachable("the run was claimed meanwhile"),
    }
}

fn in_progress(run: &str) -> ServiceError {
    let message = format!("{run} of the conversation is in progress");
    ServiceError::new(ProblemCode::SessionInUse, message)
}

/// Leaves a queued run to the worker that has its conversation. Returns whether its record names that one now.
pub(super) async fn forward(
    shared: &Shared,
    key: &RunKey,
    (revision, record): (u64, &Record),
    worker: &str,
) -> Result<bool, ServiceError> {
    if record.spec()?.placement().machine.is_some() {
        let problem = format!("the conversation is on worker {worker}");
        return Err(AgentError::refused("placement", problem).into());
    }
    let mut record = record.clone();
    record.machine = Some(worker.to_owned());
    if shared.fleet.store(key, &record, revision).await.is_none() {
        return Ok(false);
    }
    // Without an answer, the hint is published again for a queued run without one.
    shared.fleet.hint(&record.queue(key), key).await?;
    Ok(true)
}

/// Writes that an agent's session is on this machine.
pub(super) async fn keep_session(
    shared: &Shared,
    key: &RunKey,
    provider: &str,
    session: &str,
    directory: Option<&PathBuf>,
) -> Result<(), ServiceError> {
    let conversation = ConversationKey::of_session(&key.owner, provider, session);
    let (fleet, own) = (&shared.fleet, &shared.config.name);
    loop {
        let seen = fleet.home(&conversation).await?.seen;
        match &seen.home {
            // It is the same session as before, or another with its id.
            Some(home) if home.worker != *own || home.run == key.run => return Ok(()),
            _ => {}
        }
        let directory = directory.cloned();
        if try_take(shared, key, &conversation, directory, seen.revision).await? {
            return Ok(());
        }
    }
}

/// Writes that a conversation is on this machine. Returns whether that was done; if not, after a pause.
async fn try_take(
    shared: &Shared,
    key: &RunKey,
    conversation: &ConversationKey,
    directory: Option<PathBuf>,
    expected: u64,
) -> Result<bool, ServiceError> {
    let home = Home {
        worker: shared.config.name.clone(),
        run: key.run.clone(),
    };
    let (fleet, machine) = (&shared.fleet, shared.machine_tag);
    let taken = fleet.take_home(conversation, home, machine, directory, expected);
    if taken.await {
        return Ok(true);
    }
    if let Some(refusal) = fleet.refusal(conversation.subject()) {
        return Err(refusal);
    }
    sleep(PAUSE).await;
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_for_a_conversation_elsewhere_names_its_field() {
        let refused = |wants| reachable("=w1".to_owned(), wants).unwrap_err().message;
        let session = refused(Conversation::Session);
        assert!(
            session.ends_with(": start a run without `session_id`"),
            "{session}"
        );
        let key = refused(Conversation::Key);
        assert!(key.contains("use another `session_key`"), "{key}");
    }
}
