//! The client as the services of `teamster-api`: the same program works on this machine and on another one.

use async_stream::try_stream;
use futures_core::stream::BoxStream;
use hyper::Method;
use teamster_api::agents::{AgentList, Command as LoopCommand};
use teamster_api::history::{ForgetRuns, Forgotten, RunFilter, RunRecord};
use teamster_api::usage::{LimitList, UsageQuery, UsageSummary};
use teamster_api::{
    Accepted, AppliedChanges, Change, Command, DiffQuery, DiscardedChanges, FileList, FileManifest,
    FleetStatus, KeptSpec, LogLine, MachineService, ProblemCode, ProviderList, ProviderReport,
    RefusalCode, Reply, RunInfo, RunKind, RunList, RunQuery, RunService, RunView, ServiceError,
    Spec, ViewState, WorkspaceDiff, is_file_name,
};
use teamster_core::{AgentError, ErrorCode, ErrorKind, Stopping};

use crate::call::Call;
use crate::error::ClientError;
use crate::machine::HistoryQuery;
use crate::{Client, SessionChange};

/// Ids are whole ids, so each method first asks the server for the run: it would take the beginning of an id, too.
#[async_trait::async_trait]
impl RunService for Client {
    async fn start(&self, id: &str, spec: Spec) -> Result<Accepted, ServiceError> {
        let call = match &spec {
            Spec::Run(spec) => Call::new(Method::PUT, &["runs", id])?.with_body(spec),
            Spec::Session(spec) => Call::new(Method::PUT, &["sessions", id])?.with_body(spec),
        };
        let (started, existed) = self.started(&call?).await?;
        let mut accepted = Accepted::new(started.warnings);
        accepted.important = started.important;
        Ok(if existed { accepted.again() } else { accepted })
    }

    /// Asks for the report of the agent. One that is named by its command has none.
    async fn check(&self, spec: &Spec) -> Result<(), ServiceError> {
        let agents = self.providers().await?;
        let name = spec.provider();
        match agents.iter().find(|report| report.facts.id == name) {
            Some(report) => check(report),
            None if name.contains(':') => Ok(()),
            None => {
                let known: Vec<_> = agents.iter().map(|report| &*report.facts.id).collect();
                let problem = format!("no agent \"{name}\"; available: {}", known.join(", "));
                Err(AgentError::refused("provider", problem).into())
            }
        }
    }

    async fn resolve(&self, prefix: &str) -> Result<RunInfo, ServiceError> {
        let found = found(prefix, Self::show(self, prefix).await)?;
        Ok(found.summary.info.clone())
    }

    async fn show(&self, id: &str) -> Result<RunView, ServiceError> {
        self.exact(id).await
    }

    async fn list(&self, query: RunQuery) -> Result<RunList, ServiceError> {
        Ok(self.runs(&query).await?)
    }

    fn follow(&self, id: &str, after: u64) -> BoxStream<'static, Result<LogLine, ServiceError>> {
        let (client, id) = (self.clone(), id.to_owned());
        Box::pin(try_stream! {
            // As patient as the stream itself.
            let found = match Call::get(&["runs", &id]) {
                Ok(call) => client.http.once(&call).await.map(|(view, _)| view),
                Err(error) => Err(error),
            };
            exactly(&id, found)?;
            let mut log = Self::follow(&client, &id, after);
            while let Some(line) = log.next().await? {
                yield line;
            }
        })
    }

    fn changes(&self) -> BoxStream<'static, Result<Change, ServiceError>> {
        let client = self.clone();
        Box::pin(try_stream! {
            let mut changes = Self::changes(&client);
            while let Some(change) = changes.next().await? {
                yield change;
            }
        })
    }

    async fn send(&self, id: &str, command: Command) -> Result<Reply, ServiceError> {
        self.command_of(id, command).await
    }

    async fn known_commits(
        &self,
        root: &str,
        offered: Vec<String>,
    ) -> Result<Vec<String>, ServiceError> {
        Ok(Self::known_commits(self, root, offered).await?)
    }

    async fn offer(&self, id: &str, manifest: FileManifest) -> Result<Vec<u32>, ServiceError> {
        Ok(Self::offer(self, id, &manifest).await?)
    }

    async fn write_part(
        &self,
        id: &str,
        name: &str,
        number: u32,
        content: Vec<u8>,
    ) -> Result<(), ServiceError> {
        Ok(Self::write_part(self, id, name, number, content).await?)
    }

    async fn withdraw(&self, id: &str) -> Result<(), ServiceError> {
        Ok(Self::withdraw(self, id).await?)
    }

    async fn apply(&self, id: &str) -> Result<AppliedChanges, ServiceError> {
        self.exact_or_attached(id).await?;
        Ok(Self::apply(self, id).await?)
    }

    async fn discard(&self, id: &str) -> Result<DiscardedChanges, ServiceError> {
        self.exact_or_attached(id).await?;
        Ok(Self::discard(self, id).await?)
    }

    async fn rename(&self, id: &str, title: Option<String>) -> Result<(), ServiceError> {
        self.exact_or_attached(id).await?;
        Ok(Self::rename(self, id, title.as_deref()).await?)
    }

    async fn spec(&self, id: &str) -> Result<KeptSpec, ServiceError> {
        self.exact(id).await?;
        Ok(Self::spec(self, id).await?)
    }

    async fn forget(&self, request: ForgetRuns) -> Result<Forgotten, ServiceError> {
        Ok(Self::forget(self, &request).await?)
    }

    async fn diff(&self, id: &str, query: DiffQuery) -> Result<WorkspaceDiff, ServiceError> {
        self.exact_or_attached(id).await?;
        Ok(Self::diff(self, id, &query).await?)
    }

    async fn files(&self, id: &str) -> Result<FileList, ServiceError> {
        self.exact_or_attached(id).await?;
        Ok(Self::files(self, id).await?)
    }

    async fn manifest(&self, id: &str, name: &str) -> Result<FileManifest, ServiceError> {
        self.exact_or_attached(id).await?;
        check_file(id, name)?;
        Ok(Self::manifest(self, id, name).await?)
    }

    async fn read_part(&self, id: &str, name: &str, number: u32) -> Result<Vec<u8>, ServiceError> {
        // The manifest was read before, by the whole id.
        check_file(id, name)?;
        Ok(Self::read_part(self, id, name, number).await?)
    }
}

