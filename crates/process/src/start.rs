//! Start of a process and of the task that drives it.

use std::path::Path;
use std::time::Duration;

use teamster_core::provider::{Launch, RecordFiles, RunAssembler};
use teamster_core::{AbortHandle, AgentError, CliProvider, ExecuteParams, LogEntry};

use crate::clock::Clock;
use crate::config::{RecordTo, RuntimeConfig};
use crate::driver::Driver;
use crate::engine::{blocking, engine_of_run};
use crate::follow::Follower;
use crate::framing::LineBuf;
use crate::last_output::LastOutput;
use crate::launch::Plan;
use crate::live::Live;
use crate::notice::Notice;
use crate::observe::Observed;
use crate::observe::StartedProcess;
use crate::on_disk::OnDisk;
use crate::reading::Reader;
use crate::recording::{self, Recording};
use crate::spawn::{Spawned, spawn};
use crate::stderr_tail::Tail;
use crate::stdin::StdinWriter;
use crate::stop::{Tree, ladder};
use crate::trace::trace;
use crate::watchdog::{Alarm, Limits};

/// Error of a process that was not started.
pub(crate) struct Refused {
    pub(crate) notices: Vec<Notice>,
    pub(crate) error: AgentError,
}

impl Refused {
    /// Returns its whole stream.
    pub(crate) fn entries(self) -> Vec<LogEntry> {
        let notices = self.notices.into_iter().map(Notice::event);
        let refused = RunAssembler::refuse(self.error);
        notices.chain(refused).map(Into::into).collect()
    }
}

impl From<AgentError> for Refused {
    fn from(error: AgentError) -> Self {
        let notices = Vec::new();
        Self { notices, error }
    }
}

/// Starts the process and the task that drives it. `reader` gets the time limits and the process id.
pub(crate) async fn start<R: Reader + 'static>(
    provider: &impl CliProvider,
    config: &RuntimeConfig,
    params: &ExecuteParams,
    launch: Launch,
    record: Option<RecordFiles>,
    abort: &AbortHandle,
    reader: impl FnOnce(Limits, Option<u32>) -> R,
) -> Result<(), Refused> {
    let start = async {
        let start = start_in_span(provider, config, params, launch, record, abort, reader);
        let started = start.await;
        #[cfg(feature = "tracing")]
        if let Err(refused) = &started {
            trace!(WARN, why = refused.error.message, "not started");
        }
        started
    };
    #[cfg(feature = "tracing")]
    let start = tracing::Instrument::instrument(
        start,
        tracing::info_span!(
            target: "teamster::process",
            "run",
            provider = provider.info().id,
            pid = tracing::field::Empty
        ),
    );
    start.await
}

