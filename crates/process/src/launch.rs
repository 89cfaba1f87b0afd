//! Launch plan: program, arguments, environment and directory, checked before anything runs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use teamster_core::provider::{Launch, PathLocation};
use teamster_core::{
    AgentError, CliInfo, CliProvider, ErrorCode, ErrorDetail, ErrorKind, ExecuteParams,
    McpDelivery, McpServer,
};

use crate::config::{EnvPolicy, RuntimeConfig};
use crate::container::Contained;
use crate::git_env::foreign_git_variables;
use crate::leftovers;
use crate::os;
use crate::program::{
    SHIM_GUARDS, check_program, find_cli, find_program, native_program, not_found, on_path,
};
use crate::run_id::RunId;

mod checks;

pub(crate) use checks::check_displaced;
use checks::{
    check_arguments, check_current_directory, check_directory, check_skill, check_variable,
    check_variable_size, too_large,
};

/// A validated launch.
pub(crate) struct Plan {
    pub(crate) program: PathBuf,
    pub(crate) launch: Launch,
    pub(crate) env: Env,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) run_id: RunId,
    /// The CLI's own name.
    pub(crate) cli: &'static str,
    /// Names of the MCP servers of the run.
    pub(crate) servers: Vec<String>,
    /// The files from which the CLI reads MCP servers and which a run may have leased.
    pub(crate) leasable: Vec<PathBuf>,
    /// The container in which the CLI runs.
    pub(crate) container: Option<Contained>,
}

/// The environment of the process: a complete one, or changes to the inherited one.
pub(crate) struct Env {
    /// True to start from the environment of this process; otherwise from an empty one.
    pub(crate) inherit: bool,
    pub(crate) remove: Vec<String>,
    pub(crate) set: BTreeMap<OsString, OsString>,
}

impl Plan {
    /// Creates a plan and reports all errors that can be detected before the start.
    pub(crate) fn new(
        provider: &dyn CliProvider,
        config: &RuntimeConfig,
        params: &ExecuteParams,
        mut launch: Launch,
    ) -> Result<Self, AgentError> {
        let directory = params.working_directory.clone();
        match &directory {
            Some(directory) => check_directory("working_directory", directory)?,
            None => check_current_directory()?,
        }
        for directory in &params.add_dirs {
            check_directory("add_dirs", directory)?;
        }
        for skill in &params.skills {
            check_skill(skill)?;
        }
        let here = Path::new(".");
        let hash = (!params.keep_background)
            .then(|| leftovers::directory_hash(directory.as_deref().unwrap_or(here)))
            .flatten();
        let run_id = RunId::new(hash);
        let mut env = Env::new(&launch, config, params, &run_id)?;
        check_displaced(&launch, config, params)?;
        check_arguments(&launch.args, params)?;
        let container = config.container.as_ref().map(|container| {
            Contained::new(container, config, provider.info(), params, &launch, &run_id)
        });
        let container = container.transpose()?;
        if container.is_some() {
            // The user's files are not there.
            launch.names_taken.clear();
        }
        let program = match (&container, &config.program) {
            (Some(container), _) => container.client().to_owned(),
            (None, Some(program)) if program.components().count() > 1 => {
                native_program(provider, check_program(program)?)
            }
            (None, name) => {
                let name = name.as_ref().map(|name| name.to_string_lossy());
                let name = name.as_deref().unwrap_or(provider.info().program);
                let found = find(name, &env, provider.info())?;
                if let Some(path) = on_path(&found, env.path().as_deref()) {
                    env.set.insert("PATH".into(), path);
                }
                native_program(provider, found)
            }
        };
        launch.private_tmp &= !params.env.contains_key("TMPDIR");
        Ok(Self {
            program,
            launch,
            env,
            directory,
            run_id,
            cli: provider.info().name,
            servers: params.mcp_servers.iter().map(|s| s.name.clone()).collect(),
            leasable: if container.is_some() {
                Vec::new()
            } else {
                leasable_files(provider, params)
            },
            container,
        })
    }

