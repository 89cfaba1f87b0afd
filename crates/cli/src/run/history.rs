//! The store of a run: its history entry and its conversation.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, bail};
use teamster::AgentError;
use teamster::orchestrator::{Candidate, RunRequest};
use teamster::store::{
    Conversation, Recorder, SessionFilter, SessionLock, SessionOrLock, SessionRecord, Store,
    StoreError, check_run_id,
};
use teamster_core::sync::lock;
use tokio::time::{Instant, timeout, timeout_at};

use super::request;
use crate::{store, words};

/// Limit for opening the store of a run without a session key. Beyond it, the run is left out of the history.
const OPEN_LIMIT: Duration = Duration::from_secs(3);

/// Limit for the store of a run with a session key, which needs the store.
pub(super) const OPEN_LIMIT_WITH_KEY: Duration = Duration::from_secs(10);

/// Time limit of waiting for a session that another run begins with the same key.
const BEGIN_LIMIT: Duration = Duration::from_secs(30);

/// Settings of a run's history and conversation.
pub(crate) struct History {
    location: Option<String>,
    /// Set if the user named the store.
    named: bool,
    warnings: Warnings,
    conversation: Option<Conversation>,
    /// Forget the conversation's sessions and begin a new one.
    starts_over: bool,
}

/// The session of a conversation, or the right to begin it. Both are absent without a conversation.
#[derive(Default)]
pub(crate) struct KeyedSession {
    pub(crate) session_id: Option<String>,
    pub(crate) lock: Option<SessionLock>,
}

/// The sessions of a conversation that a run resumes, and the locks of those that it begins.
struct Resumed {
    locks: Vec<SessionLock>,
    sessions: Vec<SessionRecord>,
}

/// An open store and the recorder that writes to it.
#[derive(Clone)]
pub(crate) struct OpenHistory {
    pub(crate) store: Store,
    pub(crate) recorder: Recorder,
}

impl History {
    /// Creates the settings of a store, else of the default one. Every error is a usage error.
    pub(crate) fn new(
        store: Option<&str>,
        key: Option<&str>,
        run_id: Option<&str>,
        warnings: Warnings,
    ) -> anyhow::Result<Self> {
        let location = store::location(store);
        let named = store::named(store).is_some();
        let conversation = key.map(str::parse).transpose()?;
        if conversation.is_some() && location.is_none() {
            bail!(AgentError::refused(
                "session_key",
                "a conversation needs a store of sessions: set one with --store or TEAMSTER_STORE"
            ));
        }
        if location.is_none() && !named && !warnings.are_off() {
            warnings.add(
                "this run is not in the history: neither XDG_STATE_HOME nor HOME is set; set a store with \
                 --store or TEAMSTER_STORE (`off` disables the history)"
                    .to_owned(),
            );
        }
        if let Some(id) = run_id {
            check_run_id(id).map_err(|error| AgentError::refused("run_id", error.to_string()))?;
        }
        Ok(Self {
            location,
            named,
            warnings,
            conversation,
            starts_over: false,
        })
    }

    /// Forgets the conversation's sessions at the start of the run.
    pub(super) fn starting_over(mut self, starts_over: bool) -> Self {
        self.starts_over = starts_over;
        self
    }

    /// Returns `true` if the run has a session key.
    pub(super) fn has_conversation(&self) -> bool {
        self.conversation.is_some()
    }

