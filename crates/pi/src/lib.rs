//! Pi (`pi`) as a `teamster` provider.
//!
//! `docs/providers/pi.md` describes the mapping of its output to events, the source of each figure, and its known
//! faults.
#![warn(missing_docs)]

mod command_line;
mod credentials;
mod decoder;
mod launch;
mod session;

use teamster_core::provider::{Decoder, Launch};
use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams, McpDelivery, PermissionMode,
    SystemPromptSupport,
};

pub use decoder::PiDecoder;

/// Pi, run with `pi --mode json`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pi;

static INFO: CliInfo = {
    let mut info = CliInfo::new("pi", "Pi", "pi");
    info.tested_versions = &["0.87.1", "1.5.2", "1.6.0"];
    info.oldest_version = Some("0.87.1");
    info.install = "npm install -g @earendil-works/pi-coding-agent";
    info.login = "log in with `/login` in `pi`, or set the model provider's key in the environment";
    info.credentials = credentials::CREDENTIALS;
    info
};

static CAPABILITIES: Capabilities = {
    let mut can = Capabilities::none();
    can.resume = true;
    can.fork = true;
    can.new_session_id = true;
    can.system_prompt = SystemPromptSupport::AppendAndReplace;
    can.model = true;
    can.effort = true;
    can.permission_modes = &[
        PermissionMode::Default,
        PermissionMode::ReadOnly,
        PermissionMode::AcceptEdits,
        PermissionMode::Bypass,
    ];
    can.skills = true;
    can.allowed_tools = true;
    can.denied_tools = true;
    can.images = true;
    can.mcp.transports = &["stdio", "http"];
    can.mcp.deliveries = &[McpDelivery::Private];
    can.mcp.cwd = true;
    can.mcp.tool_timeout = true;
    can.mcp.only_tools = true;
    can.mcp.except_tools = true;
    can.prompt_on_stdin = true;
    can.text_deltas = true;
    can.thinking = true;
    can.usage = true;
    can.cost = true;
    can.live_usage = true;
    can.live_cost = true;
    can.announces_tools = true;
    can.runs_calls_after_answer = true;
    can.slash_commands = true;
    can.session_commands = true;
    can
};

impl CliProvider for Pi {
    fn info(&self) -> &'static CliInfo {
        &INFO
    }

    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    fn launch(&self, params: &ExecuteParams) -> Result<Launch, AgentError> {
        launch::launch(params)
    }

    fn recorded_params(&self, argv: &[String], params: &mut ExecuteParams) {
        command_line::read(argv, params);
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(PiDecoder::for_run(params))
    }
}
