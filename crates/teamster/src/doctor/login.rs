//! Whether a CLI is logged in, as far as its files and the environment show it.
//!
//! No service is asked and no value is kept. A token may have expired, and a system's keychain is not
//! looked at.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

/// What is known of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LoginState {
    /// A login was found.
    Yes,
    /// There is none.
    No,
    /// It would be where nobody can look, such as in a keychain.
    Unknown,
}

/// A login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Login {
    /// Whether it is logged in.
    pub state: LoginState,
    /// The variable or file that shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

impl Login {
    /// One that the variable or file `from` shows, if there is any.
    pub fn new(state: LoginState, from: Option<String>) -> Self {
        Self { state, from }
    }
}

/// Finds out about the login of the CLI of this provider.
pub(super) fn login(provider: &str) -> Login {
    let variable = |name: &str| env::var(name).ok();
    Surroundings {
        variable: &variable,
        keychain: cfg!(target_os = "macos"),
    }
    .login(provider)
}

/// Where logins are looked for.
struct Surroundings<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    /// Claude Code and Codex keep logins in a keychain here.
    keychain: bool,
}

impl Surroundings<'_> {
    fn login(&self, provider: &str) -> Login {
        let (from, otherwise) = match provider {
            "claude" => (self.claude(), LoginState::No),
            "codex" => (self.codex(), self.codex_without()),
            "gemini" => (self.gemini(), self.gemini_without()),
            // A keychain or the login of `gh`.
            "copilot" => (self.copilot(), LoginState::Unknown),
            // Local and free models need no login.
            "opencode" => (self.opencode(), LoginState::Unknown),
            _ => (None, LoginState::Unknown),
        };
        let state = match (&from, otherwise) {
            (Some(_), _) => LoginState::Yes,
            (None, LoginState::No) if self.keychain => LoginState::Unknown,
            (None, otherwise) => otherwise,
        };
        Login { state, from }
    }

    fn claude(&self) -> Option<String> {
        let home = self.directory("CLAUDE_CONFIG_DIR", ".claude");
        // Beside the folder, unless the variable says where that is.
        let global = match self.set("CLAUDE_CONFIG_DIR") {
            Some(_) => home.join(".claude.json"),
            None => self.home().join(".claude.json"),
        };
        let settings = [
            "/apiKeyHelper",
            "/env/ANTHROPIC_API_KEY",
            "/env/ANTHROPIC_AUTH_TOKEN",
        ];
        self.first_set(&[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "CLAUDE_CODE_USE_BEDROCK",
            "CLAUDE_CODE_USE_VERTEX",
            "CLAUDE_CODE_USE_FOUNDRY",
        ])
        .or_else(|| {
            has(
                &home.join(".credentials.json"),
                &["/claudeAiOauth/accessToken"],
            )
        })
        .or_else(|| has(&home.join("settings.json"), &settings))
        .or_else(|| has(&global, &["/primaryApiKey"]))
    }

    fn codex(&self) -> Option<String> {
        let auth = self.directory("CODEX_HOME", ".codex").join("auth.json");
        self.first_set(&["CODEX_API_KEY", "CODEX_ACCESS_TOKEN"])
            .or_else(|| has(&auth, &["/tokens/access_token", "/OPENAI_API_KEY"]))
    }

    /// A provider of the user's own may need no login or have a variable of its own, and the login may
    /// be in a keyring.
    fn codex_without(&self) -> LoginState {
        let config = self.directory("CODEX_HOME", ".codex").join("config.toml");
        let config = read(&config).unwrap_or_default();
        let other = ["model_provider", "cli_auth_credentials_store"];
        if other.iter().any(|name| config.contains(name)) || self.set("OPENAI_API_KEY").is_some() {
            LoginState::Unknown
        } else {
            LoginState::No
        }
    }

    fn copilot(&self) -> Option<String> {
        let config = self
            .directory("COPILOT_HOME", ".copilot")
            .join("config.json");
        self.first_set(&[
            "COPILOT_GITHUB_TOKEN",
            "GH_TOKEN",
            "GITHUB_TOKEN",
            "COPILOT_PROVIDER_BASE_URL",
        ])
        .or_else(|| has(&config, &["/loggedInUsers/0", "/logged_in_users/0"]))
    }

    fn gemini(&self) -> Option<String> {
        let names = [
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_GENAI_USE_VERTEXAI",
        ];
        let folder = self.gemini_folder();
        let sets = |file: &Path| {
            let text = read(file)?;
            let set = |line: &str| {
                let line = line.trim().trim_start_matches("export ");
                let value = line
                    .split_once('=')
                    .filter(|(name, _)| names.contains(&name.trim()));
                value.is_some_and(|(_, value)| !value.trim().is_empty())
            };
            text.lines().any(set).then(|| file.display().to_string())
        };
        self.first_set(&names)
            .or_else(|| {
                has(
                    &folder.join("oauth_creds.json"),
                    &["/refresh_token", "/access_token"],
                )
            })
            .or_else(|| sets(&folder.join(".env")))
            .or_else(|| sets(&self.home().join(".env")))
    }

    /// A way to log in was chosen, and the key may be in a keychain or an encrypted file.
    fn gemini_without(&self) -> LoginState {
        let settings = self.gemini_folder().join("settings.json");
        let chosen = ["/security/auth/selectedType", "/selectedAuthType"];
        match has(&settings, &chosen) {
            Some(_) => LoginState::Unknown,
            None => LoginState::No,
        }
    }

    fn gemini_folder(&self) -> PathBuf {
        self.set("GEMINI_CLI_HOME")
            .map_or_else(|| self.home(), PathBuf::from)
            .join(".gemini")
    }

    fn opencode(&self) -> Option<String> {
        let data = self.directory("XDG_DATA_HOME", ".local/share");
        let auth = data.join("opencode/auth.json");
        let any = json(&auth)?.as_object()?.values().any(Value::is_object);
        any.then(|| auth.display().to_string())
    }

    /// A variable that is set to something.
    fn set(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| !value.is_empty())
    }

    fn first_set(&self, names: &[&str]) -> Option<String> {
        let name = names.iter().find(|name| {
            self.set(name)
                .is_some_and(|value| !["0", "false"].contains(&&*value))
        })?;
        Some((*name).to_owned())
    }

    fn home(&self) -> PathBuf {
        // Without one, nothing is found.
        self.set("HOME").map_or_else(|| "/".into(), PathBuf::from)
    }

    /// The folder that the variable names, else the one in the home.
    fn directory(&self, variable: &str, in_home: &str) -> PathBuf {
        self.set(variable)
            .map_or_else(|| self.home().join(in_home), PathBuf::from)
    }
}

