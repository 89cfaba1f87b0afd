//! Access to the history of runs, in a local store or on a server.

use anyhow::{anyhow, bail};
use teamster::store::Store;
use teamster_api::history::{ForgetRuns, Forgotten, RunFilter, RunRecord, RunState};
use teamster_api::{
    PendingRequest, ProblemCode, RunEvent, RunHandle, RunLogEntry, ServiceError, session_of_turn,
};

use crate::args::StoreArgs;
use crate::exit_code::of_service;
use crate::remote::Machine;
use crate::{store, words};

/// A history of runs.
pub(super) struct History {
    machine: Machine,
    /// The store of this machine's history, if there is one.
    store: Option<Store>,
}

impl History {
    /// Opens the store that the arguments select. With `--remote`, the server's history is used.
    pub(super) async fn open(machine: &Machine, args: &StoreArgs) -> anyhow::Result<Self> {
        let store = if machine.is_here() {
            store::open(args).await?
        } else {
            None
        };
        Ok(Self::of(machine, store))
    }

    /// Opens the history as [`Self::open`] does, but allows that no store is configured.
    pub(super) async fn open_if_any(machine: &Machine, args: &StoreArgs) -> anyhow::Result<Self> {
        if machine.is_here() && teamster_host::store_location(args.url.as_deref()).is_none() {
            return Ok(Self::of(machine, None));
        }
        Self::open(machine, args).await
    }

    fn of(machine: &Machine, store: Option<Store>) -> Self {
        Self {
            machine: machine.with_store(store.clone()),
            store,
        }
    }

    /// Returns whether there is no store.
    pub(super) fn is_missing(&self) -> bool {
        self.is_here() && self.store.is_none()
    }

    /// Returns whether it is that of this machine.
    pub(super) fn is_here(&self) -> bool {
        self.machine.is_here()
    }

    /// Returns the location for messages.
    pub(super) fn location(&self) -> String {
        match (self.machine.url(), &self.store) {
            (Some(url), _) => url.to_owned(),
            (None, Some(store)) => store.location(),
            (None, None) => "the history".to_owned(),
        }
    }

    /// Calls this with the history, and closes that at its end.
    pub(super) async fn used_by<T>(
        self,
        user: impl AsyncFnOnce(&Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let done = user(&self).await;
        if let Some(store) = &self.store {
            teamster_host::close_store(store).await;
        }
        done
    }

    /// Returns the selected runs, newest first.
    pub(super) async fn list(&self, filter: RunFilter) -> anyhow::Result<Vec<RunRecord>> {
        let directory = filter.working_directory.as_deref();
        if !self.is_here() && directory.is_some_and(|it| it.to_str().is_none()) {
            bail!("--cwd: with --remote, a directory needs a name of UTF-8");
        }
        Ok(self.machine.agents().history(filter).await?)
    }

    /// Returns the run with this id or unique prefix. An unknown one is an error.
    pub(super) async fn find(&self, id: &str) -> anyhow::Result<RunRecord> {
        match self.machine.agents().history_of(id).await {
            Err(error) if error.code == Some(ProblemCode::RunNotFound) => Err(self.missing(id)),
            found => Ok(found?),
        }
    }

    fn missing(&self, id: &str) -> anyhow::Error {
        anyhow!(
            "no run \"{}\" in {}: `{} runs list` shows the runs",
            words::one_line(id),
            self.location(),
            crate::global::typed(),
        )
    }

    /// Adds the prompt of a detached run, or of a turn of a detached session, to its record. Returns the requests that it
    /// waits for.
    pub(super) async fn look_up(&self, run: &mut RunRecord) -> Vec<PendingRequest> {
        let runs = self.machine.runs();
        if let Ok(view) = runs.outline(&run.run_id).await {
            run.prompt = view.prompt.or(run.prompt.take());
            return view.summary.requests.clone();
        }
        let Some((session, _)) = session_of_turn(&run.run_id) else {
            return Vec::new();
        };
        let session = RunHandle::new(runs, session);
        let Ok(view) = session.outline().await else {
            return Vec::new();
        };
        if run.prompt.is_none() {
            run.prompt = prompt_of_turn(&session, &run.run_id, view.summary.seq).await;
        }
        // One turn at a time is in progress, and only a turn has requests.
        match run.status {
            RunState::Running => view.summary.requests.clone(),
            _ => Vec::new(),
        }
    }

    /// Gives the run with this id or unique prefix another title.
    pub(super) async fn rename(&self, id: &str, title: Option<String>) -> anyhow::Result<()> {
        let runs = self.machine.runs();
        let id = match runs.resolve(id).await {
            Ok(run) => run.run_id,
            Err(error) if error.code == Some(ProblemCode::RunNotFound) => {
                self.find(id).await?.run_id
            }
            Err(error) => return Err(error.into()),
        };
        (runs.rename(&id, title).await).map_err(of_service)
    }

    /// Deletes the selected runs.
    pub(super) async fn forget(&self, request: ForgetRuns) -> anyhow::Result<Forgotten> {
        let deleted = self.machine.runs().forget(request).await;
        deleted.map_err(|error| self.with_step(error))
    }

    /// Returns the error of runs that are not deleted, with the next step.
    fn with_step(&self, error: ServiceError) -> anyhow::Error {
        match (error.code, &error.run_id) {
            (Some(ProblemCode::RunNotFound), Some(id)) => self.missing(id),
            (Some(ProblemCode::RunLive), Some(id)) => {
                let teamster = crate::global::typed();
                anyhow!("the run `{id}` is live: stop it with `{teamster} cancel {id}` first")
            }
            _ => error.into(),
        }
    }
}

/// Returns the prompt of a turn from the log of its session, whose newest entry has the number `last`.
async fn prompt_of_turn(session: &RunHandle, turn: &str, last: u64) -> Option<String> {
    let mut log = session.follow(0);
    let mut seq = 0;
    while seq < last {
        let line = log.next().await?.ok()?;
        seq = line.seq();
        if line.type_name() == "user:message"
            && let Ok(RunLogEntry::Run(entry)) = line.entry()
            && let RunEvent::UserMessage {
                run_id,
                text,
                steer: false,
                ..
            } = entry.event
            && *run_id == *turn
        {
            return Some(text);
        }
    }
    None
}
