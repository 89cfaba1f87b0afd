//! What is particular to a CLI: how it is pointed at a server, and what its tools are called.

mod claude;
mod codex;
mod copilot;
mod gemini;
pub(crate) mod opencode;

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::Part;

/// A CLI that can be pointed at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cli {
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

/// How a CLI is made to ask this server and nobody else.
///
/// All keys in it are made up. Beside the address it has what keeps a CLI from asking others:
/// telemetry, updates and lists of models are off where the CLI lets them be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pointing {
    /// Environment variables.
    pub env: Vec<(String, String)>,
    /// Arguments, which can stand before those of the caller.
    pub args: Vec<String>,
    /// The model to ask for (`--model`), where the CLI's own default would not do.
    pub model: Option<String>,
    /// Files that must be in the home folder. Best is a home of its own for the run, so that nothing
    /// of the user's is changed.
    pub files: Vec<HomeFile>,
}

/// A file in the home folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct HomeFile {
    /// Where it is, from the home folder.
    pub path: PathBuf,
    /// What is in it.
    pub content: String,
}

impl Pointing {
    /// Writes [`files`](Self::files) into a home folder. Files that are there are kept as they are,
    /// and then this is an error: what they say may be another's.
    pub fn write_files(&self, home: &Path) -> std::io::Result<()> {
        use std::io::Write;
        for file in &self.files {
            let path = home.join(&file.path);
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::File::create_new(&path)?.write_all(file.content.as_bytes())?;
        }
        Ok(())
    }
}

impl Cli {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Claude,
        Self::Codex,
        Self::Copilot,
        Self::Gemini,
        Self::OpenCode,
    ];

    /// Its short name, which is that of its program.
    pub fn id(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
        }
    }

    /// The CLI with this short name.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cli| cli.id() == id)
    }

    /// How it is pointed at a server, whose address is `http://HOST:PORT` without a path.
    pub fn point_at(self, url: &str) -> Pointing {
        match self {
            Self::Claude => claude::point_at(url),
            Self::Codex => codex::point_at(url),
            Self::Copilot => copilot::point_at(url),
            Self::Gemini => gemini::point_at(url),
            Self::OpenCode => opencode::point_at(url),
        }
    }

    /// Whose request it is, by what it calls itself (the header `user-agent`) and by the names of
    /// the tools that it offers to the model.
    pub(crate) fn who(user_agent: &str, tools: &[String]) -> Option<Self> {
        let asks = |cli: &Self| match cli {
            Self::Claude => claude::is_asking(user_agent, tools),
            Self::Codex => codex::is_asking(user_agent, tools),
            Self::Copilot => copilot::is_asking(user_agent, tools),
            Self::Gemini => gemini::is_asking(user_agent, tools),
            Self::OpenCode => opencode::is_asking(user_agent, tools),
        };
        Self::ALL.into_iter().find(asks)
    }

    /// The call of its own tool that does what a part asks for, if that is a call.
    pub(crate) fn call(self, part: &Part, place: &Place<'_>) -> Option<Call> {
        if let Part::Tool { name, input } = part {
            return Some(Call::new(name, input.clone()));
        }
        match self {
            Self::Claude => claude::call(part, place),
            Self::Codex => codex::call(part, place),
            Self::Copilot => copilot::call(part, place),
            Self::Gemini => gemini::call(part, place),
            Self::OpenCode => opencode::call(part, place),
        }
    }
}

impl fmt::Display for Cli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

/// What a call of a tool depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Where the agent works, if that is known.
    pub(crate) directory: Option<&'a Path>,
    /// The names of the tools that the CLI offered with the request.
    pub(crate) tools: &'a [String],
}

impl Place<'_> {
    /// A path for a tool that wants absolute ones.
    pub(crate) fn absolute(&self, path: &str) -> String {
        match self.directory {
            Some(directory) => directory.join(path).display().to_string(),
            None => path.to_owned(),
        }
    }

    /// The first of these names that is offered, or else the first of them: that of a tool which is
    /// not offered (because it is not allowed, say) is called all the same.
    pub(crate) fn offered<'n>(&self, names: &[&'n str]) -> &'n str {
        names
            .iter()
            .find(|name| self.tools.iter().any(|tool| tool == *name))
            .or(names.first())
            .unwrap_or(&"")
    }
}

/// A call of a tool, as it stands on the wire.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    /// The tool's name.
    pub(crate) name: String,
    /// Beside the name, where the protocol has namespaces (OpenAI Responses, for MCP).
    pub(crate) namespace: Option<String>,
    /// What it is given: an object, or a string for a tool that takes free text (OpenAI Responses).
    pub(crate) input: Value,
}

impl Call {
    pub(crate) fn new(name: impl Into<String>, input: Value) -> Self {
        Self {
            name: name.into(),
            namespace: None,
            input,
        }
    }
}
