//! Observer that records runs in a store.

mod writer;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use teamster_api::{Outcome, title_of};
use teamster_core::sync::lock;
use teamster_core::text::excerpt;
use teamster_core::{AgentError, ErrorKind, Id, RunResult};
use teamster_orchestrator::{Accepted, RunObserver};

use self::writer::{Entry, Pace, Queue};
use crate::run::HEARTBEAT;
use crate::{Conversation, NewRun, NewSession, SessionLock, Store, StoreError};

/// Default time that a run waits for the database.
const PATIENCE: Duration = Duration::from_secs(2);

/// Maximum size of a kept prompt in bytes. The history is kept until a person removes it, so files that were piped in must
/// not fill it.
const PROMPT_BYTES: usize = 64 << 10;

/// Maximum number of errors kept for [`Recorder::take_errors`].
const KEPT_ERRORS: usize = 100;

/// Records runs in a [`Store`]. An observer for the requests of one conversation.
///
/// A run is in the history from its acceptance on, with a heartbeat every 15 seconds. Its session is recorded as soon
/// as it is known, in the history and for the conversation, if there is one. So a killed process loses nothing. A
/// session that the CLI no longer finds is deleted.
///
/// An error of the database never fails a run. It is kept for [`take_errors`](Self::take_errors) and passed to
/// [`on_error`](Self::on_error).
///
/// A slow database does not delay a run either. After a run has once waited for 2 seconds, its further calls do not
/// wait. Entries are then written in the background, each time on a new connection. Failed writes are retried until a
/// minute after the end of the run. A program that ends before that calls [`settled`](Self::settled) or closes the
/// store.
///
/// The start of a run deletes expired sessions.
///
/// Clones share their state.
#[derive(Clone)]
pub struct Recorder {
    shared: Arc<Shared>,
    conversation: Option<Conversation>,
    session_ttl: Option<Duration>,
    heartbeat: Duration,
    patience: Duration,
    has_titles: bool,
    has_prompts: bool,
    /// Locks of the sessions that this recorder's runs begin.
    locks: Arc<Mutex<Vec<SessionLock>>>,
    /// The last session of each provider that the conversation had for this recorder.
    sessions: Arc<Mutex<Sessions>>,
}

type Sessions = HashMap<String, Id>;

type OnError = Box<dyn Fn(&StoreError) + Send + Sync>;

struct Shared {
    store: Store,
    on_error: Mutex<Option<Arc<OnError>>>,
    errors: Mutex<Vec<StoreError>>,
    runs: Mutex<HashMap<Id, Active>>,
}

/// A run that has not ended.
#[derive(Clone)]
struct Active {
    new: NewRun,
    /// Time of acceptance, in milliseconds since the Unix epoch.
    accepted_at: u64,
    queue: Queue,
    /// The last session of each provider that this run has stored.
    kept: Sessions,
}

teamster_core::debug_fields!(Recorder |it| {
    store: it.shared.store,
    conversation: it.conversation,
});

teamster_core::setters! {
    Recorder {
        /// Sets the conversation whose sessions are recorded.
        some conversation: Conversation,
        /// Sets the time to keep sessions after their last use. Default: that of the store.
        some session_ttl: Duration,
        /// Sets the time that a run waits for the database before it continues without it. Default: 2 s. At the end of a
        /// run it is twice that, for one retry on a new connection.
        set patience: Duration,
    }
}

impl Recorder {
    /// Creates a recorder for this store.
    pub fn new(store: Store) -> Self {
        Self {
            shared: Arc::new(Shared {
                store,
                on_error: Mutex::new(None),
                errors: Mutex::new(Vec::new()),
                runs: Mutex::new(HashMap::new()),
            }),
            conversation: None,
            session_ttl: None,
            heartbeat: HEARTBEAT,
            patience: PATIENCE,
            has_titles: false,
            has_prompts: false,
            locks: Arc::default(),
            sessions: Arc::default(),
        }
    }

    /// Gives a run without a title the first line of its prompt as one ([`title_of`]). Default: of a prompt, only the hash is
    /// kept.
    #[must_use]
    pub fn titles_of_prompts(mut self) -> Self {
        self.has_titles = true;
        self
    }

    /// Keeps the prompt of a run, at most its first 64 KiB. Default: only its hash is kept.
    #[must_use]
    pub fn keep_prompts(mut self) -> Self {
        self.has_prompts = true;
        self
    }

    /// Sets the locks of the sessions that the next run begins ([`Store::session_or_lock`]). All are released once one
    /// of its sessions is stored, at the latest at the end of the run. Clones made before do not have them, and share no
    /// session with this one.
    #[must_use]
    pub fn session_locks(mut self, locks: impl IntoIterator<Item = SessionLock>) -> Self {
        self.locks = Arc::new(Mutex::new(locks.into_iter().collect()));
        self.sessions = Arc::default();
        self
    }