    /// Opens the store and resumes the sessions of the conversation.
    ///
    /// Without a conversation, a store that cannot be used only leaves the run out of the history. Every error is a
    /// usage error: nothing has been started.
    pub(super) async fn prepare(
        &self,
        request: &mut RunRequest,
    ) -> anyhow::Result<Option<OpenHistory>> {
        let Some(location) = &self.location else {
            return Ok(None);
        };
        let limit = match self.conversation {
            Some(_) => OPEN_LIMIT_WITH_KEY,
            None => OPEN_LIMIT,
        };
        let deadline = Instant::now() + limit;
        let opened = async {
            let store = Store::open_within(location, limit).await?;
            let taken = match &request.run_id {
                Some(id) => {
                    let exists = timeout_at(deadline, store.run_exists(id)).await;
                    exists.unwrap_or_else(|_| Err(slow(&store, "look up a run", limit)))?
                }
                None => false,
            };
            Ok((store, taken))
        };
        let (store, taken) = match opened.await {
            Ok(opened) => opened,
            Err(error) if self.conversation.is_some() => return Err(StoreError::into(error)),
            Err(error) => {
                self.warn(&[error]);
                return Ok(None);
            }
        };
        if let Some(id) = request.run_id.as_ref().filter(|_| taken) {
            bail!(AgentError::refused(
                "run_id",
                format!(
                    "a run `{id}` already exists in {}: use another id, or leave it out",
                    store.place()
                )
            ));
        }
        let mut recorder = Recorder::new(store.clone());
        if let Some(conversation) = &self.conversation {
            self.check_writable(&store, deadline).await?;
            let Resumed { locks, sessions } =
                (self.resume_sessions(conversation, &store, request)).await?;
            recorder = recorder
                .conversation(conversation.clone())
                .session_locks(locks);
            for session in sessions {
                recorder = recorder.resumed_session(session.key.provider, session.session_id);
            }
        }
        Ok(Some(OpenHistory { store, recorder }))
    }

    /// Opens the store for the turns of a session. A store that cannot be used only leaves them out of the history.
    pub(crate) async fn open_for_session(&self) -> Option<OpenHistory> {
        let location = self.location.as_ref()?;
        match Store::open_within(location, OPEN_LIMIT).await {
            Ok(store) => {
                let mut recorder = Recorder::new(store.clone());
                if let Some(conversation) = &self.conversation {
                    recorder = recorder.conversation(conversation.clone());
                }
                Some(OpenHistory { store, recorder })
            }
            Err(error) => {
                self.warn(&[error]);
                None
            }
        }
    }

    /// Returns the session of the conversation with this provider, or the right to begin it.
    ///
    /// A session of another directory is an error: it cannot be resumed in this one.
    pub(crate) async fn session(
        &self,
        open_history: Option<&OpenHistory>,
        provider: &str,
        directory: &Path,
    ) -> Result<KeyedSession, AgentError> {
        let Some(conversation) = &self.conversation else {
            return Ok(KeyedSession::default());
        };
        let refused = |problem: String| AgentError::refused("session_key", problem);
        let Some(open_history) = open_history else {
            return Err(refused("the store of sessions cannot be used".to_owned()));
        };
        let key = conversation.with(provider);
        let found = open_history.store.session_or_lock(&key, BEGIN_LIMIT).await;
        let session = match found.map_err(|error| refused(error.to_string()))? {
            SessionOrLock::Session(session) => session,
            SessionOrLock::Lock(lock) => {
                return Ok(KeyedSession {
                    lock: Some(lock),
                    ..KeyedSession::default()
                });
            }
        };
        match &session.working_directory {
            Some(began) if began != directory && !began.exists() => Err(refused(format!(
                "the folder of the session of `{conversation}` is gone ({}): use another key, or start the \
                 conversation over with `{}`",
                began.display(),
                self.new_conversation(conversation, provider, directory)
            ))),
            Some(began) if began != directory => Err(refused(format!(
                "the session of `{conversation}` belongs to {}: open that folder, or use another key",
                began.display()
            ))),
            _ => Ok(KeyedSession {
                session_id: Some(session.session_id),
                ..KeyedSession::default()
            }),
        }
    }

