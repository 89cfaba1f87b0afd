//! The runtime of any CLI.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use teamster_core::{
    AbortHandle, AgentError, AgentRuntime, Capabilities, CliProvider, ErrorCode, ErrorKind,
    EventStream, ExecuteParams, RunAssembler, Secrets,
};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::config::RuntimeConfig;
use crate::driver::{Clock, Driver};
use crate::engine;
use crate::framing::LineBuf;
use crate::guard::Guarded;
use crate::launch::{Plan, make_absolute};
use crate::live::Live;
use crate::on_disk::{Notice, OnDisk};
use crate::orders::Orders;
use crate::queue::{Consumer, queue};
use crate::reading::Reading;
use crate::record::Record;
use crate::recording::Recording;
use crate::spawn::{Spawned, spawn};
use crate::spill::Spill;
use crate::stderr_tail::Tail;
use crate::stdin::StdinWriter;
use crate::stop::{Tree, ladder};
use crate::watchdog::{Alarm, Limits};

/// How long a process may live after the end of its output, if nobody knows better.
const EXIT_GRACE: Duration = Duration::from_secs(3);

/// Runs the CLI that a [`CliProvider`] describes. One value can run any number of agents at once.
#[derive(Debug, Clone)]
pub struct CliRuntime<P> {
    provider: Arc<P>,
    config: Arc<RuntimeConfig>,
}

impl<P: CliProvider> CliRuntime<P> {
    /// A runtime with the default settings.
    pub fn new(provider: P) -> Self {
        Self::with_config(provider, RuntimeConfig::default())
    }

    /// A runtime with these settings.
    pub fn with_config(provider: P, config: RuntimeConfig) -> Self {
        Self {
            provider: provider.into(),
            config: config.into(),
        }
    }

    /// The provider.
    pub fn provider(&self) -> &P {
        &self.provider
    }

    /// The settings.
    pub fn config(&self) -> &RuntimeConfig {
        &self.config
    }
}

impl<P: CliProvider> AgentRuntime for CliRuntime<P> {
    fn id(&self) -> &str {
        self.provider.info().id
    }

    fn capabilities(&self) -> &Capabilities {
        self.provider.capabilities()
    }

    fn check(&self, params: &ExecuteParams) -> Result<(), AgentError> {
        let mut params = params.clone();
        make_absolute(&mut params);
        self.provider.launch(&params).map(drop)
    }

    fn execute(&self, mut params: ExecuteParams) -> EventStream {
        make_absolute(&mut params);
        let new_session = params.session_id.is_none() || params.fork;
        if self.provider.info().choose_session_id && new_session {
            params
                .new_session_id
                .get_or_insert_with(|| Uuid::new_v4().to_string());
        }
        let abort = AbortHandle::new(&params.cancel);
        let run_abort = abort.clone();
        let provider = self.provider.clone();
        let config = self.config.clone();
        let events = async_stream::stream! {
            let queue = match start(&*provider, &config, &params, &run_abort).await {
                Ok(queue) => queue,
                Err(Refused { notices, error }) => {
                    for notice in notices {
                        yield notice.event();
                    }
                    for event in RunAssembler::refuse(error) {
                        yield event;
                    }
                    return;
                }
            };
            // They may hold secrets, and the run can be long.
            drop(params);
            let mut batch = Vec::new();
            while queue.pull(&mut batch).await {
                for event in batch.drain(..) {
                    yield event;
                }
            }
        };
        EventStream::new(events, abort)
    }
}

/// A run that was not started.
struct Refused {
    notices: Vec<Notice>,
    error: AgentError,
}

impl From<AgentError> for Refused {
    fn from(error: AgentError) -> Self {
        let notices = Vec::new();
        Self { notices, error }
    }
}

