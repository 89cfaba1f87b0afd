//! GitHub Copilot CLI (`copilot`) as a `teamster` provider.
//!
//! `docs/providers/copilot.md` describes the mapping of its output to events, the source of each figure, and its
//! known faults.
#![warn(missing_docs)]

mod command_line;
mod credentials;
mod decoder;
mod dialect;
mod launch;
mod session;
mod transcript;

use std::path::{Path, PathBuf};

use teamster_core::provider::{Decoder, Launch};
use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams, McpDelivery, PermissionMode,
};

pub use decoder::CopilotDecoder;

/// GitHub Copilot CLI, run with `copilot --output-format json`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Copilot;

static INFO: CliInfo = {
    let mut info = CliInfo::new("copilot", "GitHub Copilot CLI", "copilot");
    info.tested_versions = &["1.0.102"];
    // The first version whose record has the usage of each request, which `live_usage` promises.
    info.oldest_version = Some("1.0.102");
    info.install = "npm install -g @github/copilot";
    info.login = "log in with `copilot login`, or set COPILOT_GITHUB_TOKEN (or COPILOT_PROVIDER_BASE_URL and \
            its companions for a model of your own) in the environment";
    info.choose_session_id = true;
    info.credentials = credentials::CREDENTIALS;
    info.agent_loop.keeps_process = false;
    info
};

static CAPABILITIES: Capabilities = {
    let mut can = Capabilities::none();
    can.resume = true;
    can.new_session_id = true;
    can.add_dirs = true;
    can.skills = true;
    can.hooks = true;
    can.model = true;
    can.effort = true;
    can.permission_modes = &[
        PermissionMode::Default,
        PermissionMode::ReadOnly,
        PermissionMode::AcceptEdits,
        PermissionMode::Bypass,
        PermissionMode::Plan,
    ];
    can.allowed_tools = true;
    can.denied_tools = true;
    can.images = true;
    can.mcp.transports = &["stdio", "http", "sse"];
    can.mcp.name_marks = "-_";
    // The CLI truncates SERVER-TOOL to 64 characters.
    can.mcp.longest_name = 48;
    can.mcp.deliveries = &[McpDelivery::Private];
    can.mcp.cwd = true;
    can.mcp.tool_timeout = true;
    can.mcp.only_tools = true;
    can.mcp.except_tools = true;
    can.prompt_on_stdin = true;
    can.text_deltas = true;
    can.thinking = true;
    can.usage = true;
    can.live_usage = true;
    can.announces_tools = true;
    can.session_commands = true;
    can
};

impl CliProvider for Copilot {
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

    fn recorded_params(&self, argv: &[String], params: &mut ExecuteParams) {
        command_line::read(argv, params);
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(CopilotDecoder::for_run(params))
    }
}
