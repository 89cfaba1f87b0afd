//! Codex (`codex`) as a `teamster` provider.
//!
//! `docs/providers/codex.md` describes the mapping of its output to events, the source of each figure, and its known
//! faults.
#![warn(missing_docs)]

mod command_line;
mod credentials;
mod decoder;
mod launch;
mod session;
mod totals;
mod transcript;
mod wire;

use std::path::{Path, PathBuf};

use teamster_core::provider::{Decoder, Launch};
use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams, McpDelivery, PermissionMode,
    SystemPromptSupport,
};

pub use decoder::CodexDecoder;

/// Codex, run with `codex exec --json`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Codex;

static INFO: CliInfo = {
    let mut info = CliInfo::new("codex", "Codex", "codex");
    info.tested_versions = &[
        "0.159.3", "0.162.1", "0.164.0", "0.166.0", "0.169.0", "0.171.0",
    ];
    info.oldest_version = Some("0.159.3");
    info.install = "npm install -g @openai/codex";
    info.logout_args = &["logout"];
    info.login = "log in with `codex login`, or with a key: `printenv OPENAI_API_KEY | codex login --with-api-key`";
    info.credentials = credentials::CREDENTIALS;
    info.model_vendor = Some("openai");
    info.config_files = launch::CONFIG_FILES;
    info
};

static CAPABILITIES: Capabilities = {
    let mut can = Capabilities::none();
    can.resume = true;
    can.fork = true;
    can.add_dirs = true;
    can.system_prompt = SystemPromptSupport::AppendAndReplace;
    can.model = true;
    can.effort = true;
    can.permission_modes = &[
        PermissionMode::Default,
        PermissionMode::ReadOnly,
        PermissionMode::AcceptEdits,
        PermissionMode::Bypass,
    ];
    can.session_plan = true;
    can.output_schema = true;
    can.images = true;
    can.mcp.transports = &["stdio", "http"];
    can.mcp.name_marks = "-_";
    can.mcp.deliveries = &[McpDelivery::Private, McpDelivery::UserConfig];
    can.mcp.cwd = true;
    can.mcp.startup_timeout = true;
    can.mcp.tool_timeout = true;
    can.mcp.only_tools = true;
    can.mcp.except_tools = true;
    can.prompt_on_stdin = true;
    can.thinking = true;
    can.usage = true;
    can.live_usage = true;
    // Newer models start agents without an item, actions of agents have none, and a command that fails at once may
    // have none either.
    can.announces_tools = false;
    can.session_commands = true;
    can
};

impl CliProvider for Codex {
    fn info(&self) -> &'static CliInfo {
        &INFO
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn native_programs(&self, launcher: &Path) -> Vec<PathBuf> {
        launch::native_programs(launcher)
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        launch::launch(params)
    }

    fn reads_image(&self, file: &Path) -> bool {
        launch::has_comma(file)
    }

    fn recorded_params(&self, argv: &[String], params: &mut ExecuteParams) {
        command_line::read(argv, params);
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(CodexDecoder::for_run(params))
    }
}
