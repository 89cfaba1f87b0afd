//! Options for MCP servers, skills, sub-agents and hooks.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use teamster::McpDelivery;

use super::value::named_values;

/// Selection of MCP servers.
#[derive(Clone, Default, Args)]
pub(crate) struct ServerArgs {
    /// MCP servers from a file in the form of `.mcp.json`, or the JSON itself (repeatable)
    ///
    /// `${NAME}` and `${NAME:-default}` in it stand for environment variables.
    #[arg(
        long,
        value_name = "FILE|JSON",
        value_hint = ValueHint::FilePath,
        hide_short_help = true
    )]
    pub(crate) mcp_config: Vec<String>,
    /// An MCP server: its command as in a shell, or its address (repeatable)
    ///
    /// For example: --mcp "tracker=tracker-mcp --read-only" --mcp docs=https://example.com/mcp.
    /// Variables may come before the command; `${NAME}` in single quotes keeps a secret out of
    /// teamster's own arguments: --mcp 'tracker=TOKEN=${TOKEN} tracker-mcp'.
    #[arg(long, value_name = "NAME=COMMAND", hide_short_help = true)]
    pub(crate) mcp: Vec<String>,
}

// Omits the values, which may be secrets.
teamster_core::debug_fields!(ServerArgs {});

#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "MCP servers, skills, sub-agents and hooks")]
pub(crate) struct McpArgs {
    #[command(flatten)]
    pub(crate) servers: ServerArgs,
    /// Pass the servers to the agent's CLI in this way
    #[arg(
        long,
        value_name = "WAY",
        default_value = "private",
        value_parser = named_values(DELIVERIES)
    )]
    pub(crate) mcp_via: McpDelivery,
    /// Use only these servers, none of the user's own
    #[arg(long)]
    pub(crate) mcp_strict: bool,
    /// A skill for the agent, beside the user's own: a directory with a `SKILL.md` (repeatable)
    ///
    /// The CLI reads it where it is; none of the user's files is changed. What else is in the directory, the CLI may load
    /// too: name only one that you trust.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) skill: Vec<PathBuf>,
    /// A sub-agent beside the user's own: a Markdown file with a YAML head (repeatable)
    ///
    /// The head has `name`, `description` and settings in the CLI's own words, such as `tools`; below it is the prompt.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) agent_file: Vec<PathBuf>,
    /// Hooks beside the user's own: a file in the form of the CLI's settings, or the JSON itself
    ///
    /// With Claude Code, GitHub Copilot CLI and Qwen Code, for example: --hooks '{"hooks": {"PreToolUse": […]}}'. The CLI
    /// runs their commands, such as before and after tools, and gets them in a private file. Exit code 2 of a command
    /// before a tool denies the call; with Copilot, any but 0 does.
    #[arg(long, value_name = "FILE|JSON", hide_short_help = true, value_hint = ValueHint::FilePath)]
    pub(crate) hooks: Option<String>,
}

/// Values of `--mcp-via` with their help texts.
const DELIVERIES: &[(McpDelivery, &str)] = &[
    (
        McpDelivery::Private,
        "Without changing any of the user's files",
    ),
    (
        McpDelivery::ProjectConfig,
        "In the CLI's configuration file in the working directory, until the run is over; other runs of \
         the same CLI that read it meanwhile get these servers too, already approved",
    ),
    (
        McpDelivery::UserConfig,
        "In the user's own configuration file, until the run is over; other runs of the same CLI that \
         read it meanwhile get these servers too, already approved",
    ),
];
