//! The runner process of a detached session (`teamster chat --detach`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use teamster::PermissionPolicy;
use teamster::orchestrator::{Orchestrator, RunObserver};
use teamster_runner::{
    AtRest, DetachedSession, LogLimits, Requests, Retention, RunInfo, RunKind, Runs, SessionPlan,
};
use uuid::Uuid;

use crate::args::ChatArgs;
use crate::guard::Guard;
use crate::run::detached::finish;
use crate::run::history::History;
use crate::run::request_policy::RequestPolicy;
use crate::{
    detached, exit_code, hints, memory, orphans, params, runner, store, tokio_runtime_of, turns,
    worktree,
};

/// The time at rest after which a session releases memory. Work that follows a turn has ended by then.
const RELEASE_DELAY: Duration = Duration::from_secs(2);

/// Runs a detached session and returns the exit code. Without `id`, the session gets a new one.
pub(crate) fn runner(args: &mut ChatArgs, id: Option<String>) -> anyhow::Result<u8> {
    let id = id.unwrap_or_else(|| Uuid::now_v7().to_string());
    let worktree = match worktree::enter(&mut args.process, &id, args.output.quiet) {
        Ok(worktree) => worktree,
        Err(error) => {
            crate::fail(&error);
            return Ok(exit_code::USAGE);
        }
    };
    let (requests, request_events) = Requests::of(&id);
    let (runs, retention, mut plan, history) = match prepare(args, &id, &requests) {
        Ok(prepared) => prepared,
        Err(error) => {
            crate::fail(&error);
            return Ok(exit_code::USAGE);
        }
    };
    let mut about = RunInfo::new(&*id, &*args.provider);
    about.kind = RunKind::Session;
    about.branch = worktree.as_ref().map(|it| it.branch().to_owned());
    about.model.clone_from(&args.model.model);
    about.directory = params::working_directory(&args.process);
    about.grants = Some(args.grants());
    plan.before_done = worktree.map(finish);
    let guard = Guard::start(about.directory.as_deref()).map(Arc::new);
    plan.at_rest = Some(at_rest(guard.clone()));
    let keep = args.process.keep_background;
    if !keep {
        orphans::adopt();
    }
    // The worker thread reads the agent's output; this thread writes the log.
    let runtime = tokio_runtime_of(1).context("cannot start the runtime")?;
    let code = runtime.block_on(async {
        let run = match runs.accept(&about, LogLimits::default()) {
            Ok(run) => run,
            Err(error) => {
                crate::fail(&error.into());
                return Ok(exit_code::USAGE);
            }
        };
        runner::detach(&run)?;
        let open_history = history.open_for_session().await;
        plan.runs.observer = (open_history.as_ref())
            .map(|open_history| Arc::new(open_history.recorder.clone()) as Arc<dyn RunObserver>);
        let orchestrator = Orchestrator::new(crate::estimates::orchestrator_config())?;
        let session = DetachedSession::new(run, orchestrator, plan, requests, request_events);
        let control = session.control();
        runner::stop_by_signals(move |kill| control.end(kill))?;
        let finished = session.work().await;
        runner::report(&finished);
        if let Some(open_history) = open_history {
            history.warn(&open_history.recorder.take_errors());
            store::close(&open_history.store).await;
        }
        anyhow::Ok(exit_code::of(&finished.result))
    });
    if !keep {
        orphans::end(guard.as_deref().map(Guard::pid));
    }
    runner::prune(&runs, &retention);
    code
}

/// Returns the function that is called when the session begins and ends to wait for a prompt. It MUST be called in a
/// Tokio runtime.
fn at_rest(guard: Option<Arc<Guard>>) -> AtRest {
    let rests = Arc::new(AtomicU64::new(0));
    Box::new(move |is_at_rest| {
        if let Some(guard) = &guard {
            guard.report_idle(is_at_rest);
        }
        let this = rests.fetch_add(1, Ordering::Relaxed) + 1;
        if is_at_rest {
            let rests = Arc::clone(&rests);
            tokio::spawn(async move {
                tokio::time::sleep(RELEASE_DELAY).await;
                if rests.load(Ordering::Relaxed) == this {
                    memory::release_code();
                }
            });
        }
    })
}

/// Prepares the session. Every error is a usage error.
fn prepare(
    args: &ChatArgs,
    id: &str,
    requests: &Requests,
) -> anyhow::Result<(Runs, Retention, SessionPlan, History)> {
    let info = crate::providers()
        .get(&args.provider)
        .context("this provider is not built in")?
        .info();
    let runs = detached::runs()?;
    let retention = detached::retention()?;
    let history = History::new(&args.store, None, None, args.output.quiet)?;
    let (params, ignored) = params::chat_params(args)?;
    if !args.output.quiet {
        crate::warn(&ignored);
    }
    let config = params::chat_config(args, info);
    if let Some(error) = super::missing_program(info, params.env.get("PATH"), &config) {
        bail!("{}", hints::message(&error));
    }
    let mut writer = detached::session_locks(Some(id)).map(|locks| locks.writer(info.id));
    if let Some(writer) = &mut writer {
        writer
            .begin(&params)
            .map_err(|error| anyhow!("{}", hints::message(&error)))?;
    }
    let policy = RequestPolicy::new(args.ask.ask_timeout, requests.clone());
    let mut turns = turns::plan(
        id,
        args,
        info,
        &params,
        |can| match &policy {
            Some(policy) if can.permissions => Ok(policy.policy(can)),
            Some(policy) if policy.required => bail!(
                "--ask-timeout: {} cannot ask for permission in a session",
                info.id
            ),
            _ => Ok(PermissionPolicy::Deny),
        },
        turns::as_set,
    )?;
    turns.writer = writer;
    let mut plan = SessionPlan::new(turns);
    plan.idle = args.end_idle.filter(|time| *time != Duration::MAX);
    Ok((runs, retention, plan, history))
}
