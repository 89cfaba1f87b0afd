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
const PATIENCE: Duration = Duration::from_secs(3);

/// Limit for the store of a run with a session key, which needs the store.
pub(super) const PATIENCE_WITH_A_KEY: Duration = Duration::from_secs(10);

/// Settings of a run's history and conversation.
pub(crate) struct History {
    place: Option<String>,
    /// Set if the user named the store.
    named: bool,
    quiet: bool,
    conversation: Option<Conversation>,
}

/// An open store and the recorder that writes to it.
#[derive(Clone)]
pub(crate) struct Kept {
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
        let place = store::location(store);
        let conversation = key.map(str::parse).transpose()?;
        if conversation.is_some() && place.is_none() {
            bail!(
                "--session-key needs a place to keep sessions: name one with --store or \
                 TEAMSTER_STORE"
            );
        }
        if place.is_none() && store.url.is_none() && !quiet {
            crate::warn(&[
                "this run has no place in the history: neither XDG_STATE_HOME nor HOME is set; name a place \
                 with --store or TEAMSTER_STORE (`off` keeps none)"
                    .to_owned(),
            ]);
        }
        if let Some(id) = run_id {
            check_run_id(id).context("--run-id")?;
        }
        Ok(Self {
            place,
            named: store.url.is_some(),
            quiet,
            conversation,
        })
    }

    /// Opens the store and resumes the sessions of the conversation.
    ///
    /// Without a conversation, a store that cannot be used only leaves the run out of the history. Every error is a
    /// usage error: nothing has been started.
    pub(super) async fn prepare(&self, request: &mut RunRequest) -> anyhow::Result<Option<Kept>> {
        let Some(place) = &self.place else {
            return Ok(None);
        };
        let patience = match self.conversation {
            Some(_) => PATIENCE_WITH_A_KEY,
            None => PATIENCE,
        };
        let deadline = Instant::now() + patience;
        let opened = async {
            let store = Store::open_within(place, patience).await?;
            let taken = match &request.run_id {
                Some(id) => {
                    let exists = timeout_at(deadline, store.run_exists(id)).await;
                    exists.unwrap_or_else(|_| Err(slow(&store, "look up a run", patience)))?
                }
                None => false,
            };
            Ok((store, taken))
        };
        let (store, taken) = match opened.await {
            Ok(opened) => opened,
            Err(error) if self.conversation.is_some() => return Err(StoreError::into(error)),
            Err(error) => {
                self.complain(&[error]);
                return Ok(None);
            }
        };
        if let Some(id) = request.run_id.as_ref().filter(|_| taken) {
            bail!(
                "--run-id: there is a run `{id}` in {} already: give every run an id of its own, \
                 or leave it out",
                store.place()
            );
        }
        let mut recorder = Recorder::new(store.clone());
        if let Some(conversation) = &self.conversation {
            self.writable(&store, deadline).await?;
            self.go_on(conversation, &store, request).await?;
            recorder = recorder.conversation(conversation.clone());
        }
        Ok(Some(Kept { store, recorder }))
    }

    /// Opens the store for the turns of a session. A store that cannot be used only leaves them out of the history.
    pub(crate) async fn of_session(&self) -> Option<Kept> {
        let place = self.place.as_ref()?;
        match Store::open_within(place, PATIENCE).await {
            Ok(store) => {
                let mut recorder = Recorder::new(store.clone());
                if let Some(conversation) = &self.conversation {
                    recorder = recorder.conversation(conversation.clone());
                }
                Some(Kept { store, recorder })
            }
            Err(error) => {
                self.complain(&[error]);
                None
            }
        }
    }

    /// Returns the session of the conversation with this provider, if there is one.
    ///
    /// A session of another directory is an error: it cannot be resumed in this one.
    pub(crate) async fn session(
        &self,
        kept: Option<&Kept>,
        provider: &str,
        directory: &Path,
    ) -> Result<Option<String>, AgentError> {
        let Some(conversation) = &self.conversation else {
            return Ok(None);
        };
        let refused = |problem: String| AgentError::refused("session_key", problem);
        let Some(kept) = kept else {
            return Err(refused("the store of sessions cannot be used".to_owned()));
        };
        let found = kept.store.session(&conversation.with(provider)).await;
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
    async fn writable(&self, store: &Store, deadline: Instant) -> anyhow::Result<()> {
        let written = timeout_at(deadline, store.expire()).await;
        let slow = || Err(slow(store, "write to it", PATIENCE_WITH_A_KEY));
        written
            .unwrap_or_else(|_| slow())
            .map(drop)
            .context("--session-key: the conversation could not be kept, so nothing was started")
    }

    /// Sets each candidate's session of the conversation.
    ///
    /// If the first candidate has a session, fallbacks without one are removed: they do not know the conversation.
    async fn go_on(
        &self,
        conversation: &Conversation,
        store: &Store,
        request: &mut RunRequest,
    ) -> anyhow::Result<()> {
        let mut known = false;
        let mut left_out = Vec::new();
        for (number, mut candidate) in mem::take(&mut request.candidates).into_iter().enumerate() {
            let key = conversation.with(candidate.provider());
            let session = timeout(PATIENCE_WITH_A_KEY, store.session(&key)).await;
            let session = session
                .unwrap_or_else(|_| Err(slow(store, "look up a session", PATIENCE_WITH_A_KEY)))?;
            if let Some(session) = session {
                request::same_directory(&session, &candidate, conversation)?;
                candidate.params.session_id = Some(session.session_id);
                known |= number == 0;
            } else if known {
                left_out.push(stranger(&candidate));
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
    pub(crate) fn complain(&self, errors: &[StoreError]) {
        if let Some(error) = errors.first().filter(|_| self.named || !self.quiet) {
            crate::warn(&[format!(
                "the history of this run is not complete: {error} (TEAMSTER_STORE=off keeps none)"
            )]);
        }
    }
}

fn slow(store: &Store, doing: &'static str, patience: Duration) -> StoreError {
    StoreError::Slow {
        doing,
        place: store.place(),
        seconds: patience.as_secs(),
    }
}

fn stranger(candidate: &Candidate) -> String {
    format!(
        "{} does not know this conversation and is left out as a fallback",
        candidate.provider()
    )
}
