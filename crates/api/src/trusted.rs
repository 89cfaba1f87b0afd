//! The part of a spec that no stranger may choose.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::is_default;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use teamster_core::{Container, McpDelivery, McpServer, SubAgent, Timeouts};

/// The fields that only a caller may choose that may start programs on the machine: programs, variables, files, and how
/// a CLI is started.
///
/// It is absent from the JSON of a spec when nothing is set, and from its JSON Schema. A server refuses a body with
/// such a field, by its name ([`names`](Self::names)).
#[serde_with::skip_serializing_none]
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Trusted {
    /// The CLI's program, if not the one on `PATH`.
    #[serde(with = "crate::path::optional")]
    pub program: Option<PathBuf>,
    /// The container in which the agents' CLIs run. Default: that of the machine's owner, if there is one.
    pub container: Option<Container>,
    /// Environment variables for the agent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Starts the agent with a nearly empty environment.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub clean_env: bool,
    /// Arguments that are passed to the agent's CLI unchanged.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extra_args: Vec<String>,
    /// MCP servers, in addition to the user's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mcp_servers: Vec<McpServer>,
    /// How the CLI gets the MCP servers.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub mcp_delivery: McpDelivery,
    /// Leaves out the user's own MCP servers.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub mcp_strict: bool,
    /// Images that go with the prompt of a run: png, jpg, gif or webp files.
    #[serde(with = "crate::path::list", skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<PathBuf>,
    /// Further directories that the agent may use.
    #[serde(with = "crate::path::list", skip_serializing_if = "Vec::is_empty")]
    pub add_dirs: Vec<PathBuf>,
    /// Skills, in addition to the user's: directories with a `SKILL.md`.
    #[serde(with = "crate::path::list", skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<PathBuf>,
    /// Sub-agents, in addition to the user's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sub_agents: Vec<SubAgent>,
    /// Hooks, in addition to the user's: an object in the CLI's own words.
    pub hooks: Option<Value>,
    /// A file that gets the last message of a run.
    #[serde(with = "crate::path::optional")]
    pub output_file: Option<PathBuf>,
    /// A folder that gets a recording.
    #[serde(with = "crate::path::optional")]
    pub record_to: Option<PathBuf>,
    /// The name of the remote, and the branch after a `:`, that the commits of a run are pushed to at its end. Without a
    /// branch, it is that of the run's worktree.
    pub push: Option<String>,
    /// The store of sessions and history: a file, the URL of a database, or `off`.
    pub store: Option<String>,
    /// The id of a new session of the agent: a UUID.
    pub new_session_id: Option<String>,
    /// A shell command that sets the workspace up before the agent starts, or `off` for none. Default: the commands of the
    /// repository's `.teamster.toml`, if the workspace is made for the run.
    pub setup: Option<String>,
    /// The time limit of the set-up in milliseconds. 0: no limit. Default: 10 minutes.
    pub setup_timeout_ms: Option<u64>,
    /// Lets the CLI treat a prompt that begins with `/` as a command of its own.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub slash_commands: bool,
    /// Leaves background processes of the agent's tools running at the end.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub keep_background: bool,
    /// Limit of the CLI's own retries of a failed request.
    pub cli_retries: Option<u32>,
    /// Limits of the CLI's silence.
    #[serde(skip_serializing_if = "crate::is_default")]
    pub timeouts: Timeouts,
    /// Ends the process of a session's agent after this time without a message, in milliseconds. The next message
    /// starts it again.
    pub idle_exit_ms: Option<u64>,
}

impl Trusted {
    /// Returns whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.names().is_empty()
    }

    /// The names of the fields that the owner of a server may let through, as parameters are named in errors. No server takes
    /// others.
    pub const GRANTABLE: [&str; 6] = [
        "container",
        "env",
        "mcp_servers",
        "mcp_delivery",
        "mcp_strict",
        "push",
    ];

    /// Returns the names of the fields that are set, as parameters are named in errors.
    pub fn names(&self) -> Vec<&'static str> {
        // Exhaustive: a new field is refused by servers from its first day.
        let Self {
            program,
            container,
            env,
            clean_env,
            extra_args,
            mcp_servers,
            mcp_delivery,
            mcp_strict,
            images,
            add_dirs,
            skills,
            sub_agents,
            hooks,
            output_file,
            record_to,
            push,
            store,
            new_session_id,
            setup,
            setup_timeout_ms,
            slash_commands,
            keep_background,
            cli_retries,
            timeouts,
            idle_exit_ms,
        } = self;
        let fields = [
            ("program", program.is_some()),
            ("container", container.is_some()),
            ("env", !env.is_empty()),
            ("clean_env", *clean_env),
            ("extra_args", !extra_args.is_empty()),
            ("mcp_servers", !mcp_servers.is_empty()),
            ("mcp_delivery", !is_default(mcp_delivery)),
            ("mcp_strict", *mcp_strict),
            ("images", !images.is_empty()),
            ("add_dirs", !add_dirs.is_empty()),
            ("skills", !skills.is_empty()),
            ("sub_agents", !sub_agents.is_empty()),
            ("hooks", hooks.is_some()),
            ("output_file", output_file.is_some()),
            ("record_to", record_to.is_some()),
            ("push", push.is_some()),
            ("store", store.is_some()),
            ("new_session_id", new_session_id.is_some()),
            ("setup", setup.is_some()),
            ("setup_timeout_ms", setup_timeout_ms.is_some()),
            ("slash_commands", *slash_commands),
            ("keep_background", *keep_background),
            ("cli_retries", cli_retries.is_some()),
            ("timeouts", !is_default(timeouts)),
            ("idle_exit_ms", idle_exit_ms.is_some()),
        ];
        let set = fields.into_iter().filter(|(_, set)| *set);
        set.map(|(name, _)| name).collect()
    }
}

/// Omits values that may be secret: shows the names of what is set.
impl std::fmt::Debug for Trusted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Trusted").field(&self.names()).finish()
    }
}
