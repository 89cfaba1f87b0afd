//! The runs of this machine as a service.

mod attached;
mod changes;
mod check;
mod fitted;
mod forget;
mod index;
mod limited;
mod list;
mod progress;
mod results;
mod settle;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use async_stream::try_stream;
use futures_core::stream::BoxStream;
use teamster_api::history::{ForgetRuns, Forgotten};
use teamster_api::{
    Accepted, AppliedChanges, Change, Command, DiffQuery, DiscardedChanges, FileList, FileManifest,
    KeptSpec, LogLine, ProblemCode, Reply, RunInfo, RunList, RunQuery, RunService, RunView,
    ServiceError, Spec, Workspace, WorkspaceDiff, either, is_new_run_id, is_owned_run_id,
};
use teamster_core::AgentError;
use teamster_core::sync::ByName;
use teamster_runner::client::{self, Follow};
use teamster_runner::{Runs, RunsError};
use teamster_store::{Store, check_run_id};
use teamster_workspace::{Mirror, Worktree};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::store::Source;
use crate::text::error_chain;
use crate::{Host, state};
pub use attached::AttachedRun;
use changes::Changes;
use forget::forget_runs;
use index::{Index, not_ended};
pub(crate) use limited::blocking;
use limited::{runner_reply, unlimited};
pub use results::workspace_of;
pub(crate) use results::{folder as result_folder, prune as prune_results};
pub use tasks::SessionTasks;

/// The time in which a run must appear that another process starts with the same id.
const APPEARS: Duration = Duration::from_secs(3);
/// The time in which its workspace must be made.
const MADE: Duration = Duration::from_mins(10);
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Serializes the starts of this process that have the same id.
static STARTS: ByName<Mutex<()>> = ByName::new();

/// The user's runs and sessions with a folder of their own, of whichever process. Clones share what they have read.
///
/// Needs a Tokio runtime.
#[derive(Debug, Clone)]
pub struct LocalRuns {
    host: Host,
    tasks: Option<SessionTasks>,
    index: Arc<Index>,
    changes: Arc<Changes>,
    is_patient: bool,
    /// The runs are those of other owners.
    is_owned: bool,
    store: Source,
}

impl LocalRuns {
    /// Creates the service of a host's runs.
    ///
    /// # Errors
    ///
    /// Fails without a state directory.
    pub fn new(host: &Host) -> Result<Self, AgentError> {
        Ok(Self::over(host, Ok(state::runs()?)))
    }

    /// Creates the service as [`new`](Self::new) does, but without a state directory, only the calls that need it fail.
    pub fn lazy(host: &Host) -> Self {
        Self::over(host, state::runs())
    }

    fn over(host: &Host, runs: Result<Runs, AgentError>) -> Self {
        let index = Arc::new(Index::new(runs));
        Self {
            host: host.clone(),
            tasks: None,
            changes: Arc::new(Changes::new(index.clone())),
            index,
            is_patient: false,
            is_owned: false,
            store: Source::default(),
        }
    }

    /// Sets the store from which ended runs are deleted, which the caller closes; `None` for none. Default: the user's.
    #[must_use]
    pub fn with_store(mut self, store: Option<Store>) -> Self {
        self.store = Source::Given(store);
        self
    }

    /// Waits for the reply to a command as long as the agent needs for it. Default: at most 15 s, which suits a server.
    /// A runner that does not answer at all is an error after seconds in both cases.
    #[must_use]
    pub fn patient(mut self) -> Self {
        self.is_patient = true;
        self
    }

    /// Lets sessions be tasks of this process. Runs have processes of their own all the same.
    #[must_use]
    pub fn with_sessions_here(mut self, tasks: SessionTasks) -> Self {
        self.tasks = Some(tasks);
        self
    }

    /// Starts runs of other owners, and only those: with ids such as `ann@fix-1`, which the user of this machine cannot
    /// give. Default: only runs of the user.
    #[must_use]
    pub fn of_owners(mut self) -> Self {
        self.is_owned = true;
        self
    }

    /// Returns whether this service can start a run with this id.
    fn can_be_new(&self, id: &str) -> bool {
        if self.is_owned {
            is_owned_run_id(id)
        } else {
            is_new_run_id(id)
        }
    }

    /// Starts a run or session that is not there yet.
    async fn carry_out(&self, id: &str, spec: Spec) -> Result<Accepted, AgentError> {
        match (&self.tasks, spec) {
            (Some(tasks), Spec::Session(spec)) => tasks.start(&self.host, id, *spec).await,
            (_, spec) => self.host.carry_out(id, spec).await,
        }
    }

