//! The runs of a fleet as a service.

mod again;
mod changes;
mod continued;
mod files;
mod list;
mod send;
mod submit;
mod title;

use std::sync::Arc;
use std::time::Duration;

use futures_core::stream::BoxStream;
use teamster_api::history::{ForgetRuns, Forgotten};
use teamster_api::{
    Accepted, AppliedChanges, Change, Command, DiffQuery, DiscardedChanges, FileList, FileManifest,
    KeptSpec, LiveState, LiveStatus, LogLine, NEW_RUN_ID_RULE, ProblemCode, Reply, RunInfo,
    RunList, RunQuery, RunService, RunSummary, RunView, ServiceError, Spec, TraceContext,
    ViewState, WorkspaceDiff, either, is_new_run_id,
};
use teamster_core::AgentError;
use teamster_core::text::one_line;
use tokio::time::Instant;

use crate::Fleet;
use crate::follow::follow;
use crate::names::{RunKey, token};
use crate::presence::{PresentWorker, Reports, check_agent, check_bypass};
use crate::protocol::State;
use crate::record::Record;
use crate::records::not_found;
use crate::wire::{Answered, Question};

pub use again::Rerun;
pub(crate) use files::DIFF;
pub(crate) use submit::Full;

/// The pool of runs that name none.
pub const DEFAULT_POOL: &str = "default";

/// Time for which a new run is placed by what is known of the workers. It is never refused by that.
const RECENT: Duration = Duration::from_secs(2);

/// The runs of one owner in a fleet. Clones share the connection.
///
/// Needs a Tokio runtime.
#[derive(Debug, Clone)]
pub struct FleetRuns {
    fleet: Fleet,
    pool: String,
    trace: Option<TraceContext>,
}

impl FleetRuns {
    /// Creates the service of the owner's runs. New ones go to the pool [`DEFAULT_POOL`].
    pub fn new(fleet: &Fleet) -> Self {
        Self {
            fleet: fleet.clone(),
            pool: DEFAULT_POOL.to_owned(),
            trace: None,
        }
    }

    /// Sets the place in a trace of new runs that name none. Default: none.
    #[must_use]
    pub fn trace(mut self, trace: Option<TraceContext>) -> Self {
        self.trace = trace;
        self
    }

    /// Sets the pool of new runs.
    ///
    /// # Errors
    ///
    /// Fails if the name cannot be in a subject.
    pub fn pool(mut self, pool: &str) -> Result<Self, ServiceError> {
        self.pool = token("pool", pool)?;
        Ok(self)
    }

    fn key(&self, run: &str) -> RunKey {
        RunKey::new(&self.fleet.owner, run)
    }

    /// Returns the key of a run that is about to be submitted.
    async fn unused(&self, id: &str) -> Result<RunKey, ServiceError> {
        if !is_new_run_id(id) {
            return Err(not_found(id));
        }
        let key = self.key(id);
        if self.fleet.read(&key).await?.record.is_some() {
            return Err(exists(id));
        }
        Ok(key)
    }

    /// Returns the worker for which a new run waits; `None` if that is any of its pool.
    async fn check_spec(&self, spec: &Spec) -> Result<Option<String>, ServiceError> {
        check_spec(spec)?;
        let named = spec.placement().machine.as_deref();
        let named = named.map(|name| token("placement", name)).transpose()?;
        let began = Instant::now();
        let recent = began.checked_sub(RECENT).unwrap_or(began);
        let workers = self.fleet.workers_since(recent).await?;
        let check = |workers: &[PresentWorker]| {
            check_agent(workers, spec.provider()).and_then(|()| check_bypass(workers, spec))
        };
        if check(&workers).is_err() {
            // Other workers may have come since.
            check(&self.fleet.workers_since(began).await?)?;
        }
        let named = self.fleet.place_with_worktree(spec, named).await?;
        self.fleet.place(spec, named).await
    }

    fn pool_of(&self, spec: &Spec) -> Result<String, ServiceError> {
        match &spec.placement().pool {
            Some(pool) => token("placement", pool),
            None => Ok(self.pool.clone()),
        }
    }

