//! The runtime of any CLI.

use teamster_core::{
    AbortHandle, AgentRuntime, Capabilities, CliProvider, EventStream, Events, ExecuteParams, Exit,
    RunAssembler,
};
use tokio::io::AsyncReadExt;

use crate::config::RuntimeConfig;
use crate::framing::{Frame, LineBuf};
use crate::launch::Plan;
use crate::spawn::spawn;

/// Runs the CLI that a [`CliProvider`] describes. One value can run any number of agents at once.
#[derive(Debug, Clone)]
pub struct CliRuntime<P> {
    provider: std::sync::Arc<P>,
    config: std::sync::Arc<RuntimeConfig>,
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

    fn execute(&self, params: ExecuteParams) -> EventStream {
        let abort = AbortHandle::new(&params.cancel);
        let run_abort = abort.clone();
        let provider = self.provider.clone();
        let config = self.config.clone();
        let events = async_stream::stream! {
            if run_abort.is_aborted() {
                for event in RunAssembler::refuse(RunAssembler::aborted_error()) {
                    yield event;
                }
                return;
            }
            let start = std::time::Instant::now();
            let started = Plan::new(&*provider, &config, &params).and_then(|plan| {
                spawn(&plan, &tokio::runtime::Handle::current(), config.die_with_parent)
                    .map_err(|error| plan.spawn_error(&error))
            });
            let mut process = match started {
                Ok(process) => process,
                Err(error) => {
                    for event in RunAssembler::refuse(error) {
                        yield event;
                    }
                    return;
                }
            };
            let mut assembler =
                RunAssembler::new(provider.decoder(&params), params.include_native);
            let mut out = Events::new();
            let mut lines = LineBuf::new(config.max_line_bytes);
            if let Some(events) = &mut process.events {
                while let Ok(1..) = events.read_buf(lines.fill()).await {
                    while let Some(frame) = lines.next() {
                        if let Frame::Line(line) = frame {
                            assembler.line(line, &mut out);
                        }
                    }
                    for event in out.drain() {
                        yield event;
                    }
                }
            }
            let code = process.child.wait().await.ok().and_then(|status| status.code());
            let exit = Exit { code, ..Exit::default() };
            assembler.finish(exit, start.elapsed().as_millis() as u64, &mut out);
            for event in out.drain() {
                yield event;
            }
        };
        EventStream::new(events, abort)
    }
}
