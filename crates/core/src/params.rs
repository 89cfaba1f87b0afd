//! Parameters of a run.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use derive_setters::Setters;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::{McpDelivery, McpServer};

/// Everything that can be asked of one run.
///
/// A parameter that a provider cannot honour makes the run fail with
/// [`ErrorCode::InvalidParams`](crate::ErrorCode::InvalidParams) and the parameter's name, before
/// anything is started; [`Capabilities`](crate::Capabilities) answers beforehand.
///
/// ```
/// use teamster_core::{ExecuteParams, PermissionMode};
///
/// let params = ExecuteParams::new("What does this crate do?")
///     .model("sonnet")
///     .permission(PermissionMode::ReadOnly)
///     .working_directory("crates/core");
/// ```
///
/// They deserialize, with names in camelCase and times such as `"90s"`; MCP servers are read by
/// `teamster_mcp::config` from the JSON that users have.
///
/// ```
/// # use teamster_core::ExecuteParams;
/// let json = r#"{"prompt": "hi", "permission": "read-only", "timeouts": {"idle": "90s"}}"#;
/// let params: ExecuteParams = serde_json::from_str(json)?;
/// assert_eq!(params.timeouts.idle, Some(std::time::Duration::from_secs(90)));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Deserialize, Setters)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[setters(strip_option)]
#[non_exhaustive]
pub struct ExecuteParams {
    /// The prompt.
    #[setters(into)]
    pub prompt: String,
    /// How the prompt reaches the CLI.
    pub prompt_delivery: PromptDelivery,
    /// Let the CLI take a prompt that begins with `/` for a command of its own.
    pub slash_commands: bool,
    /// The session to resume. Without it a new one begins.
    #[setters(into, rename = "resume")]
    pub session_id: Option<String>,
    /// The id that a new session (or a fork) shall have. A UUID, for the CLIs that take one.
    #[setters(into)]
    pub new_session_id: Option<String>,
    /// Resume into a new session and leave the old one as it is.
    pub fork: bool,
    /// Where the agent works. The caller's own directory by default.
    #[setters(into)]
    pub working_directory: Option<PathBuf>,
    /// Directories beside the working directory that the agent may use. They must be there; a relative
    /// one is meant from where the agent works.
    #[setters(skip)]
    pub add_dirs: Vec<PathBuf>,
    /// Environment variables, over the inherited and the provider's own.
    #[setters(skip)]
    pub env: BTreeMap<String, String>,
    /// Instructions for the agent.
    pub system_prompt: Option<SystemPrompt>,
    /// The model, in the CLI's own names.
    #[setters(into)]
    pub model: Option<String>,
    /// How hard the model shall think, in the CLI's own words.
    #[setters(into)]
    pub effort: Option<String>,
    /// Permission mode; a run has no one to ask.
    pub permission: PermissionMode,
    /// Tools that may be used without asking, in the CLI's own syntax.
    #[setters(skip)]
    pub allowed_tools: Vec<String>,
    /// Tools that may not be used, in the CLI's own syntax.
    #[setters(skip)]
    pub denied_tools: Vec<String>,
    /// End the run after this many turns.
    pub max_turns: Option<u32>,
    /// End the run when it has cost this much, in USD.
    pub max_budget_usd: Option<f64>,
    /// JSON Schema that the answer shall have.
    pub output_schema: Option<Value>,
    /// Images that go with the prompt.
    #[setters(skip)]
    pub images: Vec<Image>,
    /// MCP servers for this run, beside those of the user.
    #[setters(skip)]
    #[serde(skip)]
    pub mcp_servers: Vec<McpServer>,
    /// How they reach the CLI.
    pub mcp_delivery: McpDelivery,
    /// Only these servers, none of the user's.
    pub mcp_strict: bool,
    /// How often the CLI itself repeats a failed request.
    pub cli_retries: Option<u32>,
    /// Arguments for the CLI as they are, after those that the provider makes.
    #[setters(skip)]
    pub extra_args: Vec<String>,
    /// Give every event the line that it came from.
    pub include_native: bool,
    /// Report usage during the run for a CLI that does not print it: reads the files in
    /// which the CLI records its sessions.
    pub usage_updates: bool,
    /// Leave processes that the agent's tools put in the background running after the run.
    pub keep_background: bool,
    /// Limits of time for this run; unset ones are the runtime's.
    pub timeouts: Timeouts,
    /// Cancelling this stops the run.
    #[serde(skip)]
    pub cancel: CancellationToken,
}

