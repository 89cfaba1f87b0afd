//! `/v1/sessions`: detached live sessions.

mod turns;

use axum::Extension;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::routing::{delete, get, patch, post, put};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use teamster_api::{
    Command, LiveState, ProblemCode, Reply, RunInfo, RunKind, RunQuery, RunSummary, RunView,
    SessionSpec, StartedRun, ViewState,
};
use teamster_core::PermissionMode;

use super::runs::{
    NewRunPath, RunPath, Started, all, at_path, idempotency_key, key, send, start_once,
    start_with_id, unexpected,
};
use super::{Answer, App, json};
use crate::events::{self, EventsQuery};
use crate::extract::{Json, Path, Query};
use crate::fields::Text;
use crate::keys::Caller;
use crate::operation::Operation;
use crate::rights::{self, Demand, InSession, Right};
use crate::start::checked;
use crate::state::Shared;
use crate::{ApiError, Scope};

/// Problem codes of every operation on a session.
const SESSION_PROBLEMS: [ProblemCode; 3] = [
    ProblemCode::SessionNotFound,
    ProblemCode::RunIdAmbiguous,
    ProblemCode::RunnerNotResponding,
];
/// Problem codes of commands to a session.
const COMMAND_PROBLEMS: [ProblemCode; 3] = [
    ProblemCode::RunEnded,
    ProblemCode::SessionEnding,
    ProblemCode::Unsupported,
];

pub(super) fn operations() -> Vec<Operation> {
    let mut all = sessions();
    all.extend(turns::operations());
    all
}

fn sessions() -> Vec<Operation> {
    vec![
        Operation::new(Method::POST, "/v1/sessions", "startSession", post(start))
            .scope(Some(Scope::Run))
            .about(
                "Start a session",
                "The session has its own process, like that of `teamster chat --detach`, and waits for prompts.",
            )
            .headers(const {
                &[idempotency_key(
                    "A key of the client's choice. Repeating a request with the same key returns the existing session \
                    instead of starting another one.",
                )]
            })
            .body::<SessionSpec>(true)
            .starts(
                "The session.",
                "The session that an earlier request with this key started.",
                "The path of the session.",
            )
            .problems(&[ProblemCode::IdempotencyKeyReused]),
        Operation::new(Method::GET, "/v1/sessions", "listSessions", get(list))
            .about("List sessions", "Newest first.")
            .query::<ListQuery>()
            .json::<SessionList>(StatusCode::OK, "The sessions."),
        Operation::new(Method::GET, "/v1/sessions/{id}", "getSession", get(show))
            .path::<RunPath>()
            .about(
                "Show a session",
                "The id may be a unique prefix.",
            )
            .json::<RunView>(StatusCode::OK, "The session.")
            .problems(&SESSION_PROBLEMS),
        Operation::new(Method::PUT, "/v1/sessions/{id}", "startSessionWithId", put(start_as))
            .path::<NewRunPath>()
            .scope(Some(Scope::Run))
            .about(
                "Start a session with an id",
                "The client makes the id. Repeating a request with the same id and the same session starts nothing.",
            )
            .body::<SessionSpec>(true)
            .starts("The session.", "The session, which an earlier request has started.", "The path of the session."),
        Operation::new(Method::DELETE, "/v1/sessions/{id}", "endSession", delete(end))
            .path::<RunPath>()
            .scope(Some(Scope::Run))
            .about(
                "End a session",
                "Responds as soon as the runner has the command; the session ends a little later. Its log stays.",
            )
            .query::<EndQuery>()
            .json::<RunView>(StatusCode::ACCEPTED, "The session.")
            .problems(&SESSION_PROBLEMS)
            .problems(&[ProblemCode::RunEnded]),
        Operation::new(Method::PATCH, "/v1/sessions/{id}", "changeSession", patch(change))
            .path::<RunPath>()
            .scope(Some(Scope::Run))
            .about("Change the model or the permission", "Takes effect with the next turn.")
            .body::<ChangeSession>(true)
            .json::<RunView>(StatusCode::OK, "The session.")
            .problems(&SESSION_PROBLEMS)
            .problems(&COMMAND_PROBLEMS)
            .problems(&[ProblemCode::BypassNotAllowed]),
        Operation::new(Method::GET, "/v1/sessions/{id}/events", "getSessionEvents", get(log))
            .path::<RunPath>()
            .about(
                "Follow the log of a session",
                "Like the log of a run. Each turn begins with `user:message` and ends with a `done` that has the \
                turn's id. The `done` with the session's id is the last entry.",
            )
            .shows_log("The session has ended, and there are no more entries.")
            .problems(&[ProblemCode::SessionNotFound, ProblemCode::RunIdAmbiguous]),
    ]
}

/// A filter of sessions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Only sessions in this state.
    state: Option<ViewState>,
}

/// Sessions, newest first.
#[derive(Debug, Serialize, JsonSchema)]
struct SessionList {
    /// The sessions.
    sessions: Vec<std::sync::Arc<RunSummary>>,
}

