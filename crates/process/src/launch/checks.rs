//! Checks of directories, arguments and variables, so that their errors name the parameter.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use teamster_core::provider::{DisplacedFile, Launch};
use teamster_core::{AgentError, ErrorCode, ErrorKind, ExecuteParams, SystemPrompt};

use crate::config::{EnvPolicy, RuntimeConfig};

/// Limit of one argument or variable on Linux, in bytes (`MAX_ARG_STRLEN`): each must be shorter. It is independent
/// of the limit for all of them together.
pub(super) const MAX_ARG_BYTES: usize = 128 << 10;

/// Checks that the current directory exists. The CLI would otherwise fail with an error of its own.
pub(super) fn check_current_directory() -> Result<(), AgentError> {
    match std::env::current_dir() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(AgentError::new(
            ErrorCode::InvalidParams,
            ErrorKind::NotFound,
            "the current directory was deleted; change to another one, or set working_directory",
        )),
        _ => Ok(()),
    }
}

pub(super) fn check_directory(parameter: &str, directory: &Path) -> Result<(), AgentError> {
    let (kind, what) = match directory.metadata() {
        Ok(data) if data.is_dir() => return Ok(()),
        Ok(_) => (ErrorKind::Invalid, "is not a directory".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            (ErrorKind::NotFound, "does not exist".to_owned())
        }
        Err(error) => (ErrorKind::Permission, format!("cannot be used: {error}")),
    };
    Err(AgentError::new(
        ErrorCode::InvalidParams,
        kind,
        format!("{parameter}: {} {what}", directory.display()),
    ))
}

/// Checks that a CLI will find the skill. It would silently leave out another directory.
pub(super) fn check_skill(directory: &Path) -> Result<(), AgentError> {
    check_directory("skills", directory)?;
    if directory.join("SKILL.md").is_file() {
        return Ok(());
    }
    let problem = format!(
        "{} has no SKILL.md; name the directory of one skill",
        directory.display()
    );
    Err(AgentError::refused("skills", problem).kind(ErrorKind::NotFound))
}

/// Refuses private files that take the place of others, whose settings would be lost.
pub(crate) fn check_displaced(
    launch: &Launch,
    config: &RuntimeConfig,
    params: &ExecuteParams,
) -> Result<(), AgentError> {
    // A container has files of its own.
    if config.container.is_some() {
        return Ok(());
    }
    let is_inherited = |name: &str| match &config.env_policy {
        EnvPolicy::Inherit => !config.env_remove.iter().any(|removed| removed == name),
        EnvPolicy::Clean { allow } => allow.iter().any(|allowed| allowed == name),
    };
    for displaced in &launch.displaced {
        let DisplacedFile {
            parameter,
            variable,
            default,
        } = displaced;
        let named = params.path_in_variable(variable);
        let named = named.filter(|_| is_inherited(variable));
        let file = named.as_ref().unwrap_or(default);
        if file.exists() {
            let file = file.display();
            let problem =
                format!("they would take the place of {file}: put the {parameter} into that file");
            return Err(AgentError::refused(*parameter, problem));
        }
    }
    Ok(())
}

/// Checks the arguments. Errors never contain an argument, which may be a prompt or a secret.
pub(super) fn check_arguments(args: &[OsString], params: &ExecuteParams) -> Result<(), AgentError> {
    for (index, argument) in args.iter().enumerate() {
        let position = format!("argument {} of {}", index + 1, args.len());
        if argument.len() >= MAX_ARG_BYTES {
            let error = too_large(format!(
                "{position} is {} bytes long and the system takes less than {MAX_ARG_BYTES}; let \
                 the prompt go to stdin, or put the text into a file and name that",
                argument.len()
            ));
            return Err(about_its_parameter(error, argument, params));
        }
        if argument.as_encoded_bytes().contains(&0) {
            let problem = format!("{position} has a NUL byte, which an argument cannot contain");
            let error = AgentError::invalid_params(problem);
            return Err(about_its_parameter(error, argument, params));
        }
    }
    Ok(())
}

/// Adds to the error the parameter that the argument comes from, if it is known.
fn about_its_parameter(error: AgentError, argument: &OsStr, params: &ExecuteParams) -> AgentError {
    let argument = argument.to_string_lossy();
    let has = |text: &str| !text.is_empty() && argument.contains(text);
    let is_system_prompt = match &params.system_prompt {
        Some(SystemPrompt::Append(text) | SystemPrompt::Replace(text)) => has(text),
        _ => false,
    };
    if has(&params.prompt) {
        error.about("prompt")
    } else if is_system_prompt {
        error.about("system_prompt")
    } else if params.extra_args.iter().any(|own| *own == argument) {
        error.about("extra_args")
    } else {
        error
    }
}

pub(super) fn check_variable(name: &str, value: &str) -> Result<(), AgentError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        let problem = format!("{name:?} cannot be the name of an environment variable");
        return Err(AgentError::refused("env", problem));
    }
    if value.contains('\0') {
        let problem = "it has a NUL byte, which a variable cannot contain";
        return Err(AgentError::refused_item("env", name, problem));
    }
    check_variable_size(name, value.len())
}

pub(super) fn check_variable_size(name: &str, bytes: usize) -> Result<(), AgentError> {
    if name.len() + bytes + 1 >= MAX_ARG_BYTES {
        let problem = format!(
            "it is {bytes} bytes long and the system takes less than {MAX_ARG_BYTES} with its name"
        );
        let error = AgentError::refused_item("env", name, problem);
        return Err(error.code(ErrorCode::PromptTooLarge));
    }
    Ok(())
}

pub(super) fn too_large(message: String) -> AgentError {
    AgentError::new(ErrorCode::PromptTooLarge, ErrorKind::Invalid, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn displaced_file_is_the_one_that_the_cli_would_read() {
        // The tests have this variable: a folder that exists.
        let variable = "CARGO_MANIFEST_DIR";
        let clean = |allow: &[&str]| RuntimeConfig {
            env_policy: EnvPolicy::Clean {
                allow: allow.iter().map(|name| (*name).to_owned()).collect(),
            },
            ..RuntimeConfig::default()
        };
        let removed = RuntimeConfig {
            env_remove: vec![variable.to_owned()],
            ..RuntimeConfig::default()
        };
        let file = tempfile::NamedTempFile::new().unwrap();
        let is_refused = |config: &RuntimeConfig, default: &Path| {
            let launch = Launch {
                displaced: vec![DisplacedFile {
                    parameter: "hooks",
                    variable,
                    default: default.to_owned(),
                }],
                ..Launch::default()
            };
            check_displaced(&launch, config, &ExecuteParams::new("hi")).is_err()
        };
        let absent = Path::new("/nowhere/defaults.json");
        for (config, is_named) in [
            (RuntimeConfig::default(), true),
            (removed, false),
            (clean(&[]), false),
            (clean(&[variable]), true),
        ] {
            assert_eq!(is_refused(&config, absent), is_named, "{config:?}");
            assert!(is_refused(&config, file.path()), "{config:?}");
        }
    }
}
