//! The preparation of runs and sessions, in one order for all who start them: worktree, parameters, history, locks,
//! policy, budget, plan, orchestrator.
//!
//! Nothing of an agent is started meanwhile, so every error is a refusal that leaves nothing behind. The order has
//! reasons: the sessions of a conversation are known before they are locked, a session is locked before its run is in
//! the history or has a log, and the worktree is there before the parameters name it.

mod options;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use teamster_api::{KeptSpec, RunInfo, RunKind, RunSpec, SessionSpec, Worktree as WantedWorktree};
use teamster_core::{
    AgentError, AgentEvent, Capabilities, CliInfo, ErrorCode, ErrorDetail, ErrorKind,
    ExecuteParams, McpDelivery, NoticeLevel, NoticeSource, PermissionPolicy, SessionCapabilities,
};
use teamster_orchestrator::{Orchestrator, RunRequest};
use teamster_process::{RuntimeConfig, find_program};
use teamster_runner::{
    AtRest, BeforeDone, DetachedSession, LogLimits, NewRun, Requests, Runs, RunsError,
    SessionLocks, SessionPlan, SessionReservation, SessionRuns, SessionWriter,
};
use teamster_store::SessionLock;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::history::{History, KeptHistory, KeyedSession};
use crate::output::Output;
use crate::recording::Recording;
use crate::request_policy::RequestPolicy;
use crate::worktree::{self, Worktree};
use crate::{Host, Warning, environment, params, request, state, turns};
pub use options::{Answers, Fit, RunOptions, SessionOptions};

/// What runs and sessions have in common before they start.
#[non_exhaustive]
pub struct Ground {
    /// Id of the run or session.
    pub id: String,
    /// The first agent.
    pub agent: &'static CliInfo,
    /// The agent's working directory, absolute.
    pub directory: Option<PathBuf>,
    /// The worktree that was made for it. Dropped, it is removed unless it has changes.
    pub worktree: Option<Worktree>,
    /// Delivery of the MCP servers; `None` without servers.
    pub mcp: Option<McpDelivery>,
    /// Warnings, such as of parameters without effect.
    pub warnings: Vec<Warning>,
}

/// A run that is ready to start.
#[non_exhaustive]
pub struct PreparedRun {
    /// What it has in common with sessions.
    pub ground: Ground,
    /// The description, with the working directory of its worktree.
    pub spec: RunSpec,
    /// The orchestrator for the request.
    pub orchestrator: Orchestrator,
    /// The request.
    pub request: RunRequest,
    /// The history of the run.
    pub history: Arc<KeptHistory>,
    /// The file for the last message.
    pub output: Option<Output>,
    /// The recording of the first agent.
    pub recording: Option<Recording>,
    /// What a folder of the run keeps of its description.
    pub(crate) kept: Option<KeptSpec>,
    pub(crate) requests: Requests,
    pub(crate) request_events: UnboundedReceiver<AgentEvent>,
    pub(crate) reserved: Option<SessionReservation>,
}

/// A session that is ready to start.
#[non_exhaustive]
pub struct PreparedSession {
    /// What it has in common with runs.
    pub ground: Ground,
    /// The description, with the working directory of its worktree.
    pub spec: SessionSpec,
    /// The orchestrator for the turns.
    pub orchestrator: Orchestrator,
    /// The turns.
    pub runs: SessionRuns,
    /// The history of the turns.
    pub history: Arc<KeptHistory>,
    /// Idle time after which a detached session ends.
    idle: Option<Duration>,
    kept: Option<KeptSpec>,
    requests: Requests,
    request_events: UnboundedReceiver<AgentEvent>,
    about: RunInfo,
}