impl Client {
    /// Checks that the id is not the beginning of another one. A run without a log is not known by it, but may have left
    /// something.
    async fn exact_or_attached(&self, id: &str) -> Result<(), ServiceError> {
        match found(id, Self::show(self, id).await) {
            Ok(view) if view.summary.info.run_id != id => Err(missing(id)),
            Err(error) if error.code == Some(ProblemCode::RunIdAmbiguous) => Err(missing(id)),
            Err(error) if error.code != Some(ProblemCode::RunNotFound) => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the run with exactly this id.
    async fn exact(&self, id: &str) -> Result<RunView, ServiceError> {
        exactly(id, Self::show(self, id).await)
    }

    async fn command_of(&self, id: &str, command: Command) -> Result<Reply, ServiceError> {
        let run = self.exact(id).await?;
        let is_session = run.summary.info.kind == RunKind::Session;
        match command {
            Command::Cancel { kill } => self.cancel(id, Stopping::kill_if(kill)).await?,
            Command::Requests => {
                let requests = run.summary.requests.clone();
                return Ok(Reply::Requests { requests });
            }
            Command::Answer { request_id, answer } => {
                let is_of_run = request_id
                    .rsplit_once('/')
                    .is_some_and(|(run, _)| run == id);
                if !is_of_run {
                    let message = format!("run {id} has no request {request_id}");
                    return Err((RefusalCode::UnknownRequest, message).into());
                }
                self.answer(&request_id, &answer).await?;
            }
            Command::Status => {
                if run.summary.state == ViewState::Ended {
                    let message = format!("run {id} has ended");
                    return Err(ServiceError::new(ProblemCode::RunEnded, message));
                }
                let status = run.summary.live.clone();
                let status = status.ok_or_else(|| {
                    unsupported(
                        "the server does not know the status: the run's runner has another version",
                    )
                })?;
                let status = Box::new(status);
                return Ok(Reply::Status { status });
            }
            _ if !is_session => return Err(unsupported("a run does not support this command")),
            Command::Send {
                prompt,
                images,
                from,
                key,
                // The client has one for all its requests.
                trace: _,
            } => {
                let turn = self
                    .say_with(id, &prompt, images, from.as_deref(), key.as_deref())
                    .await?;
                return Ok(Reply::Turn {
                    run_id: turn.run_id,
                    seq: turn.seq,
                    known: turn.known,
                });
            }
            Command::Steer { text, from } => self.steer(id, &text, from.as_deref()).await?,
            Command::Interrupt { kill } => self.interrupt(id, Stopping::kill_if(kill)).await?,
            Command::Clear => self.clear(id).await?,
            Command::SetModel { model } => {
                self.change(id, &SessionChange::model(model)).await?;
            }
            Command::SetPermission { mode } => {
                self.change(id, &SessionChange::permission(mode)).await?;
            }
            _ => return Err(unsupported("the HTTP API does not support this command")),
        }
        Ok(Reply::Done)
    }
}

/// Checks that an agent is installed and not known to be logged out. One that only reports no version may work.
fn check(report: &ProviderReport) -> Result<(), ServiceError> {
    let facts = &report.facts;
    let (kind, problem) = if facts.path.is_none() && !facts.in_process {
        let problem = facts.problem.as_deref().unwrap_or("it is not installed");
        let problem = match &*facts.install {
            "" => problem.to_owned(),
            install => format!("{problem}; install it with `{install}`"),
        };
        (ErrorKind::NotFound, problem)
    } else if facts.login.state == "no" {
        let problem = format!("not logged in: {}", facts.how_to_log_in);
        (ErrorKind::Auth, problem)
    } else {
        return Ok(());
    };
    let problem = format!("{} on the server's machine: {problem}", facts.name);
    Err(AgentError::new(ErrorCode::CliError, kind, problem).into())
}

/// Returns the run that was found with this id or unique prefix of one.
fn found(id: &str, found: Result<RunView, ClientError>) -> Result<RunView, ServiceError> {
    match found {
        // What cannot be an id is one of no run.
        Err(error) if error.parameter.as_deref() == Some("id") => Err(missing(id)),
        found => Ok(found?),
    }
}

/// Returns the run that was found if it has exactly this id.
fn exactly(id: &str, view: Result<RunView, ClientError>) -> Result<RunView, ServiceError> {
    match found(id, view) {
        Ok(view) if view.summary.info.run_id == id => Ok(view),
        Err(error) if error.code != Some(ProblemCode::RunIdAmbiguous) => Err(error),
        _ => Err(missing(id)),
    }
}

fn missing(id: &str) -> ServiceError {
    ServiceError::new(ProblemCode::RunNotFound, format!("no run {id}"))
}

/// Checks that a file can have this name: another one is a path that leads elsewhere.
fn check_file(id: &str, name: &str) -> Result<(), ServiceError> {
    if is_file_name(name) {
        return Ok(());
    }
    let message = format!("run {id} has no file \"{name}\"");
    Err(ServiceError::new(ProblemCode::FileNotFound, message))
}

fn unsupported(message: &str) -> ServiceError {
    (RefusalCode::Unsupported, message.to_owned()).into()
}

#[async_trait::async_trait]
impl MachineService for Client {
    async fn agents(&self) -> Result<Vec<ProviderReport>, ServiceError> {
        Ok(self.providers().await?)
    }

    async fn report(&self) -> Result<ProviderList, ServiceError> {
        Ok(self.machine_report().await?)
    }

    async fn fleet(&self) -> Result<Option<FleetStatus>, ServiceError> {
        Ok(Self::fleet(self).await?)
    }

    async fn usage(&self, query: UsageQuery) -> Result<UsageSummary, ServiceError> {
        Ok(Self::usage(self, &query).await?)
    }

    async fn limits(&self) -> Result<LimitList, ServiceError> {
        Ok(Self::limits(self).await?)
    }

    async fn history(&self, filter: RunFilter) -> Result<Vec<RunRecord>, ServiceError> {
        let query = HistoryQuery {
            since: filter.since_ms,
            until: filter.until_ms,
            status: filter.status,
            agent: filter.provider,
            key: filter.conversation,
            directory: filter.working_directory,
            text: filter.text,
            cursor: filter.after.map(|cursor| cursor.to_string()),
            ..HistoryQuery::default()
        };
        let limit = filter.limit.map_or(usize::MAX, |limit| limit as usize);
        let session = filter.session_id;
        let Some(session) = session else {
            return Ok(self.all_history(query, limit).await?);
        };
        // The server has no such filter.
        let mut runs = self.all_history(query, usize::MAX).await?;
        runs.retain(|run| run.session_id.as_ref() == Some(&session));
        runs.truncate(limit);
        Ok(runs)
    }

    async fn history_of(&self, id: &str) -> Result<RunRecord, ServiceError> {
        Ok(self.recorded(id).await?)
    }

    async fn loops(&self, command: LoopCommand) -> Result<AgentList, ServiceError> {
        if matches!(command, LoopCommand::Reload | LoopCommand::Subscribe) {
            return Err(unsupported("the HTTP API does not support this command"));
        }
        Ok(self.command_agents(&command).await?)
    }

    async fn loop_log(&self, agent: &str, lines: usize) -> Result<String, ServiceError> {
        let log = self.agent_log(agent, lines).await?;
        Ok(String::from_utf8_lossy(&log).into_owned())
    }
}
