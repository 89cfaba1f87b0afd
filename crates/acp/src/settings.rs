//! Options of a session.

use std::path::{Path, PathBuf, absolute};

use teamster_core::{
    McpServer, PermissionMode, PermissionPolicy, SessionCapabilities, SessionOptions,
};

/// Capabilities of every session of the protocol.
pub static SESSION_CAPABILITIES: SessionCapabilities = {
    let mut can = SessionCapabilities::none();
    can.interrupt = true;
    can.clear = true;
    can.set_model = true;
    can.set_permission = true;
    can.permissions = true;
    can.images = true;
    can.unasked = true;
    can
};

/// Options of a session that are sent by the protocol. Others are on the agent's command line.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AcpSettings {
    /// Working directory of the agent.
    pub directory: PathBuf,
    /// Additional directories that the agent may use, as absolute paths.
    pub add_dirs: Vec<PathBuf>,
    /// Id of the session to resume.
    pub session_id: Option<String>,
    /// Fork the resumed session instead of continuing it.
    pub fork: bool,
    /// MCP servers that the protocol sends to the agent.
    pub mcp_servers: Vec<McpServer>,
    /// Model to set by the protocol, as the agent names it.
    pub model: Option<String>,
    /// Reasoning effort to set by the protocol, as the agent names it.
    pub effort: Option<String>,
    /// Mode to set by the protocol, as the agent's id.
    pub mode: Option<String>,
    /// An earlier process began the session, possibly with another model. If the current model does not support the
    /// effort, a notice reports it and the session starts anyway.
    pub restarted: bool,
    /// Cost of the session to resume in USD, if an earlier process reported it.
    pub session_cost_usd: Option<f64>,
    /// A prompt may be a command of the agent.
    pub slash_commands: bool,
    /// Tools allowed without a request to the caller.
    pub approve: Approve,
    /// A caller answers requests, so that the agent may ask the user questions.
    pub asks: bool,
    /// The session is a run: it has one turn, which waits for the agent's work in the background.
    pub one_turn: bool,
}

/// Tools allowed without a request to the caller.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approve {
    /// No tool.
    #[default]
    Nothing,
    /// Tools that change files according to the agent.
    Edits,
    /// All tools.
    Everything,
    /// Tools that only read, search or fetch according to the agent. All others are denied.
    ReadOnly,
}

impl Approve {
    /// Returns the tools allowed in this mode, for an agent that requests permission for every tool. `None` for a
    /// mode that the agent itself must enforce.
    pub fn of(mode: PermissionMode) -> Option<Self> {
        match mode {
            PermissionMode::Default => Some(Self::Nothing),
            PermissionMode::AcceptEdits => Some(Self::Edits),
            PermissionMode::Bypass => Some(Self::Everything),
            _ => None,
        }
    }

    /// Returns the tools allowed in this mode, for an agent that requests permission for every tool with side effects:
    /// for such an agent, denials alone enforce the read-only mode too. A tool that the user has allowed in the
    /// agent's own settings runs without a request, so it is not denied.
    pub fn of_asking(mode: PermissionMode) -> Option<Self> {
        match mode {
            PermissionMode::ReadOnly => Some(Self::ReadOnly),
            mode => Self::of(mode),
        }
    }
}

/// Method of changing the permission mode.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ModeSwitch {
    /// Sets this mode of the agent.
    Mode(String),
    /// Sets this option of the agent to this value.
    Option(String, String),
    /// Changes only the answers to permission requests. Nothing is sent to the agent.
    Answers(Approve),
    /// Sets this mode of the agent, and the answers to its permission requests.
    ModeAndAnswers(String, Approve),
}

impl AcpSettings {
    /// Takes the options that every agent supports by the protocol: the directory, the session to resume and its
    /// cost, and commands in prompts. MCP servers and the model are left empty, because most agents take them on the
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
            asks: matches!(options.permissions, PermissionPolicy::Ask(_)),
            one_turn: options.one_turn,
        }
    }
}