impl Host {
    /// Prepares a run. Nothing is started.
    ///
    /// # Errors
    ///
    /// Fails if the description cannot be carried out here. Nothing is left behind.
    pub async fn prepare_run(
        &self,
        mut spec: RunSpec,
        options: RunOptions,
    ) -> Result<PreparedRun, AgentError> {
        spec.check()?;
        let RunOptions {
            id,
            is_chosen,
            clients_answer,
            native,
        } = options;
        let mut ground = self.ground(&spec.provider, id)?;
        let kept = clients_answer
            .then(|| state::kept(spec.clone()))
            .transpose()?;
        (ground.enter(&mut spec.working_directory, spec.worktree.as_ref())).await?;

        let mut params = params::of_run(&spec)?;
        params.include_native = native;
        ground.see(&params);
        let (mut agents, budget) =
            request::agents(self, &spec, ground.agent, params, &mut ground.warnings)?;
        let output = spec.trusted.output_file.as_deref().map(Output::open);
        let output = output.transpose()?;

        let chosen = is_chosen.then_some(&*ground.id);
        let store = spec.trusted.store.as_deref();
        let history = History::new(store, spec.session_key.as_deref(), chosen)?;
        let history = history.starting_over(spec.new_session);
        let open = history.open_for_run(chosen, &mut agents).await?;
        ground.warnings.extend(history.take_warnings());

        let locks = state::session_locks(clients_answer.then_some(&*ground.id));
        let reserved = match agents.first() {
            Some(first) => {
                let candidate = &first.candidate;
                let writer = lock_session(candidate.provider(), &candidate.params, locks.as_ref());
                writer.map_err(|error| of_conversation(error, history.has_conversation()))?
            }
            None => None,
        };

        let (requests, request_events) = Requests::of(&*ground.id);
        let ask_timeout = spec.ask_timeout_ms.map(params::wait);
        let policy = RequestPolicy::new(ask_timeout, requests.clone());
        let policy = policy.filter(|_| clients_answer);
        let mut request =
            request::plan(self, &spec, agents, budget, policy.as_ref(), locks.as_ref())?;
        request.run_id = Some(ground.id.clone());
        let history = Arc::new(KeptHistory { history, open });
        request.observer = history.observer();
        let orchestrator = self.orchestrator()?;
        Ok(PreparedRun {
            recording: Recording::of(&spec.trusted, ground.agent),
            ground,
            spec,
            orchestrator,
            request,
            history,
            output,
            kept,
            requests,
            request_events,
            reserved: reserved.map(SessionWriter::reserve),
        })
    }

    /// Prepares a session. Nothing is started.
    ///
    /// # Errors
    ///
    /// Fails if the description cannot be carried out here. Nothing is left behind.
    pub async fn prepare_session(
        &self,
        mut spec: SessionSpec,
        options: SessionOptions,
    ) -> Result<PreparedSession, AgentError> {
        spec.check()?;
        let SessionOptions {
            id,
            answers,
            is_detached,
            native,
            history,
            conversation,
            fit,
        } = options;
        let mut ground = self.ground(&spec.provider, id)?;
        let kept = is_detached.then(|| state::kept(spec.clone())).transpose()?;
        (ground.enter(&mut spec.working_directory, spec.worktree.as_ref())).await?;
        let info = ground.agent;

        let mut params = params::of_session(&spec)?;
        params.include_native = native;
        ground.see(&params);
        let about = about(self, &spec, &ground)?;

        let history = match history {
            // Its owner takes its warnings.
            Some(shared) => shared,
            None => {
                let own = self.history(spec.trusted.store.as_deref(), None).await?;
                ground.warnings.extend(own.take_warnings());
                Arc::new(own)
            }
        };
        let mut begins = None;
        if let Some(start_over) = conversation {
            let KeyedSession { session_id, lock } = history
                .session(info.id, ground.directory.as_deref(), &start_over)
                .await?;
            params.session_id = session_id;
            begins = lock;
        }

        let locks = state::session_locks(is_detached.then_some(&*ground.id));
        let writer = lock_session(info.id, &params, locks.as_ref())?;

        let (requests, request_events) = Requests::of(&*ground.id);
        let ask_timeout = spec.ask_timeout_ms.map(params::wait);
        let policy = RequestPolicy::new(ask_timeout, requests.clone());
        let answer = |can: &SessionCapabilities| match (&answers, &policy) {
            (Answers::Policy(policy), _) => Ok(policy(can)),
            (Answers::Clients { .. }, Some(policy)) if can.permissions => Ok(policy.policy(can)),
            (Answers::Clients { required: true }, Some(policy)) if policy.required => {
                Err(AgentError::refused(
                    "ask_timeout_ms",
                    format!("{} cannot ask for permission in a session", info.id),
                ))
            }
            _ => Ok(PermissionPolicy::Deny),
        };
        let fit = |info: &CliInfo, can: &Capabilities, params: &mut ExecuteParams| {
            fit.as_ref().is_none_or(|fit| fit(info, can, params))
        };
        let mut runs = turns::plan(self, &ground.id, &spec, info, &params, answer, fit)?;
        let config = params::runtime_config(&spec.trusted, info);
        if let Some(error) = missing_program(info, params.env.get("PATH"), &config) {
            return Err(error);
        }
        runs.writer = writer;
        runs.observer = history.observer_of_session(info.id, params.session_id.as_deref(), begins);
        let orchestrator = self.orchestrator()?;
        Ok(PreparedSession {
            ground,
            idle: turns::limited(spec.end_idle_ms),
            spec,
            orchestrator,
            runs,
            history,
            kept,
            requests,
            request_events,
            about,
        })
    }

