//! Launch of the CLI for a session, and the parameters that are sent in messages.

use std::path::{Path, PathBuf};

use serde_json::Value;
use teamster_core::provider::{Args, Launch, Stdin};
use teamster_core::{
    AgentError, ExecuteParams, PermissionMode, PermissionPolicy, SessionOptions, SystemPrompt,
    Timeouts,
};

use super::Servers;
use crate::launch;

pub(crate) fn launch_session(options: &SessionOptions) -> Result<Launch, AgentError> {
    let params = &options.params;
    check(options)?;
    let mut args = Args::new();
    args.add("app-server");
    args.add(launch::NO_WAITING_FOR_A_NETWORK);
    // End the servers of a cleared session with it, not half an hour later.
    args.add("--config=thread_unload_delay_secs=0");
    args.add_all(params.effort.as_deref().map(launch::effort));
    let servers = Servers::of(params)?;
    args.add_all(servers.settings);
    args.add_all(&params.extra_args);
    let (args, private_files) = args.into_parts();
    Ok(Launch {
        args,
        private_files,
        // A message reports which server did not start, so the log is not needed.
        env: (servers.env.into_iter())
            .filter(|(name, _)| name != "RUST_LOG")
            .collect(),
        env_remove: launch::NESTED_SESSION_VARIABLES.to_vec(),
        stdin: Stdin::Open(Vec::new()),
        // On SIGTERM the CLI ends its tools and MCP servers, and on SIGINT it does not. In a run it is the other way
        // round.
        stop_first: None,
        timeouts: Timeouts {
            idle: Some(launch::IDLE),
            ..Timeouts::default()
        },
        config: servers.config,
        names_taken: servers.names_taken,
        ..Launch::default()
    })
}

/// Returns the launch of a process that is only asked what a session would offer. MCP servers and hooks belong to a thread,
/// which is not started.
pub(crate) fn launch_query(options: &SessionOptions) -> Result<Launch, AgentError> {
    let mut params = options.params.clone();
    params.session_id = None;
    params.fork = false;
    params.mcp_servers.clear();
    launch_session(&SessionOptions::new(params))
}

fn check(options: &SessionOptions) -> Result<(), AgentError> {
    // The prompts are sent later.
    let mut params = options.params.clone();
    "-".clone_into(&mut params.prompt);
    // Unlike a run, a session has the skills as commands.
    params.slash_commands = false;
    // A mode of the turns, in the same sandbox.
    if params.permission == PermissionMode::Plan {
        params.permission = PermissionMode::ReadOnly;
    }
    // The session already has its instructions.
    if options.restarted {
        params.system_prompt = None;
    }
    launch::check(&params)
}

/// Parameters that are sent in messages.
#[derive(Debug)]
pub(crate) struct Start {
    /// Id of the session to resume, and true to fork it.
    pub(crate) resume: Option<(String, bool)>,
    /// Working directory of the agent.
    pub(crate) directory: Option<PathBuf>,
    /// Root of the repository that contains the directory.
    pub(crate) repository: Option<PathBuf>,
    pub(crate) model: Option<String>,
    pub(crate) effort: Option<String>,
    pub(crate) append: Option<String>,
    pub(crate) replace: Option<String>,
    /// Directories in which the agent may write, unless it is read-only.
    pub(crate) add_dirs: Vec<String>,
    pub(crate) permission: PermissionMode,
    pub(crate) answers: Answers,
    pub(crate) output_schema: Option<Value>,
}

/// Source of the answers to permission requests of the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// Nothing answers: the CLI must not ask.
    None,
    /// The policy allows everything.
    Always,
    /// The caller answers.
    Caller,
}

impl Start {
    pub(crate) fn of(options: &SessionOptions) -> Self {
        let params = &options.params;
        let directory = directory(params);
        let text = |wanted: bool, text: &String| wanted.then(|| text.clone());
        Self {
            resume: (params.session_id.clone()).map(|id| (id, params.fork)),
            repository: directory.as_deref().and_then(repository),
            directory,
            model: params.model.clone(),
            effort: params.effort.clone(),
            append: match &params.system_prompt {
                Some(SystemPrompt::Append(added)) => text(true, added),
                _ => None,
            },
            replace: match &params.system_prompt {
                Some(SystemPrompt::Replace(prompt)) => text(true, prompt),
                _ => None,
            },
            add_dirs: (params.add_dirs.iter())
                .filter_map(|dir| Some(dir.to_str()?.to_owned()))
                .collect(),
            permission: params.permission,
            answers: match options.permissions {
                PermissionPolicy::Allow => Answers::Always,
                PermissionPolicy::Ask(_) => Answers::Caller,
                _ => Answers::None,
            },
            output_schema: params.output_schema.clone(),
        }
    }
}

fn directory(params: &ExecuteParams) -> Option<PathBuf> {
    match &params.working_directory {
        Some(directory) => std::path::absolute(directory).ok(),
        None => std::env::current_dir().ok(),
    }
}

fn repository(directory: &Path) -> Option<PathBuf> {
    let mut above = directory.ancestors();
    above
        .find(|dir| dir.join(".git").exists())
        .map(Path::to_owned)
}

/// Refuses a prompt that the CLI would refuse.
pub(crate) fn check_prompt(prompt: &str, images: usize) -> Result<(), AgentError> {
    let chars = prompt.chars().count();
    if chars > launch::LARGEST_PROMPT_CHARS {
        return Err(launch::too_large(chars));
    }
    if prompt.trim().is_empty() && images == 0 {
        return Err(AgentError::refused("prompt", "it is empty"));
    }
    Ok(())
}
