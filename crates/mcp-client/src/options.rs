use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use teamster_process::SHIM_GUARDS;
use tokio::sync::watch;

use crate::error::Method;

/// Method of beginning a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// `initialize`, as up to the protocol version 2025-11-25.
    #[default]
    Initialize,
    /// `server/discover`, as from the protocol version 2026-07-28 on. A server that does not know it gets `initialize`.
    Newest,
}

/// Options of a connection.
#[derive(Clone)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Time limit of starting the server and listing its tools. Default: 30 s.
    pub limit: Duration,
    /// Method of beginning the session. Default: [`Protocol::Initialize`].
    pub protocol: Protocol,
    /// Receives the method of each pending request.
    pub waiting: Option<watch::Sender<Method>>,
    /// Working directory of a server without a `cwd`. A relative `cwd` is resolved against it. Default: the working
    /// directory of this process.
    pub directory: Option<PathBuf>,
    /// Environment variables, to which the server's own `env` is added. Default: those of this process. What binds git
    /// to another repository than that of the server's directory is not passed on
    /// ([`foreign_git_variables`](teamster_process::foreign_git_variables)).
    pub environment: BTreeMap<OsString, OsString>,
}

teamster_core::setters! {
    ConnectOptions {
        set limit: Duration,
        set protocol: Protocol,
        some waiting: watch::Sender<Method>,
        some_into directory: PathBuf,
        set environment: BTreeMap<OsString, OsString>,
    }
}

impl ConnectOptions {
    /// Sets an environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Removes an environment variable.
    #[must_use]
    pub fn env_remove(mut self, name: impl AsRef<OsStr>) -> Self {
        self.environment.remove(name.as_ref());
        self
    }
}

impl Default for ConnectOptions {
    fn default() -> Self {
        Self {
            limit: Duration::from_secs(30),
            protocol: Protocol::default(),
            waiting: None,
            directory: None,
            // Servers are often started by shims.
            environment: std::env::vars_os()
                .filter(|(name, _)| SHIM_GUARDS.iter().all(|(guard, _)| name != guard))
                .collect(),
        }
    }
}

/// Omits the values of variables.
impl fmt::Debug for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            limit,
            protocol,
            waiting: _,
            directory,
            environment,
        } = self;
        f.debug_struct("ConnectOptions")
            .field("limit", limit)
            .field("protocol", protocol)
            .field("directory", directory)
            .field("environment", &environment.keys())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_are_not_shown() {
        let options = ConnectOptions::default().env("TOKEN", "sk-1");
        let shown = format!("{options:?}");
        assert!(
            shown.contains("TOKEN") && !shown.contains("sk-1"),
            "{shown}"
        );
        let options = options.env_remove("TOKEN");
        assert!(!options.environment.contains_key(OsStr::new("TOKEN")));
    }
}
