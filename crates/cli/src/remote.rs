//! `--remote`: commands on the runs, sessions and agents of another machine instead of this one's, over HTTP or `ssh`.

mod prepare;
mod upload;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use teamster::store::Store;
use teamster_api::{MachineService, RunQuery, RunService, RunSummary, ServiceError, list_all};
use teamster_client::{Client, ClientErrorKind, ConnectionChange};
use teamster_host::{LocalMachine, LocalRuns};
use teamster_server::OwnerToken;

use crate::args::{REMOTE_TOKEN_VARIABLE, REMOTE_VARIABLE, RemoteArgs};
use crate::words;
pub(crate) use prepare::{prepare_run, prepare_session, read_image};
pub(crate) use upload::upload;

/// The environment variable with the command in place of `ssh`, as the shell reads it.
const SSH_VARIABLE: &str = "TEAMSTER_SSH";

/// The option that names a server.
const REMOTE: &str = "--remote";
/// The option that names the machines of a fleet.
#[cfg(feature = "fleet")]
const FLEET: &str = "--fleet";

/// The machine whose runs, sessions and agents a command is about: its services, and what a terminal shows of it.
#[derive(Clone)]
pub(crate) struct Machine {
    runs: Arc<dyn RunService>,
    agents: Arc<dyn MachineService>,
    /// The URL of the server that `--remote` names, or the servers of the fleet; `None` for this machine.
    url: Option<String>,
    /// The option that names it.
    flag: &'static str,
}

impl Machine {
    /// Returns this machine.
    pub(crate) fn here() -> Self {
        let host = crate::global::host();
        Self {
            runs: Arc::new(LocalRuns::lazy(host).patient()),
            agents: Arc::new(LocalMachine::new(host)),
            url: None,
            flag: REMOTE,
        }
    }

    /// Returns the machine with this store for its history, if it is this one; the caller closes the store.
    pub(crate) fn with_store(&self, store: Option<Store>) -> Self {
        if !self.is_here() {
            return self.clone();
        }
        let host = crate::global::host();
        Self {
            runs: Arc::new(LocalRuns::lazy(host).with_store(store.clone())),
            agents: Arc::new(LocalMachine::new(host).with_store(store)),
            url: None,
            flag: REMOTE,
        }
    }

    /// Returns the machine of a server.
    fn there(client: Client) -> Self {
        Self {
            url: Some(client.url().to_owned()),
            runs: Arc::new(client.clone()),
            agents: Arc::new(client),
            flag: REMOTE,
        }
    }

    /// Returns the machines of the fleet with these servers as one.
    #[cfg(feature = "fleet")]
    pub(crate) fn fleet(
        runs: Arc<dyn RunService>,
        agents: Arc<dyn MachineService>,
        url: String,
    ) -> Self {
        Self {
            runs,
            agents,
            url: Some(url),
            flag: FLEET,
        }
    }

    /// Returns `true` for the machines of a fleet.
    pub(crate) fn is_fleet(&self) -> bool {
        self.flag != REMOTE
    }

    /// Returns the option that names it.
    pub(crate) fn flag(&self) -> &'static str {
        self.flag
    }

    pub(crate) fn is_here(&self) -> bool {
        self.url.is_none()
    }

    /// Returns the URL of the server; `None` for this machine.
    pub(crate) fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// Returns the service of runs and sessions.
    pub(crate) fn runs(&self) -> Arc<dyn RunService> {
        self.runs.clone()
    }

    /// Returns the service of agents, their usage and history.
    pub(crate) fn agents(&self) -> Arc<dyn MachineService> {
        self.agents.clone()
    }

    /// Returns the runs that have not ended, newest first, each with its live status and pending requests.
    pub(crate) async fn live_runs(&self) -> Result<Vec<Arc<RunSummary>>, ServiceError> {
        let mut query = RunQuery::default();
        query.live = true;
        list_all(&*self.runs, query).await
    }
}

/// Returns the URL of the server that the arguments name, if they name one.
pub(crate) fn url(args: &RemoteArgs) -> anyhow::Result<Option<&str>> {
    let url = args.remote.as_deref().unwrap_or_default().trim();
    if !url.is_empty() {
        return Ok(Some(url));
    }
    if args.remote_token_file.is_some() {
        bail!("--remote-token-file requires --remote URL");
    }
    Ok(None)
}

/// Returns the options that name a server, as a person has typed them; `None` if a variable names it.
pub(crate) fn typed(args: &RemoteArgs) -> Option<String> {
    let url = args.remote.as_deref()?;
    if std::env::var(REMOTE_VARIABLE).is_ok_and(|variable| variable == url) {
        return None;
    }
    let mut options = format!("{REMOTE} {}", words::shell_word(url.trim()));
    if let Some(file) = &args.remote_token_file {
        let file = words::shell_word(&file.to_string_lossy());
        options = format!("{options} --remote-token-file {file}");
    }
    Some(options)
}

/// Returns the machine of a server, with the token that the arguments name.
pub(crate) fn connect(url: &str, args: &RemoteArgs) -> anyhow::Result<Machine> {
    let token = match &args.remote_token_file {
        Some(file) => Some(OwnerToken::read(file)?.secret().to_owned()),
        None => std::env::var(REMOTE_TOKEN_VARIABLE)
            .ok()
            .map(|token| token.trim().to_owned())
            .filter(|token| !token.is_empty()),
    };
    let client = Client::new(url, token.as_deref()).map_err(|error| match error.kind {
        ClientErrorKind::SecretInUrl if !url.starts_with("ssh:") => anyhow!(
            "every user of this machine can read a token in the URL: put it into a file for --remote-token-file, or \
             into TEAMSTER_REMOTE_TOKEN"
        ),
        ClientErrorKind::NoToken => anyhow!(
            "{error}: set TEAMSTER_REMOTE_TOKEN or --remote-token-file (`teamster token add NAME --scope SCOPE` on \
             the server's machine creates a token)"
        ),
        _ => error.into(),
    });
    let mut client = client.context("--remote")?;
    client = client.with_questions(io::stdin().is_terminal() || io::stderr().is_terminal());
    if let Ok(command) = std::env::var(SSH_VARIABLE)
        && !command.trim().is_empty()
    {
        client = client.with_ssh_command(command);
    }
    // The runs there become a part of what this command is part of.
    if let Ok(parent) = std::env::var("TRACEPARENT") {
        let state = std::env::var("TRACESTATE").ok();
        client = client.with_trace(&parent, state.as_deref());
    }
    if client.is_unencrypted() {
        crate::report::warn(&[format!(
            "the connection to {} is not encrypted, so others can read the token: use https, a VPN or an SSH tunnel",
            client.url()
        )]);
    }
    let url = client.url().to_owned();
    let report = move |change: ConnectionChange<'_>| match change {
        ConnectionChange::Lost { reason } => crate::report::warn(&[format!("{reason}; retrying")]),
        ConnectionChange::Restored => crate::report::warn(&[format!("reconnected to {url}")]),
        _ => {}
    };
    Ok(Machine::there(client.on_connection_change(report)))
}

/// Checks that a directory on another machine is an absolute path.
pub(crate) fn absolute(flag: &str, path: &Path, remote: &str) -> anyhow::Result<PathBuf> {
    if path.is_absolute() {
        return Ok(path.to_owned());
    }
    bail!(
        "{flag} {}: with {remote}, name an absolute path of the other machine",
        path.display()
    )
}
