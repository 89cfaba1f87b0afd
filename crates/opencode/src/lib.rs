//! OpenCode (`opencode`) as a `teamster` provider, and Kilo (`kilo`), a fork of it.
//!
//! `docs/providers/opencode.md` describes the mapping of its output to events, the source of each figure, and its
//! known faults.
#![warn(missing_docs)]

mod command_line;
mod credentials;
mod decoder;
mod dialect;
mod fork;
mod launch;
mod session;
mod tool_names;

use teamster_core::provider::{Decoder, FileLocation, Launch};
use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams, McpDelivery, PermissionMode,
    SystemPromptSupport,
};

pub use decoder::OpenCodeDecoder;
pub use fork::Kilo;

/// OpenCode, run with `opencode run --format json`.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenCode;

static INFO: CliInfo = {
    let mut info = CliInfo::new("opencode", "OpenCode", "opencode");
    info.tested_versions = &["1.18.17", "1.18.28", "1.18.33"];
    info.oldest_version = Some("1.18.17");
    info.install = "npm install -g opencode-ai";
    info.login =
        "log in with `opencode auth login`, or set the model provider's key in the environment";
    info.credentials = credentials::CREDENTIALS;
    info.config_files = launch::CONFIG_FILES;
    info.commands = &[
        FileLocation::Project(".opencode/command"),
        FileLocation::Project(".opencode/commands"),
    ];
    info.skills = &[
        FileLocation::Project(".opencode/skill"),
        FileLocation::Project(".agents/skills"),
        FileLocation::Project(".claude/skills"),
        FileLocation::user("", ".claude", "skills"),
    ];
    info
};

const CAPABILITIES: Capabilities = {
    let mut can = Capabilities::none();
    can.resume = true;
    can.fork = true;
    can.add_dirs = true;
    can.skills = true;
    can.sub_agents = true;
    can.system_prompt = SystemPromptSupport::AppendAndReplace;
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
    can.mcp.deliveries = &[
        McpDelivery::Private,
        McpDelivery::ProjectConfig,
        McpDelivery::UserConfig,
    ];
    can.mcp.cwd = true;
    can.mcp.startup_timeout = true;
    can.mcp.tool_timeout = true;
    can.mcp.only_tools = true;
    can.mcp.except_tools = true;
    can.prompt_on_stdin = true;
    can.thinking = true;
    can.usage = true;
    can.live_usage = true;
    can.uncounted_tools = &["task"];
    can.live_cost = true;
    can.cost = true;
    // A call is reported with its result when it has ended.
    can.announces_tools = false;
    can.session_commands = true;
    can
};

impl CliProvider for OpenCode {
    fn info(&self) -> &'static CliInfo {
        &INFO
    }

    fn capabilities(&self) -> &Capabilities {
        static THEM: Capabilities = CAPABILITIES;
        &THEM
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        launch::launch(params)
    }

    fn recorded_params(&self, argv: &[String], params: &mut ExecuteParams) {
        command_line::read(argv, params);
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(OpenCodeDecoder::for_run(params))
    }
}
