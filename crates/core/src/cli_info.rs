//! Static facts about a CLI: names, versions, files, support for agent loops.

mod agent_loop;
mod by_command;
mod credentials;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

pub use agent_loop::{LoopContext, LoopSettings, LoopSupport};
pub use credentials::{CredentialFile, Credentials, Sign};

/// Name of the file with instructions that most CLIs read.
pub const COMMON_INSTRUCTIONS: &str = "AGENTS.md";

/// Static facts about a CLI.
///
/// ```
/// use teamster_core::CliInfo;
///
/// static INFO: CliInfo = {
///     let mut info = CliInfo::new("my-agent", "My Agent", "my-agent");
///     info.install = "cargo install my-agent";
///     info
/// };
/// assert_eq!(INFO.version_args, ["--version"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CliInfo {
    /// The provider's name in `teamster`, such as `claude`.
    pub id: &'static str,
    /// The CLI's own name, such as `Claude Code`.
    pub name: &'static str,
    /// Name of the program on `PATH`.
    pub program: &'static str,
    /// Arguments that make it print its version. Default: `--version`.
    pub version_args: &'static [&'static str],
    /// Versions whose real output is in the decoder's tests, oldest first.
    pub tested_versions: &'static [&'static str],
    /// The oldest version that works as described on the provider's page; `None` if unknown.
    pub oldest_version: Option<&'static str>,
    /// The command that installs it.
    pub install: &'static str,
    /// The instruction for logging in, as an imperative: "log in with ...".
    pub login: &'static str,
    /// Arguments that remove the login without a question, such as `logout`. Empty if the CLI has no such command.
    pub logout_args: &'static [&'static str],
    /// Signs of a login on disk and in the environment.
    pub credentials: Credentials,
    /// Vendor of its models, by the name in the semantic conventions of OpenTelemetry for generative AI
    /// (`gen_ai.provider.name`), such as `anthropic`. `None` if it has the models of several vendors.
    pub model_vendor: Option<&'static str>,
    /// True if the CLI reports the id of a new session only at its end, but accepts one. Unless the caller sets
    /// [`ExecuteParams::new_session_id`](crate::ExecuteParams::new_session_id), the engine does.
    pub choose_session_id: bool,
    /// Files with instructions that it reads in its working directory, its own first. Default:
    /// [`COMMON_INSTRUCTIONS`].
    pub instructions: &'static [&'static str],
    /// Configuration files of the user that a run may lease, and further ones that the CLI reads with them.
    pub config_files: &'static [FileLocation],
    /// Folders with its commands, one a Markdown file. Those of the project come before those of the user.
    pub commands: &'static [FileLocation],
    /// Folders with skills, one a folder with a `SKILL.md`.
    pub skills: &'static [FileLocation],
    /// Support for unattended agent loops.
    pub agent_loop: LoopSupport,
}

impl CliInfo {
    /// Creates the facts of a CLI with this id, name and program, and the defaults for everything else.
    pub const fn new(id: &'static str, name: &'static str, program: &'static str) -> Self {
        Self {
            id,
            name,
            program,
            version_args: &["--version"],
            tested_versions: &[],
            oldest_version: None,
            install: "",
            login: "",
            logout_args: &[],
            credentials: Credentials::unknown(),
            model_vendor: None,
            choose_session_id: false,
            instructions: &[COMMON_INSTRUCTIONS],
            config_files: &[],
            commands: &[],
            skills: &[],
            agent_loop: LoopSupport::new(),
        }
    }

    /// Returns the name of the environment variable that overrides the program on `PATH`, such as
    /// `TEAMSTER_MY_AGENT_BIN` for `my-agent`.
    pub fn program_variable(&self) -> String {
        let id = self.id.to_ascii_uppercase().replace('-', "_");
        format!("TEAMSTER_{id}_BIN")
    }

    /// Returns the program that a user has set in the environment that `variable` reads. An empty value counts as unset.
    pub fn program_of(&self, variable: impl FnOnce(&str) -> Option<OsString>) -> Option<PathBuf> {
        let program = variable(&self.program_variable())?;
        (!program.is_empty()).then(|| program.into())
    }

