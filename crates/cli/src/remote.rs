//! `--remote`: commands on the runs, sessions and agents of a `teamster serve` server instead of this machine's.

mod follow;
pub(crate) mod http;
pub(crate) mod run;
mod start;
mod supervisor;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, bail};
use hyper::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use teamster::PermissionMode;
use teamster_api::{
    Answer, LiveStatus, LogLine, PendingRequest, ProblemCode, RefusalCode, RunInfo, RunList,
    RunSummary, RunView, ViewState,
};
use teamster_runner::RunsError;
use teamster_runner::client::StartedTurn;
use teamster_server::OwnerToken;

use crate::args::{AgentsCommand, Command, REMOTE_TOKEN_VARIABLE, RemoteArgs};
pub(crate) use follow::RemoteFollow;
pub(crate) use http::{Failure, Http};
pub(crate) use start::start_session;
pub(crate) use supervisor::RemoteSupervisor;

/// The server that `--remote` names.
static REMOTE: OnceLock<Http> = OnceLock::new();

/// Returns the server that `--remote` names.
pub(crate) fn remote() -> Option<&'static Http> {
    REMOTE.get()
}

/// Stores the server that the arguments name. Returns a usage error if it does not support the command.
pub(crate) fn init(args: &RemoteArgs, command: &Command) -> anyhow::Result<()> {
    let url = args.remote.as_deref().unwrap_or_default().trim();
    if url.is_empty() {
        if args.remote_token_file.is_some() {
            bail!("--remote-token-file requires --remote URL");
        }
        return Ok(());
    }
    if ignores_remote(command) {
        return Ok(());
    }
    check_supported(command)?;
    let token = match &args.remote_token_file {
        Some(file) => Some(OwnerToken::read(file)?.secret().to_owned()),
        None => std::env::var(REMOTE_TOKEN_VARIABLE)
            .ok()
            .map(|token| token.trim().to_owned())
            .filter(|token| !token.is_empty()),
    };
    let http = Http::new(url, token).context("--remote")?;
    if http.is_unencrypted() {
        crate::warn(&[format!(
            "the connection to {} is not encrypted, so others can read the token: use https, a VPN or an SSH tunnel",
            http.url()
        )]);
    }
    // Fails only if this function is called twice.
    let _ = REMOTE.set(http);
    Ok(())
}

/// Returns `true` for commands that ignore `--remote`, because they do not depend on a machine.
fn ignores_remote(command: &Command) -> bool {
    matches!(
        command,
        Command::Demo(_)
            | Command::MockModel(_)
            | Command::Completions(_)
            | Command::Man(_)
            | Command::FakeAgent(_)
            | Command::FakeMcp(_)
    )
}

fn check_supported(command: &Command) -> anyhow::Result<()> {
    let name = match command {
        Command::Chat(args) if args.detach => return Ok(()),
        Command::Chat(_) => bail!(
            "`teamster chat` with --remote needs --detach: it prints the session's id, and `teamster attach ID` \
             talks with it"
        ),
        Command::Agents(args) => match &args.command {
            AgentsCommand::Watch(_) => "agents watch",
            AgentsCommand::Reload => "agents reload",
            AgentsCommand::Logs(args) if args.follow => "agents logs --follow",
            _ => return Ok(()),
        },
        Command::Usage(args) if args.statusline => "usage --statusline",
        Command::Usage(args) if args.watch.is_some() => "usage --watch",
        Command::Usage(args) if args.prices.is_some() => "usage --prices",
        Command::Acp(_) => "acp",
        Command::Serve(_) => "serve",
        Command::Token(_) => "token",
        Command::Loop(_) => "loop",
        Command::Supervise(_) => "supervise",
        Command::Doctor(_) => "doctor",
        Command::Mcp(_) => "mcp",
        _ => return Ok(()),
    };
    bail!(
        "`teamster {name}` does not support --remote: omit it and unset TEAMSTER_REMOTE, or run the command on the \
        server's machine"
    )
}

/// Percent-encodes a path segment, such as an id.
pub(crate) fn encode_segment(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

/// Converts the failure of a request about a run to the runner's error.
fn runs_error(failure: &Failure, id: &str) -> RunsError {
    let id = id.to_owned();
    let refused = |code, failure: &Failure| RunsError::Refused {
        code,
        message: failure.to_string(),
    };
    match failure.code() {
        Some(ProblemCode::RunNotFound | ProblemCode::SessionNotFound) => RunsError::NotFound { id },
        Some(ProblemCode::RunEnded) => RunsError::Ended { id },
        Some(ProblemCode::AlreadyAnswered) => refused(RefusalCode::AlreadyAnswered, failure),
        Some(ProblemCode::RequestNotFound) => refused(RefusalCode::UnknownRequest, failure),
        Some(ProblemCode::InvalidAnswer) => refused(RefusalCode::InvalidAnswer, failure),
        Some(ProblemCode::SessionBusy) => refused(RefusalCode::Busy, failure),
        Some(ProblemCode::NoTurn) => refused(RefusalCode::NoTurn, failure),
        Some(ProblemCode::SessionEnding) => refused(RefusalCode::Ending, failure),
        Some(ProblemCode::OverBudget) => refused(RefusalCode::OverBudget, failure),
        Some(ProblemCode::OutOfTime) => refused(RefusalCode::OutOfTime, failure),
        Some(ProblemCode::Unsupported) => refused(RefusalCode::Unsupported, failure),
        _ => connection_error(failure.to_string()),
    }
}

/// Creates the error for a lost connection.
fn connection_error(message: String) -> RunsError {
    RunsError::Refused {
        code: RefusalCode::Other,
        message,
    }
}

/// A run or session on a server.
#[derive(Debug, Clone)]
pub(crate) struct RemoteRun {
    http: Http,
    info: RunInfo,
}

/// The response to a started turn.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Turn {
    run_id: String,
    seq: u64,
}

