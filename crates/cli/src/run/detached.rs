//! The runner process of a detached run (`teamster run --detach`).

use std::sync::Mutex;

use teamster::orchestrator::{Orchestrator, RunRequest};
use teamster::{AgentEvent, CliInfo, NoticeLevel, NoticeSource};
use teamster_api::{KeptSpec, RunInfo, RunSpec};
use teamster_runner::{BeforeDone, DetachedRun, Finished, LogLimits, NewRun, Requests, Runs};
use tokio::sync::mpsc::UnboundedReceiver;

use super::Prepared;
use super::history::Warnings;
use super::request_policy::RequestPolicy;
use crate::guard::Guard;
use crate::worktree::{self, Worktree};
use crate::{detached, exit_code, orphans, params, runner, tokio_runtime_of};

/// Runs a detached run in this process and returns the exit code. The outer error is the reason why it is refused.
pub(crate) fn runner(id: &str, mut spec: RunSpec) -> anyhow::Result<anyhow::Result<u8>> {
    spec.check()?;
    let provider = crate::providers().get(&spec.provider);
    let info = provider
        .ok_or_else(|| crate::args::no_such_agent(&spec.provider))?
        .info();
    let kept = detached::kept(spec.clone())?;
    let mut warnings = Vec::new();
    let worktree = worktree::enter(
        &mut spec.working_directory,
        spec.worktree.as_ref(),
        id,
        &mut warnings,
    )?;
    let (requests, request_events) = Requests::of(id);
    let ask_timeout = spec.ask_timeout_ms.map(params::wait);
    let policy = RequestPolicy::new(ask_timeout, requests.clone());
    let runs = detached::runs()?;
    let retention = detached::retention()?;
    let params = params::of_run(&spec)?;
    let collected = Warnings::Collected(Mutex::default());
    let mut prepared = Prepared::new(
        &spec,
        Some(id),
        info,
        params,
        collected,
        policy.as_ref(),
        Some(id),
    )?;
    prepared.warnings.splice(..0, warnings);
    let mut about = RunInfo::new(id, info.id);
    about.branch = worktree.as_ref().map(|it| it.branch().to_owned());
    let context = RunContext {
        kept,
        requests,
        request_events,
        worktree,
    };
    let code = run(&spec, info, prepared, &runs, about, context)?;
    runner::prune(&runs, &retention);
    Ok(code)
}

fn run(
    spec: &RunSpec,
    info: &'static CliInfo,
    prepared: Prepared<'_>,
    runs: &Runs,
    mut about: RunInfo,
    context: RunContext,
) -> anyhow::Result<anyhow::Result<u8>> {
    let Prepared {
        mut request,
        history,
        output,
        mut warnings,
        ..
    } = prepared;
    let directory = params::absolute(spec.working_directory.as_deref());
    let recording = super::recording(&spec.trusted, info);
    let keep_background = spec.trusted.keep_background;
    let guard = Guard::start(directory.as_deref());
    if !keep_background {
        orphans::adopt();
    }
    // The worker thread reads the agent's output; this thread writes the log.
    let runtime =
        tokio_runtime_of(1).map_err(|error| runner::failure("cannot start the runtime", error))?;
    let ended = runtime.block_on(async {
        let open_history = history.prepare(&mut request).await?;
        request.observer = (open_history.as_ref())
            .map(|open_history| std::sync::Arc::new(open_history.recorder.clone()) as _);
        // Before the run is accepted: later the error would only be in its log.
        let _reserved = super::reserve_session(&history, &request, Some(&about.run_id))?;
        about.model.clone_from(&spec.model);
        about.directory.clone_from(&directory);
        let run = runs.accept_spec(&about, &context.kept, LogLimits::default())?;
        warnings.extend(history.take_warnings());
        runner::detach(&run, warnings)?;
        let finished = match work(run, request, context).await {
            Ok(finished) => finished,
            Err(error) => return Ok(Err(error)),
        };
        runner::report(&finished);
        if let Some(open_history) = &open_history {
            history.warn(&open_history.recorder.take_errors());
            crate::warn(&history.take_warnings());
            crate::store::close(&open_history.store).await;
        }
        anyhow::Ok(Ok(finished.result))
    });
    if !keep_background {
        orphans::end(guard.as_ref().map(Guard::pid));
    }
    let result = match ended? {
        Ok(result) => result,
        Err(error) => return Ok(Err(error)),
    };
    if let Some(recording) = recording {
        recording.complete(info);
    }
    super::write_output(output, Some(&result));
    Ok(Ok(exit_code::of(&result)))
}

/// Spec, permission requests and worktree of a run.
struct RunContext {
    /// What is kept of the spec.
    kept: KeptSpec,
    requests: Requests,
    /// Events about requests, which the agent does not emit.
    request_events: UnboundedReceiver<AgentEvent>,
    worktree: Option<Worktree>,
}

/// Performs the run and returns its result.
async fn work(run: NewRun, request: RunRequest, context: RunContext) -> anyhow::Result<Finished> {
    let orchestrator = Orchestrator::new(crate::estimates::orchestrator_config())?;
    let run = DetachedRun::new(
        run,
        &orchestrator,
        request,
        context.requests,
        context.request_events,
    )
    .before_done(context.worktree.map(finish));
    let abort = run.abort_handle();
    runner::stop_by_signals(move |kill| {
        if kill {
            abort.kill();
        } else {
            abort.abort();
        }
    })?;
    Ok(run.work().await)
}

/// Returns a hook that finishes the worktree once no process of the run is left in it.
pub(crate) fn finish(worktree: Worktree) -> BeforeDone {
    Box::new(move || {
        AgentEvent::notice(NoticeLevel::Info, NoticeSource::Runtime, worktree.finish())
    })
}
