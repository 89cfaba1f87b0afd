//! Locations of Gemini CLI's settings.

use std::path::{Path, PathBuf};

use serde_json::Value;
use teamster_core::provider::PrivateHome;
use teamster_core::{AgentError, ExecuteParams, McpDelivery};

/// Variable that overrides the user's home for the CLI.
const HOME: &str = "GEMINI_CLI_HOME";

/// Name of the CLI's folder, in the home and in the working directory.
const FOLDER: &str = ".gemini";

const SETTINGS: &str = "settings.json";

const MANIFEST: &str = "gemini-extension.json";

/// Variable that names the administrator's settings file.
const SYSTEM: &str = "GEMINI_CLI_SYSTEM_SETTINGS_PATH";

/// Default path of the administrator's settings.
#[cfg(target_os = "macos")]
const SYSTEM_SETTINGS: &str = "/Library/Application Support/GeminiCli/settings.json";
#[cfg(not(target_os = "macos"))]
const SYSTEM_SETTINGS: &str = "/etc/gemini-cli/settings.json";

/// Returns the CLI's home of the user.
fn home(params: &ExecuteParams) -> Option<PathBuf> {
    let users = || params.path_in_variable("HOME");
    params.path_in_variable(HOME).or_else(users)
}

/// Returns the folder in which the CLI keeps the data of all projects. Sessions are there even if the run has a
/// private home.
pub(crate) fn projects(params: &ExecuteParams) -> Option<PathBuf> {
    Some(home(params)?.join(FOLDER).join("tmp"))
}

/// Locations of a run. The files need not exist.
#[derive(Debug)]
pub(super) struct Locations {
    /// The user's home.
    home: PathBuf,
    /// Working directory of the agent.
    directory: PathBuf,
    system_settings: PathBuf,
}

impl Locations {
    pub(super) fn of(params: &ExecuteParams) -> Result<Self, AgentError> {
        let home = home(params).ok_or_else(|| {
            AgentError::refused(
                "mcp_servers",
                format!(
                    "without HOME in the environment Gemini CLI's settings cannot be found; set \
                 it, or {HOME}"
                ),
            )
        })?;
        let directory = params.working_directory.as_deref();
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(|error| {
                AgentError::refused("working_directory", format!("it cannot be found: {error}"))
            })
        };
        let system_settings = params.path_in_variable(SYSTEM);
        Ok(Self {
            home: absolute(&home)?,
            directory: absolute(directory.unwrap_or(Path::new(".")))?,
            system_settings: system_settings.unwrap_or_else(|| SYSTEM_SETTINGS.into()),
        })
    }

    /// Returns a home that differs from the user's own only in its settings.
    pub(super) fn private_home(&self) -> PrivateHome {
        PrivateHome {
            variable: HOME,
            home: self.home.clone(),
            folder: FOLDER,
            // Sessions are in `tmp`.
            folders: &["tmp", "history"],
            files: &[
                "oauth_creds.json",
                "gemini-credentials.json",
                "google_accounts.json",
                "installation_id",
                "mcp-oauth-tokens.json",
                "a2a-oauth-tokens.json",
            ],
            // The folders also record their projects, and the CLI reads that.
            caches: &["projects.json"],
            litter: &["lock", "tmp"],
        }
    }

    /// Returns the CLI's folder of the user.
    pub(super) fn users_folder(&self) -> PathBuf {
        self.home.join(FOLDER)
    }

    pub(super) fn user_settings(&self) -> PathBuf {
        self.users_folder().join(SETTINGS)
    }

    pub(super) fn project_settings(&self) -> PathBuf {
        self.directory.join(FOLDER).join(SETTINGS)
    }

    /// Returns all settings files, in order of increasing precedence.
    pub(super) fn settings(&self) -> [PathBuf; 4] {
        [
            self.system_settings.with_file_name("system-defaults.json"),
            self.user_settings(),
            self.project_settings(),
            self.system_settings.clone(),
        ]
    }

    /// Returns the files whose servers would replace or be merged with the servers of this delivery.
    pub(super) fn over(&self, delivery: McpDelivery) -> Vec<PathBuf> {
        let mut files = Vec::new();
        if delivery != McpDelivery::ProjectConfig {
            // A private home differs from the directory, even if the user's home is the directory.
            files.push(self.project_settings());
        }
        if self.system_settings.is_file() {
            files.push(self.system_settings.clone());
        }
        let entries = std::fs::read_dir(self.users_folder().join("extensions"));
        let entries = entries.into_iter().flatten().flatten();
        let manifests = entries.map(|entry| manifest(&entry.path()));
        files.extend(manifests.filter(|file| file.is_file()));
        files.sort();
        files
    }
}

/// Returns the manifest of an extension that is in this folder or linked from it.
fn manifest(folder: &Path) -> PathBuf {
    let linked = || {
        let text = std::fs::read(folder.join(".gemini-extension-install.json")).ok()?;
        let data: Value = serde_json::from_slice(&text).ok()?;
        let source = data["source"].as_str()?;
        (data["type"] == "link").then(|| folder.join(source))
    };
    linked().unwrap_or_else(|| folder.to_owned()).join(MANIFEST)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn locations(dir: &Path) -> Locations {
        let mut params = ExecuteParams::new("hi");
        let text = |name: &str| dir.join(name).to_str().unwrap().to_owned();
        params.env.insert(HOME.into(), text("home"));
        params
            .env
            .insert(SYSTEM.into(), text("system/settings.json"));
        params.working_directory = Some(dir.join("work"));
        Locations::of(&params).unwrap()
    }

    #[test]
    fn the_home_is_the_cli_s_own_variable_s_or_the_user_s() {
        let mut params = ExecuteParams::new("hi");
        params.working_directory = Some("/work".into());
        params.env.insert("HOME".into(), "/home/me".into());
        params.env.insert(HOME.into(), String::new());
        let home = |params: &ExecuteParams| Locations::of(params).unwrap().home;
        assert_eq!(home(&params), Path::new("/home/me"));
        params.env.insert(HOME.into(), "rel".into());
        assert_eq!(home(&params), Path::new("/work/rel"));
        params.env.insert(HOME.into(), String::new());
        params.env.insert("HOME".into(), String::new());
        let error = Locations::of(&params).unwrap_err();
        assert!(error.message.starts_with("mcp_servers: "), "{error}");
    }

    #[test]
    fn every_file_that_would_hide_or_mix_a_server_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let put = |name: &str, text: &str| {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        };
        let locations = locations(dir.path());
        let project = at("work/.gemini/settings.json");
        assert_eq!(
            locations.over(McpDelivery::Private),
            std::slice::from_ref(&project)
        );
        assert_eq!(
            locations.over(McpDelivery::ProjectConfig),
            [""; 0].map(PathBuf::from)
        );
        put("system/settings.json", "{}");
        put("home/.gemini/extensions/a/gemini-extension.json", "{}");
        put("home/.gemini/extensions/extension-enablement.json", "{}");
        put("linked/gemini-extension.json", "{}");
        let install = serde_json::json!({"type": "link", "source": at("linked")});
        put(
            "home/.gemini/extensions/b/.gemini-extension-install.json",
            &install.to_string(),
        );
        let beside = [
            at("home/.gemini/extensions/a/gemini-extension.json"),
            at("linked/gemini-extension.json"),
            at("system/settings.json"),
        ];
        assert_eq!(locations.over(McpDelivery::ProjectConfig), beside);
        let mut all = beside.to_vec();
        all.push(project);
        assert_eq!(locations.over(McpDelivery::Private), all);
        assert_eq!(locations.over(McpDelivery::UserConfig), all);
    }
}
