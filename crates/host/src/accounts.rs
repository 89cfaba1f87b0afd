//! Named accounts of agents, configured in `teamster/accounts.toml`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;
use teamster_core::{AgentError, ExecuteParams};
use teamster_providers::Providers;
use teamster_providers::doctor::{LoginState, login_in};

use crate::environment::{self, config_file, read_config};
use crate::{Host, error_chain};

/// The file's path in the user's configuration folder.
const FILE: &str = "teamster/accounts.toml";

/// An account of an agent: the variables with which its CLI finds a login of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    /// Its name.
    pub name: String,
    /// The id of its agent.
    pub agent: &'static str,
    /// Whether a login was found; `None` if it may be where it cannot be seen.
    pub has_login: Option<bool>,
    /// Number of attempts with it at once, in all processes; `None` for no limit.
    pub slots: Option<u32>,
    env: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAccount {
    agent: String,
    home: Option<PathBuf>,
    slots: Option<u32>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

impl Account {
    pub(crate) fn apply(&self, params: &mut ExecuteParams) {
        params.env.extend(self.env.clone());
    }
}

impl Host {
    /// Returns the accounts of the user's file (`teamster/accounts.toml`), by name.
    ///
    /// # Errors
    ///
    /// Fails with the problem of the file.
    pub fn accounts(&self) -> Result<Vec<Account>, AgentError> {
        let Some(file) = config_file(FILE) else {
            return Ok(Vec::new());
        };
        read(self.providers(), &file)
            .map_err(|error| AgentError::refused("accounts", error_chain(&error)))
    }

    /// Returns the accounts with these names, in this order. Each belongs to one of the agents.
    pub(crate) fn accounts_of(
        &self,
        names: &[String],
        agents: &[&str],
    ) -> Result<Vec<Account>, AgentError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let known = self.accounts()?;
        let refused = |name: &String, problem: String| {
            Err(AgentError::refused_item("accounts", name, problem))
        };
        let mut accounts: Vec<Account> = Vec::new();
        for name in names {
            let Some(account) = known.iter().find(|account| account.name == *name) else {
                let names: Vec<_> = known.iter().map(|it| it.name.as_str()).collect();
                let known = match names.as_slice() {
                    [] => {
                        format!("this machine has none: write {FILE} in the configuration folder")
                    }
                    names => format!("this machine has {}", names.join(", ")),
                };
                return refused(name, format!("no such account; {known}"));
            };
            if !agents.contains(&account.agent) {
                let problem = format!("it is one of {}, which does not run here", account.agent);
                return refused(name, problem);
            }
            if accounts.contains(account) {
                return refused(name, "it is named twice".to_owned());
            }
            accounts.push(account.clone());
        }
        Ok(accounts)
    }
}

fn read(providers: &Providers, file: &Path) -> anyhow::Result<Vec<Account>> {
    let text = read_config(file).with_context(|| format!("cannot read {}", file.display()))?;
    let Some(text) = text else {
        return Ok(Vec::new());
    };
    let entries: BTreeMap<String, RawAccount> = toml::from_str(&text)
        .map_err(|error| anyhow!("{}: {}", file.display(), problem(&text, &error)))?;
    let mut accounts = Vec::new();
    for (name, raw) in entries {
        let account = account(providers, name.clone(), raw);
        accounts.push(account.with_context(|| format!("{}: [{name}]", file.display()))?);
    }
    Ok(accounts)
}

/// Returns the problem of the file, with its line. The error's own text shows that line, and the message of a wrong type
/// its value: either can be a key.
fn problem(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    let message = error.message();
    let expected = message
        .rfind("expected ")
        .filter(|_| message.starts_with("invalid "));
    format!("line {line}: {}", &message[expected.unwrap_or(0)..])
}

