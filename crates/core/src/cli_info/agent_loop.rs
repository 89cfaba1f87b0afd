//! A CLI's support for agent loops.

use std::path::Path;

use serde_json::Value;

/// A CLI's support for agent loops: unattended runs of many ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoopSupport {
    /// True if its process is kept between ticks unless the settings disable it. If false, each tick has its own
    /// process, which resumes the session.
    pub keeps_process: bool,
    /// The default model for long sessions.
    pub model: Option<&'static str>,
    /// Arguments that pass a file of MCP servers: those before the file's path and those after it. If `None`, the
    /// servers are parameters of the run.
    pub mcp_file: Option<(&'static [&'static str], &'static [&'static str])>,
    /// The argument that enables a browser.
    pub browser: Option<&'static str>,
    /// Settings that are passed as a file.
    pub settings: Option<LoopSettings>,
}

impl LoopSupport {
    /// Creates the support of a CLI without special settings.
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

/// Settings that a loop passes to its CLI as a file.
#[derive(Debug, Clone, Copy)]
pub struct LoopSettings {
    /// The argument before the file's path.
    pub argument: &'static str,
    /// The folder with the agent's skills, in the agent's working directory.
    pub skills: &'static str,
    /// Creates the file's content.
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
    /// Names of the agent's skills. If there are any, the agent may use only these.
    pub skills: &'a [String],
    /// The loop's log, to which hooks may append lines.
    pub log: &'a Path,
    /// Path of the log relative to the agent's working directory, with `/` as separator.
    pub log_in_directory: &'a str,
}
