//! `teamster run`.

mod closing;
pub(crate) mod detached;
pub(crate) mod history;
mod output;
mod request;
pub(crate) mod request_policy;

use std::env;
use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, anyhow, bail};
use teamster::orchestrator::{Orchestrator, RunRequest};
use teamster::{
    AgentError, CliInfo, ErrorDetail, ErrorKind, ExecuteParams, McpDelivery, RunResult,
};
use teamster_api::{Launch, RunSpec, Trusted};
use teamster_core::time::epoch_ms;
use teamster_runner::SessionReservation;
use uuid::Uuid;

use crate::args::RunArgs;
use crate::record::Recording;
use crate::remote::Machine;
use crate::render::TextIsFinal;
use crate::spec::{self, Local};
use crate::worktree::{self, Worktree};
use crate::{detached::session_locks, drive, exit_code, hints, params, remote, runner, words};
use closing::Closing;
use history::{History, OpenHistory, Warnings};
pub(crate) use output::Output;
use request_policy::RequestPolicy;

/// Runs the agent and returns the exit code.
pub(crate) fn main(args: RunArgs, machine: &Machine) -> anyhow::Result<u8> {
    match begin(args, machine) {
        Ok(code) => code,
        Err(error) => {
            crate::fail(&usage(error));
            Ok(exit_code::USAGE)
        }
    }
}

/// Reads the arguments, and runs the agent. The outer error is a usage error.
fn begin(args: RunArgs, machine: &Machine) -> anyhow::Result<anyhow::Result<u8>> {
    let (mut spec, mut local) = spec::of_run(args)?;
    spec.check()?;
    if let Machine::There(client) = machine {
        return remote::run::main(spec, &local, client);
    }
    let id = local.run_id.clone();
    let id = id.unwrap_or_else(|| Uuid::now_v7().to_string());
    if local.detach {
        let launch = Launch::new(id, spec);
        return Ok(runner::launch(&launch, local.output.quiet));
    }
    let mut warnings = Vec::new();
    let worktree = worktree::enter(
        &mut spec.working_directory,
        spec.worktree.as_ref(),
        &id,
        &mut warnings,
    )?;
    let quiet = local.output.quiet;
    if !quiet {
        crate::warn(&warnings);
    }
    if worktree.is_some() {
        local.run_id = Some(id);
    }
    let code = attached(&spec, &local, worktree.as_ref());
    worktree::leave(worktree, quiet);
    Ok(code)
}

/// Converts the refusal of a description, with options in place of parameters.
pub(crate) fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    match error.downcast_ref::<AgentError>() {
        Some(error) => anyhow!("{}", hints::message(error)),
        None => error,
    }
}