    /// Names a session that the conversation has with this provider and that the next run resumes. If the conversation
    /// is started over meanwhile, its new session is not replaced.
    #[must_use]
    pub fn resumed_session(self, provider: impl Into<String>, session_id: impl Into<Id>) -> Self {
        lock(&self.sessions).insert(provider.into(), session_id.into());
        self
    }

    /// Sets a callback for every error of the database.
    #[must_use]
    pub fn on_error(self, callback: impl Fn(&StoreError) + Send + Sync + 'static) -> Self {
        *lock(&self.shared.on_error) = Some(Arc::new(Box::new(callback)));
        self
    }

    /// Takes the errors of the database since the last call, at most 100.
    pub fn take_errors(&self) -> Vec<StoreError> {
        std::mem::take(&mut *lock(&self.shared.errors))
    }

    /// Sets the interval of heartbeats. Default: [`HEARTBEAT`].
    #[must_use]
    pub fn heartbeat(mut self, every: Duration) -> Self {
        self.heartbeat = every.max(Duration::from_millis(1));
        self
    }

    /// Waits until all entries of this store's recorders are written or given up. Returns `false` after the time limit.
    ///
    /// A run does not wait for a slow store, so a program should call this before it exits. [`Store::close`] does the
    /// same.
    pub async fn settled(&self, at_most: Duration) -> bool {
        self.shared.store.settled(at_most).await
    }

    fn active(&self, run_id: &Id) -> Option<Active> {
        lock(&self.shared.runs).get(run_id).cloned()
    }

    /// Opens the queue of a run's entries.
    fn queue(&self, run_id: &Id, has_row: bool) -> Queue {
        Queue::open(
            self.shared.store.clone(),
            Arc::downgrade(&self.shared),
            run_id,
            has_row,
            Pace {
                patience: self.patience,
                heartbeat: self.heartbeat,
            },
        )
    }

    /// Notes that a run stores this session. Returns the session that it continues, by this run or an earlier one of the
    /// same conversation.
    fn continued(&self, run: Option<&mut Active>, provider: &str, session_id: &Id) -> Option<Id> {
        let note =
            |sessions: &mut Sessions| sessions.insert(provider.to_owned(), Arc::clone(session_id));
        // A run that resumed another session, or none, begins one of its own. Only what the first provider resumed is
        // known.
        let earlier = note(&mut lock(&self.sessions)).filter(|earlier| {
            let resumed = |run: &Active| run.new.session_id.as_deref() == Some(&**earlier);
            let continues = |run: &Active| run.new.provider != provider || resumed(run);
            earlier == session_id || run.as_deref().is_some_and(continues)
        });
        run.and_then(|run| note(&mut run.kept)).or(earlier)
    }

    /// Creates the entry that stores a session for the conversation. It replaces only the one that it continues, if any.
    fn keep(
        &self,
        provider: &str,
        session_id: &str,
        model: Option<&str>,
        directory: Option<PathBuf>,
        continues: Option<Id>,
    ) -> Option<Entry> {
        let conversation = self.conversation.as_ref()?;
        let mut session = NewSession::new(session_id);
        session.model = model.map(str::to_owned);
        session.working_directory = directory;
        session.ttl = self.session_ttl;
        Some(Entry::Keep {
            key: conversation.with(provider),
            session,
            known_at: self.shared.store.now(),
            continues,
        })
    }

    /// Creates the entries that release the locks of all sessions.
    fn unlock(&self) -> Vec<Entry> {
        let released = std::mem::take(&mut *lock(&self.locks));
        released.into_iter().map(Entry::Unlock).collect()
    }

    /// Creates the entries that delete the sessions that CLIs did not find.
    fn forget(&self, outcome: &Outcome, active: Option<&Active>) -> Vec<Entry> {
        let Some(conversation) = &self.conversation else {
            return Vec::new();
        };
        let not_found = |error: &Option<AgentError>| {
            error
                .as_ref()
                .is_some_and(|error| error.kind == ErrorKind::SessionNotFound)
        };
        let mut gone = Vec::new();
        for attempt in &outcome.attempts {
            if not_found(&attempt.error) {
                gone.push((&attempt.provider, attempt.session_id.as_deref()));
            }
        }
        if gone.is_empty() && not_found(&outcome.error) {
            gone.push((&outcome.provider, outcome.session_id.as_deref()));
        }
        let mut entries = Vec::new();
        for (provider, reported) in gone {
            let mut forget = |session_id: Option<&str>, used_before| {
                entries.push(Entry::Forget {
                    key: conversation.with(provider),
                    session_id: session_id.map(str::to_owned),
                    used_before,
                });
            };
            // The id that the CLI reported, and the requested one, which is known only for the first provider.
            let requested = active
                .filter(|active| &active.new.provider == provider)
                .and_then(|active| active.new.session_id.as_deref());
            for session_id in [reported, requested].into_iter().flatten() {
                forget(Some(session_id), None);
            }
            if reported.or(requested).is_none()
                && let Some(active) = active
            {
                // The session existed before this run. A session that was stored since is kept.
                forget(None, Some(active.accepted_at));
            }
        }
        entries
    }
}