/// Without what may be secret or private: of texts their length, of variables their names.
impl fmt::Debug for ExecuteParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecuteParams")
            .field("prompt_bytes", &self.prompt.len())
            .field("prompt_delivery", &self.prompt_delivery)
            .field("session_id", &self.session_id)
            .field("new_session_id", &self.new_session_id)
            .field("fork", &self.fork)
            .field("working_directory", &self.working_directory)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("model", &self.model)
            .field("effort", &self.effort)
            .field("permission", &self.permission)
            .field("allowed_tools", &self.allowed_tools)
            .field("denied_tools", &self.denied_tools)
            .field("max_turns", &self.max_turns)
            .field("max_budget_usd", &self.max_budget_usd)
            .field("mcp_servers", &self.mcp_servers)
            .field("mcp_delivery", &self.mcp_delivery)
            .field("mcp_strict", &self.mcp_strict)
            .field("timeouts", &self.timeouts)
            .finish_non_exhaustive()
    }
}

/// An empty prompt, for parameters that get theirs later.
impl Default for ExecuteParams {
    fn default() -> Self {
        Self::new("")
    }
}

impl ExecuteParams {
    /// The names of all parameters, as [`ErrorDetail::Parameter`](crate::ErrorDetail) has them.
    pub const NAMES: &'static [&'static str] = &[
        "prompt",
        "prompt_delivery",
        "slash_commands",
        "session_id",
        "new_session_id",
        "fork",
        "working_directory",
        "add_dirs",
        "env",
        "system_prompt",
        "model",
        "effort",
        "permission",
        "allowed_tools",
        "denied_tools",
        "max_turns",
        "max_budget_usd",
        "output_schema",
        "images",
        "mcp_servers",
        "mcp_delivery",
        "mcp_strict",
        "cli_retries",
        "extra_args",
        "include_native",
        "usage_updates",
        "keep_background",
        "timeouts",
        "cancel",
    ];

    /// A run of `prompt` with everything else at its default.
    pub fn new(prompt: impl Into<String>) -> Self {
        Self {
            prompt: prompt.into(),
            prompt_delivery: PromptDelivery::default(),
            slash_commands: false,
            session_id: None,
            new_session_id: None,
            fork: false,
            working_directory: None,
            add_dirs: Vec::new(),
            env: BTreeMap::new(),
            system_prompt: None,
            model: None,
            effort: None,
            permission: PermissionMode::default(),
            allowed_tools: Vec::new(),
            denied_tools: Vec::new(),
            max_turns: None,
            max_budget_usd: None,
            output_schema: None,
            images: Vec::new(),
            mcp_servers: Vec::new(),
            mcp_delivery: McpDelivery::default(),
            mcp_strict: false,
            cli_retries: None,
            extra_args: Vec::new(),
            include_native: false,
            usage_updates: false,
            keep_background: false,
            timeouts: Timeouts::default(),
            cancel: CancellationToken::new(),
        }
    }

    /// Adds an environment variable, over the inherited and the provider's own.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }
}

/// Setters of lists, which take anything that gives their items.
macro_rules! lists {
    ($($name:ident: $item:ty,)*) => {
        impl ExecuteParams {
            $(
                #[doc = concat!(
                    "Sets the [`", stringify!($name), "`](#structfield.", stringify!($name),
                    ") field of this struct."
                )]
                #[must_use]
                pub fn $name(mut self, items: impl IntoIterator<Item = impl Into<$item>>) -> Self {
                    self.$name = items.into_iter().map(Into::into).collect();
                    self
                }
            )*
        }
    };
}

lists! {
    add_dirs: PathBuf,
    allowed_tools: String,
    denied_tools: String,
    images: Image,
    mcp_servers: McpServer,
    extra_args: String,
}

/// Delivery of a prompt to the CLI: as an argument **or** on stdin, never both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PromptDelivery {
    /// As an argument up to this many bytes, on stdin beyond.
    Auto {
        /// The largest prompt that goes to argv, in bytes.
        argv_limit: usize,
    },
    /// Always as an argument.
    Argv,
    /// Always on stdin.
    Stdin,
}

impl Default for PromptDelivery {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl PromptDelivery {
    /// The longest argument, in bytes: Linux takes none of 128 KiB (`MAX_ARG_STRLEN`), its closing NUL
    /// included.
    pub(crate) const LARGEST_ARGUMENT: usize = 128 * 1024 - 1;

