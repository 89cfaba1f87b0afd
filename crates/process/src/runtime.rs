//! Runtime for any CLI.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use pin_project_lite::pin_project;
use teamster_core::provider::{Decoder, RunAssembler, Secrets};
use teamster_core::{
    AbortHandle, AgentError, AgentRuntime, Capabilities, CliProvider, EventStream, ExecuteParams,
    ImageSource, LogEntry,
};
use uuid::Uuid;

use crate::config::RuntimeConfig;
use crate::guard::Guarded;
use crate::images;
use crate::launch::{check_displaced, make_absolute};
use crate::queue::{Consumer, queue};
use crate::reading::Reading;
use crate::reset_time::limit_reset_ms;
use crate::spill::Spill;
use crate::start::{self, Refused};
use crate::stop_signals::StopSignals;

/// Runs the CLI that a [`CliProvider`] describes. One value can run any number of agents at once.
#[derive(Debug, Clone)]
pub struct CliRuntime<P> {
    provider: Arc<P>,
    config: Arc<RuntimeConfig>,
}

impl<P: CliProvider> CliRuntime<P> {
    /// Creates a runtime with the default configuration.
    pub fn new(provider: P) -> Self {
        Self::with_config(provider, RuntimeConfig::default())
    }

    /// Creates a runtime with this configuration.
    pub fn with_config(provider: P, config: RuntimeConfig) -> Self {
        Self {
            provider: provider.into(),
            config: config.into(),
        }
    }

    /// Returns the provider.
    pub fn provider(&self) -> &P {
        &self.provider
    }

    /// Returns the configuration.
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
        images::check(&params.images)?;
        for image in &mut params.images {
            if images::file(image).is_some_and(|file| self.provider.reads_image(file)) {
                // What it shows changes nothing.
                image.source = ImageSource::Bytes(Vec::new());
            }
        }
        check_displaced(&self.provider.launch(&params)?, &self.config, &params)
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
        // Its captures may hold secrets and are dropped as soon as the process has started.
        let start = async move { start(&*provider, &config, params, &run_abort).await };
        EventStream::of_batches(Entries::Starting { start }, abort)
    }
}

pin_project! {
    /// The entries of a run or a turn that begins when it is first polled.
    #[project = EntriesProject]
    pub(crate) enum Entries<F> {
        Starting { #[pin] start: F },
        Started { consumer: Consumer },
        Refused,
    }
}

impl<F: Future<Output = Result<Consumer, Refused>>> Stream for Entries<F> {
    type Item = Vec<LogEntry>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Vec<LogEntry>>> {
        loop {
            match self.as_mut().project() {
                EntriesProject::Starting { start } => match ready!(start.poll(cx)) {
                    Ok(consumer) => self.set(Self::Started { consumer }),
                    Err(refused) => {
                        self.set(Self::Refused);
                        return Poll::Ready(Some(refused.entries()));
                    }
                },
                EntriesProject::Started { consumer } => return Pin::new(consumer).poll_next(cx),
                EntriesProject::Refused => return Poll::Ready(None),
            }
        }
    }
}

/// Starts the process and the task that drives it.
async fn start(
    provider: &impl CliProvider,
    config: &RuntimeConfig,
    mut params: ExecuteParams,
    abort: &AbortHandle,
) -> Result<Consumer, Refused> {
    if abort.is_aborted() {
        return Err(RunAssembler::aborted_error().into());
    }
    let images = std::mem::take(&mut params.images);
    let limit = images::limit(params.timeouts.or(config.timeouts));
    let reads = |file: &Path| provider.reads_image(file);
    params.images = images::prepare(images, reads, limit, abort).await?;
    let launch = provider.launch(&params)?;
    let params = &params;
    let spill = Spill::new(config.spill_dir.as_deref(), config.spill_limit_bytes);
    let (producer, consumer) = queue(config.queue_memory_bytes, spill);
    // Before the process starts, because it may change the files of the resumed session that the decoder reads.
    let (decoder, panicked) = Guarded::new(provider.decoder(params));
    let record = decoder.record_files();
    let assembler = RunAssembler::new(Box::new(decoder))
        .include_native(params.include_native)
        .hide(Secrets::of(&params.mcp_servers))
        .resumes(params.session_id.is_some())
        .may_be_silent(params.is_command())
        .reset_time(limit_reset_ms);
    start::start(
        provider,
        config,
        params,
        launch,
        record,
        abort,
        |limits, _| {
            Reading::new(
                assembler,
                panicked,
                producer,
                StopSignals::new(abort),
                limits,
            )
        },
    )
    .await?;
    Ok(consumer)
}