    /// Opens the history of sessions, of one conversation if `key` is set. A store that cannot be used only leaves them
    /// out of the history.
    ///
    /// # Errors
    ///
    /// Fails if the key is not valid, or if a conversation has no store.
    pub async fn history(
        &self,
        store: Option<&str>,
        key: Option<&str>,
    ) -> Result<KeptHistory, AgentError> {
        let history = History::new(store, key, None)?;
        let open = history.open_for_session().await;
        Ok(KeptHistory { history, open })
    }

    /// Checks that the agents of a session can be started with its description. Nothing is started.
    ///
    /// # Errors
    ///
    /// Fails with the reason if one cannot.
    pub fn check_session(&self, spec: &SessionSpec) -> Result<(), AgentError> {
        spec.check()?;
        let info = self.agent(&spec.provider)?;
        let params = params::of_session(spec)?;
        let deny = |_: &SessionCapabilities| Ok(PermissionPolicy::Deny);
        turns::plan(self, "check", spec, info, &params, deny, turns::as_set).map(drop)
    }

    fn ground(&self, agent: &str, id: String) -> Result<Ground, AgentError> {
        Ok(Ground {
            id,
            agent: self.agent(agent)?,
            directory: None,
            worktree: None,
            mcp: None,
            warnings: Vec::new(),
        })
    }
}

impl Ground {
    /// Makes the worktree, if one is wanted, and sets the working directory.
    async fn enter(
        &mut self,
        working_directory: &mut Option<PathBuf>,
        wanted: Option<&WantedWorktree>,
    ) -> Result<(), AgentError> {
        if let Some(wanted) = wanted {
            let (directory, wanted, id) =
                (working_directory.clone(), wanted.clone(), self.id.clone());
            // Git takes a while.
            let make = move || worktree::create(directory.as_deref(), Some(&wanted), &id);
            let made = tokio::task::spawn_blocking(make).await;
            let made = made.unwrap_or_else(|error| match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(AgentError::invalid_params("the program is ending")),
            });
            self.worktree = made?;
        }
        if let Some(worktree) = &mut self.worktree {
            self.warnings
                .extend(worktree.take_warnings().into_iter().map(Warning::new));
            *working_directory = Some(worktree.directory().to_owned());
        }
        self.directory = params::absolute(working_directory.as_deref());
        Ok(())
    }

    fn see(&mut self, params: &ExecuteParams) {
        self.mcp = (!params.mcp_servers.is_empty()).then_some(params.mcp_delivery);
    }

    /// Returns a hook that finishes the worktree once no process is left in it.
    pub(crate) fn before_done(&mut self) -> Option<BeforeDone> {
        let worktree = self.worktree.take()?;
        Some(Box::new(move || {
            AgentEvent::notice(NoticeLevel::Info, NoticeSource::Runtime, worktree.finish())
        }))
    }
}

impl PreparedRun {
    /// Returns what is known of the run, for its folder.
    fn about(&self) -> RunInfo {
        let mut about = RunInfo::new(&*self.ground.id, self.ground.agent.id);
        about.branch = branch(&self.ground);
        about.model.clone_from(&self.spec.model);
        about.directory.clone_from(&self.ground.directory);
        about
    }

    /// Accepts the run: creates its folder.
    pub(crate) fn accept(&self, runs: &Runs) -> Result<NewRun, AgentError> {
        accept(runs, &self.about(), self.kept.as_ref())
    }
}

impl PreparedSession {
    /// Sets the session of whose thread this is a later part.
    pub fn continues(&mut self, session_id: impl Into<String>) {
        self.about.continues = Some(session_id.into());
    }

