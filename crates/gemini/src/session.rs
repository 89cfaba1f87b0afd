//! Sessions: one process of Gemini CLI for many turns, as an ACP agent.

use teamster_acp::{AcpProtocol, AcpSettings, SESSION_CAPABILITIES};
use teamster_core::provider::{Launch, SessionProtocol};
use teamster_core::{AgentError, SessionCapabilities, SessionOptions, SessionProvider};

use crate::dialect::GeminiDialect;
use crate::{Gemini, launch};

impl SessionProvider for Gemini {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &SESSION_CAPABILITIES
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        launch::launch_session(options)
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        let dialect = GeminiDialect::new(&options.params);
        Box::new(AcpProtocol::new(
            Box::new(dialect),
            AcpSettings::of(options),
        ))
    }
}