    async fn submit(&self, run: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        let (spec, trace) = without_trace(spec);
        if !is_new_run_id(run) {
            let problem = format!("\"{}\" cannot be one: {NEW_RUN_ID_RULE}", one_line(run));
            return Err(AgentError::refused("run_id", problem).into());
        }
        let key = self.key(run);
        let pool = self.pool_of(&spec)?;
        let mut record = Record::new(&pool, &spec);
        record.trace = trace.or_else(|| self.trace.clone());
        match self.fleet.read(&key).await?.record {
            // A repetition: it was checked when it was submitted.
            Some(known) if known.has_spec(&pool, &spec) => record.machine = known.machine,
            Some(_) => return Err(exists(run)),
            None => record.machine = self.check_spec(&spec).await?,
        }
        if let Some(json) = record.split()? {
            self.fleet.put_spec(&key, &json).await?;
        }
        self.fleet.submit(&key, &record, Full::Refuses).await
    }

    /// Returns the view of a run: its machine's, or what the record has.
    async fn view(&self, run: &str) -> Result<RunView, ServiceError> {
        let key = self.key(run);
        let (_, record) = self.fleet.find(&key).await?;
        let is_large = record.spec_file.is_some();
        let mut view = self.view_of(&key, record.clone()).await?;
        // The machine does not listen any more: the run may just have ended.
        if view.summary.state != ViewState::Ended {
            let (_, now) = self.fleet.find(&key).await?;
            if now.state.is_final() {
                view = self.view_of(&key, now).await?;
            }
        }
        if is_large && let Ok(Spec::Run(spec)) = self.fleet.spec_of(&key, &record).await {
            view.prompt = Some(spec.prompt);
        }
        Ok(view)
    }

    async fn view_of(&self, key: &RunKey, record: Record) -> Result<RunView, ServiceError> {
        let record = self.without_stale_claim(record).await?;
        let is_started = record.state == State::Started;
        let mut is_silent = false;
        if is_started {
            match self.fleet.ask(key, Question::Show).await {
                Ok(Some(Answered::View(mut view))) => {
                    view.summary = Arc::new(record.dated(Arc::unwrap_or_clone(view.summary)));
                    if view.summary.state == ViewState::Ended {
                        // Its results and the end of its log are on their way to the fleet.
                        let summary = Arc::make_mut(&mut view.summary);
                        summary.state = ViewState::Running;
                        (summary.status, summary.error, summary.duration_ms) = (None, None, None);
                        (summary.attempts, summary.workspace) = (None, None);
                        let now = record.times.started.unwrap_or_default();
                        summary.live = Some(LiveStatus::new(LiveState::NotAnswering, now));
                        view.result = None;
                    }
                    view.prompt = view.prompt.or_else(|| record.prompt());
                    return Ok(*view);
                }
                Ok(None) => is_silent = true,
                // Its runner is being started, or the answer is late: the server may not know yet that the machine is gone.
                _ => {}
            }
        }
        let mut view = record.view(&key.run);
        if record.state == State::Queued {
            let why = self.fleet.known().await?.why(key, &record);
            Arc::make_mut(&mut view.summary).queue = Some(why);
        }
        if is_started {
            let summary = Arc::make_mut(&mut view.summary);
            let started = record.times.started.unwrap_or_default();
            // Nothing is written: each reader can see it.
            match self.reports(&record).await? {
                Reports::NotSince(at) => {
                    summary.state = ViewState::Unknown;
                    summary.since = Some(at.map_or(started, |at| at.max(started)));
                }
                // It has just come back, or is about to end.
                Reports::Yes if is_silent => {
                    summary.live = Some(LiveStatus::new(LiveState::NotAnswering, started));
                }
                Reports::Yes => {}
            }
        }
        if record.state.is_final() && view.result.is_none() {
            // Too long for the record: it is in the log.
            view.result = self.last_result(key).await?;
        }
        Ok(view)
    }

    /// Returns a record as it is shown: with the claim of a worker that does not report, a run waits as without one. The next
    /// worker puts it into the queue again.
    async fn without_stale_claim(&self, mut record: Record) -> Result<Record, ServiceError> {
        if record.state == State::Claimed
            && matches!(self.reports(&record).await?, Reports::NotSince(_))
        {
            (record.state, record.worker) = (State::Queued, None);
        }
        Ok(record)
    }

    /// Finds out whether the worker of a claimed or started run reports.
    async fn reports(&self, record: &Record) -> Result<Reports, ServiceError> {
        match &record.worker {
            Some(worker) => self.fleet.reports(worker, record.worker_machine).await,
            None => Ok(Reports::NotSince(None)),
        }
    }

    async fn last_result(
        &self,
        key: &RunKey,
    ) -> Result<Option<Box<teamster_core::RunResult>>, ServiceError> {
        let mut log = follow(self.fleet.clone(), key.clone(), 0);
        let mut last = None;
        while let Some(line) = crate::records::next(&mut log).await {
            last = line?.result();
        }
        Ok(last)
    }