    /// [`Auto`](Self::Auto) with a limit of 10,000 bytes.
    pub const DEFAULT: Self = Self::Auto { argv_limit: 10_000 };

    /// Whether a prompt of this many bytes goes to stdin.
    pub fn uses_stdin(self, prompt_bytes: usize) -> bool {
        match self {
            Self::Auto { argv_limit } => prompt_bytes > argv_limit.min(Self::LARGEST_ARGUMENT),
            Self::Argv => false,
            Self::Stdin => true,
        }
    }
}

/// Instructions for the agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum SystemPrompt {
    /// After the CLI's own.
    Append(String),
    /// In place of the CLI's own.
    Replace(String),
}

/// What the agent may do without asking for permission.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PermissionMode {
    /// Follows the CLI's own settings. A tool that would need confirmation is denied.
    #[default]
    Default,
    /// None of the CLI's own tools that change anything. MCP tools are a matter of their own.
    ReadOnly,
    /// Edits of files as well.
    AcceptEdits,
    /// Everything. Only for a place where nothing can be broken.
    Bypass,
}

/// An image that goes with the prompt.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Its media type, such as `image/png`.
    pub media_type: String,
    /// Where it is.
    pub source: ImageSource,
}

impl Image {
    /// The image in this file, of this media type.
    pub fn file(media_type: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Self {
            media_type: media_type.into(),
            source: ImageSource::Path(path.into()),
        }
    }

    /// An image in memory, of this media type.
    pub fn bytes(media_type: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            media_type: media_type.into(),
            source: ImageSource::Bytes(bytes.into()),
        }
    }
}

/// Source of an image.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ImageSource {
    /// In this file, which is read when the run starts.
    Path(PathBuf),
    /// In memory.
    Bytes(Vec<u8>),
}

/// Limits of time without a line from the CLI. `None` means the default of the layer below:
/// of the run, then of the runtime, then of the provider, then of the engine.
/// [`Duration::MAX`] means no limit.
///
/// ```
/// use std::time::Duration;
///
/// use teamster_core::Timeouts;
///
/// let timeouts = Timeouts::default().idle(Duration::from_secs(90));
/// assert_eq!(timeouts.idle, Some(Duration::from_secs(90)));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Setters)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[setters(strip_option)]
pub struct Timeouts {
    /// Until the first line.
    #[serde(with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub startup: Option<Duration>,
    /// Between lines, while no tool runs.
    #[serde(with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub idle: Option<Duration>,
    /// Between lines, while a tool runs.
    #[serde(with = "humantime_serde", skip_serializing_if = "Option::is_none")]
    pub tool: Option<Duration>,
}

impl Timeouts {
    /// These, with what is unset taken from `below`.
    #[must_use]
    pub fn or(self, below: Self) -> Self {
        Self {
            startup: self.startup.or(below.startup),
            idle: self.idle.or(below.idle),
            tool: self.tool.or(below.tool),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_has_its_name_in_the_list() {
        /// The names of the fields, all of which have to be there for this to compile.
        macro_rules! fields {
            ($($name:ident),*) => {{
                let ExecuteParams { $($name: _),* } = ExecuteParams::new("");
                [$(stringify!($name)),*]
            }};
        }
        let fields = fields!(
            prompt,
            prompt_delivery,
            slash_commands,
            session_id,
            new_session_id,
            fork,
            working_directory,
            add_dirs,
            env,
            system_prompt,
            model,
            effort,
            permission,
            allowed_tools,
            denied_tools,
            max_turns,
            max_budget_usd,
            output_schema,
            images,
            mcp_servers,
            mcp_delivery,
            mcp_strict,
            cli_retries,
            extra_args,
            include_native,
            usage_updates,
            keep_background,
            timeouts,
            cancel
        );
        assert_eq!(ExecuteParams::NAMES, fields);
    }

    #[test]
    fn secrets_are_not_shown() {
        let mut params = ExecuteParams::new("my diary");
        params.env.insert("API_KEY".into(), "sk-123".into());
        params.system_prompt = Some(SystemPrompt::Append("my rules".into()));
        let shown = format!("{params:?}");
        assert!(shown.contains("API_KEY"), "{shown}");
        for secret in ["diary", "sk-123", "rules"] {
            assert!(!shown.contains(secret), "{shown}");
        }
    }
}
