//! `/v1/agents`: agents in a loop, and their supervisor.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Method, Response, StatusCode};
use axum::routing::{get, post};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use teamster_api::ProblemCode;
use teamster_api::agents::{AgentList, Command, ErrorCode, Selection, Status};
use teamster_loop::supervisor::{Client, Config, Error, log_path, offline_status};

use super::{Answer, App, json};
use crate::extract::{Json, Path, Query};
use crate::index::blocking;
use crate::operation::Operation;
use crate::server::Shared;
use crate::{ApiError, Scope};

/// The default number of log lines.
const LINES: usize = 100;
/// The maximum number of bytes read from the end of a log.
const LOG_PIECE: u64 = 256 << 10;

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(Method::GET, "/v1/agents", "listAgents", get(list))
            .about(
                "List agents in a loop",
                "The agents of the supervisor's configuration, as in `teamster agents status --json`. The list is \
                empty without a configuration.",
            )
            .json::<AgentList>(StatusCode::OK, "The agents."),
        Operation::new(Method::GET, "/v1/agents/{id}/log", "getAgentLog", get(log))
            .about(
                "Get the last lines of an agent's log",
                "At most the last 256 KiB of the loop's log.",
            )
            .query::<LogQuery>()
            .reply(
                StatusCode::OK,
                "The lines.",
                vec![("text/plain; charset=utf-8", SchemaGenerator::subschema_for::<String>)],
            )
            .problems(&[ProblemCode::AgentNotFound]),
        commands(Operation::new(
            Method::POST,
            "/v1/agents/{id}/{command}",
            "commandAgent",
            post(command),
        ))
        .about(
            "Start, stop, restart or wake an agent",
            "Responds as soon as the supervisor has accepted the command.",
        )
        .path::<AgentPath>(),
        commands(Operation::new(
            Method::POST,
            "/v1/agents/{command}",
            "commandAgents",
            post(command_all),
        ))
        .about(
            "Start, stop, restart or wake several agents or all",
            "Applies the command to the agents in the body. For all agents, `start` and `stop` also turn the \
            master switch.",
        )
        .path::<AgentsPath>()
        .body::<Agents>(true),
    ]
}

fn commands(operation: Operation) -> Operation {
    operation
        .scope(Some(Scope::Admin))
        .json::<AgentList>(StatusCode::ACCEPTED, "The current status of all agents.")
        .problems(&[
            ProblemCode::AgentNotFound,
            ProblemCode::AgentRefused,
            ProblemCode::SupervisorNotRunning,
        ])
}

/// A command for agents.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum AgentCommand {
    Start,
    Stop,
    Restart,
    Wake,
}

/// An agent and a command for it.
#[derive(Debug, Deserialize, JsonSchema)]
struct AgentPath {
    /// The agent's id.
    id: String,
    /// The command.
    command: AgentCommand,
}

/// A command.
#[derive(Debug, Deserialize, JsonSchema)]
struct AgentsPath {
    /// The command.
    command: AgentCommand,
}

/// A selection of agents.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(
    rename = "AgentSelection",
    extend("not" = {"anyOf": [
        {
            "type": "object",
            "properties": {
                "agents": {"type": "array", "items": {"type": "string"}, "maxItems": 0},
                "all": {"const": false},
            },
        },
        {
            "type": "object",
            "required": ["agents", "all"],
            "properties": {
                "agents": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "all": {"const": true},
            },
        },
    ]})
)]
struct Agents {
    /// The ids of the agents.
    #[serde(default)]
    agents: Vec<String>,
    /// Select all agents.
    #[serde(default)]
    all: bool,
}

/// A query of an agent's log.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogQuery {
    /// The number of lines from the end. Default: 100.
    lines: Option<usize>,
}