fn attached(spec: &RunSpec, local: &Local, worktree: Option<&Worktree>) -> anyhow::Result<u8> {
    let provider = crate::providers()
        .get(&spec.provider)
        .context("this provider is not built in")?;
    let info = provider.info();
    let prepared = params::of_run(spec)
        .map_err(Into::into)
        .and_then(|mut params| {
            params.include_native = local.output.native;
            let run_id = local.run_id.as_deref();
            let warnings = Warnings::unless(local.output.quiet);
            Prepared::new(spec, run_id, info, params, warnings, None, None)
        });
    let Prepared {
        mut request,
        history,
        mcp,
        output,
        warnings,
    } = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            crate::fail(&usage(error));
            return Ok(exit_code::USAGE);
        }
    };
    if !local.output.quiet {
        crate::warn(&warnings);
    }
    let directory = params::absolute(spec.working_directory.as_deref());
    let view = drive::View {
        agent: info,
        verbose: local.output.verbose,
        quiet: local.output.quiet,
        directory: directory.clone(),
        // With a mock model, the session is removed with its temporary home.
        resume: env::var_os(crate::mock_model::URL_VARIABLE)
            .is_none()
            .then(|| resume_arguments(spec)),
        worktree: worktree.map(Worktree::watch),
        permission: Some(spec.permission),
        asks: false,
        mcp,
        clock: epoch_ms,
    };
    let recording = recording(&spec.trusted, info);
    let keyed = spec.session_key.is_some();
    let conversation = Arc::new(ConversationState::default());
    let keep = spec.trusted.keep_background;
    let guarded = directory.as_deref();
    let prepared = async {
        let orchestrator = prepare(&history, &mut request, &conversation).await;
        anyhow::Ok((orchestrator.map_err(Unprepared)?, request))
    };
    let close = || close(conversation.clone(), keyed);
    let sink = drive::sink(local.output, view, final_text(spec, info));
    let shown = if local.lifecycle {
        drive::run(sink, guarded, keep, async || {
            let (orchestrator, request) = prepared.await?;
            Ok(Closing::new(orchestrator.run(request), close()))
        })
    } else {
        drive::run(sink, guarded, keep, async || {
            let (orchestrator, request) = prepared.await?;
            Ok(Closing::new(orchestrator.log(request), close()))
        })
    };
    let shown = match shown.map_err(anyhow::Error::downcast) {
        Ok(shown) => Ok(shown),
        Err(Ok(Unprepared(error))) => {
            crate::fail(&usage(error));
            return Ok(exit_code::USAGE);
        }
        Err(Err(error)) => Err(error),
    };
    if let Some(recording) = recording {
        recording.complete(info);
    }
    let (error, result) = match &shown {
        Ok(shown) => (shown.error.as_deref(), shown.result.as_deref()),
        Err(_) => (None, None),
    };
    let written = write_output(output, result);
    if let Some(key) = (spec.session_key.as_ref())
        .filter(|_| error.is_some_and(|error| error.kind == ErrorKind::SessionNotFound))
    {
        crate::warn(&[format!(
            "the session of `{key}` no longer exists and was forgotten: run the same command to start a new one"
        )]);
    }
    if let Some(key) =
        (spec.session_key.as_ref()).filter(|_| conversation.not_stored.load(Ordering::Relaxed))
    {
        crate::warn(&[format!(
            "the session of `{key}` was not stored: unless the next run with this key names it with \
             --resume, it starts a new one"
        )]);
    }
    if let Some(open_history) = conversation.open_history.get() {
        history.warn(&open_history.recorder.take_errors());
    }
    shown.map(|shown| {
        if written {
            shown.code
        } else {
            shown.code.max(exit_code::AGENT_ERROR)
        }
    })
}

/// Returns the point at which the run's text is final.
pub(crate) fn final_text(spec: &RunSpec, info: &CliInfo) -> TextIsFinal {
    let provider = crate::providers().get(info.id);
    if spec.allows_several_attempts() {
        TextIsFinal::WithRun
    } else if provider.is_some_and(|provider| provider.capabilities().final_text) {
        TextIsFinal::AtOnce
    } else {
        TextIsFinal::WithMessage
    }
}

/// Opens the file of `--output`, if it is set. Every error is a usage error.
pub(crate) fn output(path: Option<&Path>) -> anyhow::Result<Option<Output<'_>>> {
    path.map(Output::open).transpose()
}

/// A run that is ready to start.
struct Prepared<'a> {
    request: RunRequest,
    history: History,
    /// Delivery of the run's MCP servers; `None` if it has none.
    mcp: Option<McpDelivery>,
    output: Option<Output<'a>>,
    /// Warnings, such as of options without effect.
    warnings: Vec<String>,
}

impl<'a> Prepared<'a> {
    /// Prepares a run. Every error is a usage error.
    fn new(
        spec: &'a RunSpec,
        run_id: Option<&str>,
        info: &CliInfo,
        params: ExecuteParams,
        history_warnings: Warnings,
        policy: Option<&RequestPolicy>,
        detached: Option<&str>,
    ) -> anyhow::Result<Self> {
        let mcp = (!params.mcp_servers.is_empty()).then_some(params.mcp_delivery);
        let history = History::new(
            spec.trusted.store.as_deref(),
            spec.session_key.as_deref(),
            run_id,
            history_warnings,
        )?
        .starting_over(spec.new_session);
        let (mut request, warnings) = request::new(spec, info, params, policy, detached)?;
        request.run_id = run_id.map(str::to_owned);
        let output = output(spec.trusted.output_file.as_deref())?;
        Ok(Self {
            request,
            history,
            mcp,
            output,
            warnings,
        })
    }
}