fn account(providers: &Providers, name: String, raw: RawAccount) -> anyhow::Result<Account> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || !name.chars().all(is_name) {
        bail!("use letters, digits, `-`, `_` and `.` in the name of an account");
    }
    let Some(provider) = providers.get(&raw.agent) else {
        bail!("unknown agent \"{}\"", raw.agent);
    };
    let info = provider.info();
    let mut env = raw.env;
    if let Some(home) = raw.home {
        if !home.is_absolute() {
            bail!("`home`: expected an absolute path, got {}", home.display());
        }
        env.insert("HOME".to_owned(), home.display().to_string());
    }
    if env.is_empty() {
        bail!(
            "set `home`, or variables in `env`: without them, it is the login that the agent has anyway"
        );
    }
    if raw.slots == Some(0) {
        bail!("`slots`: with 0, no run would start; leave it out for no limit");
    }
    let variable = |name: &str| -> Option<OsString> {
        match env.get(name) {
            Some(own) => Some(own.into()),
            None => environment::variable(name),
        }
    };
    let has_login = match login_in(info, &variable).state {
        LoginState::Yes => Some(true),
        LoginState::No => Some(false),
        _ => None,
    };
    Ok(Account {
        name,
        agent: info.id,
        has_login,
        slots: raw.slots,
        env,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn parse(text: &str) -> anyhow::Result<Vec<Account>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("accounts.toml");
        fs::write(&file, text).unwrap();
        read(&Providers::builtin(), &file)
    }

    #[test]
    fn an_account_has_the_variables_of_its_entry() {
        let accounts = parse(
            "[work]\nagent = 'claude'\nhome = '/home/me/work'\nenv.ANTHROPIC_API_KEY = 'k'\n\
             [ci]\nagent = 'codex'\nenv.CODEX_HOME = '/ci'\n",
        )
        .unwrap();
        let [ci, work] = &accounts[..] else {
            panic!("{accounts:?}")
        };
        assert_eq!((ci.agent, &*ci.name), ("codex", "ci"));
        assert_eq!((work.agent, &*work.name), ("claude", "work"));
        assert_eq!(work.has_login, Some(true));
        let mut params = ExecuteParams::new("").env("HOME", "/home/me");
        work.apply(&mut params);
        assert_eq!(params.env["HOME"], "/home/me/work");
        assert_eq!(params.env["ANTHROPIC_API_KEY"], "k");
    }

    #[test]
    fn a_wrong_entry_is_refused_by_its_name() {
        for (entry, words) in [
            ("[a]\nhome = '/x'", "agent"),
            (
                "[a]\nagent = 'other'\nhome = '/x'",
                "unknown agent \"other\"",
            ),
            ("[a]\nagent = 'claude'", "set `home`"),
            ("[a]\nagent = 'claude'\nhome = 'x'", "absolute"),
            ("[a]\nagent = 'claude'\nhome = '/x'\nslots = 0", "`slots`"),
            ("[a]\nagent = 'claude'\nhme = '/x'", "hme"),
            ("['a b']\nagent = 'claude'\nhome = '/x'", "letters"),
        ] {
            let error = format!("{:#}", parse(entry).unwrap_err());
            assert!(
                error.contains("accounts.toml") && error.contains(words),
                "{error}"
            );
        }
    }

    #[test]
    fn an_error_of_the_file_has_no_value() {
        for (entry, problem) in [
            ("env.ANTHROPIC_API_KEY = sk-ant-1234", "line 3: "),
            ("env.ANTHROPIC_API_KEY = 1234", "line 3: expected a string"),
            ("env = 'sk-ant-1234'", "line 3: expected a map"),
            ("slots = 'sk-ant-1234'", "line 3: expected u32"),
        ] {
            let text = format!("[a]\nagent = 'claude'\n{entry}\n");
            let error = format!("{:#}", parse(&text).unwrap_err());
            let expected = format!("accounts.toml: {problem}");
            assert!(error.contains(&expected), "{error}");
            assert!(!error.contains("1234"), "{error}");
        }
    }
}
