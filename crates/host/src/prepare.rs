//! The preparation of runs, sessions and loops: of runs and sessions in one order for all who start them. Nothing of an
//! agent is started meanwhile, so every error is a refusal that leaves nothing behind. The order has reasons: the sessions
//! of a conversation are known before they are locked, a session is locked before its run is in the history or has a log,
//! and the worktree is there before the parameters name it.

mod agent_loop;
mod common;
mod conversation;
mod options;
mod repository;
mod upload;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use teamster_api::{KeptSpec, RunInfo, RunKind, RunSpec, SessionSpec, Workspace, given_title};
use teamster_core::{
    AgentError, Capabilities, CliInfo, ErrorCode, ErrorKind, ExecuteParams, PermissionPolicy,
    SessionCapabilities,
};
use teamster_orchestrator::{Orchestrator, RunRequest};
use teamster_runner::{
    AcceptedRun, AtRest, DetachedSession, LogLimits, RequestChannel, Runs, RunsError, SessionPlan,
    SessionReservation, SessionRuns, SessionWriter,
};
use teamster_workspace::WorktreeKey;

use crate::history::{History, KeptHistory, KeyedSession};
use crate::output::Output;
use crate::recording::Recording;
use crate::request_policy::RequestPolicy;
use crate::{Host, artifacts, params, request, state, turns};
pub use agent_loop::{HostedLoop, LoopOptions};
pub use common::Common;
pub(crate) use common::missing_program;
use common::{Wanted, no_clients, worktree_key};
use conversation::{lock_session, of_conversation};
pub use options::{Answers, RunOptions, SessionRunOptions};

/// Advice for starting a conversation over, by the fields of a run.
const START_OVER: &str =
    "start the conversation over with a run that has this `session_key` and `new_session`";

/// A run that is ready to start.
#[non_exhaustive]
pub struct PreparedRun {
    /// Part that it has in common with sessions.
    pub common: Common,
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
    /// Part of the description that the folder of the run keeps.
    pub(crate) kept: Option<KeptSpec>,
    pub(crate) channel: RequestChannel,
    pub(crate) reserved: Option<SessionReservation>,
}

/// A session that is ready to start.
#[non_exhaustive]
pub struct PreparedSession {
    /// Part that it has in common with runs.
    pub common: Common,
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
    channel: RequestChannel,
    pub(crate) about: RunInfo,
}

/// Prepared run or session, once it gets the shared parts.
type With<T> = Box<dyn FnOnce(Common) -> T + Send>;

impl Host {
    /// Prepares a run. Nothing is started.
    ///
    /// # Errors
    ///
    /// Fails if the description cannot be carried out here. Nothing is left behind.
    pub async fn prepare_run(
        &self,
        spec: RunSpec,
        options: RunOptions,
    ) -> Result<PreparedRun, AgentError> {
        spec.check_one_machine()?;
        let mut common = self.common(&spec.provider, options.id.clone())?;
        match self.run_of(&mut common, spec, options).await {
            Ok(prepared) => Ok(prepared(common)),
            Err(error) => {
                common.leave(self).await;
                Err(error)
            }
        }
    }