    /// Returns the command that starts a conversation over, for a terminal.
    fn new_conversation(
        &self,
        conversation: &Conversation,
        provider: &str,
        directory: &Path,
    ) -> String {
        let (key, directory) = (conversation.to_string(), directory.to_string_lossy());
        let words = ["teamster", "run", provider, "Hello", "--cwd", &directory];
        let words = words.into_iter().chain(["--session-key", &key, "--new"]);
        // A URL may have a password. It is in a variable, not in an argument.
        let file =
            (self.location.as_deref()).filter(|location| self.named && !location.contains("://"));
        let store = file.into_iter().flat_map(|file| ["--store", file]);
        let words = words.chain(store).map(words::shell_word);
        words.collect::<Vec<_>>().join(" ")
    }

    /// Checks that the store is writable; with a read-only one, the conversation would be lost.
    async fn check_writable(&self, store: &Store, deadline: Instant) -> anyhow::Result<()> {
        let written = timeout_at(deadline, store.expire()).await;
        let slow = || Err(slow(store, "write to it", OPEN_LIMIT_WITH_KEY));
        written
            .unwrap_or_else(|_| slow())
            .map(drop)
            .context("--session-key: the conversation could not be stored, so nothing was started")
    }

    /// Sets each candidate's session of the conversation. Returns these, and the locks of those that the run begins.
    ///
    /// If the first candidate has a session, fallbacks without one are removed: they do not know the conversation.
    async fn resume_sessions(
        &self,
        conversation: &Conversation,
        store: &Store,
        request: &mut RunRequest,
    ) -> anyhow::Result<Resumed> {
        if self.starts_over {
            forget(conversation, store).await?;
        }
        let candidates = mem::take(&mut request.candidates);
        let mut sessions = BTreeMap::new();
        let mut locks = Vec::new();
        if let Some(first) = candidates.first() {
            let session = known_session(store, conversation, first.provider()).await?;
            sessions.insert(first.provider().to_owned(), session);
        }
        let begins = sessions.values().all(Option::is_none);
        let resumable = |candidate: &&Candidate| candidate.runtime.capabilities().resume;
        let providers = candidates.iter().filter(resumable).map(Candidate::provider);
        // In the same order in all processes, so that no two wait for each other.
        for provider in providers.collect::<BTreeSet<_>>() {
            let session = if begins {
                let lock_or_session = self.begin_session(store, conversation, provider).await?;
                match lock_or_session {
                    SessionOrLock::Session(session) => Some(*session),
                    SessionOrLock::Lock(lock) => {
                        locks.push(lock);
                        None
                    }
                }
            } else {
                known_session(store, conversation, provider).await?
            };
            sessions.insert(provider.to_owned(), session);
        }
        let mut known = false;
        let mut left_out = Vec::new();
        for (number, mut candidate) in candidates.into_iter().enumerate() {
            if let Some(Some(session)) = sessions.get(candidate.provider()) {
                request::same_directory(session, &candidate, conversation)?;
                candidate.params.session_id = Some(session.session_id.clone());
                known |= number == 0;
            } else if known {
                left_out.push(left_out_message(&candidate));
                continue;
            }
            request.candidates.push(candidate);
        }
        if !self.warnings.are_off() {
            for warning in left_out {
                self.warnings.add(warning);
            }
        }
        // A provider that was left out begins no session.
        let is_used = |lock: &SessionLock| {
            let mut used = request.candidates.iter().map(Candidate::provider);
            used.any(|provider| provider == lock.key().provider)
        };
        locks.retain(is_used);
        let sessions = sessions.into_values().flatten().collect();
        Ok(Resumed { locks, sessions })
    }

    /// Returns the right to begin a session, or the session that another run has begun meanwhile.
    async fn begin_session(
        &self,
        store: &Store,
        conversation: &Conversation,
        provider: &str,
    ) -> anyhow::Result<SessionOrLock> {
        let key = conversation.with(provider);
        loop {
            let found = store.session_or_lock(&key, BEGIN_LIMIT).await;
            match found.context("--session-key")? {
                // A run that starts over goes its own way.
                SessionOrLock::Session(_) if self.starts_over => store.remove_session(&key).await?,
                found => return Ok(found),
            };
        }
    }

