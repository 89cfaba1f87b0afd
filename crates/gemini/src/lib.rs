//! Gemini CLI (`gemini`) as a `teamster` provider.
//!
//! `docs/providers/gemini.md` describes the mapping of its output to events, the source of each figure, and its known
//! faults.
#![warn(missing_docs)]

mod command_line;
mod credentials;
mod decoder;
mod dialect;
mod launch;
mod session;
mod tool_names;
mod transcript;

use teamster_core::provider::{Decoder, Launch};
use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams, McpDelivery, PermissionMode,
    SystemPromptSupport,
};

pub use decoder::GeminiDecoder;

/// Gemini CLI, run with `gemini --output-format=stream-json`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gemini;

static INFO: CliInfo = {
    let mut info = CliInfo::new("gemini", "Gemini CLI", "gemini");
    info.tested_versions = &["0.47.0", "0.54.4", "0.58.0", "0.61.0"];
    info.oldest_version = Some("0.47.0");
    info.install = "npm install -g @google/gemini-cli";
    info.login = "log in with `gemini`, or set GEMINI_API_KEY in the environment";
    info.credentials = credentials::CREDENTIALS;
    info.model_vendor = Some("gcp.gemini");
    info.config_files = launch::CONFIG_FILES;
    info.instructions = &["GEMINI.md", "AGENTS.md"];
    info
};

static CAPABILITIES: Capabilities = {
    let mut can = Capabilities::none();
    can.resume = true;
    can.new_session_id = true;
    can.add_dirs = true;
    can.system_prompt = SystemPromptSupport::Replace;
    can.model = true;
    can.permission_modes = &[
        PermissionMode::Default,
        PermissionMode::ReadOnly,
        PermissionMode::AcceptEdits,
        PermissionMode::Bypass,
        PermissionMode::Plan,
    ];
    can.allowed_tools = true;
    can.denied_tools = true;
    can.mcp.transports = &["stdio", "http", "sse"];
    can.mcp.name_marks = "-_.";
    // The CLI cuts the middle out of `mcp_SERVER_TOOL` if it is longer than 63 characters, and keeps the first 30. It
    // only permits a tool whose name begins with the whole `mcp_SERVER_`.
    can.mcp.longest_name = 25;
    can.mcp.deliveries = &[
        McpDelivery::Private,
        McpDelivery::ProjectConfig,
        McpDelivery::UserConfig,
    ];
    can.mcp.strict = true;
    can.mcp.cwd = true;
    // The only timeout also covers the start, so it is no timeout of the start alone.
    can.mcp.startup_timeout = false;
    can.mcp.tool_timeout = true;
    can.mcp.only_tools = true;
    can.mcp.except_tools = true;
    can.prompt_on_stdin = true;
    can.text_deltas = true;
    // The text of a broken answer is kept, and the next one follows it.
    can.final_text = true;
    can.usage = true;
    can.live_usage = true;
    can.announces_tools = true;
    can.runs_calls_after_answer = true;
    can.slash_commands = true;
    can.session_commands = true;
    can.file_mentions = true;
    can
};

impl CliProvider for Gemini {
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
        Box::new(GeminiDecoder::for_run(params))
    }
}