    async fn run_of(
        &self,
        common: &mut Common,
        mut spec: RunSpec,
        options: RunOptions,
    ) -> Result<With<PreparedRun>, AgentError> {
        let RunOptions {
            is_chosen,
            clients_answer,
            native,
            ends_process,
            ..
        } = options;
        let kept = clients_answer
            .then(|| state::kept(&common.id, spec.clone()))
            .transpose()?;
        if spec.ask_timeout_ms.is_some() && !clients_answer {
            common.warnings.push(no_clients());
        }
        artifacts::check(&spec.artifacts)?;
        params::check_container(&spec.trusted).await?;
        let key = worktree_key(spec.session_key.as_ref(), &spec.trusted)?;
        let wanted = Wanted {
            location: spec.location(),
            parameter: parameter(spec.workspace.is_some()),
            key: if spec.new_session {
                key.map(WorktreeKey::start_over)
            } else {
                key
            },
            continues: None,
        };
        spec.working_directory = common.enter(self, wanted).await?;
        spec.workspace = None;
        let setup = common.setup(&spec.trusted)?;

        let mut params = params::of_run(&spec)?;
        params.include_native = native;
        common.set_mcp(&params);
        let (mut agents, budget) =
            request::agents(self, &spec, common.agent, params, &mut common.warnings)?;
        let output = spec.trusted.output_file.as_deref().map(Output::open);
        let output = output.transpose()?;

        let chosen = is_chosen.then_some(&*common.id);
        let store = spec.trusted.store.as_deref();
        let history = History::new(store, spec.session_key.as_deref(), chosen)?;
        let history = (history.starting_over(spec.new_session)).with_prompts(!clients_answer);
        let history = history.left_at_end(ends_process);
        let open = history.open_for_run(chosen, &mut agents).await?;
        common.warnings.extend(history.take_warnings());

        let locks = state::session_locks(clients_answer.then_some(&*common.id));
        let reserved = match agents.first() {
            Some(first) => {
                let candidate = &first.candidate;
                let writer = lock_session(candidate.provider(), &candidate.params, locks.as_ref());
                writer.map_err(|error| of_conversation(error, history.has_conversation()))?
            }
            None => None,
        };

        let channel = RequestChannel::new(&*common.id).in_directory(common.directory.clone());
        let ask_timeout = spec.ask_timeout_ms.map(params::wait);
        let policy = RequestPolicy::new(ask_timeout, channel.requests());
        let policy = policy.filter(|_| clients_answer);
        let mut request = request::plan(
            self,
            &spec,
            agents,
            budget,
            policy.as_ref(),
            locks.as_ref(),
            setup.as_ref(),
        )?;
        if clients_answer {
            // Its starter need not look at its end. An attached run reports the same as its result.
            request.check()?;
        }
        request.id = Some(common.id.clone());
        let history = Arc::new(KeptHistory { history, open });
        request.observer = self.observed(history.observer());
        request.holds = history.holds(self, spec.trusted.clean_env);
        let orchestrator = self.orchestrator()?;
        common.begin()?;
        let recording = Recording::of(&spec.trusted, common.agent);
        Ok(Box::new(move |common| PreparedRun {
            recording,
            common,
            spec,
            orchestrator,
            request,
            history,
            output,
            kept,
            channel,
            reserved: reserved.map(SessionWriter::reserve),
        }))
    }

    /// Prepares a session. Nothing is started.
    ///
    /// # Errors
    ///
    /// Fails if the description cannot be carried out here. Nothing is left behind.
    pub async fn prepare_session(
        &self,
        spec: SessionSpec,
        options: SessionRunOptions,
    ) -> Result<PreparedSession, AgentError> {
        spec.check_one_machine()?;
        let mut common = self.common(&spec.provider, options.id.clone())?;
        match self.session_of(&mut common, spec, options).await {
            Ok(prepared) => Ok(prepared(common)),
            Err(error) => {
                common.leave(self).await;
                Err(error)
            }
        }
    }