    /// Returns whether a version is older than [`oldest_version`](Self::oldest_version). `false` for text that is not
    /// a version.
    pub fn is_too_old(&self, version: &str) -> bool {
        let (Some(oldest), Some(version)) = (
            self.oldest_version.and_then(version_numbers),
            version_numbers(version),
        ) else {
            return false;
        };
        version < oldest
    }
}

/// Parses the numbers of a version such as `2.1.197` or `0.115.0-alpha.1`, without its pre-release.
fn version_numbers(version: &str) -> Option<Vec<u64>> {
    let core = version.split(['-', '+']).next().unwrap_or_default();
    core.split('.').map(|number| number.parse().ok()).collect()
}

/// Location of a file of a CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileLocation {
    /// A path in the working directory.
    Project(&'static str),
    /// A path in a folder of the user.
    User {
        /// The environment variable that names the folder. Empty if there is none.
        variable: &'static str,
        /// The folder in the user's home if that variable is not set. Empty for the home itself.
        folder: &'static str,
        /// The file's path in the folder.
        path: &'static str,
    },
}

impl FileLocation {
    /// Creates a location in a folder of the user ([`User`](Self::User)).
    pub const fn user(variable: &'static str, folder: &'static str, path: &'static str) -> Self {
        Self::User {
            variable,
            folder,
            path,
        }
    }

    /// Returns the path of the file for a run in this directory, with these environment variables. `None` if
    /// neither the variable nor `HOME` is set.
    pub fn path(
        &self,
        directory: &Path,
        variable: &dyn Fn(&str) -> Option<OsString>,
    ) -> Option<PathBuf> {
        let set = |name: &str| {
            let value = variable(name).filter(|value| !value.is_empty());
            value.filter(|_| !name.is_empty()).map(PathBuf::from)
        };
        match *self {
            Self::Project(path) => Some(directory.join(path)),
            Self::User {
                variable,
                folder,
                path,
            } => {
                let folder = set(variable).or_else(|| Some(set("HOME")?.join(folder)))?;
                Some(folder.join(path))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_versions_are_known_by_their_numbers() {
        let mut info = CliInfo::new("x", "X", "x");
        info.oldest_version = Some("2.1.197");
        for (version, too_old) in [
            ("2.1.196", true),
            ("2.1.20", true),
            ("1.9.400", true),
            ("2.1.197", false),
            ("2.1.1000", false),
            ("2.1.197-beta.1", false),
            ("3.0", false),
            ("", false),
            ("nightly", false),
        ] {
            assert_eq!(info.is_too_old(version), too_old, "{version}");
        }
        info.oldest_version = None;
        assert!(!info.is_too_old("0.0.1"));
    }

    #[test]
    fn a_file_is_in_its_variables_folder_or_in_the_home() {
        let path = |location: FileLocation, set: &[(&str, &str)]| {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            location.path(Path::new("/srv"), &variable)
        };
        let user = FileLocation::user("X_HOME", ".x", "config.toml");
        let home = ("HOME", "/home/a");
        assert_eq!(
            path(FileLocation::Project(".x/c"), &[]),
            Some("/srv/.x/c".into())
        );
        assert_eq!(path(user, &[home]), Some("/home/a/.x/config.toml".into()));
        assert_eq!(
            path(user, &[home, ("X_HOME", "/x")]),
            Some("/x/config.toml".into())
        );
        assert_eq!(
            path(user, &[home, ("X_HOME", "")]),
            Some("/home/a/.x/config.toml".into())
        );
        assert_eq!(path(user, &[]), None);
    }

    #[test]
    fn a_program_of_the_environment_is_not_empty() {
        let info = CliInfo::new("test-agent", "X", "x");
        assert_eq!(info.program_variable(), "TEAMSTER_TEST_AGENT_BIN");
        for (value, program) in [(Some("/x"), Some("/x")), (Some(""), None), (None, None)] {
            let set = |name: &str| {
                assert_eq!(name, "TEAMSTER_TEST_AGENT_BIN");
                value.map(OsString::from)
            };
            assert_eq!(
                info.program_of(set),
                program.map(PathBuf::from),
                "{value:?}"
            );
        }
    }
}