async fn start_in_span<R: Reader + 'static>(
    provider: &impl CliProvider,
    config: &RuntimeConfig,
    params: &ExecuteParams,
    launch: Launch,
    record: Option<RecordFiles>,
    abort: &AbortHandle,
    reader: impl FnOnce(Limits, Option<u32>) -> R,
) -> Result<(), Refused> {
    let mut plan = Plan::new(provider, config, params, launch)?;
    let handle = engine_of_run()?;
    let pulled = match &mut plan.container {
        Some(container) => container.prepare(config, abort).await?,
        None => None,
    };
    // In a container, the CLI writes its records there.
    let record = record.filter(|_| plan.container.is_none());
    let begin = |dir: &Path| Recording::begin(dir, &plan, params, config, provider.info().id);
    let mut recording = match &config.record_to {
        Some(RecordTo::Run(dir)) => Some(begin(dir)?),
        Some(RecordTo::Each(dir)) => Some(begin(&recording::next_folder(dir)?)?),
        None => None,
    };
    let (mut plan, mut on_disk) = match on_disk(plan, abort).await {
        Ok(made) => made,
        Err(error) => {
            let notice = recording.and_then(|it| it.not_started(&error.message));
            let notices = notice.into_iter().collect();
            return Err(Refused { notices, error });
        }
    };
    plan.wrap();
    let mut notices = on_disk.take_notices();
    notices.extend(pulled);
    let follower = Follower::begin(&handle, record, params.usage_updates).await;
    let clock = Clock::start();
    let recorded = match &mut recording {
        Some(recording) => recording.start(&plan, params, config),
        None => Ok(()),
    };
    let spawned = match recorded {
        Err(error) => {
            recording = None;
            Err((None, error))
        }
        Ok(()) if abort.is_aborted() => Err((None, RunAssembler::aborted_error())),
        Ok(()) => spawn(&plan, &handle, config.die_with_parent)
            .await
            .map_err(|error| (Some(error.to_string()), plan.spawn_error(error))),
    };
    let Spawned {
        child,
        stdin,
        events,
        other,
    } = match spawned {
        Ok(spawned) => spawned,
        Err((system, error)) => {
            let why = system.as_deref().unwrap_or(&error.message);
            let unrecorded = recording.and_then(|it| it.not_started(why));
            let later = on_disk.release_elsewhere(&handle).await;
            let notices = notices.into_iter().chain(later).chain(unrecorded).collect();
            return Err(Refused { notices, error });
        }
    };
    #[cfg(feature = "tracing")]
    tracing::Span::current().record("pid", child.id());
    trace!(DEBUG, program = %plan.program.display(), "started");
    if let (Some(observer), Some(pid)) = (&config.on_start, child.id()) {
        observer.started(&StartedProcess {
            pid,
            program: plan.program.clone(),
            args: (plan.launch.args.iter())
                .map(|arg| arg.to_string_lossy().into_owned())
                .collect(),
        });
    }
    let timeouts = params.timeouts.or(config.timeouts).or(plan.launch.timeouts);
    let limits = Limits::new(timeouts, !params.mcp_servers.is_empty());
    let mut reader = reader(limits, child.id());
    for notice in notices {
        reader.notice(notice);
    }
    let input = std::mem::take(&mut plan.launch.stdin);
    let driver = Driver {
        tree: Tree::new(child, &plan.run_id),
        events,
        lines: LineBuf::new(config.max_line_bytes),
        last_output: LastOutput::default(),
        other,
        tail: Tail::new(config.stderr_tail_bytes),
        observed: config.observer.clone().map(Observed::new),
        stdin: stdin.map(|pipe| StdinWriter::new(pipe, input)),
        reader,
        ladder: ladder(&plan.launch, config),
        exit_grace: exit_grace(config.exit_grace, plan.launch.exit_grace),
        term_grace: config.term_grace,
        drain_grace: config.drain_grace,
        keep_background: params.keep_background,
        on_disk: Some(on_disk),
        follower: Some(follower),
        recording,
        alarm: Box::pin(Alarm::new()),
        clock,
        program: (plan.program.clone(), plan.env.path()),
        container: plan.container,
    };
    let live = Live::new();
    let run = async move {
        driver.run().await;
        drop(live);
    };
    #[cfg(feature = "tracing")]
    let run = tracing::Instrument::in_current_span(run);
    handle.spawn(run);
    Ok(())
}

/// Creates the files of the run on a blocking thread. An abort does not wait for it: files that are created after
/// the abort are removed as soon as they exist.
async fn on_disk(mut plan: Plan, abort: &AbortHandle) -> Result<(Plan, OnDisk), AgentError> {
    if !OnDisk::is_needed(&plan) {
        return Ok((plan, OnDisk::default()));
    }
    let order = abort.clone();
    blocking(abort, move || {
        let on_disk = OnDisk::make(&mut plan, &order)?;
        Ok((plan, on_disk))
    })
    .await
}

/// Returns the time that a process may live after the end of its turn or its output. The provider's limit for a CLI
/// that does not end soon applies even if the runtime's is longer.
fn exit_grace(config: Option<Duration>, provider: Option<Duration>) -> Duration {
    match (config, provider) {
        (Some(config), Some(provider)) => config.min(provider),
        (config, provider) => config.or(provider).unwrap_or(RuntimeConfig::EXIT_GRACE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shorter_exit_grace_holds() {
        let seconds = |it: u64| Some(Duration::from_secs(it));
        for (config, provider, expected) in [
            (None, None, Some(RuntimeConfig::EXIT_GRACE)),
            (seconds(30), None, seconds(30)),
            (None, seconds(10), seconds(10)),
            // A configuration that waits for any CLI, and a CLI that never ends by itself.
            (seconds(30), seconds(2), seconds(2)),
            (seconds(1), seconds(10), seconds(1)),
        ] {
            assert_eq!(Some(exit_grace(config, provider)), expected);
        }
    }
}