/// The file's name if something is at one of these places in it.
fn has(file: &Path, pointers: &[&str]) -> Option<String> {
    let value = json(file)?;
    let is_there = |value: &Value| match value {
        Value::String(text) => !text.is_empty(),
        Value::Object(_) => true,
        _ => false,
    };
    pointers
        .iter()
        .any(|pointer| value.pointer(pointer).is_some_and(is_there))
        .then(|| file.display().to_string())
}

fn json(file: &Path) -> Option<Value> {
    serde_json::from_str(&read(file)?).ok()
}

/// A file's text; a pipe is not waited for.
fn read(file: &Path) -> Option<String> {
    fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
    fs::read_to_string(file).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The login with these files in the home and these variables.
    fn of(
        provider: &str,
        files: &[(&str, &str)],
        set: &[(&str, &str)],
    ) -> (LoginState, Option<String>) {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = home.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        let here = home.path().to_str().unwrap();
        let variable = |name: &str| match name {
            "HOME" => Some(here.to_owned()),
            _ => (set.iter().find(|(known, _)| *known == name)).map(|(_, value)| (*value).into()),
        };
        let login = Surroundings {
            variable: &variable,
            keychain: false,
        }
        .login(provider);
        let from = login.from.map(|from| from.replace(&format!("{here}/"), ""));
        (login.state, from)
    }

    #[test]
    fn a_login_is_seen_where_the_cli_keeps_it() {
        let oauth = r#"{"claudeAiOauth": {"accessToken": "t"}}"#;
        for (provider, file, text) in [
            ("claude", ".claude/.credentials.json", oauth),
            (
                "claude",
                ".claude/settings.json",
                r#"{"apiKeyHelper": "get-key"}"#,
            ),
            ("claude", ".claude.json", r#"{"primaryApiKey": "k"}"#),
            (
                "codex",
                ".codex/auth.json",
                r#"{"tokens": {"access_token": "t"}}"#,
            ),
            ("codex", ".codex/auth.json", r#"{"OPENAI_API_KEY": "k"}"#),
            (
                "copilot",
                ".copilot/config.json",
                r#"{"loggedInUsers": [{"login": "a"}]}"#,
            ),
            (
                "gemini",
                ".gemini/oauth_creds.json",
                r#"{"refresh_token": "t"}"#,
            ),
            ("gemini", ".gemini/.env", "A=1\nGEMINI_API_KEY=k\n"),
            (
                "opencode",
                ".local/share/opencode/auth.json",
                r#"{"a": {"type": "api"}}"#,
            ),
        ] {
            let login = of(provider, &[(file, text)], &[]);
            assert_eq!(
                login,
                (LoginState::Yes, Some(file.to_owned())),
                "{provider}"
            );
        }
        for (provider, variable) in [
            ("claude", "ANTHROPIC_API_KEY"),
            ("codex", "CODEX_API_KEY"),
            ("copilot", "GH_TOKEN"),
            ("gemini", "GEMINI_API_KEY"),
        ] {
            let login = of(provider, &[], &[(variable, "secret")]);
            assert_eq!(login, (LoginState::Yes, Some(variable.to_owned())));
        }
    }

    #[test]
    fn what_cannot_be_known_is_not_claimed() {
        let none = |provider| of(provider, &[], &[]).0;
        for (provider, state) in [
            ("claude", LoginState::No),
            ("codex", LoginState::No),
            ("gemini", LoginState::No),
            ("copilot", LoginState::Unknown),
            ("opencode", LoginState::Unknown),
            ("acp", LoginState::Unknown),
        ] {
            assert_eq!(none(provider), state, "{provider}");
        }
        let logged_out = r#"{"claudeAiOauth": {"accessToken": ""}}"#;
        let files = [(".claude/.credentials.json", logged_out)];
        assert_eq!(of("claude", &files, &[]).0, LoginState::No);
        assert_eq!(
            of("claude", &[], &[("CLAUDE_CODE_USE_VERTEX", "0")]).0,
            LoginState::No
        );
        let own = [(".codex/config.toml", "model_provider = \"own\"\n")];
        assert_eq!(of("codex", &own, &[]).0, LoginState::Unknown);
        let chosen = r#"{"security": {"auth": {"selectedType": "gemini-api-key"}}}"#;
        let files = [(".gemini/settings.json", chosen)];
        assert_eq!(of("gemini", &files, &[]).0, LoginState::Unknown);
    }
}