impl Shared {
    fn report(&self, error: StoreError) {
        let callback = lock(&self.on_error).clone();
        if let Some(callback) = callback {
            callback(&error);
        }
        let mut errors = lock(&self.errors);
        if errors.len() < KEPT_ERRORS {
            errors.push(error);
        }
    }
}

/// Returns the outcome without its text, so that pending entries hold no copy of a long answer.
fn without_text(outcome: &Outcome) -> Outcome {
    let from = &outcome.result;
    let result = RunResult::default()
        .status(from.status)
        .usage(from.usage)
        .total_cost_usd(from.total_cost_usd)
        .cost_source(from.cost_source)
        .num_turns(from.num_turns)
        .workspace(from.workspace.clone());
    let mut kept = Outcome::new(outcome.run_id.clone(), outcome.provider.clone(), result);
    kept.model.clone_from(&outcome.model);
    kept.session_id.clone_from(&outcome.session_id);
    kept.duration_ms = outcome.duration_ms;
    kept.error.clone_from(&outcome.error);
    kept.attempts.clone_from(&outcome.attempts);
    kept
}

#[async_trait::async_trait]
impl RunObserver for Recorder {
    async fn accepted(&self, run: Accepted<'_>) {
        let mut new = NewRun::from_params(&**run.run_id, run.provider, run.params);
        if self.has_titles && new.title.is_none() {
            new.title = title_of(&run.params.prompt);
        }
        new.conversation = self.conversation.as_ref().map(ToString::to_string);
        new.started_at = Some(run.at_ms);
        let queue = self.queue(run.run_id, true);
        let active = Active {
            new: new.clone(),
            accepted_at: self.shared.store.now(),
            queue: queue.clone(),
            kept: Sessions::new(),
        };
        lock(&self.shared.runs).insert(Arc::clone(run.run_id), active);
        if self.has_prompts {
            new.prompt = Some(excerpt(&run.params.prompt, PROMPT_BYTES));
        }
        queue
            .submit(vec![Entry::Begin(Box::new(new)), Entry::Expire])
            .await;
    }

    async fn session(&self, run_id: &Id, provider: &str, session_id: &Id) {
        let active = self.active(run_id);
        let new = active.as_ref().map(|active| &active.new);
        let model = new
            .filter(|new| new.provider == provider)
            .and_then(|new| new.model.as_deref());
        let directory = new.and_then(|new| new.working_directory.clone());
        let mut entries = vec![Entry::Session {
            provider: provider.to_owned(),
            session_id: Arc::clone(session_id),
        }];
        let continues = {
            let mut runs = lock(&self.shared.runs);
            self.continued(runs.get_mut(run_id), provider, session_id)
        };
        entries.extend(self.keep(provider, session_id, model, directory, continues));
        // Not only its own: other runs would wait for the locks of unused fallbacks until the end of this one.
        entries.extend(self.unlock());
        let queue = active.map_or_else(|| self.queue(run_id, false), |active| active.queue);
        queue.submit(entries).await;
    }

    async fn ended(&self, outcome: &Outcome) {
        let mut active = lock(&self.shared.runs).remove(&outcome.run_id);
        let mut entries = vec![Entry::End(Box::new(without_text(outcome)))];
        let error = outcome.error.as_ref().map(|error| error.kind);
        if let Some(session_id) = &outcome.session_id
            && error != Some(ErrorKind::SessionNotFound)
        {
            let directory = active
                .as_ref()
                .and_then(|active| active.new.working_directory.clone());
            let model = outcome.model.as_deref();
            let provider = &*outcome.provider;
            let continues = self.continued(active.as_mut(), provider, session_id);
            entries.extend(self.keep(provider, session_id, model, directory, continues));
        }
        entries.extend(self.forget(outcome, active.as_ref()));
        entries.extend(self.unlock());
        let queue =
            active.map_or_else(|| self.queue(&outcome.run_id, false), |active| active.queue);
        queue.submit(entries).await;
    }
}
