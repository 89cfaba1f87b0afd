//! The CLIs whose files are read.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::places::Places;
use crate::source::{Sink, Source, Sources};
use crate::{claude, codex, copilot, gemini, opencode};

/// A CLI whose files are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// GitHub Copilot CLI.
    Copilot,
    /// Gemini CLI.
    Gemini,
    /// OpenCode.
    OpenCode,
}

impl Provider {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 5] = [
        Self::Claude,
        Self::Codex,
        Self::Copilot,
        Self::Gemini,
        Self::OpenCode,
    ];

    /// The name that the rest of the workspace uses: `claude`, `codex`, `copilot`, `gemini`, `opencode`.
    pub fn id(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
        }
    }

    /// What this CLI has left in these places.
    pub(crate) fn sources(self, places: &Places, found: &mut Sources) {
        match self {
            Self::Claude => claude::sources(places, found),
            Self::Codex => codex::sources(places, found),
            Self::Copilot => copilot::sources(places, found),
            Self::Gemini => gemini::sources(places, found),
            Self::OpenCode => opencode::sources(places, found),
        }
    }

    /// What this CLI keeps of one session, its sub-agents included.
    pub(crate) fn of_session(self, places: &Places, session: &str, found: &mut Sources) {
        // An id comes from outside and becomes part of a path.
        if session.is_empty() || Path::new(session).components().count() != 1 || session == ".." {
            return;
        }
        found.session = Some(session.to_owned());
        match self {
            Self::Claude => claude::of_session(places, session, found),
            Self::Codex => codex::of_session(places, session, found),
            Self::Copilot => copilot::of_session(places, session, found),
            Self::Gemini => gemini::of_session(places, session, found),
            Self::OpenCode => opencode::of_session(places, session, found),
        }
    }

    /// Whether what stands before a place in a file is not needed to read on from there.
    pub(crate) fn reads_on(self) -> bool {
        matches!(self, Self::Claude | Self::Codex)
    }

    /// Reads a source from its start on.
    pub(crate) fn read(source: &Source, sink: &mut Sink<'_>) -> std::io::Result<()> {
        match source.provider {
            Self::Claude => claude::read(source, sink),
            Self::Codex => codex::read(source, sink),
            Self::Copilot => copilot::read(source, sink),
            Self::Gemini => gemini::read(source, sink),
            Self::OpenCode => opencode::read(source, sink),
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// A name that is none of the providers'.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider {0:?}: claude, codex, copilot, gemini or opencode")]
pub struct UnknownProvider(String);

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        let found = Self::ALL.into_iter().find(|p| p.id() == name);
        found.ok_or_else(|| UnknownProvider(name.to_owned()))
    }
}