    async fn summary_of(&self, key: &RunKey, record: Record) -> Arc<RunSummary> {
        let fallback = Arc::new(record.summary(&key.run));
        if !matches!(record.state, State::Claimed | State::Started) {
            return fallback;
        }
        self.view_of(key, record)
            .await
            .map_or(fallback, |view| view.summary)
    }
}

/// Refuses what a fleet does not carry out.
pub(crate) fn check_spec(spec: &Spec) -> Result<(), ServiceError> {
    either!(spec, spec => spec.check())?;
    if let Some(name) = either!(spec, spec => &spec.trusted).names().first() {
        let problem = "a fleet does not take this along: the worker's owner decides about it";
        return Err(AgentError::refused(*name, problem).into());
    }
    Ok(())
}

/// Takes the place in a trace out of the variables of a spec: a repetition may have another one, and it goes along.
fn without_trace(mut spec: Spec) -> (Spec, Option<TraceContext>) {
    let trusted = either!(&mut spec, spec => &mut spec.trusted);
    let trace = TraceContext::take(&mut trusted.env);
    (spec, trace)
}

fn exists(run: &str) -> ServiceError {
    let message = format!("a run \"{run}\" exists already: give every run an id of its own");
    ServiceError::new(ProblemCode::RunExists, message)
}

#[async_trait::async_trait]
impl RunService for FleetRuns {
    async fn start(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        self.submit(id, spec).await
    }

    async fn started(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        let (spec, _) = without_trace(spec);
        let (_, record) = self.fleet.find(&self.key(id)).await?;
        if record.has_spec(&self.pool_of(&spec)?, &spec) {
            return Ok(Accepted::existed());
        }
        Err(exists(id))
    }

    async fn check(&self, spec: &Spec) -> Result<(), ServiceError> {
        let (spec, _) = without_trace(spec.clone());
        self.check_spec(&spec).await.map(drop)
    }

    async fn resolve(&self, prefix: &str) -> Result<RunInfo, ServiceError> {
        self.resolved(prefix).await
    }

    async fn show(&self, id: &str) -> Result<RunView, ServiceError> {
        self.view(id).await
    }

    async fn list(&self, query: RunQuery) -> Result<RunList, ServiceError> {
        self.page(query).await
    }

    fn follow(&self, id: &str, after: u64) -> BoxStream<'static, Result<LogLine, ServiceError>> {
        follow(self.fleet.clone(), self.key(id), after)
    }

    fn changes(&self) -> BoxStream<'static, Result<Change, ServiceError>> {
        self.clone().all_changes()
    }

    async fn send(&self, id: &str, command: Command) -> Result<Reply, ServiceError> {
        self.command(id, command).await
    }

    async fn rename(&self, id: &str, title: Option<String>) -> Result<(), ServiceError> {
        self.give_title(id, title).await
    }

    async fn spec(&self, id: &str) -> Result<KeptSpec, ServiceError> {
        self.spec_of(id).await
    }

    async fn forget(&self, request: ForgetRuns) -> Result<Forgotten, ServiceError> {
        self.forget_runs(request).await
    }

    async fn diff(&self, id: &str, query: DiffQuery) -> Result<WorkspaceDiff, ServiceError> {
        self.changes_of(id, query).await
    }

    async fn apply(&self, id: &str) -> Result<AppliedChanges, ServiceError> {
        self.apply_changes(id).await
    }

    async fn discard(&self, id: &str) -> Result<DiscardedChanges, ServiceError> {
        self.discard_changes(id).await
    }

    async fn withdraw(&self, id: &str) -> Result<(), ServiceError> {
        let key = self.unused(id).await?;
        self.fleet.withdraw_files(&key).await
    }

    async fn files(&self, id: &str) -> Result<FileList, ServiceError> {
        self.files_of(id).await
    }

    async fn manifest(&self, id: &str, name: &str) -> Result<FileManifest, ServiceError> {
        self.manifest_of(id, name).await
    }

    async fn read_part(&self, id: &str, name: &str, number: u32) -> Result<Vec<u8>, ServiceError> {
        self.part_of(id, name, number).await
    }

    async fn offer(&self, id: &str, manifest: FileManifest) -> Result<Vec<u32>, ServiceError> {
        let key = self.unused(id).await?;
        self.fleet.offer_file(&key, manifest).await
    }

    async fn write_part(
        &self,
        id: &str,
        name: &str,
        number: u32,
        content: Vec<u8>,
    ) -> Result<(), ServiceError> {
        let key = self.key(id);
        self.fleet
            .write_file_part(&key, name, number, content)
            .await
    }
}
