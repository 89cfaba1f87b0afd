//! Actions for the host, and the data that the host answers with.

use std::path::PathBuf;

use teamster_api::RunLogEntry;
use teamster_core::{Image, McpServer, PermissionAnswer, PermissionMode};

/// Identifies a request from the editor that the host answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub(crate) u64);

/// A command for the host.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Check that a session with this setup can start: the agent's program is installed and logged in. Starts no
    /// process. Answered by [`AcpServer::prepared`](crate::AcpServer::prepared).
    #[non_exhaustive]
    Prepare {
        /// The request.
        ticket: Ticket,
        /// The setup of the new session.
        setup: Setup,
    },
    /// Ask the agent what a session with this setup would offer, if it can be asked without a prompt. The host may pass the
    /// answer to [`AcpServer::offered`](crate::AcpServer::offered). The session's first prompt makes it unnecessary.
    #[non_exhaustive]
    AskOffers {
        /// The session.
        session_id: String,
        /// The session's current setup.
        setup: Setup,
    },
    /// Look up a session and the entries of its log. Answered by [`AcpServer::found`](crate::AcpServer::found).
    #[non_exhaustive]
    Find {
        /// The request.
        ticket: Ticket,
        /// The session.
        session_id: String,
    },
    /// List sessions, most recently used first. Answered by [`AcpServer::listed`](crate::AcpServer::listed).
    #[non_exhaustive]
    List {
        /// The request.
        ticket: Ticket,
        /// List only the sessions of this folder.
        cwd: Option<PathBuf>,
        /// Start of the page: [`SessionPage::next`] of the previous page. Unset for the first page.
        cursor: Option<String>,
    },
    /// Remove the login of an agent. Answered by [`AcpServer::logged_out`](crate::AcpServer::logged_out).
    #[non_exhaustive]
    LogOut {
        /// The request.
        ticket: Ticket,
        /// The agent's id.
        agent: String,
    },
    /// End the session and its process. Answered by [`AcpServer::done`](crate::AcpServer::done).
    #[non_exhaustive]
    Close {
        /// The request.
        ticket: Ticket,
        /// The session.
        session_id: String,
    },
    /// End the session and remove its log. Answered by [`AcpServer::done`](crate::AcpServer::done).
    #[non_exhaustive]
    Delete {
        /// The request.
        ticket: Ticket,
        /// The session.
        session_id: String,
    },
    /// Give the session another title, whether it is open here or not. Answered by
    /// [`AcpServer::titled`](crate::AcpServer::titled).
    #[non_exhaustive]
    SetTitle {
        /// The request.
        ticket: Ticket,
        /// The session.
        session_id: String,
        /// The title.
        title: String,
    },
    /// Start a turn with these settings. The host passes the turn's entries to
    /// [`AcpServer::entry`](crate::AcpServer::entry), up to `done`. If the turn cannot start, the host calls
    /// [`AcpServer::refused`](crate::AcpServer::refused).
    #[non_exhaustive]
    Prompt {
        /// The session.
        session_id: String,
        /// The session's current setup.
        setup: Setup,
        /// The text and images.
        prompt: Prompt,
    },
    /// Apply changed settings to the session's process, as far as its agent supports that. A session without a
    /// process needs no action: the next [`Prompt`](Self::Prompt) carries the settings.
    #[non_exhaustive]
    Apply {
        /// The session.
        session_id: String,
        /// The session's current setup.
        setup: Setup,
    },
    /// Interrupt the session's turn, if one is in progress.
    #[non_exhaustive]
    Interrupt {
        /// The session.
        session_id: String,
    },
    /// Answer a request of the agent.
    #[non_exhaustive]
    Answer {
        /// The session.
        session_id: String,
        /// The id that [`AcpServer::ask`](crate::AcpServer::ask) was called with.
        request_id: String,
        /// The answer.
        answer: PermissionAnswer,
    },
}

/// The setup of a session: agent, folders, MCP servers and settings.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Setup {
    /// The agent's id. Unset until one is chosen.
    pub agent: Option<String>,
    /// The agent's working directory, an absolute path.
    pub cwd: PathBuf,
    /// Additional folders, as absolute paths.
    pub add_dirs: Vec<PathBuf>,
    /// MCP servers that the editor configured.
    pub mcp_servers: Vec<McpServer>,
    /// The settings that the editor can change.
    pub settings: EditorSettings,
    /// The session has a log to continue. False for a new session.
    pub resumed: bool,
}

/// The settings of a session that an editor can change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EditorSettings {
    /// The model; unset for the agent's default.
    pub model: Option<String>,
    /// The reasoning effort; unset for the agent's default.
    pub effort: Option<String>,
    /// The permission mode.
    pub mode: PermissionMode,
}

/// A prompt for the agent.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Prompt {
    /// The text, including links and embedded files.
    pub text: String,
    /// The images.
    pub images: Vec<Image>,
}

/// The result of a session lookup.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Found {
    /// The agent's id.
    pub agent: String,
    /// The chosen model, if any.
    pub model: Option<String>,
    /// The entries of the session's log, if they were requested.
    pub entries: Vec<RunLogEntry>,
    /// The title that the session has in lists; unset for that of its first prompt.
    pub title: Option<String>,
}

impl Found {
    /// Creates a lookup result for a session of `agent`.
    pub fn new(agent: impl Into<String>, model: Option<String>, entries: Vec<RunLogEntry>) -> Self {
        Self {
            agent: agent.into(),
            model,
            entries,
            title: None,
        }
    }
}

/// A page of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<SessionSummary>,
    /// The cursor of the next page, if there is one.
    pub next: Option<String>,
}

impl SessionPage {
    /// Creates a page.
    pub fn new(sessions: Vec<SessionSummary>, next: Option<String>) -> Self {
        Self { sessions, next }
    }
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSummary {
    /// The session's id.
    pub session_id: String,
    /// The agent's working directory.
    pub cwd: PathBuf,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// The first prompt, in full.
    pub first_prompt: Option<String>,
    /// The time of last use, in RFC 3339 format.
    pub updated_at: Option<String>,
    /// The agent's id.
    pub agent: String,
}

impl SessionSummary {
    /// Creates a summary without a first prompt and without a time of last use.
    pub fn new(
        session_id: impl Into<String>,
        cwd: impl Into<PathBuf>,
        agent: impl Into<String>,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            cwd: cwd.into(),
            title: None,
            first_prompt: None,
            updated_at: None,
            agent: agent.into(),
        }
    }
}
