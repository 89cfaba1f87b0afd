//! What is kept of a run, and where.

use std::mem;

use anyhow::{Context, bail};
use teamster::AbortHandle;
use teamster::orchestrator::{Candidate, RunRequest};
use teamster::store::{Conversation, Recorder, Store, StoreError, check_run_id};

use super::request;
use crate::args::RunArgs;
use crate::drive::Feed;
use crate::store;

/// What is kept of a run, and where.
pub(super) struct History {
    place: Option<String>,
    /// The user has said which store it shall be.
    named: bool,
    quiet: bool,
    conversation: Option<Conversation>,
}

/// What keeps account of a run.
pub(super) struct Kept {
    pub(super) store: Store,
    pub(super) recorder: Recorder,
}

impl History {
    /// What the arguments say. Every error is one of usage.
    pub(super) fn asked(args: &RunArgs) -> anyhow::Result<Self> {
        let place = store::place(&args.store);
        let key = args.session.session_key.as_deref();
        let conversation = key.map(str::parse).transpose()?;
        if conversation.is_some() && place.is_none() {
            bail!(
                "--session-key needs a place to keep sessions: name one with --store or \
                 TEAMSTER_STORE"
            );
        }
        if let Some(id) = &args.again.run_id {
            check_run_id(id).context("--run-id")?;
        }
        Ok(Self {
            place,
            named: args.store.url.is_some(),
            quiet: args.output.quiet,
            conversation,
        })
    }

    /// What keeps account of the run, which then goes on with the sessions of its conversation. Without
    /// a conversation a store that cannot be used only costs the run its place in the history. Every
    /// error is one of usage: nothing has been started.
    pub(super) async fn prepare(&self, request: &mut RunRequest) -> anyhow::Result<Option<Kept>> {
        let Some(place) = &self.place else {
            return Ok(None);
        };
        let opened = async {
            let store = Store::open(place).await?;
            let taken = match &request.run_id {
                Some(id) => store.run_exists(id).await?,
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
            self.go_on(conversation, &store, request).await?;
            recorder = recorder.conversation(conversation.clone());
        }
        Ok(Some(Kept { store, recorder }))
    }

    /// Gives each candidate its session of the conversation. Who has none, though the first one has,
    /// would not know what it is about, and is left out.
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
            if let Some(session) = store.session(&key).await? {
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

    /// Tells the first of these. Who asks for quiet does not want to hear of a store of which nothing
    /// was said, but of one that was named.
    pub(super) fn complain(&self, errors: &[StoreError]) {
        if let Some(error) = errors.first().filter(|_| self.named || !self.quiet) {
            crate::warn(&[format!(
                "the history of this run is not complete: {error} (TEAMSTER_STORE=off keeps none)"
            )]);
        }
    }
}

fn stranger(candidate: &Candidate) -> String {
    format!(
        "{} does not know this conversation and is left out as a fallback",
        candidate.provider()
    )
}

/// A run after which the store is closed.
pub(super) struct Closing<F> {
    feed: F,
    store: Option<Store>,
}

impl<F> Closing<F> {
    pub(super) fn new(feed: F, store: Option<Store>) -> Self {
        Self { feed, store }
    }
}

impl<F: Feed> Feed for Closing<F> {
    type Event = F::Event;

    async fn next(&mut self) -> Option<F::Event> {
        let event = self.feed.next().await;
        if event.is_none()
            && let Some(store) = &self.store
        {
            store::close(store).await;
        }
        event
    }

    fn abort_handle(&self) -> AbortHandle {
        self.feed.abort_handle()
    }

    fn exit_code(event: &F::Event) -> Option<u8> {
        F::exit_code(event)
    }
}
