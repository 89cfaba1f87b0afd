//! Options of a session.

use std::path::{Path, PathBuf, absolute};

use teamster_core::{McpServer, PermissionMode, SessionCapabilities, SessionOptions};

/// Capabilities of every session of the protocol.
pub static SESSION_CAPABILITIES: SessionCapabilities = {
    let mut can = SessionCapabilities::none();
    can.interrupt = true;
    can.clear = true;
    can.set_model = true;
    can.set_permission = true;
    can.permissions = true;
    can.images = true;
    can
};

/// Options of a session that the protocol has. Others are on the
/// agent's command line.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Settings {
    /// Where the agent works.
    pub directory: PathBuf,
    /// Directories beside it that the agent may use, by the protocol. They are absolute.
    pub add_dirs: Vec<PathBuf>,
    /// The session to go on with.
    pub session_id: Option<String>,
    /// Go on with it in a new one.
    pub fork: bool,
    /// MCP servers that the protocol sends to the agent.
    pub mcp_servers: Vec<McpServer>,
    /// The model to choose by the protocol, in the agent's own names.
    pub model: Option<String>,
    /// How hard the model shall think, to choose by the protocol, in the agent's own words.
    pub effort: Option<String>,
    /// The mode to choose by the protocol, by the agent's own id for it.
    pub mode: Option<String>,
    /// The session was begun by an earlier process, whose turns may have been played by another model:
    /// what that one does not know is left as it is.
    pub restarted: bool,
    /// Cost of the session to resume in USD, if an earlier process reported it.
    pub session_cost_usd: Option<f64>,
    /// A prompt may be a command of the agent's.
    pub slash_commands: bool,
    /// Tools allowed without a request to the caller.
    pub approve: Approve,
}

/// Tools allowed without a request to the caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approve {
    /// Nothing.
    #[default]
    Nothing,
    /// Tools that change files according to the agent.
    Edits,
    /// Everything.
    Everything,
}

impl Approve {
    /// Tools allowed in this mode for an agent that asks before every tool; `None` for a mode
    /// in which the agent itself has to hold back.
    pub fn of(mode: PermissionMode) -> Option<Self> {
        match mode {
            PermissionMode::Default => Some(Self::Nothing),
            PermissionMode::AcceptEdits => Some(Self::Edits),
            PermissionMode::Bypass => Some(Self::Everything),
            _ => None,
        }
    }
}

/// Method of changing the permission mode.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModeSwitch {
    /// By a mode of the agent's.
    Mode(String),
    /// By this option of the agent's, to this value.
    Option(String, String),
    /// By what is answered when it asks. The agent gets nothing.
    Answers(Approve),
    /// By a mode of the agent's, and by what is answered when it asks in that mode.
    ModeAndAnswers(String, Approve),
}

impl Settings {
    /// Those of these options that every agent takes: where to work, and which session to go on
    /// with. Servers and the model are left to the caller, because most agents take them on their
    /// command line.
    pub fn of(options: &SessionOptions) -> Self {
        let params = &options.params;
        let directory = params.working_directory.as_deref();
        let directory = directory.unwrap_or(Path::new("."));
        Self {
            directory: absolute(directory).unwrap_or_else(|_| directory.to_owned()),
            add_dirs: Vec::new(),
            session_id: params.session_id.clone(),
            fork: params.fork,
            mcp_servers: Vec::new(),
            model: None,
            effort: None,
            mode: None,
            restarted: options.restarted,
            session_cost_usd: options.session_cost_usd,
            slash_commands: params.slash_commands,
            approve: Approve::Nothing,
        }
    }
}
