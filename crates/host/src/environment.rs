//! Variables of the environment: the only place of this crate that reads them. The files that they name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, io};

use teamster_core::provider::base_directory;
use teamster_core::{CliInfo, ExecuteParams};

use crate::params::CLEAN_ENV;

/// Variable with the location of the store. A URL in it may have a password.
pub const STORE_VARIABLE: &str = "TEAMSTER_STORE";
/// Variable with the token of a server.
pub const REMOTE_TOKEN_VARIABLE: &str = "TEAMSTER_REMOTE_TOKEN";

/// Variable with the container of agents whose description has none: `ENGINE:IMAGE`, and mounts behind it.
pub(crate) const CONTAINER_VARIABLE: &str = "TEAMSTER_IN";

pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name)
}

/// Returns the value of a variable as an agent with these parameters gets it.
pub(crate) fn of_agent(params: &ExecuteParams, clean_env: bool, name: &str) -> Option<OsString> {
    if let Some(own) = params.env.get(name) {
        return Some(own.into());
    }
    let inherits = !clean_env || CLEAN_ENV.contains(&name);
    inherits.then(|| variable(name)).flatten()
}

/// Returns the value of a variable that is text and not empty.
pub(crate) fn text(name: &str) -> Option<String> {
    let value = variable(name)?.into_string().ok();
    value.filter(|value| !value.is_empty())
}

/// Returns the path of a file of the user's configuration, by the XDG base directory specification.
pub(crate) fn config_file(name: &str) -> Option<PathBuf> {
    let config = base_directory(variable, "XDG_CONFIG_HOME", ".config")?;
    Some(config.join(name))
}

/// Reads a file of the user's configuration; `None` if there is none, also because the home is no directory.
pub(crate) fn read_config(file: &Path) -> io::Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
            _ => Err(error),
        },
    }
}

/// Returns the program of an agent that the user has set: the value of `TEAMSTER_<AGENT>_BIN`.
pub fn program_variable(info: &CliInfo) -> Option<PathBuf> {
    info.program_of(variable)
}