/// Begins the recording of `--record`, if it is set.
fn recording(trusted: &Trusted, info: &CliInfo) -> Option<Recording> {
    let dir = trusted.record_to.as_deref()?;
    let program = trusted.program.clone();
    let program = program.or_else(|| params::program_variable(info));
    Recording::begin(dir, program.as_deref(), info)
}

/// Writes the last message to the file of `--output`. Returns `false` on an error, which it reports.
pub(crate) fn write_output(output: Option<Output<'_>>, result: Option<&RunResult>) -> bool {
    let Some(output) = output else {
        return true;
    };
    match result.map_or(Ok(false), |result| output.write(result)) {
        Ok(true) => {}
        Ok(false) => {
            crate::warn(&["--output: nothing was written: the run has no answer".to_owned()]);
        }
        Err(error) => {
            crate::fail(&error);
            return false;
        }
    }
    true
}

/// State of a run's conversation and its entry in the history.
#[derive(Default)]
struct ConversationState {
    /// The store and recorder, set when the run is prepared.
    open_history: OnceLock<OpenHistory>,
    /// Set if the session was not stored in time.
    not_stored: AtomicBool,
    /// The lock of the session, until the run begins.
    reserved: OnceLock<Option<SessionReservation>>,
}

/// A usage error before anything was started.
#[derive(Debug)]
struct Unprepared(anyhow::Error);

impl fmt::Display for Unprepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Unprepared {}

/// Opens the store, sets the run's session, and creates the orchestrator.
async fn prepare(
    history: &History,
    request: &mut RunRequest,
    conversation: &ConversationState,
) -> anyhow::Result<Orchestrator> {
    if let Some(open_history) = history.prepare(request).await? {
        let open_history = conversation.open_history.get_or_init(|| open_history);
        request.observer = Some(Arc::new(open_history.recorder.clone()) as _);
    }
    let reserved = reserve_session(history, request, None)?;
    conversation.reserved.get_or_init(|| reserved);
    Ok(Orchestrator::new(crate::estimates::orchestrator_config())?)
}

/// Locks the session of a run until the run begins. Refuses a run whose session another process uses, before it is in
/// the history or has a log.
fn reserve_session(
    history: &History,
    request: &RunRequest,
    detached: Option<&str>,
) -> anyhow::Result<Option<SessionReservation>> {
    let (Some(first), Some(locks)) = (request.candidates.first(), session_locks(detached)) else {
        return Ok(None);
    };
    let mut writer = locks.writer(first.provider());
    if let Err(error) = writer.begin(&first.params) {
        let error = match error.detail.as_deref() {
            Some(ErrorDetail::Parameter { problem, .. }) if history.has_conversation() => {
                AgentError::refused("session_key", problem.clone())
            }
            _ => error,
        };
        bail!(error);
    }
    Ok(Some(writer.reserve()))
}

/// Closes the store. A run with a session key first waits until its session is stored.
async fn close(conversation: Arc<ConversationState>, keyed: bool) {
    let Some(open_history) = conversation.open_history.get() else {
        return;
    };
    if keyed
        && !open_history
            .recorder
            .settled(history::OPEN_LIMIT_WITH_KEY)
            .await
    {
        conversation.not_stored.store(true, Ordering::Relaxed);
    }
    crate::store::close(&open_history.store).await;
}

/// Returns the arguments of the command that resumes a session, without the session's id.
///
/// They include `--cwd`: sessions belong to the directory in which they began.
pub(crate) fn resume_arguments(spec: &RunSpec) -> String {
    let cwd = (spec.working_directory.as_deref())
        .map(|cwd| format!("--cwd {} ", words::shell_word(&cwd.to_string_lossy())))
        .unwrap_or_default();
    format!("{cwd}--resume")
}
