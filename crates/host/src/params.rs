//! The parameters of a CLI, from the description of a run or session.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use teamster_api::{RunSpec, SessionSpec, Trusted};
use teamster_core::{AgentError, CliInfo, Container, ExecuteParams, Image, SystemPrompt};
use teamster_process::{EnvPolicy, RecordTo, RuntimeConfig, container_engine};

use crate::depth;
use crate::environment::{
    CONTAINER_VARIABLE, REMOTE_TOKEN_VARIABLE, STORE_VARIABLE, program_variable, variable,
};

/// The variables that `cleanEnv` keeps. Without them, most CLIs find neither their programs nor their login.
pub(crate) const CLEAN_ENV: [&str; 10] = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TERM", "TMPDIR",
];

/// Sets the parameters that a run and a session have in common: their fields have the same names.
macro_rules! set_common {
    ($params:ident, $spec:ident) => {
        $params.session_id.clone_from(&$spec.session_id);
        $params.fork = $spec.fork;
        $params
            .working_directory
            .clone_from(&$spec.working_directory);
        $params.system_prompt = system_prompt(
            $spec.system_prompt.as_deref(),
            $spec.append_system_prompt.as_deref(),
        );
        $params.title.clone_from(&$spec.title);
        $params.model.clone_from(&$spec.model);
        $params.effort.clone_from(&$spec.effort);
        $params.fallback_model.clone_from(&$spec.fallback_model);
        $params.permission = $spec.permission;
        $params.allowed_tools.clone_from(&$spec.allowed_tools);
        $params.denied_tools.clone_from(&$spec.denied_tools);
        trusted(&$spec.trusted, &mut $params)?;
        depth::set($spec.depth, &mut $params.env);
    };
}

/// Returns the parameters for the CLI of a run.
///
/// # Errors
///
/// Fails if an image is of no supported type.
pub fn of_run(spec: &RunSpec) -> Result<ExecuteParams, AgentError> {
    let mut params = ExecuteParams::new(&*spec.prompt);
    set_common!(params, spec);
    params.max_turns = spec.max_turns;
    params.max_budget_usd = spec.max_budget_usd;
    params.output_schema.clone_from(&spec.output_schema);
    params.images.extend_from_slice(&spec.images);
    Ok(params)
}

/// Returns the parameters for the CLI of a session, as [`of_run`] does for a run.
pub fn of_session(spec: &SessionSpec) -> Result<ExecuteParams, AgentError> {
    let mut params = ExecuteParams::new("");
    set_common!(params, spec);
    Ok(params)
}

fn trusted(trusted: &Trusted, params: &mut ExecuteParams) -> Result<(), AgentError> {
    params.slash_commands = trusted.slash_commands;
    params.new_session_id.clone_from(&trusted.new_session_id);
    params.add_dirs.clone_from(&trusted.add_dirs);
    params.skills.clone_from(&trusted.skills);
    params.sub_agents.clone_from(&trusted.sub_agents);
    params.hooks.clone_from(&trusted.hooks);
    params.env.clone_from(&trusted.env);
    params.images = (trusted.images.iter())
        .map(|file| image(file))
        .collect::<Result<_, _>>()?;
    params.mcp_servers.clone_from(&trusted.mcp_servers);
    params.mcp_delivery = trusted.mcp_delivery;
    params.mcp_strict = trusted.mcp_strict;
    params.cli_retries = trusted.cli_retries;
    params.extra_args.clone_from(&trusted.extra_args);
    params.keep_background = trusted.keep_background;
    params.timeouts = trusted.timeouts;
    Ok(())
}

fn system_prompt(replaced: Option<&str>, appended: Option<&str>) -> Option<SystemPrompt> {
    let replaced = replaced.map(|text| SystemPrompt::Replace(text.to_owned()));
    replaced.or_else(|| appended.map(|text| SystemPrompt::Append(text.to_owned())))
}

/// Returns an image of a prompt, whose type is that of the file's name.
///
/// # Errors
///
/// Fails if the type is not supported. The file is not read.
pub fn image(file: &Path) -> Result<Image, AgentError> {
    let extension = file.extension().and_then(OsStr::to_str).unwrap_or_default();
    let media_type = match &*extension.to_ascii_lowercase() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        _ => {
            return Err(AgentError::refused(
                "images",
                format!(
                    "{} is not an image of a supported type: expected .png, .jpg, .jpeg, .gif or .webp",
                    file.display()
                ),
            ));
        }
    };
    Ok(Image::file(media_type, file))
}