    /// Creates the error of a process that the system refused to start.
    pub(crate) fn spawn_error(&self, error: io::Error) -> AgentError {
        let program = self.program.display();
        match error.kind() {
            io::ErrorKind::ArgumentListTooLong => too_large(format!(
                "the arguments and the environment of {program} together are larger than this \
                 system allows ({} arguments, the longest of {} bytes); let the prompt go to stdin \
                 or pass less",
                self.launch.args.len(),
                self.launch.args.iter().map(|a| a.len()).max().unwrap_or(0),
            )),
            // The file existed a moment ago, so its interpreter or loader is missing.
            io::ErrorKind::NotFound if self.program.exists() => not_found(format!(
                "{program} cannot be started: the interpreter or loader that it names in its first \
                 line or header does not exist"
            )),
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                not_found(format!("{program} cannot be started: {error}"))
            }
            kind => AgentError::new(
                ErrorCode::Io,
                ErrorKind::Internal,
                format!("{program} cannot be started: {}", with_advice(error)),
            )
            // The limit of processes, too little memory, or a program that is being replaced.
            .retryable(matches!(
                kind,
                io::ErrorKind::WouldBlock
                    | io::ErrorKind::OutOfMemory
                    | io::ErrorKind::ExecutableFileBusy
            )),
        }
    }
}

impl Env {
    fn new(
        launch: &Launch,
        config: &RuntimeConfig,
        params: &ExecuteParams,
        run_id: &RunId,
    ) -> Result<Self, AgentError> {
        let mut set = BTreeMap::new();
        let of_git = (params.working_directory.as_deref()).map_or(&[][..], foreign_git_variables);
        let removed = launch.env_remove.iter().chain(of_git);
        let is_of_a_file = |name: &str| {
            let mut files = launch.private_files.iter();
            files.any(|file| matches!(&file.location, PathLocation::Variable(it) if it == name))
        };
        if let EnvPolicy::Clean { allow } = &config.env_policy
            && config.container.is_none()
        {
            for name in allow {
                if !removed.clone().any(|marker| marker == name)
                    && !is_of_a_file(name)
                    && let Some(value) = std::env::var_os(name)
                {
                    set.insert(name.into(), value);
                }
            }
        }
        // The later one wins.
        let layers = launch.env.iter().map(|(name, value)| (name, value));
        let layers = layers
            .chain(&params.env)
            .chain(launch.env_merged.iter().map(|(name, value)| (name, value)));
        for (name, value) in layers {
            check_variable(name, value)?;
            set.insert(name.into(), value.into());
        }
        set.insert(os::RUN_ID_VAR.into(), run_id.within_ours().into());
        Ok(Self {
            inherit: config.env_policy == EnvPolicy::Inherit,
            remove: (removed.map(|name| (*name).to_owned()))
                .chain(config.env_remove.iter().cloned())
                .chain(SHIM_GUARDS.map(|(name, _)| name.to_owned()))
                .collect(),
            set,
        })
    }

    /// Sets a variable, overriding all other values.
    pub(crate) fn set_path(&mut self, name: &str, value: &Path) -> Result<(), AgentError> {
        check_variable_size(name, value.as_os_str().len())?;
        self.set.insert(name.into(), value.into());
        Ok(())
    }

    /// Returns the `PATH` of the child, on which its program is searched.
    pub(crate) fn path(&self) -> Option<OsString> {
        self.get("PATH")
    }

    /// Returns the home folder of the child.
    fn home(&self) -> Option<PathBuf> {
        self.get("HOME").map(PathBuf::from)
    }

    fn get(&self, name: &str) -> Option<OsString> {
        match self.set.get(name.as_ref() as &std::ffi::OsStr) {
            Some(value) => Some(value.clone()),
            None if self.inherit && !self.remove.iter().any(|removed| removed == name) => {
                std::env::var_os(name)
            }
            None => None,
        }
    }
}

