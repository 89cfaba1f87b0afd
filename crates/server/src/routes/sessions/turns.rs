//! `/v1/sessions/{id}/turns`: turns, and commands to the turn in progress.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::routing::post;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use teamster_api::{Command, Images, ProblemCode, Reply, RunEvent, RunHandle, RunLogEntry};
use teamster_core::RunResult;
use tokio::time::{Instant, timeout, timeout_at};

use super::{COMMAND_PROBLEMS, SESSION_PROBLEMS, check_rights, find};
use crate::extract::{Json, Optional, Path};
use crate::fields::Text;
use crate::keys::Caller;
use crate::operation::Operation;
use crate::routes::runs::{
    RunPath, idempotency_key, key, key_reused, prefer_wait, preference_applied, preferred_wait,
    send, unexpected,
};
use crate::routes::{Answer, App, empty, json};
use crate::start::trace_of;
use crate::{ApiError, Scope};

/// The maximum wait of a prompt for the end of another turn. Proxies cut longer ones short.
const QUEUE_LIMIT: Duration = Duration::from_secs(30);

pub(super) fn operations() -> Vec<Operation> {
    let command = |operation: Operation| {
        operation
            .scope(Some(Scope::Run))
            .reply(StatusCode::NO_CONTENT, "Done.", vec![])
            .problems(&SESSION_PROBLEMS)
            .problems(&COMMAND_PROBLEMS)
    };
    vec![
        Operation::new(Method::POST, "/v1/sessions/{id}/turns", "startTurn", post(turn))
            .path::<RunPath>()
            .scope(Some(Scope::Run))
            .about(
                "Send a prompt",
                "Starts a turn. A session has one turn at a time; with `queue`, a prompt waits for the end of another one. \
                The turn's entries follow `seq` in the log, up to \
                the `done` with its `runId`.",
            )
            .headers(const {
                &[
                    idempotency_key(
                        "A key of the client's choice. Repeating a prompt with the same key returns the existing turn \
                        instead of starting another one, even after the end of the session.",
                    ),
                    prefer_wait("`wait=N`: respond when the turn has ended, or after N seconds, at most 300."),
                ]
            })
            .body::<StartTurn>(true)
            .json::<TurnView>(StatusCode::CREATED, "The turn.")
            .with_header("Location", "The path of its entries.")
            .json::<TurnView>(StatusCode::OK, "The turn that an earlier request with this key started.")
            .with_header("Location", "The path of its entries.")
            .problems(&SESSION_PROBLEMS)
            .problems(&COMMAND_PROBLEMS)
            .problems(&[
                ProblemCode::SessionBusy,
                ProblemCode::OverBudget,
                ProblemCode::OutOfTime,
                ProblemCode::IdempotencyKeyReused,
            ]),
        command(Operation::new(
            Method::POST,
            "/v1/sessions/{id}/interrupt",
            "interruptTurn",
            post(interrupt),
        ))
        .path::<RunPath>()
        .about("Interrupt the turn in progress", "The session continues.")
        .body::<Interrupt>(false)
        .problems(&[ProblemCode::NoTurn]),
        command(Operation::new(
            Method::POST,
            "/v1/sessions/{id}/steer",
            "steerTurn",
            post(steer),
        ))
        .path::<RunPath>()
        .about(
            "Send a message during the turn in progress",
            "If the agent's CLI supports it.",
        )
        .body::<Steer>(true)
        .problems(&[ProblemCode::NoTurn]),
        command(Operation::new(
            Method::POST,
            "/v1/sessions/{id}/clear",
            "clearSession",
            post(clear),
        ))
        .path::<RunPath>()
        .about(
            "Continue with an empty context",
            "Starts a new session of the agent. The session keeps its id in this API.",
        ),
    ]
}

/// A prompt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartTurn {
    /// The prompt.
    prompt: Text,
    /// Images that go with the prompt.
    #[serde(default)]
    images: Images,
    /// The name of the sender, for the log and for other clients. Default: the token's name.
    from: Option<String>,
    /// During another turn, wait for its end, at most 30 seconds. A prompt that is still refused as `SESSION_BUSY` was not
    /// sent: repeat the request.
    #[serde(default)]
    queue: bool,
}

/// A turn of a session.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TurnView {
    /// The turn's id: the session's id, a dot and a number.
    run_id: String,
    /// The `seq` of the log entry with the prompt.
    seq: u64,
    /// The result; absent while the turn is in progress.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RunResult>>,
}

/// Options for interrupting a turn.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Interrupt {
    /// Kill the agent's process; the next turn starts another one.
    #[serde(default)]
    kill: bool,
}

