//! Arguments as the description of a run or session: which option of several commands becomes which field.
//!
//! The functions for whole commands are beside these: `commands/{run,chat,acp}/spec.rs`. All structs are taken apart
//! exhaustively, so that a new option does not compile before it has a place.

mod input;
mod sub_agent;

use std::env;
use std::path::{Component, Path, PathBuf, absolute};
use std::time::Duration;

use anyhow::{Context, bail};
use teamster::Timeouts;
use teamster::mcp::source::merge;
use teamster_api::{Placement, SessionSpec, Trusted, Workspace, Worktree};
use teamster_core::time::millis;
use teamster_host::{UnknownCommit, is_url, resolve};

use crate::args::{
    ChatLimitArgs, EnvironmentArgs, Fallback, McpArgs, OutputArgs, PlacementArgs, ProcessArgs,
    TimeoutArgs, TurnArgs,
};
use crate::mcp_servers;
pub(crate) use input::{environment, read_prompt, schema, system_prompts};

/// The options of a command that are no part of the run or session.
#[derive(Debug, Clone, Default)]
pub(crate) struct Local {
    pub(crate) output: OutputArgs,
    pub(crate) detach: bool,
    /// `--lifecycle`.
    pub(crate) lifecycle: bool,
    /// `--run-id`.
    pub(crate) run_id: Option<String>,
    /// `--no-history` of `chat`.
    pub(crate) no_history: bool,
    /// The directory of `--repo` whose repository is submitted to another machine.
    pub(crate) upload: Option<PathBuf>,
}

impl Local {
    /// Refuses what only another machine takes.
    pub(crate) fn check_here(&self) -> anyhow::Result<()> {
        if let Some(directory) = &self.upload {
            bail!(
                "--repo {}: a directory is submitted to another machine, with --remote; here, --cwd and --worktree make a \
                 worktree of its repository",
                directory.display()
            );
        }
        Ok(())
    }
}

/// Sets the options of the agent that a run and a session have in common: their fields have the same names.
macro_rules! agent {
    ($spec:ident, $model:expr, $permissions:expr) => {
        let $crate::args::ModelArgs {
            model,
            effort,
            fallback_model,
            account,
        } = $model;
        let $crate::args::PermissionArgs {
            permission,
            allow_tool,
            deny_tool,
        } = $permissions;
        $spec.model = model;
        $spec.effort = effort;
        $spec.fallback_model = fallback_model;
        $spec.accounts = account;
        $spec.permission = permission;
        $spec.allowed_tools = allow_tool;
        $spec.denied_tools = deny_tool;
    };
    ($spec:ident, $model:expr, $permissions:expr, $session:expr) => {
        $crate::spec::agent!($spec, $model, $permissions);
        let $crate::args::AgentSessionArgs {
            resume,
            fork,
            session_id,
            title,
        } = $session;
        $spec.session_id = resume;
        $spec.fork = fork;
        $spec.trusted.new_session_id = session_id;
        $spec.title = title;
    };
}
pub(crate) use agent;

/// Sets the limits of a session's turns.
pub(crate) fn turn_args(args: TurnArgs, spec: &mut SessionSpec) {
    let TurnArgs {
        retries,
        fallback,
        max_wait,
        max_budget_usd,
        max_tokens,
        max_time,
    } = args;
    spec.retries = retries;
    spec.fallback = fallbacks(&fallback);
    spec.max_wait_ms = max_wait.map(limit_ms);
    spec.max_budget_usd = max_budget_usd;
    spec.max_tokens = max_tokens;
    spec.max_time_ms = max_time.map(limit_ms);
}

/// The agent's working directory, as the fields of a description.
#[derive(Default)]
pub(crate) struct Location {
    pub(crate) working_directory: Option<PathBuf>,
    pub(crate) worktree: Option<Worktree>,
    pub(crate) workspace: Option<Workspace>,
    /// The directory whose repository is submitted to another machine.
    pub(crate) upload: Option<PathBuf>,
}

/// Sets the options of the agent's process. Returns where it works.
pub(crate) fn process_args(args: ProcessArgs, trusted: &mut Trusted) -> anyhow::Result<Location> {
    let ProcessArgs {
        cwd,
        worktree,
        worktree_from,
        repo,
        empty_dir,
        setup,
        setup_timeout,
        environment,
        keep_background,
    } = args;
    trusted.setup = setup;
    trusted.setup_timeout_ms = setup_timeout.map(limit_ms);
    environment_args(environment, trusted)?;
    trusted.keep_background = keep_background;
    let long = |workspace| Location {
        workspace: Some(workspace),
        ..Location::default()
    };
    Ok(
        if let Some(directory) = repo.as_deref().filter(|repo| !is_url(repo)) {
            if worktree_from.is_some() {
                bail!(
                    "--worktree-from: --repo DIR submits the repository as it is: check that commit out first"
                );
            }
            if trusted.push.is_some() {
                bail!(
                    "--push: the repository that is submitted has no remotes there: omit it, and push the branch that comes back"
                );
            }
            let directory = Path::new(directory);
            Location {
                upload: Some(cwd.map_or_else(|| directory.to_owned(), |cwd| directory.join(cwd))),
                ..Location::default()
            }
        } else if let Some(url) = repo {
            long(repository(url, worktree_from.as_deref(), cwd.as_deref())?)
        } else if empty_dir {
            long(Workspace::Empty {})
        } else if worktree_from.is_some() {
            long(Workspace::Worktree {
                directory: cwd,
                from: worktree_from,
                branch: worktree.filter(|branch| !branch.is_empty()),
            })
        } else {
            Location {
                working_directory: cwd,
                worktree: worktree.map(|branch| match &*branch {
                    "" => Worktree::Switch(true),
                    _ => Worktree::Branch(branch),
                }),
                ..Location::default()
            }
        },
    )
}

