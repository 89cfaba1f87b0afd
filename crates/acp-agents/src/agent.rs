//! The provider of a named agent.

use std::fmt;
use std::path::PathBuf;

use serde_json::json;
use teamster_acp::{AcpProtocol, AcpSettings, Approve, Dialect, RecordedRun, SESSION_CAPABILITIES};
use teamster_core::provider::{
    Args, Decoder, DisplacedFile, Launch, PathLocation, PrivateFile, SessionProtocol, Stdin,
};
use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams, McpDelivery, PermissionMode,
    SessionCapabilities, SessionOptions, SessionProvider,
};

/// A named ACP agent.
#[derive(Clone, Copy)]
pub struct NamedAgent {
    pub(crate) info: &'static CliInfo,
    pub(crate) capabilities: &'static Capabilities,
    /// Arguments that start it as an ACP agent.
    pub(crate) args: fn(&ExecuteParams) -> Args,
    /// The file for the hooks of a session. MUST be there if the agent has the capability.
    pub(crate) hooks_file: Option<HooksFile>,
    pub(crate) dialect: fn(&ExecuteParams) -> Box<dyn Dialect>,
}

/// A file of settings whose hooks run beside the user's own.
#[derive(Clone, Copy)]
pub(crate) struct HooksFile {
    /// The variable that names it.
    pub(crate) variable: &'static str,
    /// The file that is read if the variable is unset.
    pub(crate) default: fn(&ExecuteParams) -> PathBuf,
}

impl HooksFile {
    /// Adds the file to a launch. It takes the place of the one that the CLI would read, whose settings would be lost.
    fn add(self, params: &ExecuteParams, launch: &mut Launch) -> Result<(), AgentError> {
        let Some(hooks) = &params.hooks else {
            return Ok(());
        };
        let Self { variable, default } = self;
        // The caller's value would take the place of the private file.
        if params.env.contains_key(variable) {
            let problem = format!(
                "{variable} is set, which names the file for them: put the hooks into that file, or unset it"
            );
            return Err(AgentError::refused("hooks", problem));
        }
        launch.displaced.push(DisplacedFile {
            parameter: "hooks",
            variable,
            default: default(params),
        });
        launch.private_files.push(PrivateFile {
            location: PathLocation::Variable(variable.to_owned()),
            content: json!({"hooks": hooks}).to_string().into_bytes(),
        });
        Ok(())
    }
}

/// Returns whether a session's id can be part of a path.
pub(crate) fn is_plain(id: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    !id.is_empty() && id.bytes().all(allowed)
}

/// Permission modes of an agent whose requests cover all tools with side effects, so that denials keep the read-only mode.
pub(crate) const ASKING: &[PermissionMode] = &[
    PermissionMode::Default,
    PermissionMode::ReadOnly,
    PermissionMode::AcceptEdits,
    PermissionMode::Bypass,
];

/// Capabilities that all named agents have.
pub(crate) const fn capabilities() -> Capabilities {
    let mut can = Capabilities::none();
    can.resume = true;
    can.model = true;
    // Read-only is for those whose requests cover all tools with side effects.
    can.permission_modes = &[
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::Bypass,
    ];
    can.images = true;
    can.mcp.transports = &["stdio"];
    can.mcp.deliveries = &[McpDelivery::Private];
    can.prompt_on_stdin = true;
    can.text_deltas = true;
    can.thinking = true;
    can.announces_tools = true;
    can.slash_commands = true;
    can.session_commands = true;
    can
}

impl NamedAgent {
    /// Rejects unsupported parameters. The prompt is not checked, because each turn has its own.
    fn check(&self, params: &ExecuteParams) -> Result<(), AgentError> {
        let mut params = params.clone();
        "-".clone_into(&mut params.prompt);
        params.check(self.info, self.capabilities)
    }
}

impl NamedAgent {
    fn talk(&self, options: &SessionOptions) -> AcpProtocol {
        let params = &options.params;
        let mut settings = AcpSettings::of(options);
        settings.mcp_servers.clone_from(&params.mcp_servers);
        settings.model.clone_from(&params.model);
        settings.effort.clone_from(&params.effort);
        settings.approve = Approve::of_asking(params.permission).unwrap_or_default();
        AcpProtocol::new((self.dialect)(params), settings)
    }
}

impl fmt::Debug for NamedAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("NamedAgent").field(&self.info.id).finish()
    }
}

impl CliProvider for NamedAgent {
    fn info(&self) -> &'static CliInfo {
        self.info
    }

    fn capabilities(&self) -> &Capabilities {
        self.capabilities
    }

    /// Always fails: a run cannot answer the agent's requests.
    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        self.check(params)?;
        Err(AgentError::invalid_params(format!(
            "{} only supports sessions: open one, or run it with `OneTurn`",
            self.info.name
        )))
    }

    /// Recordings are made with all tools allowed.
    fn recorded_params(&self, _: &[String], params: &mut ExecuteParams) {
        params.permission = PermissionMode::Bypass;
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        let protocol = self.talk(&SessionOptions::new(params.clone()).one_turn(true));
        Box::new(RecordedRun::new(protocol, params.prompt.clone()))
    }
}

impl SessionProvider for NamedAgent {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &SESSION_CAPABILITIES
    }

    fn only_sessions(&self) -> bool {
        true
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        let params = &options.params;
        self.check(params)?;
        let mut args = (self.args)(params);
        for arg in &params.extra_args {
            args.add(arg);
        }
        let (args, private_files) = args.into_parts();
        let mut launch = Launch {
            args,
            private_files,
            stdin: Stdin::Open(Vec::new()),
            ..Launch::default()
        };
        if let Some(file) = self.hooks_file {
            file.add(params, &mut launch)?;
        }
        Ok(launch)
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        Box::new(self.talk(options))
    }
}

#[cfg(test)]
mod tests;