fn find(name: &str, env: &Env, info: &CliInfo) -> Result<PathBuf, AgentError> {
    let found = if name == info.program {
        find_cli(name, env.path().as_deref(), env.home().as_deref())
    } else {
        find_program(name, env.path().as_deref())
    };
    found.map_err(|mut error| {
        if name == info.program && !info.install.is_empty() {
            error.message = format!(
                "{}; to install {}: {}",
                error.message, info.name, info.install
            );
            error = error.detail(ErrorDetail::missing_program(name, info.install));
        }
        error
    })
}

/// Returns the user's configuration files that a run with these parameters would change or check if it had MCP
/// servers. A killed run may have left its servers in them.
pub fn leasable_files(provider: &dyn CliProvider, params: &ExecuteParams) -> Vec<PathBuf> {
    let mut params = params.clone();
    // A prompt may be long, and each launch has a copy.
    "prompt".clone_into(&mut params.prompt);
    params.mcp_servers = vec![McpServer::stdio("server", "server", Vec::<String>::new())];
    let mut files = Vec::new();
    for delivery in provider.capabilities().mcp.deliveries {
        if *delivery == McpDelivery::Private {
            continue;
        }
        params.mcp_delivery = *delivery;
        // A launch that is refused has left nothing.
        let Ok(launch) = provider.launch(&params) else {
            continue;
        };
        let config = launch.config.map(|edit| edit.table.file);
        let others = launch.names_taken.into_iter().map(|table| table.file);
        files.extend(config.into_iter().chain(others));
    }
    files.sort_unstable();
    files.dedup();
    files
}

/// Resolves `add_dirs` against the working directory of the agent, and `skills` against that of this process. Not every
/// CLI resolves relative ones that way.
pub(crate) fn make_absolute(params: &mut ExecuteParams) {
    for skill in &mut params.skills {
        // Only an empty path has no absolute form. It is refused later.
        if let Ok(absolute) = std::path::absolute(&*skill) {
            *skill = absolute;
        }
    }
    let base = params.working_directory.clone().unwrap_or_default();
    let relative = |directory: &&mut PathBuf| directory.is_relative();
    for directory in params.add_dirs.iter_mut().filter(relative) {
        // Only an empty path has no absolute form. It is refused later.
        if let Ok(absolute) = std::path::absolute(base.join(&*directory)) {
            *directory = absolute;
        }
    }
}

/// Adds advice to the errors for too many open files, processes or threads.
pub fn with_advice(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(nix::libc::EMFILE) => {
            io::Error::other(format!("{error}; raise the limit with `ulimit -n`"))
        }
        Some(nix::libc::EAGAIN) => io::Error::other(format!(
            "{error}; the limit of processes and threads is reached (`ulimit -u`, or `pids.max` of the container)"
        )),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::checks::MAX_ARG_BYTES;
    use super::*;

    #[test]
    fn a_path_in_a_variable_has_the_same_limit_and_counts_most() {
        let mut env = Env {
            inherit: true,
            remove: Vec::new(),
            set: BTreeMap::from([("CLI_HOME".into(), "the caller's".into())]),
        };
        let path = |bytes: usize| PathBuf::from("x".repeat(bytes));
        let error = env
            .set_path("CLI_HOME", &path(MAX_ARG_BYTES - 9))
            .unwrap_err();
        assert_eq!(error.code, ErrorCode::PromptTooLarge);
        assert!(
            error
                .message
                .starts_with("env: CLI_HOME: it is 131063 bytes long"),
            "{error}"
        );
        assert_eq!(
            env.set["CLI_HOME".as_ref() as &std::ffi::OsStr],
            "the caller's"
        );
        env.set_path("CLI_HOME", &path(MAX_ARG_BYTES - 10)).unwrap();
        assert_eq!(
            env.set["CLI_HOME".as_ref() as &std::ffi::OsStr].len(),
            131_062
        );
    }
}