    async fn start_run(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        if !self.can_be_new(id) {
            return Err(RunsError::InvalidId { id: id.to_owned() }.into());
        }
        // In a task of its own: a caller that gives up must not let another start of the id begin before this one is decided.
        let (this, id) = (self.clone(), id.to_owned());
        let others = STARTS.of(&id).lock_owned().await;
        let started = tokio::spawn(async move {
            let _others = others;
            this.start_alone(&id, spec).await
        });
        match started.await {
            Ok(started) => started,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(ServiceError::new(
                    ProblemCode::Internal,
                    "the program is ending",
                )),
            },
        }
    }

    /// Starts a run while no other start of this process has its id.
    async fn start_alone(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        if let Some(accepted) = self.existing(id, &spec).await? {
            return Ok(accepted);
        }
        let (location, is_long) =
            either!(&spec, spec => (spec.location(), spec.workspace.is_some()));
        let parameter = if is_long {
            "workspace"
        } else {
            "working_directory"
        };
        let directory = location.as_ref().and_then(Workspace::path).cloned();
        blocking(move || match directory {
            Some(path) if !path.is_dir() => {
                let problem = format!("no such directory: {}", path.display());
                Err(AgentError::refused(parameter, problem).into())
            }
            _ => Ok(()),
        })
        .await?;
        match self.carry_out(id, spec.clone()).await {
            Ok(accepted) => Ok(accepted),
            Err(error) => self.started_elsewhere(id, &spec, error).await,
        }
    }

    /// Returns the answer for a run that another process has started meanwhile, or is starting; else the error.
    async fn started_elsewhere(
        &self,
        id: &str,
        spec: &Spec,
        error: AgentError,
    ) -> Result<Accepted, ServiceError> {
        let until = Instant::now() + APPEARS;
        let longest = Instant::now() + MADE;
        loop {
            if let Some(accepted) = self.existing(id, spec).await? {
                return Ok(accepted);
            }
            // The other process holds the session or has the worktree before the run appears.
            let now = Instant::now();
            let is_over = now >= until && (now >= longest || !is_being_made(id).await);
            if error.holder() != Some(id) || is_over {
                return Err(of_start(id, error));
            }
            sleep(LOOK_EVERY).await;
        }
    }

    /// Returns the answer for a run that exists with this spec; `None` if the id is free.
    async fn existing(&self, id: &str, spec: &Spec) -> Result<Option<Accepted>, ServiceError> {
        let Some(run) = self.index.get_if_there(id).await? else {
            return Ok(None);
        };
        let kept = blocking(move || Ok(run.spec()?)).await?;
        if let Some(kept) = kept.filter(|kept| state::is_kept(id, spec, kept)) {
            let mut accepted = Accepted::new(kept.warnings);
            accepted.important = kept.important;
            return Ok(Some(accepted.again()));
        }
        Err(RunsError::Exists { id: id.to_owned() }.into())
    }

    /// Fails if a run has this id, or if that cannot be known.
    async fn must_be_free(&self, id: &str) -> Result<(), ServiceError> {
        match self.index.get_if_there(id).await? {
            Some(_) => Err(RunsError::Exists { id: id.to_owned() }.into()),
            None => Ok(()),
        }
    }

    async fn command(&self, id: &str, command: Command) -> Result<Reply, ServiceError> {
        let task = self.tasks.as_ref();
        if let Some(control) = task.and_then(|tasks| tasks.control(id, &command)) {
            return tasks::carry_out(&control, command).await;
        }
        let run = self.index.get(id).await?;
        not_ended(&run).await?;
        let reply = client::command(&run, &command);
        if self.is_patient {
            Ok(reply.await?)
        } else {
            runner_reply(&run, reply).await
        }
    }
}

/// Returns whether a process works on the workspace of a run with this id: a large one takes a while to be made.
async fn is_being_made(id: &str) -> bool {
    let id = id.to_owned();
    let in_use = unlimited(move || {
        let root = state::file(state::WORKTREES);
        Ok(root.is_some_and(|root| Worktree::is_in_use(&root, &id)))
    });
    in_use.await.unwrap_or_default()
}

/// Returns the error of a start. An id that can be one is refused because the history has a run with it.
fn of_start(id: &str, error: AgentError) -> ServiceError {
    if error.parameter() == Some("run_id") && check_run_id(id).is_ok() {
        let mut exists = ServiceError::from(error);
        exists.code = Some(ProblemCode::RunExists);
        return exists;
    }
    error.into()
}

#[async_trait::async_trait]
impl RunService for LocalRuns {
    async fn start(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        self.start_run(id, spec).await
    }

    async fn started(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        let existing = self.existing(id, &spec).await?;
        Ok(existing.ok_or_else(|| RunsError::NotFound { id: id.to_owned() })?)
    }

