//! Login of a CLI, judged by its files and the environment.
//!
//! No service is called and no secret is kept. A token may have expired. Keychains are not read.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;
use teamster_core::CliInfo;
use teamster_core::provider::{CredentialFile, Credentials, Sign};
use teamster_core::time::millis;

/// State of a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum LoginState {
    /// A login was found.
    Yes,
    /// No login was found.
    No,
    /// The login may be in a place that is not read, such as a keychain.
    Unknown,
}

/// Login of a CLI.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Login {
    /// State of the login.
    pub state: LoginState,
    /// Variable or file that has the login.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Time at which the token of the file ends, in milliseconds since the Unix epoch. The CLI renews it.
    #[serde(rename = "expiresAt", skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
}

impl Login {
    /// Creates a login. `from` is the variable or file that has it.
    pub fn new(state: LoginState, from: Option<String>) -> Self {
        Self {
            state,
            from,
            expires_at_ms: None,
        }
    }
}

/// Returns the time at which the token of a file with a CLI's login ends, in milliseconds since the Unix epoch; `None` if the
/// file has none.
pub fn token_expiry(info: &CliInfo, file: &Path) -> Option<u64> {
    let pointers = info.credentials.expiry;
    if pointers.is_empty() {
        return None;
    }
    let json = json(file)?;
    let time = pointers.iter().find_map(|pointer| json.pointer(pointer))?;
    time.as_u64().or_else(|| {
        // With fractions of milliseconds.
        let seconds = time.as_f64()? / 1000.0;
        Duration::try_from_secs_f64(seconds).ok().map(millis)
    })
}

/// Looks for the login of a CLI in the environment of this process.
pub(super) fn login(info: &CliInfo) -> Login {
    login_in(info, &|name| env::var_os(name))
}

/// Looks for the login of a CLI that is started with these variables.
pub fn login_in(info: &CliInfo, variable: &dyn Fn(&str) -> Option<OsString>) -> Login {
    let search = LoginSearch {
        variable,
        keychain: cfg!(target_os = "macos"),
    };
    let mut login = search.login(&info.credentials);
    let file = login.from.as_deref().filter(|from| from.contains('/'));
    login.expires_at_ms = file.and_then(|file| token_expiry(info, Path::new(file)));
    login
}

/// Environment in which logins are searched.
struct LoginSearch<'a> {
    variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// The system has a keychain, in which CLIs may keep logins.
    keychain: bool,
}

impl LoginSearch<'_> {
    fn login(&self, credentials: &Credentials) -> Login {
        let from =
            (self.first_set(credentials.variables)).or_else(|| self.first_shown(credentials.files));
        let state = match from {
            Some(_) => LoginState::Yes,
            None if self.keychain || credentials.may_be_elsewhere => LoginState::Unknown,
            None if self.first_set(credentials.elsewhere_variables).is_some() => {
                LoginState::Unknown
            }
            None if self.first_shown(credentials.elsewhere_files).is_some() => LoginState::Unknown,
            None => LoginState::No,
        };
        Login::new(state, from)
    }

    fn first_set(&self, names: &[&str]) -> Option<String> {
        let is_set = |name: &&&str| {
            let value = (self.variable)(name).filter(|value| !value.is_empty());
            value.is_some_and(|value| value != "0" && value != "false")
        };
        names.iter().find(is_set).map(|name| (*name).to_owned())
    }

    fn first_shown(&self, files: &[CredentialFile]) -> Option<String> {
        // Without a home directory no file is found. No file is relative to the working directory.
        let paths = files.iter().filter_map(|file| {
            let path = file.location.path(Path::new("/"), self.variable)?;
            Some((path, file.sign))
        });
        let mut shown = paths.filter(|(path, sign)| has_login(path, *sign).unwrap_or(false));
        shown.next().map(|(path, _)| path.display().to_string())
    }
}

/// Returns whether a file has a login. `None` if it cannot be read or parsed.
fn has_login(file: &Path, sign: Sign) -> Option<bool> {
    Some(match sign {
        Sign::Json(pointers) => {
            let value = json(file)?;
            let is_there = |value: &Value| match value {
                Value::String(text) => !text.is_empty(),
                Value::Object(_) => true,
                _ => false,
            };
            let mut pointers = pointers.iter();
            pointers.any(|pointer| value.pointer(pointer).is_some_and(is_there))
        }
        Sign::AnyObject => json(file)?.as_object()?.values().any(Value::is_object),
        Sign::Variables(names) => {
            let set = |line: &str| {
                let line = line.trim().trim_start_matches("export ");
                let value = line
                    .split_once('=')
                    .filter(|(name, _)| names.contains(&name.trim()));
                value.is_some_and(|(_, value)| !value.trim().is_empty())
            };
            read(file)?.lines().any(set)
        }
        Sign::Words(words) => {
            let text = read(file)?;
            words.iter().any(|word| text.contains(word))
        }
        _ => return None,
    })
}

fn json(file: &Path) -> Option<Value> {
    serde_json::from_str(&read(file)?).ok()
}

/// Reads a regular file. A pipe would block.
fn read(file: &Path) -> Option<String> {
    fs::metadata(file).ok().filter(fs::Metadata::is_file)?;
    fs::read_to_string(file).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the login with these files in the home directory and these variables.
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
            "HOME" => Some(here.into()),
            _ => (set.iter().find(|(known, _)| *known == name)).map(|(_, value)| (*value).into()),
        };
        let provider = crate::Providers::builtin().get(provider);
        let credentials = provider.map_or(Credentials::unknown(), |it| it.info().credentials);
        let login = LoginSearch {
            variable: &variable,
            keychain: false,
        }
        .login(&credentials);
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
    fn a_token_has_the_end_that_its_file_names() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("login.json");
        let of = |provider: &str, text: &str| {
            fs::write(&file, text).unwrap();
            token_expiry(
                crate::Providers::builtin().get(provider).unwrap().info(),
                &file,
            )
        };
        // Made by hand, in the forms of the CLIs' files.
        let claude = r#"{"claudeAiOauth": {"accessToken": "t", "expiresAt": 1788761576179}}"#;
        assert_eq!(of("claude", claude), Some(1_788_761_576_179));
        assert_eq!(
            of("gemini", r#"{"expiry_date": 1769159945362.75}"#),
            Some(1_769_159_945_362)
        );
        assert_eq!(
            of("claude", r#"{"claudeAiOauth": {"accessToken": "t"}}"#),
            None
        );
        assert_eq!(of("gemini", r#"{"expiry_date": -1}"#), None);
        assert_eq!(of("codex", claude), None);
    }

    #[test]
    fn a_login_that_cannot_be_read_is_unknown() {
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
