//! The store of a run: its history entry and its conversation.

use std::mem;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use teamster::AgentError;
use teamster::orchestrator::{Candidate, RunRequest};
use teamster::store::{Conversation, Recorder, Store, StoreError, check_run_id};
use tokio::time::{Instant, timeout, timeout_at};

use super::request;
use crate::args::StoreArgs;
use crate::store;

/// Limit for opening the store of a run without a session key. Beyond it, the run is left out of the history.
const OPEN_LIMIT: Duration = Duration::from_secs(3);

/// Limit for the store of a run with a session key, which needs the store.
pub(super) const OPEN_LIMIT_WITH_KEY: Duration = Duration::from_secs(10);

/// Settings of a run's history and conversation.
pub(crate) struct History {
    location: Option<String>,
    /// Set if the user named the store.
    named: bool,
    quiet: bool,
    conversation: Option<Conversation>,
}

/// An open store and the recorder that writes to it.
#[derive(Clone)]
pub(crate) struct OpenHistory {
    pub(crate) store: Store,
    pub(crate) recorder: Recorder,
}

impl History {
    /// Creates the settings from the arguments. Every error is a usage error.
    pub(crate) fn new(
        store: &StoreArgs,
        key: Option<&str>,
        run_id: Option<&str>,
        quiet: bool,
    ) -> anyhow::Result<Self> {
        let location = store::location(store);
        let conversation = key.map(str::parse).transpose()?;
        if conversation.is_some() && location.is_none() {
            bail!(
                "--session-key needs a store of sessions: set one with --store or TEAMSTER_STORE"
            );
        }
        if location.is_none() && store.url.is_none() && !quiet {
            crate::warn(&[
                "this run is not in the history: neither XDG_STATE_HOME nor HOME is set; set a store with \
                 --store or TEAMSTER_STORE (`off` disables the history)"
                    .to_owned(),
            ]);
        }
        if let Some(id) = run_id {
            check_run_id(id).context("--run-id")?;
        }
        Ok(Self {
            location,
            named: store.url.is_some(),
            quiet,
            conversation,
        })
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
            bail!(
                "--run-id: a run `{id}` already exists in {}: use another id, or leave it out",
                store.place()
            );
        }
        let mut recorder = Recorder::new(store.clone());
        if let Some(conversation) = &self.conversation {
            self.check_writable(&store, deadline).await?;
            self.resume_sessions(conversation, &store, request).await?;
            recorder = recorder.conversation(conversation.clone());
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

    /// Returns the session of the conversation with this provider, if there is one.
    ///
    /// A session of another directory is an error: it cannot be resumed in this one.
    pub(crate) async fn session(
        &self,
        open_history: Option<&OpenHistory>,
        provider: &str,
        directory: &Path,
    ) -> Result<Option<String>, AgentError> {
        let Some(conversation) = &self.conversation else {
            return Ok(None);
        };
        let refused = |problem: String| AgentError::refused("session_key", problem);
        let Some(open_history) = open_history else {
            return Err(refused("the store of sessions cannot be used".to_owned()));
        };
        let found = open_history
            .store
            .session(&conversation.with(provider))
            .await;
        let Some(session) = found.map_err(|error| refused(error.to_string()))? else {
            return Ok(None);
        };
        match &session.working_directory {
            Some(began) if began != directory => Err(refused(format!(
                "the session of `{conversation}` belongs to {}: open that folder, or use another key",
                began.display()
            ))),
            _ => Ok(Some(session.session_id)),
        }
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

    /// Sets each candidate's session of the conversation.
    ///
    /// If the first candidate has a session, fallbacks without one are removed: they do not know the conversation.
    async fn resume_sessions(
        &self,
        conversation: &Conversation,
        store: &Store,
        request: &mut RunRequest,
    ) -> anyhow::Result<()> {
        let mut known = false;
        let mut left_out = Vec::new();
        for (number, mut candidate) in mem::take(&mut request.candidates).into_iter().enumerate() {
            let key = conversation.with(candidate.provider());
            let session = timeout(OPEN_LIMIT_WITH_KEY, store.session(&key)).await;
            let session = session
                .unwrap_or_else(|_| Err(slow(store, "look up a session", OPEN_LIMIT_WITH_KEY)))?;
            if let Some(session) = session {
                request::same_directory(&session, &candidate, conversation)?;
                candidate.params.session_id = Some(session.session_id);
                known |= number == 0;
            } else if known {
                left_out.push(left_out_message(&candidate));
                continue;
            }
            request.candidates.push(candidate);
        }
        if !self.quiet {
            crate::warn(&left_out);
        }
        Ok(())
    }

    /// Warns of the first error. A quiet run warns only if the user named the store.
    pub(crate) fn warn(&self, errors: &[StoreError]) {
        if let Some(error) = errors.first().filter(|_| self.named || !self.quiet) {
            crate::warn(&[format!(
                "the history of this run is incomplete: {error} (TEAMSTER_STORE=off disables the history)"
            )]);
        }
    }
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