/// Sets the surroundings of the agent's process.
pub(crate) fn environment_args(args: EnvironmentArgs, trusted: &mut Trusted) -> anyhow::Result<()> {
    let EnvironmentArgs {
        add_dir,
        env,
        clean_env,
        bin,
        mut container,
        in_mount,
    } = args;
    trusted.add_dirs = add_dir;
    trusted.env = environment(&env)?;
    trusted.clean_env = clean_env;
    trusted.program = bin;
    for mut mount in in_mount {
        mount.source = absolute(&mount.source).context("--in-mount")?;
        container = container.map(|it| it.mount(mount));
    }
    trusted.container = container;
    Ok(())
}

/// Returns the workspace of a repository with this URL, at the commit that the name means now.
fn repository(
    url: String,
    name: Option<&str>,
    directory: Option<&Path>,
) -> anyhow::Result<Workspace> {
    let subdirectory = match directory {
        None => None,
        Some(path) if path.is_absolute() => {
            bail!("--cwd: with --repo, expected a relative path: a directory of the repository")
        }
        Some(path) => {
            let path: PathBuf = path
                .components()
                .filter(|it| *it != Component::CurDir)
                .collect();
            let path = path
                .to_str()
                .context("--cwd: with --repo, the path must be UTF-8")?;
            Some(path.to_owned()).filter(|path| !path.is_empty())
        }
    };
    let commit = resolve(&url, name).map_err(|error| {
        let is_commit = error.is::<UnknownCommit>();
        error.context(if is_commit {
            "--worktree-from"
        } else {
            "--repo"
        })
    })?;
    Ok(Workspace::Repository {
        url,
        commit,
        subdirectory,
    })
}

/// Returns the machines of a fleet that may take it, and the names of its secrets.
pub(crate) fn placed(args: PlacementArgs) -> (Placement, Vec<String>) {
    let PlacementArgs {
        pool,
        machine,
        secret,
    } = args;
    let mut placement = Placement::default();
    (placement.pool, placement.machine) = (pool, machine);
    (placement, secret)
}

pub(crate) fn chat_limits(args: ChatLimitArgs, trusted: &mut Trusted) {
    let ChatLimitArgs {
        cli_retries,
        timeouts,
        idle_exit,
    } = args;
    trusted.cli_retries = cli_retries;
    trusted.timeouts = limits_of_silence(&timeouts);
    trusted.idle_exit_ms = idle_exit.map(limit_ms);
}

pub(crate) fn limits_of_silence(args: &TimeoutArgs) -> Timeouts {
    let TimeoutArgs {
        startup,
        idle,
        tool,
    } = *args;
    Timeouts {
        startup,
        idle,
        tool,
    }
}

/// Sets the MCP servers, the skills, the sub-agents and the hooks. Variables of the servers come from the agent's environment, then
/// from this process's.
pub(crate) fn mcp_servers(
    args: McpArgs,
    trusted: &mut Trusted,
    warnings: &mut Vec<String>,
) -> anyhow::Result<()> {
    let McpArgs {
        servers,
        mcp_via,
        mcp_strict,
        skill,
        agent_file,
        hooks,
    } = args;
    let sources = mcp_servers::sources(&servers)?;
    let variables = &trusted.env;
    let given = merge(&sources, &|name| {
        variables.get(name).cloned().or_else(|| env::var(name).ok())
    })?;
    trusted.mcp_servers = given.servers;
    trusted.mcp_delivery = mcp_via;
    trusted.mcp_strict = mcp_strict;
    // A detached run, or its agent, may work in another directory.
    trusted.skills = (skill.iter())
        .map(|path| absolute(path).context("--skill"))
        .collect::<anyhow::Result<_>>()?;
    trusted.sub_agents = (agent_file.iter())
        .map(|file| sub_agent::read(file))
        .collect::<anyhow::Result<_>>()?;
    trusted.hooks = hooks.as_deref().map(input::hooks).transpose()?;
    warnings.extend(given.ignored);
    Ok(())
}

pub(crate) fn warn(warnings: &[String], quiet: bool) {
    if !quiet {
        crate::report::warn(warnings);
    }
}

/// Converts a limit to milliseconds. No limit is 0.
pub(crate) fn limit_ms(limit: Duration) -> u64 {
    match limit {
        Duration::MAX => 0,
        limit => millis(limit),
    }
}

pub(crate) fn fallbacks(fallbacks: &[Fallback]) -> Vec<String> {
    fallbacks.iter().map(Fallback::to_string).collect()
}