    /// Returns the requests of the session's agent.
    pub fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Accepts the session: creates its folder.
    ///
    /// # Errors
    ///
    /// Fails if the id is in use, or if the folder cannot be written. Then there is no session.
    pub fn accept(&self, runs: &Runs) -> Result<NewRun, AgentError> {
        accept(runs, &self.about, self.kept.as_ref())
    }

    /// Returns the live session whose runner is this process, in the folder of `run`. `at_rest` is called when its agent
    /// begins and ends to wait for a prompt.
    pub fn detached(mut self, run: NewRun, at_rest: Option<AtRest>) -> DetachedSession {
        let mut plan = SessionPlan::new(self.runs);
        plan.idle = self.idle;
        plan.before_done = self.ground.before_done();
        plan.at_rest = at_rest;
        let (requests, events) = (self.requests, self.request_events);
        DetachedSession::new(run, self.orchestrator, plan, requests, events)
    }
}

fn accept(runs: &Runs, about: &RunInfo, kept: Option<&KeptSpec>) -> Result<NewRun, AgentError> {
    let limits = LogLimits::default();
    let accepted = match kept {
        Some(kept) => runs.accept_spec(about, kept, limits),
        None => runs.accept(about, limits),
    };
    accepted.map_err(|error| match error {
        RunsError::Io { .. } => {
            AgentError::new(ErrorCode::Io, ErrorKind::Internal, error.to_string())
        }
        _ => AgentError::invalid_params(error.to_string()),
    })
}

fn branch(ground: &Ground) -> Option<String> {
    ground.worktree.as_ref().map(|it| it.branch().to_owned())
}

fn about(host: &Host, spec: &SessionSpec, ground: &Ground) -> Result<RunInfo, AgentError> {
    let mut about = RunInfo::new(&*ground.id, ground.agent.id);
    about.kind = RunKind::Session;
    about.branch = branch(ground);
    about.grants = Some(turns::grants(host, spec)?);
    about.model.clone_from(&spec.model);
    about.directory.clone_from(&ground.directory);
    Ok(about)
}

/// Locks the session that these parameters resume. Refuses a session that another process uses.
fn lock_session(
    provider: &str,
    params: &ExecuteParams,
    locks: Option<&SessionLocks>,
) -> Result<Option<SessionWriter>, AgentError> {
    let Some(locks) = locks else {
        return Ok(None);
    };
    let mut writer = locks.writer(provider);
    writer.begin(params)?;
    Ok(Some(writer))
}

/// Returns the refusal of a session that is in use, with the parameter that names the session.
fn of_conversation(error: AgentError, has_conversation: bool) -> AgentError {
    match error.detail.as_deref() {
        Some(ErrorDetail::Parameter { problem, .. }) if has_conversation => {
            AgentError::session_in_use("session_key", problem.clone())
        }
        _ => error,
    }
}

/// Returns an error if the agent's program is missing.
pub fn missing_program(
    info: &CliInfo,
    path: Option<&String>,
    config: &RuntimeConfig,
) -> Option<AgentError> {
    if info.program.is_empty() {
        // An embedded agent runs in this process.
        return None;
    }
    let program = match &config.program {
        Some(program) => program.to_str()?,
        None => info.program,
    };
    let path = path
        .map(Into::into)
        .or_else(|| environment::variable("PATH"));
    find_program(program, path.as_deref()).err()
}

impl KeptHistory {
    /// Returns the session of the conversation with this provider, or the right to begin it.
    async fn session(
        &self,
        provider: &str,
        directory: Option<&Path>,
        start_over: &str,
    ) -> Result<KeyedSession, AgentError> {
        let directory = directory.unwrap_or(Path::new("."));
        let open = self.open.as_ref();
        (self.history.session(open, provider, directory, start_over)).await
    }

    /// Returns the observer of a session's turns. `begins` is the right to begin the session of a conversation.
    fn observer_of_session(
        &self,
        provider: &str,
        resumed: Option<&str>,
        begins: Option<SessionLock>,
    ) -> Option<Arc<dyn teamster_orchestrator::RunObserver>> {
        let open = self.open.as_ref()?;
        let mut recorder = open.recorder.clone().session_locks(begins);
        if let Some(session) = resumed {
            recorder = recorder.resumed_session(provider, session);
        }
        Some(Arc::new(recorder))
    }
}