    async fn check(&self, spec: &Spec) -> Result<(), ServiceError> {
        let (host, spec) = (self.host.clone(), spec.clone());
        blocking(move || Ok(check::check(&host, &spec)?)).await
    }

    async fn resolve(&self, prefix: &str) -> Result<RunInfo, ServiceError> {
        Ok(self.index.find(prefix).await?.info().clone())
    }

    async fn show(&self, id: &str) -> Result<RunView, ServiceError> {
        let run = self.index.get(id).await?;
        self.index.live_view(run).await
    }

    async fn outline(&self, id: &str) -> Result<RunView, ServiceError> {
        let run = self.index.get(id).await?;
        self.index.outline(run).await
    }

    async fn list(&self, query: RunQuery) -> Result<RunList, ServiceError> {
        self.page(query).await
    }

    fn follow(&self, id: &str, after: u64) -> BoxStream<'static, Result<LogLine, ServiceError>> {
        let (index, id) = (self.index.clone(), id.to_owned());
        Box::pin(try_stream! {
            let run = index.get(&id).await?;
            let mut log = blocking(move || Ok(Follow::new(run, after)?)).await?;
            while let Some(line) = log.next().await? {
                yield line;
            }
        })
    }

    fn changes(&self) -> BoxStream<'static, Result<Change, ServiceError>> {
        let changes = self.changes.clone();
        Box::pin(try_stream! {
            let mut state = changes.watch().await?;
            let mut known = state.borrow_and_update().clone();
            yield known.message();
            // The sender is in `changes`.
            while state.changed().await.is_ok() {
                let now = state.borrow_and_update().clone();
                for change in now.changes_since(&known) {
                    yield change;
                }
                known = now;
            }
        })
    }

    async fn send(&self, id: &str, command: Command) -> Result<Reply, ServiceError> {
        self.command(id, command).await
    }

    async fn known_commits(
        &self,
        root: &str,
        offered: Vec<String>,
    ) -> Result<Vec<String>, ServiceError> {
        let root = root.to_owned();
        unlimited(move || {
            let known = Mirror::known(&state::mirrors()?, &root, &offered);
            known.map_err(|error| ServiceError::new(ProblemCode::Internal, error_chain(&error)))
        })
        .await
    }

    async fn offer(&self, id: &str, manifest: FileManifest) -> Result<Vec<u32>, ServiceError> {
        if !self.can_be_new(id) {
            return Err(RunsError::InvalidId { id: id.to_owned() }.into());
        }
        self.must_be_free(id).await?;
        let id = id.to_owned();
        unlimited(move || state::uploads()?.offer(&id, &manifest)).await
    }

    async fn write_part(
        &self,
        id: &str,
        name: &str,
        number: u32,
        content: Vec<u8>,
    ) -> Result<(), ServiceError> {
        let (id, name) = (id.to_owned(), name.to_owned());
        blocking(move || state::uploads()?.write_part(&id, &name, number, &content)).await
    }

    async fn withdraw(&self, id: &str) -> Result<(), ServiceError> {
        let _starts = STARTS.of(id).lock_owned().await;
        self.must_be_free(id).await?;
        let id = id.to_owned();
        blocking(move || {
            state::uploads()?.remove(&id);
            Ok(())
        })
        .await
    }

    async fn apply(&self, id: &str) -> Result<AppliedChanges, ServiceError> {
        self.apply_changes(id).await
    }

    async fn discard(&self, id: &str) -> Result<DiscardedChanges, ServiceError> {
        self.discard_changes(id).await
    }

    async fn rename(&self, id: &str, title: Option<String>) -> Result<(), ServiceError> {
        self.give_title(id, title).await
    }

    async fn spec(&self, id: &str) -> Result<KeptSpec, ServiceError> {
        self.index.spec(id).await
    }

    async fn forget(&self, request: ForgetRuns) -> Result<Forgotten, ServiceError> {
        let forget = async |store: Option<&Store>| Ok(forget_runs(&request, store).await?);
        self.store.with(forget).await
    }

    async fn diff(&self, id: &str, query: DiffQuery) -> Result<WorkspaceDiff, ServiceError> {
        self.changes_of(id, query).await
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_the_history_has_exists() {
        let known = || AgentError::refused("run_id", "a run \"r\" already exists");
        assert_eq!(of_start("r", known()).code, Some(ProblemCode::RunExists));
        let no_id = of_start("\n", AgentError::refused("run_id", "is no id"));
        assert_eq!(no_id.code, Some(ProblemCode::InvalidParams));
        let other = of_start("r", AgentError::refused("model", "is unknown"));
        assert_eq!(other.code, Some(ProblemCode::InvalidParams));
    }
}
