//! Providers whose CLI can be kept for many turns.

use std::sync::Arc;

use crate::provider::{Launch, SessionProtocol};
use crate::{AgentError, CliProvider, SessionCapabilities, SessionOptions};

/// A [`CliProvider`] whose CLI can be kept for many turns.
pub trait SessionProvider: CliProvider {
    /// Capabilities of its sessions.
    fn session_capabilities(&self) -> &SessionCapabilities;

    /// How to start it for a session, or why that cannot be. What the CLI reads first can be in
    /// [`Launch::stdin`]; the engine leaves it open and writes there what the protocol wants.
    /// [`ExecuteParams::prompt`](crate::ExecuteParams::prompt) is empty.
    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError>;

    /// Creates the protocol for one process.
    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol>;

    /// The CLI can only be talked to: its runs are sessions of one turn, and its
    /// [`launch`](CliProvider::launch) is an error.
    fn only_sessions(&self) -> bool {
        false
    }
}

impl<P: SessionProvider + ?Sized> SessionProvider for Arc<P> {
    fn session_capabilities(&self) -> &SessionCapabilities {
        (**self).session_capabilities()
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        (**self).launch_session(options)
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        (**self).protocol(options)
    }

    fn only_sessions(&self) -> bool {
        (**self).only_sessions()
    }
}
