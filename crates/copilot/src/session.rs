//! Sessions: one process of GitHub Copilot CLI for many turns, as an ACP agent.

use teamster_acp::{AcpProtocol, AcpSettings, SESSION_CAPABILITIES};
use teamster_core::provider::{Launch, SessionProtocol};
use teamster_core::{
    AgentError, PermissionMode, SessionCapabilities, SessionOptions, SessionProvider,
};

use crate::dialect::{CopilotDialect, PLAN_MODE};
use crate::{Copilot, launch};

impl SessionProvider for Copilot {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &SESSION_CAPABILITIES
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        launch::launch_session(options)
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        let dialect = CopilotDialect::new(&options.params);
        let mut settings = AcpSettings::of(options);
        let plans = options.params.permission == PermissionMode::Plan;
        settings.mode = plans.then(|| PLAN_MODE.to_owned());
        Box::new(AcpProtocol::new(Box::new(dialect), settings))
    }
}
