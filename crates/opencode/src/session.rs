//! Sessions: one process of OpenCode for many turns, as an ACP agent.

use teamster_acp::{AcpProtocol, AcpSettings, Approve, SESSION_CAPABILITIES};
use teamster_core::provider::{Launch, SessionProtocol};
use teamster_core::{
    AgentError, ExecuteParams, PermissionMode, SessionCapabilities, SessionOptions, SessionProvider,
};

use crate::dialect::{OpenCodeDialect, plan_mode};
use crate::{OpenCode, launch};

impl SessionProvider for OpenCode {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &SESSION_CAPABILITIES
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        launch::launch_session(options)
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        let params = &options.params;
        protocol(options, params, OpenCodeDialect::new(params))
    }
}

/// Returns the protocol of a session with these parameters, which may be those of the fork in the CLI's own names.
pub(crate) fn protocol(
    options: &SessionOptions,
    params: &ExecuteParams,
    dialect: OpenCodeDialect,
) -> Box<dyn SessionProtocol> {
    let mut settings = AcpSettings::of(options);
    settings.model.clone_from(&params.model);
    settings.effort.clone_from(&params.effort);
    if params.permission == PermissionMode::Bypass {
        settings.approve = Approve::Everything;
    }
    settings.mode = plan_mode(params);
    Box::new(AcpProtocol::new(Box::new(dialect), settings))
}