/// Returns a limit of time. 0 is no limit: [`Duration::MAX`].
pub fn limit(ms: u64) -> Duration {
    match ms {
        0 => Duration::MAX,
        ms => wait(ms),
    }
}

/// Returns a time to wait. The largest number is no limit: [`Duration::MAX`].
pub fn wait(ms: u64) -> Duration {
    match ms {
        u64::MAX => Duration::MAX,
        ms => Duration::from_millis(ms),
    }
}

/// Returns a directory as an absolute path; that of this process without one.
pub fn absolute(directory: Option<&Path>) -> Option<PathBuf> {
    match directory {
        Some(directory) => std::path::absolute(directory).ok(),
        None => std::env::current_dir().ok(),
    }
}

/// Returns the container of agents: that of the description, or of the machine's owner (`TEAMSTER_IN`).
///
/// # Errors
///
/// Fails if the variable is not valid.
pub fn container(trusted: &Trusted) -> Result<Option<Container>, AgentError> {
    if trusted.container.is_some() {
        return Ok(trusted.container.clone());
    }
    let Some(text) = variable(CONTAINER_VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let own = owners_container(&text.to_string_lossy());
    let own = own.map_err(|error| {
        let problem = error.message.trim_start_matches("container: ");
        AgentError::refused_item("container", CONTAINER_VARIABLE, problem)
    });
    own.map(Some)
}

/// Reads the container and its mounts, which are separated by spaces.
fn owners_container(text: &str) -> Result<Container, AgentError> {
    let mut words = text.split_whitespace();
    let mut container: Container = words.next().unwrap_or_default().parse()?;
    for mount in words {
        container = container.mount(mount.parse()?);
    }
    Ok(container)
}

/// Checks that the engine of the container of agents answers, if they have one. Fails with the reason and the next
/// step.
pub(crate) async fn check_container(trusted: &Trusted) -> Result<(), AgentError> {
    if let Some(container) = container(trusted)? {
        container_engine(container.engine, container.program.as_deref()).await?;
    }
    Ok(())
}

/// Returns the runtime configuration of the first agent.
///
/// # Errors
///
/// Fails if the container of agents is not valid, or if the agent cannot be in one.
pub fn runtime_config(trusted: &Trusted, info: &CliInfo) -> Result<RuntimeConfig, AgentError> {
    let mut config = agent_config(trusted, info)?;
    if let Some(program) = &trusted.program {
        config.program = Some(program.clone());
    }
    config.record_to = trusted.record_to.clone().map(RecordTo::Run);
    Ok(config)
}

/// Returns the runtime configuration of any agent. That of a fallback has neither the program nor the recording of the
/// first one.
pub(crate) fn agent_config(trusted: &Trusted, info: &CliInfo) -> Result<RuntimeConfig, AgentError> {
    let mut config = base_config();
    config.container = container(trusted)?;
    if config.container.is_none() {
        // It is about this machine.
        config.program = program_variable(info);
    }
    if trusted.clean_env {
        config.env_policy = EnvPolicy::Clean {
            allow: CLEAN_ENV.into_iter().map(str::to_owned).collect(),
        };
    }
    Ok(config)
}

/// Returns the settings common to all runs of this program.
pub fn base_config() -> RuntimeConfig {
    let mut config = RuntimeConfig::default();
    // The agent must not outlive a killed teamster.
    config.die_with_parent = true;
    // These may hold a password or a token.
    config.env_remove = [STORE_VARIABLE, REMOTE_TOKEN_VARIABLE]
        .map(str::to_owned)
        .to_vec();
    config
}

#[cfg(test)]
mod tests {
    use teamster_core::{ContainerEngine, Mount};

    use super::*;

    #[test]
    fn container_of_the_owner_has_its_mounts() {
        let container = owners_container("docker:agents:1 /a:/b:ro  /c:/d").unwrap();
        let mut expected = Container::new(ContainerEngine::Docker, "agents:1");
        expected.mounts = vec![Mount::new("/a", "/b").read_only(), Mount::new("/c", "/d")];
        assert_eq!(container, expected);
        for text in ["agents:1", "docker:agents:1 /a"] {
            assert!(owners_container(text).is_err(), "{text}");
        }
    }
}