/// Options for ending a session.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EndQuery {
    /// Kill the session at once instead of stopping it cleanly.
    #[serde(default)]
    kill: bool,
}

/// Settings to change from the next turn on.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("not" = {"type": "object", "properties": {"model": {"type": "null"}, "permission": {"type": "null"}}}))]
struct ChangeSession {
    /// The model, by the CLI's own name.
    model: Option<Text>,
    /// The permission mode.
    permission: Option<PermissionMode>,
}

impl Demand for ChangeSession {
    fn rights(&self) -> Vec<Right> {
        rights::of_agent(self.permission, [], &[])
    }
}

/// Returns the session with this id or unique id prefix.
pub(super) async fn find(shared: &Shared, id: &str) -> Result<RunInfo, ApiError> {
    let missing = || ApiError::new(ProblemCode::SessionNotFound, format!("no session \"{id}\""));
    match shared.find(id).await {
        Ok(session) if session.kind == RunKind::Session => Ok(session),
        Ok(_) => Err(missing()),
        Err(problem) if problem.0.code == ProblemCode::RunNotFound => Err(missing()),
        Err(problem) => Err(problem),
    }
}

async fn view(shared: &Shared, id: &str, status: StatusCode) -> Answer {
    json(status, &shared.run(id).view().await?)
}

async fn start(
    State(shared): App,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    body: Json<SessionSpec>,
) -> Answer {
    let spec = checked(body.value.into(), &headers, &shared.config, &caller).await?;
    // The same key may start a run and a session.
    let key = key(&headers)?.map(|key| format!("session {key}"));
    let started = start_once(&shared, key, &body.bytes, spec).await?;
    started_session(started).await
}

async fn start_as(
    State(shared): App,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Json<SessionSpec>,
) -> Answer {
    let spec = checked(body.value.into(), &headers, &shared.config, &caller).await?;
    started_session(start_with_id(&shared, &id, spec).await?).await
}

async fn started_session(started: Started) -> Answer {
    let shown = StartedRun::new(
        started.run.view().await?,
        started.warnings,
        started.important,
    );
    let response = json(started.status, &shown)?;
    Ok(at_path("sessions", started.run.id(), response))
}

async fn list(State(shared): App, Query(query): Query<ListQuery>) -> Answer {
    let mut sessions = RunQuery::default();
    sessions.kind = Some(RunKind::Session);
    sessions.state = query.state;
    sessions.live_status = true;
    let sessions = all(&shared, sessions).await?.runs;
    json(StatusCode::OK, &SessionList { sessions })
}

async fn show(State(shared): App, Path(id): Path<String>) -> Answer {
    let session = find(&shared, &id).await?;
    view(&shared, &session.run_id, StatusCode::OK).await
}

async fn end(State(shared): App, Path(id): Path<String>, Query(query): Query<EndQuery>) -> Answer {
    let session = find(&shared, &id).await?;
    let kill = query.kill;
    send(&shared, &session.run_id, Command::Cancel { kill }).await?;
    view(&shared, &session.run_id, StatusCode::ACCEPTED).await
}

/// Rejects a caller who may not do what the session's agent may do. An ended session is an error too.
async fn check_rights(shared: &Shared, caller: &Caller, session: &RunInfo) -> Result<(), ApiError> {
    let status = match shared.run(&session.run_id).send(Command::Status).await? {
        // It does not have the permission mode.
        Reply::Status { status } if status.state == LiveState::NotAnswering => {
            let detail = format!(
                "the runner of session {} does not respond, so it is not known what the session may do now: try again \
                 later",
                session.run_id
            );
            return Err(ApiError::new(ProblemCode::RunnerNotResponding, detail));
        }
        Reply::Status { status } => status,
        reply => return Err(unexpected(&reply)),
    };
    let session = InSession {
        info: session,
        changed: status.permission,
    };
    rights::check(&session, &shared.config, caller)
}

async fn log(
    State(shared): App,
    Path(id): Path<String>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Answer {
    let session = find(&shared, &id).await?;
    events::respond(shared, &session.run_id, &headers, query).await
}

async fn change(
    State(shared): App,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Json<ChangeSession>,
) -> Answer {
    let change = body.value;
    let ChangeSession { model, permission } = &change;
    if model.is_none() && permission.is_none() {
        let detail = "expected `model` or `permission`";
        return Err(ApiError::new(ProblemCode::InvalidParams, detail));
    }
    let session = find(&shared, &id).await?;
    check_rights(&shared, &caller, &session).await?;
    rights::check(&change, &shared.config, &caller)?;
    let id = &session.run_id;
    if let Some(mode) = change.permission {
        send(&shared, id, Command::SetPermission { mode }).await?;
    }
    if let Some(Text(model)) = change.model {
        send(&shared, id, Command::SetModel { model }).await?;
    }
    view(&shared, id, StatusCode::OK).await
}
