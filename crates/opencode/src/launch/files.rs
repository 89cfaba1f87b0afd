//! OpenCode's configuration files that can be located here.

use std::env;
use std::path::{Path, PathBuf};

use teamster_core::provider::{ConfigEdit, ConfigFormat, ConfigLocation, ConfigTable};
use teamster_core::{AgentError, ExecuteParams, McpDelivery};

use super::settings::callers;
use super::{directory, invalid, option};

/// Key of the servers in a configuration.
const KEY: &str = "mcp";

/// Names of a project's file.
const PROJECT: &[&str] = &["opencode.jsonc", "opencode.json"];
/// Names of the user's file.
const USER: &[&str] = &["opencode.jsonc", "opencode.json", "config.json"];
/// Content of a new file. The CLI adds it to a file that lacks it (measured).
const NEW_FILE: &str = "{\n  \"$schema\": \"https://opencode.ai/config.json\"\n}\n";

/// Folder in a project or in the user's home that also has a file.
const FOLDER: &str = ".opencode";

/// Returns the change of a configuration file that adds these servers, if they are delivered in one.
pub(super) fn lease(
    params: &ExecuteParams,
    entries: Vec<(String, serde_json::Value)>,
) -> Result<Option<ConfigEdit>, AgentError> {
    let file = match params.mcp_delivery {
        McpDelivery::Private => return Ok(None),
        McpDelivery::ProjectConfig => project_file(params)?,
        McpDelivery::UserConfig => user_file(params)?,
        _ => {
            return invalid(
                "mcp_delivery",
                "OpenCode cannot take servers this way; use another delivery",
            );
        }
    };
    Ok(Some(ConfigEdit {
        table: table(file),
        entries,
        new_file: NEW_FILE,
        location: ConfigLocation::Lease,
    }))
}

/// Returns the project's file: the first existing one, and in each folder the one that can have comments first. Files
/// that already have servers are not preferred, because that would require reading them.
fn project_file(params: &ExecuteParams) -> Result<PathBuf, AgentError> {
    if !reads_projects(params) {
        return invalid(
            "mcp_delivery",
            "OPENCODE_DISABLE_PROJECT_CONFIG is set, so OpenCode would not read the \
             servers in the project's file",
        );
    }
    let Some(directory) = directory_of_run(params)? else {
        return invalid(
            "mcp_delivery",
            "the working directory is unknown; set working_directory",
        );
    };
    let folder = directory.join(FOLDER);
    let mut files = named(&directory, PROJECT).chain(named(&folder, PROJECT));
    Ok(files
        .find(|file| may_exist(file))
        .unwrap_or_else(|| directory.join("opencode.json")))
}

/// Returns the user's file: the first existing one.
fn user_file(params: &ExecuteParams) -> Result<PathBuf, AgentError> {
    let Some(folder) = user_folder(params) else {
        return invalid("mcp_delivery", "the user's home is unknown; set HOME");
    };
    Ok(named(&folder, USER)
        .find(|file| may_exist(file))
        .unwrap_or_else(|| folder.join("opencode.json")))
}

/// Returns the files whose servers the CLI would merge with servers of the run that have the same names, except for
/// the file that is changed for the run.
///
/// An administrator's configuration and configurations from the network are not included.
pub(super) fn names_taken(
    params: &ExecuteParams,
    lease: Option<&ConfigEdit>,
) -> Result<Vec<ConfigTable>, AgentError> {
    let mut files = Vec::new();
    let mut add = |some: &mut dyn Iterator<Item = PathBuf>| {
        for file in some {
            let leased = lease.is_some_and(|lease| lease.table.file == file);
            if !leased && !files.contains(&file) {
                files.push(file);
            }
        }
    };
    if let Some(folder) = user_folder(params) {
        add(&mut named(&folder, USER));
    }
    if let Some(file) = variable(params, "OPENCODE_CONFIG") {
        add(&mut std::iter::once(in_working_directory(params, file)?));
    }
    if reads_projects(params)
        && let Some(directory) = directory_of_run(params)?
    {
        // The CLI may know the directory by another path than the given one.
        for path in [directory.canonicalize().ok(), Some(directory)] {
            for directory in path.iter().flat_map(|path| up_to_the_repository(path)) {
                add(&mut named(directory, PROJECT));
                add(&mut named(&directory.join(FOLDER), PROJECT));
            }
        }
    }
    if let Some(home) = home(params) {
        add(&mut named(&home.join(FOLDER), PROJECT));
    }
    if let Some(folder) = variable(params, "OPENCODE_CONFIG_DIR") {
        add(&mut named(&in_working_directory(params, folder)?, PROJECT));
    }
    Ok(files.into_iter().map(table).collect())
}

fn table(file: PathBuf) -> ConfigTable {
    ConfigTable {
        file,
        format: ConfigFormat::Json,
        key: KEY,
    }
}

fn named(folder: &Path, names: &'static [&'static str]) -> impl Iterator<Item = PathBuf> {
    names.iter().map(|name| folder.join(name))
}

/// Returns a directory and its parents, up to the top of its repository, or up to the root without one.
fn up_to_the_repository(directory: &Path) -> impl Iterator<Item = &Path> {
    let mut done = false;
    directory.ancestors().take_while(move |directory| {
        let go_on = !done;
        done = is_repository(directory);
        go_on
    })
}

fn is_repository(directory: &Path) -> bool {
    let git = directory.join(".git");
    git.is_file() || git.join("HEAD").exists()
}

/// Returns whether the CLI reads a project's files, according to the environment.
fn reads_projects(params: &ExecuteParams) -> bool {
    let value = callers(params, "OPENCODE_DISABLE_PROJECT_CONFIG").unwrap_or_default();
    value != "1" && !value.eq_ignore_ascii_case("true")
}

/// Returns whether a file exists or cannot be checked.
fn may_exist(file: &Path) -> bool {
    file.try_exists().unwrap_or(true)
}

/// Returns the user's configuration folder.
fn user_folder(params: &ExecuteParams) -> Option<PathBuf> {
    let folder = match variable(params, "XDG_CONFIG_HOME") {
        Some(folder) => folder,
        None => home(params)?.join(".config"),
    };
    Some(folder.join("opencode"))
}

fn home(params: &ExecuteParams) -> Option<PathBuf> {
    variable(params, "HOME").or_else(env::home_dir)
}

/// Returns the CLI's working directory, from the caller's extra arguments or from ours.
fn directory_of_run(params: &ExecuteParams) -> Result<Option<PathBuf>, AgentError> {
    match option(params, "--dir") {
        Some(given) => Ok(std::path::absolute(given).ok()),
        None => Ok(directory(params)?.map(PathBuf::from)),
    }
}

fn in_working_directory(params: &ExecuteParams, path: PathBuf) -> Result<PathBuf, AgentError> {
    Ok(match directory_of_run(params)? {
        Some(directory) => directory.join(path),
        None => path,
    })
}

/// Returns a variable that contains a path.
fn variable(params: &ExecuteParams, name: &str) -> Option<PathBuf> {
    callers(params, name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

#[cfg(test)]
mod tests;
