//! Locations of the CLIs' files.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Locations of each CLI's files. A location may be missing if its CLI has left no files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Locations {
    /// Claude's folders, each with `projects` in it.
    pub claude: Vec<PathBuf>,
    /// Cline's folder of sessions.
    pub cline_sessions: Option<PathBuf>,
    /// Codex's home, with `sessions` and `archived_sessions` in it.
    pub codex: Option<PathBuf>,
    /// Copilot's home, with `session-state` in it.
    pub copilot: Option<PathBuf>,
    /// Gemini's folder `.gemini`, with `tmp` in it.
    pub gemini: Option<PathBuf>,
    /// Kilo's data folder, which contains its database.
    pub kilo: Option<PathBuf>,
    /// Kilo's database, if it is set separately.
    pub kilo_db: Option<PathBuf>,
    /// Kimi's home, with `sessions` in it.
    pub kimi: Option<PathBuf>,
    /// OpenCode's data folder, which contains its database or its files.
    pub opencode: Option<PathBuf>,
    /// OpenCode's database, if it is set separately.
    pub opencode_db: Option<PathBuf>,
    /// Pi's folder of sessions.
    pub pi_sessions: Option<PathBuf>,
    /// Qwen's folder, with `projects` in it.
    pub qwen: Option<PathBuf>,
    /// The folder of sessions of `teamster`'s own model loop.
    pub embedded_sessions: Option<PathBuf>,
}

impl Locations {
    /// Returns the locations that the environment of this process sets.
    pub fn from_env() -> Self {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// Returns the default locations in a home directory.
    pub fn of_home(home: &Path) -> Self {
        Self::from_variables(|name| (name == "HOME").then(|| home.as_os_str().to_owned()))
    }

    /// Returns the locations that these variables set. As in the CLIs, an empty variable counts as unset.
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let path = |name: &str| set(name).map(PathBuf::from);
        let home = path("HOME");
        let in_home = |folder: &str| home.as_ref().map(|home| home.join(folder));
        let data = path("XDG_DATA_HOME").or_else(|| in_home(".local/share"));
        let config = path("XDG_CONFIG_HOME").or_else(|| in_home(".config"));
        let database = |name| {
            let file = set(name).filter(|value| value != OsStr::new(":memory:"));
            file.map(PathBuf::from)
        };
        let state = path("XDG_STATE_HOME").or_else(|| in_home(".local/state"));
        Self {
            claude: match path("CLAUDE_CONFIG_DIR") {
                Some(folder) => several(folder),
                // Some versions of 2025 used the second folder.
                None => [
                    in_home(".claude"),
                    config.map(|config| config.join("claude")),
                ]
                .into_iter()
                .flatten()
                .collect(),
            },
            cline_sessions: path("CLINE_SESSION_DATA_DIR").or_else(|| {
                let data = path("CLINE_DATA_DIR").or_else(|| {
                    let folder = path("CLINE_DIR").or_else(|| in_home(".cline"))?;
                    Some(folder.join("data"))
                });
                data.map(|data| data.join("sessions"))
            }),
            codex: path("CODEX_HOME").or_else(|| in_home(".codex")),
            copilot: path("COPILOT_HOME").or_else(|| in_home(".copilot")),
            gemini: path("GEMINI_CLI_HOME")
                .or_else(|| home.clone())
                .map(|home| home.join(".gemini")),
            kilo: data.as_ref().map(|data| data.join("kilo")),
            kilo_db: database("KILO_DB"),
            kimi: path("KIMI_CODE_HOME").or_else(|| in_home(".kimi-code")),
            opencode: data.as_ref().map(|data| data.join("opencode")),
            opencode_db: database("OPENCODE_DB"),
            pi_sessions: path("PI_CODING_AGENT_SESSION_DIR").or_else(|| {
                let folder = path("PI_CODING_AGENT_DIR").or_else(|| in_home(".pi/agent"));
                folder.map(|folder| folder.join("sessions"))
            }),
            qwen: path("QWEN_RUNTIME_DIR")
                .or_else(|| path("QWEN_HOME"))
                .or_else(|| in_home(".qwen")),
            embedded_sessions: state.map(|state| state.join("teamster/embedded/sessions")),
        }
    }
}