impl RemoteRun {
    /// Finds the run with this id or unique id prefix.
    pub(crate) async fn find(http: &Http, id: &str) -> Result<Self, RunsError> {
        let view = http
            .get::<RunView>(&format!("/v1/runs/{}", encode_segment(id)))
            .await;
        let view = view.map_err(|failure| runs_error(&failure, id))?;
        Ok(Self {
            http: http.clone(),
            info: view.summary.info.clone(),
        })
    }

    pub(crate) fn info(&self) -> &RunInfo {
        &self.info
    }

    fn path(&self, rest: &str) -> String {
        format!("/v1/runs/{}{rest}", encode_segment(&self.info.run_id))
    }

    fn session(&self, rest: &str) -> String {
        format!("/v1/sessions/{}{rest}", encode_segment(&self.info.run_id))
    }

    fn failed(&self) -> impl Fn(Failure) -> RunsError {
        move |failure| runs_error(&failure, &self.info.run_id)
    }

    async fn command(&self, path: &str, body: &impl Serialize) -> Result<(), RunsError> {
        let sent = self.http.command(Method::POST, path, body).await;
        sent.map_err(self.failed())
    }

    async fn view(&self) -> Result<RunView, RunsError> {
        self.http.get(&self.path("")).await.map_err(self.failed())
    }

    /// Follows the entries after the one with this number.
    pub(crate) fn follow(&self, after: u64) -> RemoteFollow {
        RemoteFollow::new(self.http.clone(), &self.info.run_id, after)
    }

    /// Returns the number of the newest entry.
    pub(crate) async fn newest(&self) -> Result<u64, RunsError> {
        Ok(self.view().await?.summary.seq)
    }

    /// Waits for the last entry of the log.
    pub(crate) async fn end(&self) -> Result<Option<LogLine>, RunsError> {
        let newest = self.newest().await?;
        let mut follow = self.follow(newest.saturating_sub(1));
        let mut last = None;
        while let Some(line) = follow.next().await? {
            last = Some(line);
        }
        Ok(last.filter(LogLine::is_end))
    }

    pub(crate) async fn cancel(&self, kill: bool) -> Result<(), RunsError> {
        self.command(&self.path("/cancel"), &json!({ "kill": kill }))
            .await
    }

    pub(crate) async fn requests(&self) -> Result<Vec<PendingRequest>, RunsError> {
        Ok(self.view().await?.summary.requests.clone())
    }

    pub(crate) async fn answer(&self, id: &str, answer: &Answer) -> Result<(), RunsError> {
        let number = id.rsplit('/').next().unwrap_or(id);
        let path = format!(
            "/v1/requests/{}/{}",
            encode_segment(&self.info.run_id),
            encode_segment(number)
        );
        self.command(&path, answer).await
    }

    pub(crate) async fn status(&self) -> Result<LiveStatus, RunsError> {
        let view = self.view().await?;
        view.summary.live.clone().ok_or_else(|| RunsError::Ended {
            id: self.info.run_id.clone(),
        })
    }

    pub(crate) async fn send(
        &self,
        prompt: String,
        from: Option<String>,
    ) -> Result<StartedTurn, RunsError> {
        let body = json!({"prompt": prompt, "from": from});
        let turn = (self.http)
            .exchange::<Turn>(Method::POST, &self.session("/turns"), &[], &body)
            .await;
        let turn = turn.map_err(self.failed())?;
        Ok(StartedTurn::new(turn.run_id, turn.seq))
    }

    pub(crate) async fn steer(&self, text: String, from: Option<String>) -> Result<(), RunsError> {
        let body = json!({"text": text, "from": from});
        self.command(&self.session("/steer"), &body).await
    }

    pub(crate) async fn interrupt(&self, kill: bool) -> Result<(), RunsError> {
        self.command(&self.session("/interrupt"), &json!({ "kill": kill }))
            .await
    }

    pub(crate) async fn clear(&self) -> Result<(), RunsError> {
        self.command(&self.session("/clear"), &json!({})).await
    }

    async fn change(&self, body: &serde_json::Value) -> Result<(), RunsError> {
        let path = self.session("");
        let changed = self.http.command(Method::PATCH, &path, body).await;
        changed.map_err(self.failed())
    }

    pub(crate) async fn set_model(&self, model: &str) -> Result<(), RunsError> {
        self.change(&json!({ "model": model })).await
    }

    pub(crate) async fn set_permission(&self, mode: PermissionMode) -> Result<(), RunsError> {
        self.change(&json!({ "permission": mode })).await
    }
}

/// Returns the server's runs that match the query, newest first, at most `limit`.
pub(crate) async fn runs(
    http: &Http,
    query: &str,
    limit: usize,
) -> Result<Vec<RunSummary>, Failure> {
    let mut runs = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/v1/runs?limit=1000&{query}{cursor}");
        let page: RunList = http.get(&path).await?;
        runs.extend(page.runs.iter().map(|run| (**run).clone()));
        match page.next {
            Some(next) if runs.len() < limit => {
                cursor = format!("&cursor={}", encode_segment(&next));
            }
            _ => break,
        }
    }
    runs.truncate(limit);
    Ok(runs)
}

/// Returns the server's pending requests, each with its run's directory.
pub(crate) async fn pending_requests(
    http: &Http,
) -> Result<Vec<(PendingRequest, Option<PathBuf>)>, Failure> {
    let runs = runs(http, "state=waiting", usize::MAX).await?;
    let waiting = runs
        .into_iter()
        .filter(|run| run.state == ViewState::Waiting);
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
