//! Commands for the host, and what it answers.

use std::path::PathBuf;

use teamster_core::{Image, McpServer, PermissionAnswer, PermissionMode};
use teamster_orchestrator::RunLogEntry;

/// The number of a request of the editor that the host answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ticket(pub(crate) u64);

/// A command for the host.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// Check that a session with this setup could begin: the agent's program is there and logged in. Nothing is
    /// started. Answered by [`AcpServer::prepared`](crate::AcpServer::prepared).
    #[non_exhaustive]
    Prepare {
        /// The request.
        ticket: Ticket,
        /// What the session will be.
        setup: Setup,
    },
    /// Look up a session. Answered by [`AcpServer::found`](crate::AcpServer::found).
    #[non_exhaustive]
    Find {
        /// The request.
        ticket: Ticket,
        /// The session.
        session_id: String,
        /// With the entries of its log.
        replay: bool,
    },
    /// List sessions, the last used first. Answered by [`AcpServer::listed`](crate::AcpServer::listed).
    #[non_exhaustive]
    List {
        /// The request.
        ticket: Ticket,
        /// Only those of this folder.
        cwd: Option<PathBuf>,
        /// Where the page begins: [`SessionPage::next`] of the page before it.
        cursor: Option<String>,
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
    /// Play a turn with these settings. Its entries come by [`AcpServer::entry`](crate::AcpServer::entry), up to its
    /// `done`; a turn that cannot begin ends by [`AcpServer::refused`](crate::AcpServer::refused).
    #[non_exhaustive]
    Prompt {
        /// The session.
        session_id: String,
        /// What the session is, as of now.
        setup: Setup,
        /// The text.
        prompt: Prompt,
    },
    /// Apply changed settings to the session at once, as far as its agent can. Without a process nothing is to be
    /// done: the next [`Prompt`](Self::Prompt) has them.
    #[non_exhaustive]
    Apply {
        /// The session.
        session_id: String,
        /// What the session is, as of now.
        setup: Setup,
    },
    /// Interrupt the turn of a session.
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
        /// The request, by the id that it came with.
        request_id: String,
        /// The answer.
        answer: PermissionAnswer,
    },
}

/// What a session is.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Setup {
    /// The agent. Unset until one is chosen.
    pub agent: Option<String>,
    /// Where the agent works.
    pub cwd: PathBuf,
    /// Further folders.
    pub add_dirs: Vec<PathBuf>,
    /// MCP servers of the editor.
    pub mcp_servers: Vec<McpServer>,
    /// What can be chosen in a session.
    pub settings: Settings,
    /// The session continues with what its log has. Without it, it is a new one.
    pub goes_on: bool,
}

/// What can be chosen in a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The model; unset is the agent's own choice.
    pub model: Option<String>,
    /// The level of thought; unset is the agent's own choice.
    pub effort: Option<String>,
    /// What the agent may do without being asked.
    pub mode: PermissionMode,
}

/// The text for the agent.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Prompt {
    /// The text, with links and embedded files in it.
    pub text: String,
    /// Images that go with it.
    pub images: Vec<Image>,
}

/// A session that was looked up.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Found {
    /// Its agent.
    pub agent: String,
    /// The model that was chosen, if one was.
    pub model: Option<String>,
    /// The entries of its log, if they were requested.
    pub entries: Vec<RunLogEntry>,
}

impl Found {
    /// A session of this agent.
    pub fn new(agent: impl Into<String>, model: Option<String>, entries: Vec<RunLogEntry>) -> Self {
        Self {
            agent: agent.into(),
            model,
            entries,
        }
    }
}

/// A page of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SessionPage {
    /// The sessions.
    pub sessions: Vec<SessionSummary>,
    /// Where the next page begins, if there is one.
    pub next: Option<String>,
}

impl SessionPage {
    /// A page.
    pub fn new(sessions: Vec<SessionSummary>, next: Option<String>) -> Self {
        Self { sessions, next }
    }
}

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSummary {
    /// Its id.
    pub session_id: String,
    /// Where its agent works.
    pub cwd: PathBuf,
    /// Its first prompt, in full.
    pub first_prompt: Option<String>,
    /// When it was last used, by RFC 3339.
    pub updated_at: Option<String>,
    /// Its agent.
    pub agent: String,
}

impl SessionSummary {
    /// A session of this agent in this folder.
    pub fn new(
        session_id: impl Into<String>,
        cwd: impl Into<PathBuf>,
        agent: impl Into<String>,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            cwd: cwd.into(),
            first_prompt: None,
            updated_at: None,
            agent: agent.into(),
        }
    }
}
