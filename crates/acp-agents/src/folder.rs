//! Folders of the agents.

use std::path::PathBuf;

use teamster_core::ExecuteParams;

/// Returns an agent's folder: what its variable names, or the folder of this name in the user's home.
pub(crate) fn folder(params: &ExecuteParams, variable: &str, name: &str) -> Option<PathBuf> {
    in_variable(params, variable).or_else(|| Some(in_variable(params, "HOME")?.join(name)))
}

/// Returns the folder that a variable names.
pub(crate) fn in_variable(params: &ExecuteParams, name: &str) -> Option<PathBuf> {
    let value = match params.env.get(name) {
        Some(value) => value.into(),
        None => std::env::var_os(name)?,
    };
    let folder = Some(PathBuf::from(value)).filter(|it| !it.as_os_str().is_empty())?;
    Some(match &params.working_directory {
        Some(directory) => directory.join(folder),
        None => folder,
    })
}

/// Returns whether a session's id can be part of a path.
pub(crate) fn is_plain(id: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    !id.is_empty() && id.bytes().all(allowed)
}