/// Splits a comma-separated list of folders, which other usage tools accept. An existing folder with a comma in its
/// name is a single folder.
fn several(list: PathBuf) -> Vec<PathBuf> {
    let Some(text) = list.to_str().filter(|text| text.contains(',')) else {
        return vec![list];
    };
    if list.is_dir() {
        return vec![list];
    }
    let folders = text
        .split(',')
        .map(str::trim)
        .filter(|folder| !folder.is_empty());
    let mut folders: Vec<_> = folders.map(PathBuf::from).collect();
    folders.sort();
    folders.dedup();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn locations(variables: &[(&str, &str)]) -> Locations {
        Locations::from_variables(|name| {
            let (_, value) = variables.iter().find(|(n, _)| *n == name)?;
            Some(value.into())
        })
    }

    #[test]
    fn a_home_is_enough() {
        let locations = Locations::of_home(Path::new("/h"));
        let claude = ["/h/.claude", "/h/.config/claude"].map(PathBuf::from);
        assert_eq!(locations.claude, claude);
        assert_eq!(locations.codex.unwrap(), Path::new("/h/.codex"));
        assert_eq!(locations.copilot.unwrap(), Path::new("/h/.copilot"));
        assert_eq!(locations.gemini.unwrap(), Path::new("/h/.gemini"));
        assert_eq!(
            locations.opencode.unwrap(),
            Path::new("/h/.local/share/opencode")
        );
        assert_eq!(locations.opencode_db, None);
        assert_eq!(
            locations.pi_sessions.unwrap(),
            Path::new("/h/.pi/agent/sessions")
        );
        for (location, path) in [
            (locations.cline_sessions, "/h/.cline/data/sessions"),
            (locations.kilo, "/h/.local/share/kilo"),
            (locations.kimi, "/h/.kimi-code"),
            (locations.qwen, "/h/.qwen"),
            (
                locations.embedded_sessions,
                "/h/.local/state/teamster/embedded/sessions",
            ),
        ] {
            assert_eq!(location.unwrap(), Path::new(path));
        }
    }

    #[test]
    fn variables_come_before_the_home_unless_they_are_empty() {
        let locations = locations(&[
            ("HOME", "/h"),
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("CODEX_HOME", ""),
            ("COPILOT_HOME", "/p"),
            ("GEMINI_CLI_HOME", "/g"),
            ("XDG_DATA_HOME", "/d"),
            ("OPENCODE_DB", "/db"),
            ("PI_CODING_AGENT_DIR", "/i"),
            ("CLINE_DIR", "/n"),
            ("KILO_DB", "k.db"),
            ("KIMI_CODE_HOME", "/k"),
            ("QWEN_HOME", "/q"),
            ("XDG_STATE_HOME", "/s"),
        ]);
        assert_eq!(locations.claude, [PathBuf::from("/c")]);
        assert_eq!(locations.codex.unwrap(), Path::new("/h/.codex"));
        assert_eq!(locations.copilot.unwrap(), Path::new("/p"));
        assert_eq!(locations.gemini.unwrap(), Path::new("/g/.gemini"));
        assert_eq!(locations.opencode.unwrap(), Path::new("/d/opencode"));
        assert_eq!(locations.opencode_db.unwrap(), Path::new("/db"));
        assert_eq!(locations.pi_sessions.unwrap(), Path::new("/i/sessions"));
        for (location, path) in [
            (locations.cline_sessions, "/n/data/sessions"),
            (locations.kilo, "/d/kilo"),
            (locations.kilo_db, "k.db"),
            (locations.kimi, "/k"),
            (locations.qwen, "/q"),
            (locations.embedded_sessions, "/s/teamster/embedded/sessions"),
        ] {
            assert_eq!(location.unwrap(), Path::new(path));
        }
    }

    #[test]
    fn claude_folders_may_be_several_and_have_commas() {
        let list = locations(&[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c, /a,,/c")]);
        assert_eq!(list.claude, ["/a", "/c"].map(PathBuf::from));
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("a,b");
        std::fs::create_dir(&folder).unwrap();
        let one = locations(&[("CLAUDE_CONFIG_DIR", folder.to_str().unwrap())]);
        assert_eq!(one.claude, [folder]);
    }

    #[test]
    fn without_a_home_there_are_no_locations() {
        assert_eq!(
            locations(&[("OPENCODE_DB", ":memory:")]),
            Locations::default()
        );
    }
}
