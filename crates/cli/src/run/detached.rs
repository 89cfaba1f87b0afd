//! The runner process of a detached run (`teamster run --detach`).

use std::io;

use anyhow::Context;
use teamster::orchestrator::{Orchestrator, RunRequest};
use teamster::{AgentEvent, CliInfo, NoticeLevel, NoticeSource};
use teamster_runner::{
    BeforeDone, DetachedRun, Finished, LogLimits, NewRun, Requests, RunInfo, Runs,
};
use tokio::sync::mpsc::UnboundedReceiver;

use super::Prepared;
use super::request_policy::RequestPolicy;
use crate::args::RunArgs;
use crate::guard::Guard;
use crate::worktree::Worktree;
use crate::{detached, exit_code, orphans, params, runner, tokio_runtime_of};

/// Starts a runner, waits until it has accepted the run, and returns the exit code.
pub(super) fn launch(args: &RunArgs) -> anyhow::Result<u8> {
    match super::prompt(args, io::stdin().lock()) {
        Ok(prompt) => runner::launch(&args.provider, Some(prompt)),
        Err(error) => {
            crate::fail(&error);
            Ok(exit_code::USAGE)
        }
    }
}

/// Runs a detached run in this process and returns the exit code.
pub(crate) fn runner(args: &mut RunArgs, prompt: String) -> anyhow::Result<u8> {
    let info = crate::providers()
        .get(&args.provider)
        .context("this provider is not built in")?
        .info();
    // The launching process has read the prompt.
    args.prompt_file = None;
    args.prompt = Some("the prompt that was given".to_owned());
    let id = super::run_id(args);
    let worktree = match super::enter_worktree(args, &id) {
        Ok(worktree) => worktree,
        Err(error) => {
            crate::fail(&error);
            return Ok(exit_code::USAGE);
        }
    };
    let (requests, request_events) = Requests::of(&id);
    let policy = RequestPolicy::new(args.ask.ask_timeout, requests.clone());
    let prepared = detached::runs().and_then(|runs| {
        let retention = detached::retention()?;
        let (mut params, ignored) = params::execute_params(args, io::empty())?;
        params.prompt = prompt;
        Ok((
            Prepared::new(args, info, params, ignored, policy.as_ref(), Some(&id))?,
            runs,
            retention,
        ))
    });
    match prepared {
        Ok((prepared, runs, retention)) => {
            let mut about = RunInfo::new(&*id, info.id);
            about.branch = worktree.as_ref().map(|it| it.branch().to_owned());
            let context = RunContext {
                requests,
                request_events,
                worktree,
            };
            let code = run(args, info, prepared, &runs, about, context)?;
            runner::prune(&runs, &retention);
            Ok(code)
        }
        Err(error) => {
            crate::fail(&error);
            Ok(exit_code::USAGE)
        }
    }
}

fn run(
    args: &RunArgs,
    info: &'static CliInfo,
    prepared: Prepared<'_>,
    runs: &Runs,
    mut about: RunInfo,
    context: RunContext,
) -> anyhow::Result<u8> {
    let Prepared {
        mut request,
        history,
        output,
        ..
    } = prepared;
    let directory = params::working_directory(&args.process);
    let recording = super::recording(args, info);
    let keep_background = args.process.keep_background;
    let guard = Guard::start(directory.as_deref());
    if !keep_background {
        orphans::adopt();
    }
    // The worker thread reads the agent's output; this thread writes the log.
    let runtime = tokio_runtime_of(1).context("cannot start the runtime")?;
    let ended = runtime.block_on(async {
        let open_history = match history.prepare(&mut request).await {
            Ok(open_history) => open_history,
            Err(error) => {
                crate::fail(&error);
                return Ok(Err(exit_code::USAGE));
            }
        };
        request.observer = (open_history.as_ref())
            .map(|open_history| std::sync::Arc::new(open_history.recorder.clone()) as _);
        let _reserved = match super::reserve_session(&history, &request, Some(&about.run_id)) {
            Ok(reserved) => reserved,
            Err(error) => {
                // Before the run is accepted: later the error would only be in its log.
                crate::fail(&error);
                return Ok(Err(exit_code::USAGE));
            }
        };
        request.run_id = Some(about.run_id.clone());
        about.model.clone_from(&args.model.model);
        about.directory.clone_from(&directory);
        let run = match runs.accept(&about, LogLimits::default()) {
            Ok(run) => run,
            Err(error) => {
                crate::fail(&error.into());
                return Ok(Err(exit_code::USAGE));
            }
        };
        let finished = work(run, request, context).await?;
        runner::report(&finished);
        if let Some(open_history) = &open_history {
            history.warn(&open_history.recorder.take_errors());
            crate::store::close(&open_history.store).await;
        }
        anyhow::Ok(Ok(finished.result))
    });
    if !keep_background {
        orphans::end(guard.as_ref().map(Guard::pid));
    }
    let result = match ended? {
        Ok(result) => result,
        Err(code) => return Ok(code),
    };
    if let Some(recording) = recording {
        recording.complete(info);
    }
    super::write_output(output, Some(&result));
    Ok(exit_code::of(&result))
}

/// Permission requests and worktree of a run.
struct RunContext {
    requests: Requests,
    /// Events about requests, which the agent does not emit.
    request_events: UnboundedReceiver<AgentEvent>,
    worktree: Option<Worktree>,
}

/// Detaches this process, performs the run and returns its result.
async fn work(run: NewRun, request: RunRequest, context: RunContext) -> anyhow::Result<Finished> {
    runner::detach(&run)?;
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
