//! `/v1/agents`: agents in a loop, and their supervisor.

use std::collections::BTreeMap;
use std::path::PathBuf;

use axum::extract::State;
use axum::http::{Method, StatusCode};
use axum::routing::{get, post};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use teamster_loop::supervisor::protocol::{Command, ErrorCode, Selection, Status};
use teamster_loop::supervisor::{Client, Config, Error, offline_status};

use super::{Answer, App, json};
use crate::extract::Path;
use crate::operation::Operation;
use crate::server::Shared;
use crate::{Problem, ProblemCode, Scope};

pub(super) fn operations() -> Vec<Operation> {
    vec![
        Operation::new(Method::GET, "/v1/agents", "listAgents", get(list))
            .about(
                "List agents in a loop",
                "The agents of the supervisor's configuration; as `teamster agents status --json` has them. Without \
                 a configuration there is none.",
            )
            .json::<AgentList>(StatusCode::OK, "The agents."),
        Operation::new(
            Method::POST,
            "/v1/agents/{id}/{command}",
            "commandAgent",
            post(command),
        )
        .scope(Some(Scope::Admin))
        .about(
            "Start, stop, restart or wake an agent",
            "The command is `start`, `stop`, `restart` or `wake`. Answers as soon as the supervisor has it.",
        )
        .json::<AgentList>(StatusCode::ACCEPTED, "All agents as they are now.")
        .problems(&[
            ProblemCode::AgentNotFound,
            ProblemCode::AgentRefused,
            ProblemCode::SupervisorNotRunning,
            ProblemCode::NotFound,
        ]),
    ]
}

/// The agents of a supervisor.
#[derive(Serialize, JsonSchema)]
pub(crate) struct AgentList {
    /// The configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    config: Option<PathBuf>,
    /// The supervisor; null if none is running.
    supervisor: Option<BTreeMap<String, Value>>,
    /// The master switch: while it is off, no agent is started.
    enabled: bool,
    /// The agents.
    agents: Vec<BTreeMap<String, Value>>,
}

/// How the agents are; `None` without a configuration.
pub(crate) async fn status(shared: &Shared) -> Result<Option<Status>, Problem> {
    let Some(file) = &shared.config.agents else {
        return Ok(None);
    };
    let asked = match Client::connect(file).await {
        Ok(mut client) => client.ask(Command::Status).await,
        Err(error) => Err(error),
    };
    match asked {
        Err(Error::NotRunning { .. }) => {
            let config = Config::read(file).map_err(|error| problem(&error.into()))?;
            Ok(Some(offline_status(&config)))
        }
        asked => asked.map(Some).map_err(|error| problem(&error)),
    }
}

async fn list(State(shared): App) -> Answer {
    match status(&shared).await? {
        Some(status) => json(StatusCode::OK, &status),
        None => json(
            StatusCode::OK,
            &AgentList {
                config: None,
                supervisor: None,
                enabled: true,
                agents: Vec::new(),
            },
        ),
    }
}

async fn command(State(shared): App, Path((id, command)): Path<(String, String)>) -> Answer {
    let selection = Selection::of([&id]);
    let command = match &*command {
        "start" => Command::Start(selection),
        "stop" => Command::Stop(selection),
        "restart" => Command::Restart(selection),
        "wake" => Command::Wake(selection),
        _ => {
            let detail = "expected start, stop, restart or wake";
            return Err(Problem::new(ProblemCode::NotFound, detail));
        }
    };
    let Some(file) = &shared.config.agents else {
        let detail = "this server has no agents: start it with --agents FILE";
        return Err(Problem::new(ProblemCode::AgentNotFound, detail));
    };
    let mut client = Client::connect(file)
        .await
        .map_err(|error| problem(&error))?;
    let status = client.ask(command).await.map_err(|error| problem(&error))?;
    json(StatusCode::ACCEPTED, &status)
}

fn problem(error: &Error) -> Problem {
    let code = match error {
        Error::NotRunning { .. } => ProblemCode::SupervisorNotRunning,
        Error::Refused { code, .. } => match code {
            ErrorCode::UnknownAgent => ProblemCode::AgentNotFound,
            _ => ProblemCode::AgentRefused,
        },
        _ => ProblemCode::Internal,
    };
    Problem::new(code, error.to_string())
}
