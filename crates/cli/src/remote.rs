//! `--remote`: commands on the runs, sessions and agents of a `teamster serve` server instead of this machine's.

mod start;
mod supervisor;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use teamster_api::{
    Answer, LogLine, PendingRequest, ProblemCode, RefusalCode, RunInfo, RunQuery, RunSummary,
    ViewState,
};
use teamster_client::{
    Client, ClientError, ClientErrorKind, ConnectionChange, Follow, SessionChange,
};
use teamster_runner::RunsError;
use teamster_server::OwnerToken;

use crate::args::{REMOTE_TOKEN_VARIABLE, RemoteArgs};
use crate::hints;
pub(crate) use start::{idempotency_key, is_usage, prepare_run, prepare_session, start_session};
pub(crate) use supervisor::RemoteSupervisor;

/// The machine whose runs, sessions and agents a command is about.
#[derive(Debug, Clone)]
pub(crate) enum Machine {
    /// This one.
    Here,
    /// That of the server that `--remote` names.
    There(Client),
}

impl Machine {
    pub(crate) fn is_here(&self) -> bool {
        matches!(self, Self::Here)
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
        ClientErrorKind::SecretInUrl => anyhow!(
            "every user of this machine can read a token in the URL: put it into a file for --remote-token-file, or \
             into TEAMSTER_REMOTE_TOKEN"
        ),
        ClientErrorKind::NoToken => anyhow!(
            "{error}: set TEAMSTER_REMOTE_TOKEN or --remote-token-file (`teamster token add NAME --scope SCOPE` on \
             the server's machine creates a token)"
        ),
        _ => error.into(),
    });
    let client = client.context("--remote")?;
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
    Ok(Machine::There(client.on_connection_change(report)))
}

/// Returns the text of an error that becomes one of another type, with the next step.
fn text(error: &ClientError) -> String {
    format!("{error}{}", hints::of_client(error).unwrap_or_default())
}

/// Converts the error of a request about a run to the runner's error.
fn runs_error(error: &ClientError, id: &str) -> RunsError {
    let code = match error.code {
        Some(ProblemCode::RunNotFound | ProblemCode::SessionNotFound) => {
            return RunsError::NotFound { id: id.to_owned() };
        }
        Some(ProblemCode::RunEnded) => return RunsError::Ended { id: id.to_owned() },
        Some(ProblemCode::AlreadyAnswered) => RefusalCode::AlreadyAnswered,
        Some(ProblemCode::RequestNotFound) => RefusalCode::UnknownRequest,
        Some(ProblemCode::InvalidAnswer) => RefusalCode::InvalidAnswer,
        Some(ProblemCode::SessionBusy) => RefusalCode::Busy,
        Some(ProblemCode::NoTurn) => RefusalCode::NoTurn,
        Some(ProblemCode::SessionEnding) => RefusalCode::Ending,
        Some(ProblemCode::OverBudget) => RefusalCode::OverBudget,
        Some(ProblemCode::OutOfTime) => RefusalCode::OutOfTime,
        Some(ProblemCode::Unsupported) => RefusalCode::Unsupported,
        _ => RefusalCode::Other,
    };
    RunsError::Refused {
        code,
        message: text(error),
    }
}

/// A run or session on a server.
#[derive(Debug, Clone)]
pub(crate) struct RemoteRun {
    pub(crate) client: Client,
    pub(crate) info: RunInfo,
}

impl RemoteRun {
    /// Finds the run with this id or unique id prefix.
    pub(crate) async fn find(client: &Client, id: &str) -> Result<Self, RunsError> {
        let view = client.show(id).await;
        let view = view.map_err(|error| runs_error(&error, id))?;
        Ok(Self {
            client: client.clone(),
            info: view.summary.info.clone(),
        })
    }

    pub(crate) fn id(&self) -> &str {
        &self.info.run_id
    }

    /// Returns the conversion of errors of requests about this run, for `map_err`.
    pub(crate) fn failed(&self) -> impl Fn(ClientError) -> RunsError {
        move |error| runs_error(&error, self.id())
    }

    /// Returns the current state.
    pub(crate) async fn view(&self) -> Result<Arc<RunSummary>, RunsError> {
        let view = self.client.show(self.id()).await;
        Ok(view.map_err(self.failed())?.summary)
    }

    /// Waits for the last entry of the log.
    pub(crate) async fn end(&self) -> Result<Option<LogLine>, RunsError> {
        let newest = self.view().await?.seq;
        let mut follow = self.follow(newest.saturating_sub(1));
        let mut last = None;
        while let Some(line) = follow.next().await? {
            last = Some(line);
        }
        Ok(last.filter(LogLine::is_end))
    }

    /// Answers a request, whose id ends with its number.
    pub(crate) async fn answer(&self, id: &str, answer: &Answer) -> Result<(), RunsError> {
        let number = id.rsplit('/').next().unwrap_or(id);
        let id = format!("{}/{number}", self.id());
        let answered = self.client.answer(&id, answer).await;
        answered.map_err(self.failed())
    }

    pub(crate) async fn cancel(&self, kill: bool) -> Result<(), RunsError> {
        let cancelled = self.client.cancel(self.id(), kill).await;
        cancelled.map_err(self.failed())
    }

    pub(crate) async fn change(&self, change: SessionChange) -> Result<(), RunsError> {
        let changed = self.client.change(self.id(), &change).await;
        changed.map(drop).map_err(self.failed())
    }

    /// Follows the entries after the one with this number.
    pub(crate) fn follow(&self, after: u64) -> RemoteFollow {
        RemoteFollow {
            follow: self.client.follow(self.id(), after),
            run_id: self.id().to_owned(),
            after,
        }
    }
}

/// The entries of a log on a server.
#[derive(Debug)]
pub(crate) struct RemoteFollow {
    follow: Follow,
    run_id: String,
    /// The number of the last entry.
    after: u64,
}

impl RemoteFollow {
    /// Returns the next entry; `None` after the last. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<Option<LogLine>, RunsError> {
        match self.follow.next().await {
            Ok(line) => {
                self.after = line.as_ref().map_or(self.after, LogLine::seq);
                Ok(line)
            }
            Err(mut error) => {
                if error.retryable {
                    error.message = format!(
                        "{error}; the run continues: resume with `teamster attach {} --after {}`",
                        self.run_id, self.after
                    );
                }
                Err(runs_error(&error, &self.run_id))
            }
        }
    }
}

/// Returns the server's pending requests, each with its run's directory.
pub(crate) async fn pending_requests(
    client: &Client,
) -> Result<Vec<(PendingRequest, Option<PathBuf>)>, ClientError> {
    let mut query = RunQuery::default();
    query.state = Some(ViewState::Waiting);
    let runs = client.all_runs(query, usize::MAX).await;
    let runs = runs?.into_iter();
    let waiting = runs.filter(|run| run.state == ViewState::Waiting);
    Ok(waiting
        .flat_map(|run| {
            let directory = run.info.directory.clone();
            (run.requests.into_iter()).map(move |request| (request, directory.clone()))
        })
        .collect())
}

/// Checks that a directory on the server is an absolute path.
pub(crate) fn absolute(flag: &str, path: &Path) -> anyhow::Result<PathBuf> {
    if path.is_absolute() {
        return Ok(path.to_owned());
    }
    bail!(
        "{flag} {}: with --remote, name an absolute path of the server's machine",
        path.display()
    )
}
