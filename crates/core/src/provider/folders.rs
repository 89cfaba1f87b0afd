//! Folders of a CLI and of the user, as the environment names them.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::ExecuteParams;

impl ExecuteParams {
    /// Returns the path in an environment variable of the CLI, resolved against its working directory. `None` if the
    /// variable is unset or empty.
    pub fn path_in_variable(&self, name: &str) -> Option<PathBuf> {
        let value = match self.env.get(name) {
            Some(value) => value.into(),
            None => std::env::var_os(name)?,
        };
        if value.is_empty() {
            return None;
        }
        Some(match &self.working_directory {
            Some(directory) => directory.join(value),
            None => value.into(),
        })
    }

    /// Returns the folder of a CLI: the one in its variable, or the one of this name in the user's home.
    pub fn cli_folder(&self, variable: &str, name: &str) -> Option<PathBuf> {
        let in_home = || Some(self.path_in_variable("HOME")?.join(name));
        self.path_in_variable(variable).or_else(in_home)
    }
}

/// Returns the folder that a variable of the XDG base directory specification names, or else the one of this name in the
/// user's home. A relative path counts as unset. `variable` returns the value of a variable.
pub fn base_directory(
    variable: impl Fn(&str) -> Option<OsString>,
    name: &str,
    in_home: &str,
) -> Option<PathBuf> {
    let folder = |name| {
        variable(name)
            .map(PathBuf::from)
            .filter(|it| it.is_absolute())
    };
    folder(name).or_else(|| Some(folder("HOME")?.join(in_home)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_cli_is_in_its_variable_or_in_the_home() {
        let params = ExecuteParams::new("hi").working_directory("/project");
        let folder = |own: &str, home: &str| {
            let params = params.clone().env("OWN", own).env("HOME", home);
            params.cli_folder("OWN", ".cli")
        };
        assert_eq!(folder("/own", "/home/me"), Some("/own".into()));
        assert_eq!(folder("own", "/home/me"), Some("/project/own".into()));
        assert_eq!(folder("", "/home/me"), Some("/home/me/.cli".into()));
        assert_eq!(folder("", ""), None);
    }
}
