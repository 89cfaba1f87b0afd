//! Claude Code (`claude`) as a `teamster` provider.
//!
//! `docs/providers/claude.md` describes the mapping of its output to events, the source of each count, and known
//! problems of the CLI.
#![warn(missing_docs)]

mod agent_loop;
mod command_line;
mod credentials;
mod decoder;
mod launch;
mod session;
mod totals;
mod transcript;

use std::path::Path;

use teamster_core::provider::{Decoder, FileLocation, Launch, OffersQuery, SessionProtocol};
use teamster_core::{
    AgentError, Capabilities, CliInfo, CliProvider, ExecuteParams, McpDelivery, PermissionMode,
    SessionCapabilities, SessionOptions, SessionProvider, SystemPromptSupport,
};

pub use decoder::ClaudeDecoder;

/// Claude Code, run with `claude -p --output-format stream-json`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Claude;

static INFO: CliInfo = {
    let mut info = CliInfo::new("claude", "Claude Code", "claude");
    info.tested_versions = &[
        "2.1.197", "2.1.207", "2.1.240", "2.1.290", "2.1.315", "2.1.330", "2.1.332",
    ];
    info.oldest_version = Some("2.1.197");
    info.install = "npm install -g @anthropic-ai/claude-code";
    info.logout_args = &["auth", "logout"];
    info.login =
        "log in with `claude` and then /login, or set ANTHROPIC_API_KEY in the environment";
    info.credentials = credentials::CREDENTIALS;
    info.model_vendor = Some("anthropic");
    info.instructions = &["CLAUDE.md"];
    info.commands = &[FileLocation::Project(".claude/commands")];
    info.skills = &[FileLocation::Project(".claude/skills")];
    info.agent_loop = agent_loop::SUPPORT;
    info
};

static CAPABILITIES: Capabilities = {
    let mut can = Capabilities::none();
    can.resume = true;
    can.fork = true;
    can.new_session_id = true;
    can.add_dirs = true;
    can.skills = true;
    can.sub_agents = true;
    can.hooks = true;
    can.system_prompt = SystemPromptSupport::AppendAndReplace;
    can.title = true;
    can.model = true;
    can.effort = true;
    can.fallback_model = true;
    can.permission_modes = &[
        PermissionMode::Default,
        PermissionMode::ReadOnly,
        PermissionMode::AcceptEdits,
        PermissionMode::Bypass,
        PermissionMode::Plan,
    ];
    can.allowed_tools = true;
    can.denied_tools = true;
    can.max_turns = true;
    can.max_budget_usd = true;
    can.output_schema = true;
    can.images = true;
    can.mcp.transports = &["stdio", "http", "sse"];
    can.mcp.name_marks = "-_";
    can.mcp.deliveries = &[McpDelivery::Private];
    can.mcp.strict = true;
    can.mcp.tool_timeout = true;
    can.mcp.except_tools = true;
    can.cli_retries = true;
    can.prompt_on_stdin = true;
    can.text_deltas = true;
    can.thinking = true;
    can.usage = true;
    can.live_usage = true;
    can.cost = true;
    can.announces_tools = true;
    can.slash_commands = true;
    can.session_commands = true;
    can.file_mentions = true;
    can
};

impl CliProvider for Claude {
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

    fn reads_image(&self, _: &Path) -> bool {
        true
    }

    fn decoder(&self, params: &ExecuteParams) -> Box<dyn Decoder> {
        Box::new(ClaudeDecoder::for_run(params))
    }
}

impl SessionProvider for Claude {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &session::CAPABILITIES
    }

    fn launch_session(&self, options: &SessionOptions) -> Result<Launch, AgentError> {
        launch::launch_session(options)
    }

    fn protocol(&self, options: &SessionOptions) -> Box<dyn SessionProtocol> {
        Box::new(session::ClaudeSession::new(options))
    }

    fn offers_query(&self, options: &SessionOptions) -> Result<Option<OffersQuery>, AgentError> {
        let launch = launch::launch_query(options)?;
        Ok(Some(OffersQuery::new(launch, session::offers_query())))
    }
}
