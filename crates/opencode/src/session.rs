//! Sessions: one process of OpenCode for many turns, as an agent of the Agent Client Protocol.

use teamster_acp::{AcpProtocol, Approve, Settings};
use teamster_core::{
    AgentError, Launch, PermissionMode, SessionCapabilities, SessionOptions, SessionProtocol,
    SessionProvider,
};

use crate::dialect::OpenCodeDialect;
use crate::{OpenCode, launch};

static CAPABILITIES: SessionCapabilities = {
    let mut can = SessionCapabilities::none();
    can.interrupt = true;
    can.clear = true;
    can.set_model = true;
    can.set_permission = true;
    can.permissions = true;
    can.images = true;
    can
};

impl SessionProvider for OpenCode {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &CAPABILITIES
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        launch::launch_session(options)
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        let params = &options.params;
        let mut settings = Settings::of(options);
        settings.model.clone_from(&params.model);
        settings.effort.clone_from(&params.effort);
        if params.permission == PermissionMode::Bypass {
            settings.approve = Approve::Everything;
        }
        let dialect = OpenCodeDialect::new(params);
        Box::new(AcpProtocol::new(Box::new(dialect), settings))
    }
}
