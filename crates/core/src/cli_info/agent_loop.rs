//! A CLI's support for agent loops.

use std::path::Path;

use serde_json::Value;

/// A CLI's support for an agent loop: long runs of many ticks without a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopSupport {
    /// Its process stays from tick to tick unless the settings say otherwise. If not, each tick has a process
    /// of its own, which resumes the session.
    pub keeps_process: bool,
    /// The model for long sessions where the settings name none.
    pub model: Option<&'static str>,
    /// Arguments by which it reads a file of MCP servers itself: those before the file's path, and those
    /// after it. Without them, the servers are parameters of the run.
    pub mcp_file: Option<(&'static [&'static str], &'static [&'static str])>,
    /// The argument that gives it a browser.
    pub browser: Option<&'static str>,
    /// Settings that it is given as a file.
    pub settings: Option<LoopSettings>,
}

impl LoopSupport {
    /// A CLI that needs nothing of its own.
    pub const fn new() -> Self {
        Self {
            keeps_process: true,
            model: None,
            mcp_file: None,
            browser: None,
            settings: None,
        }
    }
}

impl Default for LoopSupport {
    fn default() -> Self {
        Self::new()
    }
}

/// Settings that a CLI is given as a file for a loop.
#[derive(Debug, Clone, Copy)]
pub struct LoopSettings {
    /// The argument before the file's path.
    pub argument: &'static str,
    /// The folder with the agent's skills, in its working directory.
    pub skills: &'static str,
    /// The file's content.
    pub content: fn(&LoopContext<'_>) -> Value,
}

impl PartialEq for LoopSettings {
    fn eq(&self, other: &Self) -> bool {
        self.argument == other.argument
            && self.skills == other.skills
            && std::ptr::fn_addr_eq(self.content, other.content)
    }
}

impl Eq for LoopSettings {}

/// Context for the content of a [`LoopSettings`] file.
#[derive(Debug, Clone, Copy)]
pub struct LoopContext<'a> {
    /// The names of the agent's skills. If there are any, the agent may use only these.
    pub skills: &'a [String],
    /// The loop's log, to which hooks may append lines.
    pub log: &'a Path,
    /// The same from the agent's working directory, with `/`.
    pub log_in_directory: &'a str,
}