/// Returns the status of the agents; `None` without a configuration.
pub(crate) async fn status(shared: &Shared) -> Result<Option<Status>, ApiError> {
    let Some(file) = &shared.config.agents else {
        return Ok(None);
    };
    let status = match Client::connect(file).await {
        Ok(mut client) => client.ask(Command::Status).await,
        Err(error) => Err(error),
    };
    match status {
        Err(Error::NotRunning { .. } | Error::NotAnswering { .. }) => {
            let config = Config::read(file).map_err(|error| problem(&error.into()))?;
            Ok(Some(offline_status(&config)))
        }
        status => status.map(Some).map_err(|error| problem(&error)),
    }
}

async fn list(State(shared): App) -> Answer {
    match status(&shared).await? {
        Some(status) => json(StatusCode::OK, &AgentList::from(status)),
        None => json(StatusCode::OK, &AgentList::none()),
    }
}

async fn command(State(shared): App, Path(path): Path<AgentPath>) -> Answer {
    execute(&shared, path.command, Selection::of([&path.id])).await
}

async fn command_all(
    State(shared): App,
    Path(path): Path<AgentsPath>,
    body: Json<Agents>,
) -> Answer {
    let selection = match body.value {
        Agents { agents, all: true } if agents.is_empty() => Selection::all(),
        Agents { agents, all: false } if !agents.is_empty() => Selection::of(agents),
        _ => {
            let detail = "expected either `agents`, or `all`";
            return Err(ApiError::new(ProblemCode::InvalidParams, detail));
        }
    };
    execute(&shared, path.command, selection).await
}

async fn execute(shared: &Shared, command: AgentCommand, selection: Selection) -> Answer {
    let command = match command {
        AgentCommand::Start => Command::Start(selection),
        AgentCommand::Stop => Command::Stop(selection),
        AgentCommand::Restart => Command::Restart(selection),
        AgentCommand::Wake => Command::Wake(selection),
    };
    let Some(file) = &shared.config.agents else {
        let detail = "this server has no agents: start it with --agents FILE";
        return Err(ApiError::new(ProblemCode::AgentNotFound, detail));
    };
    let mut client = Client::connect(file)
        .await
        .map_err(|error| problem(&error))?;
    let status = client.ask(command).await.map_err(|error| problem(&error))?;
    json(StatusCode::ACCEPTED, &AgentList::from(status))
}

async fn log(State(shared): App, Path(id): Path<String>, Query(query): Query<LogQuery>) -> Answer {
    let agents = status(&shared)
        .await?
        .map_or(Vec::new(), |status| status.agents);
    let Some(agent) = agents.into_iter().find(|agent| agent.id == id) else {
        let detail = format!("no agent `{id}`");
        return Err(ApiError::new(ProblemCode::AgentNotFound, detail));
    };
    let lines = query.lines.unwrap_or(LINES);
    let text = blocking(move || {
        let path = log_path(&agent.working_dir);
        match last_lines(&path, lines) {
            // The agent has not written a log yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => {
                let detail = format!("cannot read {}: {error}", path.display());
                Err(ApiError::new(ProblemCode::Internal, detail))
            }
            Ok(text) => Ok(text),
        }
    });
    let mut response = Response::new(Body::from(text.await?));
    let media = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, media);
    Ok(response)
}

/// Returns the last lines of a file, from at most its last [`LOG_PIECE`] bytes.
fn last_lines(path: &std::path::Path, lines: usize) -> io::Result<String> {
    let mut file = File::open(path)?;
    let begin = file.metadata()?.len().saturating_sub(LOG_PIECE);
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(LOG_PIECE).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // Drop the partial first line.
    let whole = match (begin, text.split_once('\n')) {
        (1.., Some((_, rest))) => rest,
        _ => &text,
    };
    let skipped = whole.lines().count().saturating_sub(lines);
    Ok(whole.split_inclusive('\n').skip(skipped).collect())
}

fn problem(error: &Error) -> ApiError {
    let code = match error {
        Error::NotRunning { .. } | Error::NotAnswering { .. } => ProblemCode::SupervisorNotRunning,
        Error::Refused { code, .. } => match code {
            ErrorCode::UnknownAgent => ProblemCode::AgentNotFound,
            _ => ProblemCode::AgentRefused,
        },
        _ => ProblemCode::Internal,
    };
    ApiError::new(code, error.to_string())
}
