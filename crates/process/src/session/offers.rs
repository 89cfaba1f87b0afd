//! What a session would offer, by a process that is only asked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use teamster_core::provider::{Decoder, Launch, OffersProtocol, OffersQuery, SessionProtocol};
use teamster_core::{
    AgentError, AgentEvent, Capabilities, CliInfo, CliProvider, ErrorCode, ErrorKind,
    ExecuteParams, Offers, SessionCapabilities, SessionOptions, SessionProvider, SessionRuntime,
    Turn,
};

use crate::config::RuntimeConfig;
use crate::runtime::CliRuntime;

/// The process is ended if it does not answer.
static CAPABILITIES: SessionCapabilities = SessionCapabilities::none();

/// Starts the process, reads its answers, and ends it. `None` if the CLI cannot be asked.
pub(super) async fn ask(
    provider: Arc<dyn SessionProvider>,
    mut config: RuntimeConfig,
    options: SessionOptions,
) -> Result<Option<Offers>, AgentError> {
    if provider.offers_query(&options)?.is_none() {
        return Ok(None);
    }
    let name = provider.info().name;
    // It is no run.
    config.record_to = None;
    config.observer = None;
    let session = CliRuntime::with_config(QueryProvider(provider), config).open(options)?;
    let mut events = session.send(Turn::new("-"));
    let mut offers = Offers::new();
    let mut has_answered = false;
    let mut failure = None;
    while let Some(event) = events.next().await {
        match event {
            AgentEvent::Offers(change) => offers.update(&change),
            AgentEvent::TurnEnd(_) => has_answered = true,
            AgentEvent::Done(done) => failure = done.result.failure(),
            _ => {}
        }
    }
    session.close().await;
    if has_answered {
        return Ok(Some(offers));
    }
    Err(failure.unwrap_or_else(|| {
        let message = format!("{name} did not report what it offers");
        AgentError::new(ErrorCode::StreamEndedEarly, ErrorKind::Protocol, message)
    }))
}

/// A provider whose sessions are queries.
struct QueryProvider(Arc<dyn SessionProvider>);

impl QueryProvider {
    fn query(&self, options: &SessionOptions) -> Result<OffersQuery, AgentError> {
        let query = self.0.offers_query(options)?;
        query.ok_or_else(|| AgentError::invalid_params("the CLI cannot be asked what it offers"))
    }
}

impl CliProvider for QueryProvider {
    fn info(&self) -> &'static CliInfo {
        self.0.info()
    }

    fn capabilities(&self) -> &Capabilities {
        self.0.capabilities()
    }

    fn native_programs(&self, launcher: &Path) -> Vec<PathBuf> {
        self.0.native_programs(launcher)
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        self.launch_session(&SessionOptions::new(params.clone()))
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        self.protocol(&SessionOptions::new(params.clone()))
    }
}

impl SessionProvider for QueryProvider {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &CAPABILITIES
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        self.query(options).map(|query| query.launch)
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        // The launch was possible with the same options.
        let protocol = self.query(options).map(|query| query.protocol);
        Box::new(protocol.unwrap_or_else(|_| OffersProtocol::new(&[], 0, |_| None)))
    }
}
