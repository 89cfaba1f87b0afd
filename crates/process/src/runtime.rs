//! The runtime of any CLI.

use std::sync::Arc;
use std::{mem, vec};

use teamster_core::{
    AbortHandle, AgentError, AgentRuntime, Capabilities, CliProvider, Decoder, EventStream,
    ExecuteParams, LogEntry, RunAssembler, Secrets,
};
use uuid::Uuid;

use crate::config::RuntimeConfig;
use crate::guard::Guarded;
use crate::launch::make_absolute;
use crate::orders::Orders;
use crate::queue::{Consumer, queue};
use crate::reading::Reading;
use crate::spill::Spill;
use crate::start::{self, Refused};

/// About how many bytes of entries the stream hands on together.
const HANDFUL_BYTES: usize = 128 << 10;

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

    pub(crate) fn shared_provider(&self) -> Arc<P> {
        self.provider.clone()
    }

    pub(crate) fn shared_config(&self) -> Arc<RuntimeConfig> {
        self.config.clone()
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

    fn execute(&self, params: ExecuteParams) -> EventStream {
        self.stream(params, true)
    }

    fn execute_without_text(&self, params: ExecuteParams) -> EventStream {
        self.stream(params, false)
    }
}

impl<P: CliProvider> CliRuntime<P> {
    /// The events of a run, whose result has its text or not.
    fn stream(&self, mut params: ExecuteParams, with_text: bool) -> EventStream {
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
            let queue = match start(&*provider, &config, &params, with_text, &run_abort).await {
                Ok(queue) => queue,
                Err(Refused { notices, error }) => {
                    let notices = notices.into_iter().map(crate::notice::Notice::event);
                    let refused = RunAssembler::refuse(error);
                    yield notices.chain(refused).map(Into::into).collect();
                    return;
                }
            };
            // They may hold secrets, and the run can be long.
            drop(params);
            let mut batch = Vec::new();
            while queue.pull(&mut batch).await {
                if queue.taken_bytes() <= HANDFUL_BYTES {
                    yield mem::take(&mut batch);
                    continue;
                }
                let mut entries = mem::take(&mut batch).into_iter();
                while let Some(some) = handful(&mut entries) {
                    yield some;
                }
            }
        };
        EventStream::of_batches(events, abort)
    }
}

/// The next of these entries: not so many that who handles them together keeps much of the queue in memory.
fn handful(entries: &mut vec::IntoIter<LogEntry>) -> Option<Vec<LogEntry>> {
    let mut bytes = 0;
    let is_room = |entry: &&LogEntry| {
        let is_room = bytes < HANDFUL_BYTES;
        bytes += entry.approximate_bytes();
        is_room
    };
    let count = entries.as_slice().iter().take_while(is_room).count();
    (count > 0).then(|| entries.by_ref().take(count).collect())
}

/// Starts the process and the task that drives it.
async fn start(
    provider: &impl CliProvider,
    config: &RuntimeConfig,
    params: &ExecuteParams,
    with_text: bool,
    abort: &AbortHandle,
) -> Result<Consumer, Refused> {
    if abort.is_aborted() {
        return Err(RunAssembler::aborted_error().into());
    }
    let launch = provider.launch(params)?;
    let spill = Spill::new(config.spill_dir.as_deref(), config.spill_limit_bytes);
    let (producer, consumer) = queue(config.queue_memory_bytes, spill);
    // Before the process: it may change what the decoder reads of the session that is resumed.
    let (decoder, panicked) = Guarded::new(provider.decoder(params));
    let record = decoder.record_files();
    let mut assembler = RunAssembler::new(Box::new(decoder), params.include_native)
        .hide(Secrets::of(&params.mcp_servers));
    if !with_text {
        assembler = assembler.without_text();
    }
    start::start(provider, config, params, launch, record, abort, |limits| {
        Reading::new(assembler, panicked, producer, Orders::new(abort), limits)
    })
    .await?;
    Ok(consumer)
}
