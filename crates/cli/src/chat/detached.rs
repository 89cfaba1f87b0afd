//! The runner process of a detached session (`teamster chat --detach`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::bail;
use teamster::orchestrator::{Orchestrator, RunObserver};
use teamster::{AgentEvent, CliInfo, PermissionPolicy};
use teamster_api::{RunInfo, RunKind, SessionSpec};
use teamster_runner::{
    AtRest, DetachedSession, LogLimits, NewRun, Requests, Retention, Runs, SessionPlan,
};
use tokio::sync::mpsc::UnboundedReceiver;

use crate::guard::Guard;
use crate::run::detached::finish;
use crate::run::history::{History, Warnings};
use crate::run::request_policy::RequestPolicy;
use crate::{
    detached, exit_code, memory, orphans, params, runner, store, tokio_runtime_of, turns, worktree,
};

/// The time at rest after which a session releases memory. Work that follows a turn has ended by then.
const RELEASE_DELAY: Duration = Duration::from_secs(2);

/// Runs a detached session in this process and returns the exit code. The outer error is the reason why it is refused.
pub(crate) fn runner(id: &str, mut spec: SessionSpec) -> anyhow::Result<anyhow::Result<u8>> {
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
    let (runs, retention, mut plan, history) = prepare(&spec, info, id, &requests)?;
    let mut about = RunInfo::new(id, info.id);
    about.kind = RunKind::Session;
    about.branch = worktree.as_ref().map(|it| it.branch().to_owned());
    about.grants = Some(turns::grants(&spec)?);
    about.model.clone_from(&spec.model);
    about.directory = params::absolute(spec.working_directory.as_deref());
    plan.before_done = worktree.map(finish);
    let guard = Guard::start(about.directory.as_deref()).map(Arc::new);
    plan.at_rest = Some(at_rest(guard.clone()));
    let keep = spec.trusted.keep_background;
    if !keep {
        orphans::adopt();
    }
    // The worker thread reads the agent's output; this thread writes the log.
    let runtime =
        tokio_runtime_of(1).map_err(|error| runner::failure("cannot start the runtime", error))?;
    let code = runtime.block_on(async {
        let run = runs.accept_spec(&about, &kept, LogLimits::default())?;
        warnings.extend(history.take_warnings());
        runner::detach(&run, warnings)?;
        anyhow::Ok(work(run, plan, requests, request_events, &history).await)
    });
    if !keep {
        orphans::end(guard.as_deref().map(Guard::pid));
    }
    runner::prune(&runs, &retention);
    code
}

/// Performs the session and returns the exit code.
async fn work(
    run: NewRun,
    mut plan: SessionPlan,
    requests: Requests,
    request_events: UnboundedReceiver<AgentEvent>,
    history: &History,
) -> anyhow::Result<u8> {
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
    crate::warn(&history.take_warnings());
    Ok(exit_code::of(&finished.result))
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
    spec: &SessionSpec,
    info: &'static CliInfo,
    id: &str,
    requests: &Requests,
) -> anyhow::Result<(Runs, Retention, SessionPlan, History)> {
    let runs = detached::runs()?;
    let retention = detached::retention()?;
    let collected = Warnings::Collected(Mutex::default());
    let history = History::new(spec.trusted.store.as_deref(), None, None, collected)?;
    let params = params::of_session(spec)?;
    let config = params::runtime_config(&spec.trusted, info);
    if let Some(error) = super::missing_program(info, params.env.get("PATH"), &config) {
        bail!(error);
    }
    let mut writer = detached::session_locks(Some(id)).map(|locks| locks.writer(info.id));
    if let Some(writer) = &mut writer {
        writer.begin(&params)?;
    }
    let ask_timeout = spec.ask_timeout_ms.map(params::wait);
    let policy = RequestPolicy::new(ask_timeout, requests.clone());
    let mut turns = turns::plan(
        id,
        spec,
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
    plan.idle = turns::limited(spec.end_idle_ms);
    Ok((runs, retention, plan, history))
}
