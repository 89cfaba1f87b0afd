//! The store of a run: its history entry and its conversation.

mod kept;

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use teamster_api::KeptTexts;
use teamster_core::AgentError;
use teamster_core::sync::lock;
use teamster_orchestrator::Candidate;
use teamster_store::{
    Conversation, Recorder, SessionFilter, SessionLock, SessionOrLock, SessionRecord, Store,
    StoreError, check_run_id,
};
use tokio::time::{Instant, timeout, timeout_at};

use crate::request::{self, RunAgent};
use crate::{Warning, state, store};
pub use kept::KeptHistory;
pub(crate) use kept::OpenHistory;

/// Limit for opening the store of a run without a session key. Beyond it, the run is left out of the history.
const OPEN_LIMIT: Duration = Duration::from_secs(3);

/// Limit for the store of a run with a session key, which needs the store.
const OPEN_LIMIT_WITH_KEY: Duration = Duration::from_secs(10);

/// Time limit of waiting for a session that another run begins with the same key.
const BEGIN_LIMIT: Duration = Duration::from_secs(30);

/// Settings of a run's history and conversation.
pub(crate) struct History {
    location: Option<String>,
    /// Set if the user named the store.
    named: bool,
    warnings: Mutex<Vec<Warning>>,
    conversation: Option<Conversation>,
    /// Forget the conversation's sessions and begin a new one.
    starts_over: bool,
    /// The process ends after the run.
    is_left: bool,
    /// Runs have titles of their prompts.
    has_titles: bool,
    /// It is the place that keeps the prompts.
    has_prompts: bool,
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

impl History {
    /// Creates the settings of a store, else of the default one.
    pub(crate) fn new(
        store: Option<&str>,
        key: Option<&str>,
        run_id: Option<&str>,
    ) -> Result<Self, AgentError> {
        let location = store::location(store);
        let named = store::named(store).is_some();
        let conversation = key
            .map(str::parse)
            .transpose()
            .map_err(|error| failed(&error))?;
        if conversation.is_some() && location.is_none() {
            return Err(AgentError::refused(
                "session_key",
                "a conversation needs a store of sessions: set one with `store` or TEAMSTER_STORE",
            ));
        }
        let mut warnings = Vec::new();
        if location.is_none() && !named {
            warnings.push(Warning::new(
                "this run is not in the history: neither XDG_STATE_HOME nor HOME is set; set a store with \
                 `store` or TEAMSTER_STORE (`off` disables the history)",
            ));
        }
        if let Some(id) = run_id {
            check_run_id(id).map_err(|error| AgentError::refused("run_id", error.to_string()))?;
        }
        Ok(Self {
            location,
            named,
            warnings: Mutex::new(warnings),
            conversation,
            starts_over: false,
            is_left: false,
            has_titles: state::kept_texts()? == KeptTexts::All,
            has_prompts: false,
        })
    }

    /// Keeps the prompts of what has no folder, where prompts are kept: a folder has them in its spec or its log.
    pub(crate) fn with_prompts(mut self, has_no_folder: bool) -> Self {
        self.has_prompts = self.has_titles && has_no_folder;
        self
    }

    /// Forgets the conversation's sessions at the start of the run.
    pub(crate) fn starting_over(mut self, starts_over: bool) -> Self {
        self.starts_over = starts_over;
        self
    }

    /// Leaves the store's file open, because the process ends after the run.
    pub(crate) fn left_at_end(mut self, is_left: bool) -> Self {
        self.is_left = is_left;
        self
    }

    /// Returns `true` if the run has a session key.
    pub(crate) fn has_conversation(&self) -> bool {
        self.conversation.is_some()
    }

    /// Opens the store and resumes the sessions of the conversation. `run_id` is an id that the history must not have yet.
    ///
    /// Without a conversation, a store that cannot be used only leaves the run out of the history.
    pub(crate) async fn open_for_run(
        &self,
        run_id: Option<&str>,
        agents: &mut Vec<RunAgent>,
    ) -> Result<Option<OpenHistory>, AgentError> {
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
            let taken = match run_id {
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
            Err(error) if self.conversation.is_some() => return Err(failed(&error)),
            Err(error) => {
                self.warn(&[error]);
                return Ok(None);
            }
        };
        if let Some(id) = run_id.filter(|_| taken) {
            return Err(AgentError::refused(
                "run_id",
                format!(
                    "a run \"{id}\" already exists in {}: use another id, or leave it out",
                    store.location()
                ),
            ));
        }
        let mut recorder = self.recorder(&store);
        if let Some(conversation) = &self.conversation {
            self.check_writable(&store, deadline).await?;
            let Resumed { locks, sessions } =
                (self.resume_sessions(conversation, &store, agents)).await?;
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
                let mut recorder = self.recorder(&store);
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

    fn recorder(&self, store: &Store) -> Recorder {
        let mut recorder = Recorder::new(store.clone());
        if self.has_titles {
            recorder = recorder.titles_of_prompts();
        }
        if self.has_prompts {
            recorder = recorder.keep_prompts();
        }
        recorder
    }

    /// Returns the session of the conversation with this provider, or the right to begin it.
    ///
    /// A session of another directory is an error: it cannot be resumed in this one. `start_over` is the text in that error
    /// on how a user starts the conversation over.
    pub(crate) async fn session(
        &self,
        open_history: Option<&OpenHistory>,
        provider: &str,
        directory: &Path,
        start_over: &str,
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
        let session = match found.map_err(|error| not_begun(&error))? {
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
                "the folder of the session of \"{conversation}\" is gone ({}): use another key, or {start_over}",
                began.display(),
            ))),
            Some(began) if began != directory => Err(refused(format!(
                "the session of \"{conversation}\" belongs to {}: open that folder, or use another key",
                began.display()
            ))),
            _ => Ok(KeyedSession {
                session_id: Some(session.session_id),
                ..KeyedSession::default()
            }),
        }
    }

