//! `/v1/agents`: agents in a loop, and their supervisor.

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Deserialize;
use teamster_api::ProblemCode;
use teamster_api::agents::{AgentList, Command, Selection};

use super::{Answer, App, json};
use crate::extract::{Json, Path, Query};
use crate::operation::Operation;
use crate::state::Shared;
use crate::{ApiError, Scope};

/// The default number of log lines.
const LINES: usize = 100;

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

async fn list(State(shared): App) -> Answer {
    json(
        StatusCode::OK,
        &shared.machine.loops(Command::Status).await?,
    )
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
    let list = shared.machine.loops(command).await?;
    if list.config.is_none() {
        let detail = "this server has no agents: start it with --agents FILE";
        return Err(ApiError::new(ProblemCode::AgentNotFound, detail));
    }
    json(StatusCode::ACCEPTED, &list)
}

async fn log(State(shared): App, Path(id): Path<String>, Query(query): Query<LogQuery>) -> Answer {
    let lines = query.lines.unwrap_or(LINES);
    let text = shared.machine.loop_log(&id, lines).await?;
    // Its media type is `text/plain; charset=utf-8`.
    Ok(text.into_response())
}
