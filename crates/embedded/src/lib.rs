//! An agent whose model loop runs in this process.
//!
//! [`Embedded`] sends requests to a model and runs the tools that the model calls, until the model is done. Events,
//! results, permissions and sessions are the same as with a CLI. It is deliberately small. Its uses are judges,
//! summaries, CI, local models, and a fallback for a CLI that fails.
//!
//! ```no_run
//! use teamster_embedded::{Embedded, EmbeddedConfig};
//! use teamster_embedded::teamster_core::{AgentRuntime, ExecuteParams, PermissionMode};
//!
//! # async fn example() {
//! let runtime = Embedded::new(EmbeddedConfig::default());
//! let params = ExecuteParams::new("Which tests are flaky?")
//!     .model("anthropic/claude-sonnet-4-5")
//!     .permission(PermissionMode::ReadOnly);
//! let result = runtime.execute(params).await;
//! println!("{}", result.answer().unwrap_or_default());
//! # }
//! ```
//!
//! # Models
//!
//! A model's name has two parts, the service and the service's name for the model: `anthropic/…`, `openai/…`,
//! `gemini/…`, `ollama/…`, and `openai-compatible/…` for any other address. Keys and addresses come from the
//! environment (`ANTHROPIC_API_KEY`, `OPENAI_BASE_URL`, …) or from [`EmbeddedConfig`]. Keys never appear in events,
//! logs or errors.
//!
//! # Tools
//!
//! `read`, `write`, `edit`, `grep` and `glob` work in the working directory and in
//! [`add_dirs`](teamster_core::ExecuteParams::add_dirs). Symbolic links are followed, and a path that leads outside
//! is an error. `bash` runs a command with the guarantees of the process engine: limits, cleanup of all processes, and
//! no strays. MCP servers are started by this process.
//!
//! # Sessions
//!
//! A session is a file that only its user can read, with one JSON line per message. Only one run or live session can
//! write to it at a time.
#![warn(missing_docs)]

mod args;
mod config;
mod context;
mod conversation;
mod emit;
mod http;
mod keys;
mod limits;
mod mcp;
mod model;
mod permission;
mod prompt;
mod proxy;
mod request;
mod run;
mod sandbox;
mod schema;
mod session;
mod settings;
mod store;
mod tools;
mod wire;

use std::sync::Arc;

use teamster_core::provider::Credentials;
use teamster_core::{
    AbortHandle, AgentError, AgentRuntime, AgentSession, Capabilities, CliInfo, EventStream,
    ExecuteParams, McpDelivery, McpSupport, PermissionMode, PermissionPolicy, SessionCapabilities,
    SessionOptions, SessionRuntime, SystemPromptSupport,
};

/// Re-export of the core types, so that this crate suffices.
pub use teamster_core;

pub use config::{EmbeddedConfig, Prices};
pub use keys::hide_keys;
pub use sandbox::become_sandboxed;

/// Id of the runtime, which is its agent name in `teamster`.
pub const ID: &str = "embedded";

/// Static facts about the runtime. It has no program.
pub static INFO: CliInfo = {
    let mut info = CliInfo::new(ID, "Embedded", "");
    info.login = "set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or name a model that needs no key";
    info.credentials = {
        let mut credentials = Credentials::unknown();
        credentials.variables = &[
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
        ];
        credentials
    };
    info
};

const CAPABILITIES: Capabilities = {
    let mut can = Capabilities::none();
    can.resume = true;
    can.fork = true;
    can.new_session_id = true;
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
    can.allowed_tools = true;
    can.denied_tools = true;
    can.max_turns = true;
    can.output_schema = true;
    can.images = true;
    can.mcp = {
        let mut mcp = McpSupport::none();
        mcp.transports = &["stdio", "http"];
        mcp.deliveries = &[McpDelivery::Private];
        // A run has only its own servers.
        mcp.strict = true;
        mcp.cwd = true;
        mcp.startup_timeout = true;
        mcp.tool_timeout = true;
        mcp.only_tools = true;
        mcp.except_tools = true;
        mcp
    };
    can.cli_retries = true;
    can.prompt_on_stdin = true;
    can.text_deltas = true;
    can.thinking = true;
    can.usage = true;
    can.live_usage = true;
    can.announces_tools = true;
    can.runs_calls_after_answer = true;
    can
};

static SESSION_CAPABILITIES: SessionCapabilities = {
    let mut can = SessionCapabilities::none();
    can.interrupt = true;
    can.steer = true;
    can.clear = true;
    can.set_model = true;
    can.set_permission = true;
    can.permissions = true;
    can.denial_reason = true;
    can.changed_input = true;
    can.images = true;
    can
};

/// The embedded runtime. One value can run any number of agents concurrently.
#[derive(Clone)]
pub struct Embedded {
    config: Arc<EmbeddedConfig>,
    capabilities: Arc<Capabilities>,
}

impl Embedded {
    /// Creates a runtime with these settings.
    pub fn new(config: EmbeddedConfig) -> Self {
        let mut capabilities = CAPABILITIES;
        // Costs are known only with prices.
        capabilities.cost = config.prices.is_some();
        capabilities.live_cost = config.prices.is_some();
        capabilities.max_budget_usd = config.prices.is_some();
        Self {
            config: config.into(),
            capabilities: capabilities.into(),
        }
    }

    /// Returns the settings.
    pub fn config(&self) -> &EmbeddedConfig {
        &self.config
    }
}

impl Default for Embedded {
    fn default() -> Self {
        Self::new(EmbeddedConfig::default())
    }
}

teamster_core::debug_fields!(Embedded { config });

impl AgentRuntime for Embedded {
    fn id(&self) -> &str {
        ID
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn check(&self, params: &ExecuteParams) -> Result<(), AgentError> {
        settings::Settings::new(&self.config, &self.capabilities, params).map(drop)
    }

    fn execute(&self, params: ExecuteParams) -> EventStream {
        let abort = AbortHandle::new(&params.cancel);
        let (config, can) = (self.config.clone(), self.capabilities.clone());
        run::stream(config, can, params, PermissionPolicy::Deny, abort)
    }
}

impl SessionRuntime for Embedded {
    fn session_capabilities(&self) -> &SessionCapabilities {
        &SESSION_CAPABILITIES
    }

    fn open(&self, options: SessionOptions) -> Result<Box<dyn AgentSession>, AgentError> {
        options.check_tool_hooks("the embedded agent", &SESSION_CAPABILITIES)?;
        session::open(self.config.clone(), self.capabilities.clone(), options)
    }
}