    /// Checks that the store is writable; with a read-only one, the conversation would be lost.
    async fn check_writable(&self, store: &Store, deadline: Instant) -> Result<(), AgentError> {
        let written = timeout_at(deadline, store.expire()).await;
        let slow = || Err(slow(store, "write to it", OPEN_LIMIT_WITH_KEY));
        written
            .unwrap_or_else(|_| slow())
            .map(drop)
            .map_err(|error| {
                let problem = format!(
                    "the conversation could not be stored, so nothing was started: {error}"
                );
                AgentError::refused("session_key", problem)
            })
    }

    /// Sets each candidate's session of the conversation. Returns these, and the locks of those that the run begins.
    ///
    /// If the first candidate has a session, fallbacks without one are removed: they do not know the conversation.
    async fn resume_sessions(
        &self,
        conversation: &Conversation,
        store: &Store,
        agents: &mut Vec<RunAgent>,
    ) -> Result<Resumed, AgentError> {
        if self.starts_over {
            (forget(conversation, store).await).map_err(|error| failed(&error))?;
        }
        let candidates = mem::take(agents);
        let mut sessions = BTreeMap::new();
        let mut locks = Vec::new();
        let known_session = async |provider: &str| {
            let session = known_session(store, conversation, provider).await;
            session.map_err(|error| failed(&error))
        };
        if let Some(RunAgent { candidate, .. }) = candidates.first() {
            let session = known_session(candidate.provider()).await?;
            sessions.insert(candidate.provider().to_owned(), session);
        }
        let begins = sessions.values().all(Option::is_none);
        let resumable = |candidate: &&Candidate| candidate.runtime.capabilities().resume;
        let providers = candidates.iter().map(|agent| &agent.candidate);
        let providers = providers.filter(resumable).map(Candidate::provider);
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
                known_session(provider).await?
            };
            sessions.insert(provider.to_owned(), session);
        }
        let mut known = false;
        let mut left_out = Vec::new();
        for (number, mut agent) in candidates.into_iter().enumerate() {
            let candidate = &mut agent.candidate;
            if let Some(Some(session)) = sessions.get(candidate.provider()) {
                request::same_directory(session, candidate, conversation)?;
                candidate.params.session_id = Some(session.session_id.clone());
                known |= number == 0;
            } else if known {
                left_out.push(left_out_message(candidate));
                continue;
            }
            agents.push(agent);
        }
        lock(&self.warnings).extend(left_out.into_iter().map(Warning::new));
        // A provider that was left out begins no session.
        let is_used = |lock: &SessionLock| {
            let mut used = agents.iter().map(|agent| agent.candidate.provider());
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
    ) -> Result<SessionOrLock, AgentError> {
        let key = conversation.with(provider);
        loop {
            let found = store.session_or_lock(&key, BEGIN_LIMIT).await;
            match found.map_err(|error| not_begun(&error))? {
                // A run that starts over goes its own way.
                SessionOrLock::Session(_) if self.starts_over => {
                    let removed = store.remove_session(&key).await;
                    removed.map_err(|error| failed(&error))?;
                }
                found => return Ok(found),
            }
        }
    }

    /// Warns of the first error. About a store that the user has named, the warning is important.
    fn warn(&self, errors: &[StoreError]) {
        if let Some(error) = errors.first() {
            let warning = format!(
                "the history of this run is incomplete: {error} (TEAMSTER_STORE=off disables the history)"
            );
            self.add(if self.named {
                Warning::important(warning)
            } else {
                Warning::new(warning)
            });
        }
    }

    fn add(&self, warning: Warning) {
        lock(&self.warnings).push(warning);
    }

    /// Returns the warnings since the last call.
    pub(crate) fn take_warnings(&self) -> Vec<Warning> {
        mem::take(&mut lock(&self.warnings))
    }
}

/// Returns the refusal of a session key whose session another process begins, or whose store fails.
fn not_begun(error: &StoreError) -> AgentError {
    match error {
        StoreError::SessionBeginning { .. } => {
            AgentError::session_in_use("session_key", error.to_string())
        }
        error => AgentError::refused("session_key", error.to_string()),
    }
}

/// Returns the refusal of a run with a session key whose store fails.
fn failed(error: &StoreError) -> AgentError {
    AgentError::invalid_params(error.to_string())
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
        location: store.location(),
        seconds: limit.as_secs(),
    }
}

fn left_out_message(candidate: &Candidate) -> String {
    format!(
        "{} does not know this conversation and is left out as a fallback",
        candidate.provider()
    )
}
