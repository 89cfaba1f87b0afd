//! Settings of the user's fleet: those that `teamster fleet use` has kept, and variables.

use std::env;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use serde::{Deserialize, Serialize};
use teamster_core::provider::base_directory;
use teamster_fleet::FleetOptions;
use teamster_process::{FileMode, make_private_folder, replace_file};

/// The file in the user's configuration directory.
const FILE: &str = "teamster/fleet.json";
/// Servers of the fleet. With it, the file is not read.
const URL_VARIABLE: &str = "TEAMSTER_FLEET";
/// A file of credentials.
const CREDENTIALS_VARIABLE: &str = "TEAMSTER_FLEET_CREDS";
/// A file with the certificate of the servers' authority.
const CA_VARIABLE: &str = "TEAMSTER_FLEET_CA";
/// The owner of runs.
const OWNER_VARIABLE: &str = "TEAMSTER_FLEET_OWNER";
/// The prefix of the subjects of answers.
const INBOX_VARIABLE: &str = "TEAMSTER_FLEET_INBOX";

/// Settings of a user's fleet.
#[serde_with::skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Settings {
    /// Its servers, separated by commas. There may be a password in it.
    pub(crate) url: String,
    /// A file of credentials.
    pub(crate) credentials: Option<PathBuf>,
    /// A file with the certificate of the servers' authority.
    pub(crate) ca: Option<PathBuf>,
    /// The owner of the runs.
    pub(crate) owner: String,
    /// The prefix of the subjects of answers, if permissions require one.
    pub(crate) inbox: Option<String>,
}

impl Settings {
    /// Returns the settings of these servers, with the user's name as the owner.
    pub(crate) fn new(url: String, owner: Option<String>) -> anyhow::Result<Self> {
        let user = || {
            let user = variable("USER").or_else(|| variable("LOGNAME"))?;
            Some(token(&user)).filter(|name| !name.is_empty())
        };
        let owner = owner
            .or_else(user)
            .with_context(|| {
                format!(
                    "the owner of your runs is not known: name it in {OWNER_VARIABLE}, or with `--owner` of `teamster \
                     fleet use`"
                )
            })?;
        Ok(Self {
            url,
            credentials: None,
            ca: None,
            owner,
            inbox: None,
        })
    }

    /// Returns the settings of the servers that an argument names; `-` reads them from stdin. The variables add the
    /// credentials.
    pub(crate) fn of_argument(url: &str, owner: Option<String>) -> anyhow::Result<Self> {
        if url.contains('@') {
            bail!(
                "every user of this machine can read a password in the URL: write `-` in its place and the URL on \
                 stdin, or put it into {URL_VARIABLE}"
            );
        }
        let url = if url == "-" {
            let mut line = String::new();
            io::stdin()
                .read_line(&mut line)
                .context("cannot read stdin")?;
            line.trim().to_owned()
        } else {
            url.to_owned()
        };
        let settings = Self::new(url, owner.or_else(|| variable(OWNER_VARIABLE)))?;
        Ok(settings.with_variables())
    }

    /// Reads the settings from the variables, else from the file. `owner` is that of a program which submits no runs: a
    /// container has no variable with the user's name.
    pub(crate) fn read(owner: Option<&str>) -> anyhow::Result<Self> {
        let owner = owner.map(str::to_owned);
        let mut settings = match variable(URL_VARIABLE) {
            Some(url) => Self::new(url, variable(OWNER_VARIABLE).or(owner))?,
            None => Self::read_file()?,
        };
        if let Some(owner) = variable(OWNER_VARIABLE) {
            settings.owner = owner;
        }
        Ok(settings.with_variables())
    }

    fn with_variables(mut self) -> Self {
        let file = |name| variable(name).map(PathBuf::from);
        self.credentials = file(CREDENTIALS_VARIABLE).or(self.credentials);
        self.ca = file(CA_VARIABLE).or(self.ca);
        self.inbox = variable(INBOX_VARIABLE).or(self.inbox);
        self
    }

    fn read_file() -> anyhow::Result<Self> {
        let file = file()?;
        let json = match fs::read(&file) {
            Ok(json) => json,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(anyhow!(
                    "no fleet is known: name its server with `teamster fleet use URL`, or in {URL_VARIABLE}"
                ));
            }
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", file.display()));
            }
        };
        serde_json::from_slice(&json).map_err(|error| {
            // Without the content, which may have a password.
            anyhow!(
                "{} is damaged at line {}: write it again with `teamster fleet use URL`",
                file.display(),
                error.line()
            )
        })
    }

    /// Keeps the settings in the file, which only this user can read. Returns its path.
    pub(crate) fn keep(&self) -> anyhow::Result<PathBuf> {
        let file = file()?;
        let kept = || {
            if let Some(folder) = file.parent() {
                make_private_folder(folder)?;
            }
            let json = serde_json::to_vec_pretty(self)?;
            replace_file(&file, &json, FileMode::Private)
        };
        kept().with_context(|| format!("cannot write {}", file.display()))?;
        Ok(file)
    }

    /// Returns the options of a connection.
    pub(crate) fn options(&self) -> FleetOptions {
        let mut options = FleetOptions::new(&*self.url, &*self.owner);
        options.credentials.clone_from(&self.credentials);
        options.ca.clone_from(&self.ca);
        options.inbox.clone_from(&self.inbox);
        options
    }

    /// Returns the servers without what may be secret.
    pub(crate) fn address(&self) -> String {
        let servers = self.url.split(',').map(|server| {
            let server = server.trim();
            match (server.split_once("://"), server.rsplit_once('@')) {
                (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
                (None, Some((_, host))) => host.to_owned(),
                (_, None) => server.to_owned(),
            }
        });
        servers.collect::<Vec<_>>().join(",")
    }
}

/// Returns the value of a variable that is set to something.
fn variable(name: &str) -> Option<String> {
    let value = env::var(name).ok()?.trim().to_owned();
    Some(value).filter(|value| !value.is_empty())
}

/// Returns the path of the file, by the XDG base directory specification.
fn file() -> anyhow::Result<PathBuf> {
    let config = base_directory(|name| env::var_os(name), "XDG_CONFIG_HOME", ".config");
    let config = config.context(
        "no directory for the fleet's address: set XDG_CONFIG_HOME or HOME to an absolute path",
    )?;
    Ok(config.join(FILE))
}

/// Returns a name as an owner or a worker can have it: other characters become `-`.
pub(crate) fn token(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let token: String = name
        .chars()
        .map(|c| if plain(c) { c } else { '-' })
        .take(64)
        .collect();
    token.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_one_token() {
        for (name, expected) in [
            ("mini.local", "mini-local"),
            ("Jörg", "J-rg"),
            ("build_7", "build_7"),
            ("...", ""),
            ("a@b.example.", "a-b-example"),
        ] {
            assert_eq!(token(name), expected);
        }
        assert_eq!(token(&"x".repeat(100)).len(), 64);
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (url, shown) in [
            ("nats://127.0.0.1:4222", "nats://127.0.0.1:4222"),
            ("tls://ann:s3cret@a.example", "tls://a.example"),
            ("s3cret@a:4222", "a:4222"),
            ("nats://x:p@a:1, nats://x:p@b:2", "nats://a:1,nats://b:2"),
        ] {
            let settings = Settings::new(url.to_owned(), Some("ann".to_owned())).unwrap();
            assert_eq!(settings.address(), shown);
        }
    }
}
