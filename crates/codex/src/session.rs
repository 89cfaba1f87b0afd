//! Sessions: `codex app-server`, kept for many turns.
//!
//! It speaks JSON-RPC on its standard streams, one message per line and without a `jsonrpc` field.

mod agents;
mod approvals;
mod calls;
mod current;
mod errors;
mod goals;
mod notices;
mod notifications;
mod offers;
mod opening;
mod permissions;
mod protocol;
mod state;
mod turn;
mod usage;
mod work;

use teamster_core::provider::{Launch, OffersQuery, SessionProtocol};
use teamster_core::{AgentError, SessionCapabilities, SessionOptions, SessionProvider};

use crate::{Codex, launch};
use state::CodexSession;

static CAPABILITIES: SessionCapabilities = {
    let mut can = SessionCapabilities::none();
    can.interrupt = true;
    can.steer = true;
    can.clear = true;
    can.set_model = true;
    can.set_permission = true;
    can.permissions = true;
    can.images = true;
    // With a goal from the model, the CLI begins turns by itself.
    can.unasked = true;
    can
};

impl SessionProvider for Codex {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &CAPABILITIES
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        launch::launch_session(options)
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        Box::new(CodexSession::new(options))
    }

    fn opens_image_files(&self) -> bool {
        true
    }

    fn offers_query(&self, options: &SessionOptions) -> Result<Option<OffersQuery>, AgentError> {
        let launch = launch::launch_query(options)?;
        Ok(Some(OffersQuery::new(launch, offers::query(options))))
    }
}

#[cfg(test)]
#[cfg(repository)] // recordings
mod tests;