    async fn session_of(
        &self,
        common: &mut Common,
        mut spec: SessionSpec,
        options: SessionRunOptions,
    ) -> Result<With<PreparedSession>, AgentError> {
        let SessionRunOptions {
            answers,
            is_detached,
            native,
            history,
            start_over,
            fit,
            ..
        } = options;
        let kept = is_detached
            .then(|| state::kept(&common.id, spec.clone()))
            .transpose()?;
        if spec.ask_timeout_ms.is_some()
            && !matches!(answers, Answers::Clients | Answers::RequiredClients)
        {
            common.warnings.push(no_clients());
        }
        artifacts::check(&spec.artifacts)?;
        params::check_container(&spec.trusted).await?;
        let wanted = Wanted {
            location: spec.location(),
            parameter: parameter(spec.workspace.is_some()),
            key: worktree_key(spec.session_key.as_ref(), &spec.trusted)?,
            continues: spec.continues.clone(),
        };
        let submitted = spec.workspace.as_ref().and_then(Workspace::submitted_from);
        let submitted_from = submitted.map(str::to_owned);
        spec.working_directory = common.enter(self, wanted).await?;
        spec.workspace = None;
        let setup = common.setup(&spec.trusted)?;
        let info = common.agent;

        let mut params = params::of_session(&spec)?;
        params.include_native = native;
        common.set_mcp(&params);
        let mut about = about(self, &spec, common)?;
        about.submitted_from = submitted_from;

        let history = match history {
            // Its owner takes its warnings.
            Some(shared) => shared,
            None => {
                let key = spec.session_key.as_deref();
                let own = History::new(spec.trusted.store.as_deref(), key, None)?;
                let own = KeptHistory::open(own.with_prompts(!is_detached)).await;
                common.warnings.extend(own.take_warnings());
                Arc::new(own)
            }
        };
        let mut begins = None;
        if history.history.has_conversation() && params.session_id.is_none() {
            let start_over = start_over.as_deref().unwrap_or(START_OVER);
            let KeyedSession { session_id, lock } = history
                .session(info.id, common.directory.as_deref(), start_over)
                .await?;
            params.session_id = session_id;
            begins = lock;
        }

        let locks = state::session_locks(is_detached.then_some(&*common.id));
        let of_key = history.history.has_conversation() && spec.session_id.is_none();
        let writer = lock_session(info.id, &params, locks.as_ref());
        let writer = writer.map_err(|error| of_conversation(error, of_key))?;

        let channel = RequestChannel::new(&*common.id).in_directory(common.directory.clone());
        let ask_timeout = match answers {
            Answers::Attached => Some(Duration::MAX),
            _ => spec.ask_timeout_ms.map(params::wait),
        };
        let policy = RequestPolicy::new(ask_timeout, channel.requests());
        let answer = |provider: &str, can: &SessionCapabilities| match (&answers, &policy) {
            (Answers::Clients | Answers::RequiredClients | Answers::Attached, Some(policy))
                if can.permissions =>
            {
                Ok(policy.policy(provider, can))
            }
            (Answers::RequiredClients, Some(policy)) if policy.required => {
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
        let mut runs = turns::plan(
            self,
            &common.id,
            &spec,
            info,
            &params,
            answer,
            fit,
            setup.as_ref(),
        )?;
        let config = params::runtime_config(&spec.trusted, info)?;
        if let Some(error) = missing_program(info, params.env.get("PATH"), &config) {
            return Err(error);
        }
        runs.writer = writer;
        runs.holds = history.holds(self, spec.trusted.clean_env);
        let recorder = history.observer_of_session(info.id, params.session_id.as_deref(), begins);
        runs.observer = self.observed(recorder);
        let orchestrator = self.orchestrator()?;
        common.begin()?;
        Ok(Box::new(move |common| PreparedSession {
            common,
            idle: turns::limited(spec.end_idle_ms),
            spec,
            orchestrator,
            runs,
            history,
            kept,
            channel,
            about,
        }))
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
        Ok(KeptHistory::open(History::new(store, key, None)?).await)
    }

    /// Checks that the agents of a session can be started with its description. Nothing is started.
    ///
    /// # Errors
    ///
    /// Fails with the reason if one cannot.
    pub fn check_session(&self, spec: &SessionSpec) -> Result<(), AgentError> {
        spec.check_one_machine()?;
        let info = self.agent(&spec.provider)?;
        let params = params::of_session(spec)?;
        let deny = |_: &str, _: &SessionCapabilities| Ok(PermissionPolicy::Deny);
        turns::plan(
            self,
            "check",
            spec,
            info,
            &params,
            deny,
            turns::as_set,
            None,
        )
        .map(drop)
    }

    fn common(&self, agent: &str, id: String) -> Result<Common, AgentError> {
        Ok(Common {
            id,
            agent: self.agent(agent)?,
            directory: None,
            worktree: None,
            mcp: None,
            warnings: Vec::new(),
        })
    }
}

impl PreparedRun {
    /// Returns what is known of the run, for its folder.
    fn about(&self) -> RunInfo {
        let mut about = RunInfo::new(&*self.common.id, self.common.agent.id);
        let of_prompt = self.kept.as_ref().is_some_and(KeptSpec::keeps_prompts);
        about.title = if of_prompt {
            self.spec.first_title()
        } else {
            given_title(self.spec.title.as_deref())
        };
        about.branch = self.common.branch();
        about.model.clone_from(&self.spec.model);
        about.directory.clone_from(&self.common.directory);
        about
    }

    /// Accepts the run: creates its folder.
    pub(crate) fn accept(&self, runs: &Runs) -> Result<AcceptedRun, AgentError> {
        accept(runs, &self.about(), &self.common, self.kept.as_ref())
    }
}

impl PreparedSession {
    /// Accepts the session: creates its folder. Fails if the id is in use, or if the folder cannot be written. Then
    /// there is no session.
    pub(crate) fn accept(&self, runs: &Runs) -> Result<AcceptedRun, AgentError> {
        accept(runs, &self.about, &self.common, self.kept.as_ref())
    }

    /// Returns the live session whose runner is this process, in the folder of `run`. `at_rest` is called when its agent
    /// begins and ends to wait for a prompt.
    pub(crate) fn detached(self, run: AcceptedRun, at_rest: Option<AtRest>) -> DetachedSession {
        let (orchestrator, plan, channel) = self.into_plan(Some(run.folder.path()), at_rest);
        DetachedSession::new(run, orchestrator, plan, channel)
    }

    /// Returns what a live session consists of. `folder` is that of the session, if it has one.
    pub(crate) fn into_plan(
        mut self,
        folder: Option<&Path>,
        at_rest: Option<AtRest>,
    ) -> (Orchestrator, SessionPlan, RequestChannel) {
        let closing = self.closing(folder);
        let mut plan = SessionPlan::new(self.runs);
        plan.idle = self.idle;
        plan.closing = closing;
        plan.at_rest = at_rest;
        plan.titles_of_prompts = self.kept.as_ref().is_some_and(KeptSpec::keeps_prompts);
        (self.orchestrator, plan, self.channel)
    }
}

fn accept(
    runs: &Runs,
    about: &RunInfo,
    common: &Common,
    kept: Option<&KeptSpec>,
) -> Result<AcceptedRun, AgentError> {
    let limits = LogLimits::default();
    let accepted = match kept {
        Some(kept) => runs.accept_spec(about, &common.with_warnings(kept.clone()), limits),
        None => runs.accept(about, limits),
    };
    accepted.map_err(|error| match error {
        RunsError::Io { .. } => {
            AgentError::new(ErrorCode::Io, ErrorKind::Internal, error.to_string())
        }
        _ => AgentError::invalid_params(error.to_string()),
    })
}

/// Returns the parameter that errors of a workspace name.
const fn parameter(is_long: bool) -> &'static str {
    if is_long { "workspace" } else { "worktree" }
}

fn about(host: &Host, spec: &SessionSpec, common: &Common) -> Result<RunInfo, AgentError> {
    let mut about = RunInfo::new(&*common.id, common.agent.id);
    about.kind = RunKind::Session;
    about.title = spec.first_title();
    about.branch = common.branch();
    about.grants = Some(turns::grants(host, spec)?);
    about.model.clone_from(&spec.model);
    about.directory.clone_from(&common.directory);
    about.continues.clone_from(&spec.continues);
    Ok(about)
}