/// A message for the turn in progress.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Steer {
    /// The message.
    text: Text,
    /// The name of the sender, for the log and for other clients. Default: the token's name.
    from: Option<String>,
}

async fn interrupt(
    State(shared): App,
    Path(id): Path<String>,
    Optional(body): Optional<Interrupt>,
) -> Answer {
    let session = find(&shared, &id).await?;
    let kill = body.kill;
    send(&shared, &session.run_id, Command::Interrupt { kill }).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

async fn steer(
    State(shared): App,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    body: Json<Steer>,
) -> Answer {
    let Steer { text, from } = body.value;
    let session = find(&shared, &id).await?;
    check_rights(&shared, &caller, &session).await?;
    let Text(text) = text;
    let from = Some(from.unwrap_or_else(|| caller.name().to_owned()));
    send(&shared, &session.run_id, Command::Steer { text, from }).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

async fn clear(State(shared): App, Path(id): Path<String>) -> Answer {
    let session = find(&shared, &id).await?;
    send(&shared, &session.run_id, Command::Clear).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

async fn turn(
    State(shared): App,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Json<StartTurn>,
) -> Answer {
    let StartTurn {
        prompt,
        images: Images(images),
        from,
        queue,
    } = body.value;
    let key = key(&headers)?;
    let wait = preferred_wait(&headers);
    let session = find(&shared, &id).await?;
    let run = shared.run(&session.run_id);
    let command = Command::Send {
        prompt: prompt.0.clone(),
        images,
        from: Some(from.unwrap_or_else(|| caller.name().to_owned())),
        key: key.clone(),
        trace: trace_of(&headers, &shared.config),
    };
    let begun = async {
        let free = queue.then(|| Instant::now() + QUEUE_LIMIT);
        let reply = loop {
            // Also after a wait: the session may do more by then.
            check_rights(&shared, &caller, &session).await?;
            let sent = run.send(command.clone()).await;
            let (Err(busy), Some(free)) = (&sent, free) else {
                break sent?;
            };
            if busy.code != Some(ProblemCode::SessionBusy) || Instant::now() >= free {
                break sent?;
            }
            tokio::select! {
                // Only the wait is cut short: a prompt that was sent may begin a turn.
                idle = timeout_at(free, run.idle()) => match idle {
                    Ok(idle) => idle?,
                    Err(_) => break sent?,
                },
                () = shared.ending.cancelled() => break sent?,
            }
        };
        match reply {
            Reply::Turn { run_id, seq, known } => Ok(Turn { run_id, seq, known }),
            reply => Err(unexpected(&reply)),
        }
    };
    let begun = match begun.await {
        Ok(turn) => turn,
        Err(problem) if problem.0.code == ProblemCode::RunEnded => {
            let Some(key) = key else { return Err(problem) };
            match find_turn(&run, &key).await?.ok_or(problem)? {
                (turn, text) if text == prompt.0 => turn,
                _ => return Err(key_reused()),
            }
        }
        Err(problem) => return Err(problem),
    };
    let mut view = TurnView {
        run_id: begun.run_id,
        seq: begun.seq,
        result: None,
    };
    if let Some(wait) = wait {
        let ended = timeout(wait, run.turn_result_after(view.seq, &view.run_id));
        tokio::select! {
            ended = ended => {
                if let Ok(ended) = ended {
                    view.result = ended?;
                }
            }
            () = shared.ending.cancelled() => {}
        }
    }
    let status = if begun.known {
        StatusCode::OK
    } else {
        StatusCode::CREATED
    };
    let mut response = json(status, &view)?;
    let path = format!("/v1/sessions/{}/events?after={}", run.id(), view.seq);
    if let Ok(path) = HeaderValue::from_str(&path) {
        response.headers_mut().insert(LOCATION, path);
    }
    preference_applied(&mut response, wait);
    Ok(response)
}

/// A turn of a session that has begun.
struct Turn {
    run_id: String,
    /// The number of the entry with the prompt.
    seq: u64,
    /// An earlier prompt with the same key began it.
    known: bool,
}

/// Finds the turn with this idempotency key in the log of an ended session. Returns it with its prompt.
async fn find_turn(session: &RunHandle, key: &str) -> Result<Option<(Turn, String)>, ApiError> {
    let mut log = session.follow(0);
    while let Some(line) = log.next().await {
        let line = line?;
        if line.type_name() == "user:message"
            && let Ok(RunLogEntry::Run(entry)) = line.entry()
            && let RunEvent::UserMessage {
                run_id,
                text,
                key: Some(own),
                ..
            } = entry.event
            && own == key
        {
            let turn = Turn {
                run_id: run_id.to_string(),
                seq: line.seq(),
                known: true,
            };
            return Ok(Some((turn, text)));
        }
    }
    Ok(None)
}