    /// Warns of the first error. A quiet run warns only if the user named the store.
    pub(crate) fn warn(&self, errors: &[StoreError]) {
        if let Some(error) = errors
            .first()
            .filter(|_| self.named || !self.warnings.are_off())
        {
            let warning = format!(
                "the history of this run is incomplete: {error} (TEAMSTER_STORE=off disables the history)"
            );
            if self.named {
                // Also where a quiet command would drop the collected ones.
                crate::warn(&[warning]);
            } else {
                self.warnings.add(warning);
            }
        }
    }

    /// Returns the collected warnings since the last call.
    pub(crate) fn take_warnings(&self) -> Vec<String> {
        match &self.warnings {
            Warnings::Collected(warnings) => mem::take(&mut lock(warnings)),
            Warnings::Printed | Warnings::Off => Vec::new(),
        }
    }
}

/// Where warnings go.
pub(crate) enum Warnings {
    /// They are printed on stderr.
    Printed,
    /// Only warnings about a store that the user has named are printed.
    Off,
    /// They are collected, for the process that has started this one.
    Collected(Mutex<Vec<String>>),
}

impl Warnings {
    /// Returns how a command at a terminal warns.
    pub(crate) fn unless(quiet: bool) -> Self {
        if quiet { Self::Off } else { Self::Printed }
    }

    fn are_off(&self) -> bool {
        matches!(self, Self::Off)
    }

    fn add(&self, warning: String) {
        match self {
            Self::Printed | Self::Off => crate::warn(&[warning]),
            Self::Collected(warnings) => lock(warnings).push(warning),
        }
    }
}

/// Looks up the session of a conversation.
async fn known_session(
    store: &Store,
    conversation: &Conversation,
    provider: &str,
) -> Result<Option<SessionRecord>, StoreError> {
    let key = conversation.with(provider);
    let session = timeout(OPEN_LIMIT_WITH_KEY, store.session(&key)).await;
    session.unwrap_or_else(|_| Err(slow(store, "look up a session", OPEN_LIMIT_WITH_KEY)))
}

/// Deletes the sessions of a conversation with all agents.
async fn forget(conversation: &Conversation, store: &Store) -> Result<(), StoreError> {
    let part = |part: &Option<String>| part.clone().unwrap_or_default();
    let filter = SessionFilter::default()
        .channel(part(&conversation.channel))
        .user(part(&conversation.user))
        .thread(part(&conversation.thread));
    for session in store.sessions(&filter).await? {
        store.remove_session(&session.key).await?;
    }
    Ok(())
}

fn slow(store: &Store, doing: &'static str, limit: Duration) -> StoreError {
    StoreError::Slow {
        doing,
        place: store.place(),
        seconds: limit.as_secs(),
    }
}

fn left_out_message(candidate: &Candidate) -> String {
    format!(
        "{} does not know this conversation and is left out as a fallback",
        candidate.provider()
    )
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn the_command_that_starts_a_conversation_over_is_complete() {
        let store = Some("/my files/store.db");
        let key = Some("slack:it's me");
        let history = History::new(store, key, None, Warnings::Off).unwrap();
        let conversation = history.conversation.as_ref().unwrap();
        let command = history.new_conversation(conversation, "claude", Path::new("/my work"));
        let words = shell_words::split(&command).unwrap();
        let Command::Run(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("{command}");
        };
        assert_eq!(
            (&*args.provider, args.prompt.as_deref()),
            ("claude", Some("Hello"))
        );
        assert_eq!(args.process.cwd.as_deref(), Some(Path::new("/my work")));
        let key: Conversation = args.session.session_key.unwrap().parse().unwrap();
        assert_eq!((&key, args.session.new), (conversation, true));
        assert_eq!(args.store.url.as_deref(), Some("/my files/store.db"));
    }
}