/// Starts the process and the task that drives it.
async fn start(
    provider: &impl CliProvider,
    config: &RuntimeConfig,
    params: &ExecuteParams,
    abort: &AbortHandle,
) -> Result<Consumer, Refused> {
    if abort.is_aborted() {
        return Err(RunAssembler::aborted_error().into());
    }
    let plan = Plan::new(provider, config, params)?;
    let handle = engine::handle().map_err(|error| {
        let message = format!("no asynchronous runtime could be started for the run: {error}");
        AgentError::new(ErrorCode::Io, ErrorKind::Internal, message)
    })?;
    let (decoder, panicked) = Guarded::new(provider.decoder(params));
    let mut recording = match &config.record_to {
        Some(dir) => Some(Recording::begin(
            dir,
            &plan,
            params,
            config,
            provider.info().id,
        )?),
        None => None,
    };
    let (mut plan, mut on_disk) = match on_disk(plan, &handle, abort).await {
        Ok(made) => made,
        Err(error) => {
            let notice = recording.and_then(|it| it.not_started(&error.message));
            let notices = notice.into_iter().collect();
            return Err(Refused { notices, error });
        }
    };
    let mut reading = Reading::new(
        RunAssembler::new(Box::new(decoder), params.include_native)
            .hide(Secrets::of(&params.mcp_servers)),
        panicked,
    );
    let notices = on_disk.take_notices();
    let record = plan.launch.record.take().map(Record::begin);
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
            .map_err(|error| (Some(error.to_string()), plan.spawn_error(&error))),
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
    for notice in notices {
        reading.notice(notice);
    }
    let spill = Spill::new(config.spill_dir.as_deref(), config.spill_limit_bytes);
    let (producer, consumer) = queue(config.queue_memory_bytes, spill);
    let timeouts = params.timeouts.or(config.timeouts).or(plan.launch.timeouts);
    let input = std::mem::take(&mut plan.launch.stdin);
    let driver = Driver {
        tree: Tree::new(child, &plan.run_id),
        events,
        lines: LineBuf::new(config.max_line_bytes),
        other,
        tail: Tail::new(config.stderr_tail_bytes),
        stdin: stdin.map(|pipe| StdinWriter::new(pipe, input)),
        queue: producer,
        reading,
        orders: Orders::new(abort),
        limits: Limits::new(timeouts, !params.mcp_servers.is_empty()),
        ladder: ladder(&plan.launch, config),
        exit_grace: config
            .exit_grace
            .or(plan.launch.exit_grace)
            .unwrap_or(EXIT_GRACE),
        drain_grace: config.drain_grace,
        keep_background: params.keep_background,
        on_disk: Some(on_disk),
        record,
        recording,
        alarm: Box::pin(Alarm::new()),
        clock,
    };
    let live = Live::new();
    handle.spawn(async move {
        driver.run().await;
        drop(live);
    });
    Ok(consumer)
}

/// Makes what the run needs on disk, on a thread that may wait for it. An abort does not: what comes
/// after it is given back as soon as it is there.
async fn on_disk(
    mut plan: Plan,
    handle: &Handle,
    abort: &AbortHandle,
) -> Result<(Plan, OnDisk), AgentError> {
    if !OnDisk::is_needed(&plan.launch) {
        return Ok((plan, OnDisk::default()));
    }
    let order = abort.clone();
    let mut task = handle.spawn_blocking(move || {
        let on_disk = OnDisk::make(&mut plan, &order)?;
        Ok((plan, on_disk))
    });
    let mut aborted = pin!(abort.aborted());
    poll_fn(|cx| match pin!(&mut task).poll(cx) {
        Poll::Ready(Ok(made)) => Poll::Ready(made),
        Poll::Ready(Err(error)) => Poll::Ready(Err(AgentError::new(
            ErrorCode::Io,
            ErrorKind::Internal,
            format!("the files of the run could not be made: {error}"),
        ))),
        Poll::Pending => aborted
            .as_mut()
            .poll(cx)
            .map(|()| Err(RunAssembler::aborted_error())),
    })
    .await
}
