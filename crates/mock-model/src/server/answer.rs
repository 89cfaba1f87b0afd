//! Answers to requests.

use std::time::Duration;
use std::{io, iter};

use bytes::Bytes;
use http_body_util::channel::{Channel, Sender};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{Request, Shared};
use crate::cli::{CallContext, offered};
use crate::wire::{Frame, ParsedRequest, Reply, RequestKind, Say, Wire, opening, say, schemas};
use crate::{Cli, ErrorKind, HttpError, Protocol, Stop, Tokens, Turn};

/// A body that can break off.
type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Time between the last write and a break of the connection. Data that is unread in the reader's system is
/// lost with the connection, and a reader on a busy machine is late.
const FLUSH: Duration = Duration::from_millis(500);

/// Size of the largest request, in bytes: twice the limit of the largest service. It bounds the memory for
/// recorded requests.
const MOST: usize = 64 * 1024 * 1024;

/// Answers a request. `gone` ends with the connection. An error closes the connection.
pub(super) async fn answer(
    shared: &Shared,
    request: hyper::Request<Incoming>,
    gone: watch::Receiver<()>,
) -> io::Result<Response<Body>> {
    let (head, body) = request.into_parts();
    let read = Read::all(body).await;
    let mut seen = Request {
        method: head.method.to_string(),
        path: head.uri.to_string(),
        protocol: None,
        cli: None,
        model: None,
        turn: None,
        attempt: None,
        body: Value::Null,
        status: 200,
        tokens: None,
        breaks_off: false,
    };
    let planned = match read {
        Read::Json(body) => {
            seen.body = body;
            plan(shared, &head, &mut seen)
        }
        Read::Nothing => plan(shared, &head, &mut seen),
        Read::Wrong(status, message) => {
            seen.protocol = protocol_of(&head);
            // Without a known protocol, the error has the form of one.
            let protocol = seen.protocol.unwrap_or(Protocol::Anthropic);
            let failure = protocol
                .wire()
                .error(ErrorKind::InvalidRequest, Some(message));
            json_body(status, &failure.body)
        }
    };
    seen.status = match &planned {
        Planned::Whole { status, .. } => *status,
        Planned::Stream { .. } => 200,
        Planned::Cut { .. } | Planned::Stall => 0,
    };
    let delay = match &planned {
        Planned::Whole { delay, .. } | Planned::Stream { delay, .. } | Planned::Cut { delay } => {
            *delay
        }
        Planned::Stall => Duration::ZERO,
    };
    let count = {
        let mut all = shared.seen();
        all.requests.push(seen);
        all.requests.len()
    };
    shared.count.send_replace(count);
    tokio::time::sleep(delay).await;
    match planned {
        Planned::Whole {
            status,
            headers,
            body,
            ..
        } => Ok(complete(status, &headers, body)),
        Planned::Stream { frames, .. } => Ok(stream(frames, shared.settings.pace, gone)),
        Planned::Cut { .. } => Err(io::ErrorKind::ConnectionReset.into()),
        // Dropped with its connection.
        Planned::Stall => std::future::pending().await,
    }
}

/// The body of a request.
enum Read {
    Json(Value),
    Nothing,
    /// An invalid body, answered with this HTTP status and message.
    Wrong(u16, &'static str),
}

impl Read {
    async fn all(body: Incoming) -> Self {
        match Limited::new(body, MOST).collect().await {
            Ok(body) => {
                let bytes = body.to_bytes();
                if bytes.is_empty() {
                    return Self::Nothing;
                }
                serde_json::from_slice(&bytes).map_or(
                    Self::Wrong(400, "mock model: the body of the request is not JSON"),
                    Self::Json,
                )
            }
            Err(error) if error.is::<LengthLimitError>() => {
                Self::Wrong(413, "mock model: the request is larger than 64 MiB")
            }
            // The client has gone away.
            Err(_) => Self::Wrong(400, "mock model: the body of the request broke off"),
        }
    }
}

/// Returns the protocol of a request to a model.
fn protocol_of(head: &Parts) -> Option<Protocol> {
    (head.method == Method::POST)
        .then(|| Protocol::of(head.uri.path()))
        .flatten()
}

/// The planned answer.
enum Planned {
    Whole {
        delay: Duration,
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    Stream {
        delay: Duration,
        frames: Vec<Frame>,
    },
    /// Breaks the connection without an answer.
    Cut {
        delay: Duration,
    },
    /// Never answers.
    Stall,
}

fn json_body(status: u16, body: &Value) -> Planned {
    Planned::Whole {
        delay: Duration::ZERO,
        status,
        headers: Vec::new(),
        body: body.to_string(),
    }
}

/// Plans the answer to a request, and records the request.
fn plan(shared: &Shared, head: &Parts, seen: &mut Request) -> Planned {
    let path = head.uri.path();
    let user_agent = head
        .headers
        .get(USER_AGENT)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    let Some(protocol) = protocol_of(head) else {
        seen.cli = Cli::who(user_agent, &[]);
        return beside(head);
    };
    let wire = protocol.wire();
    let ParsedRequest {
        model,
        stream,
        tools,
        what,
    } = wire.asked(path, &seen.body);
    let cli = Cli::who(user_agent, &tools).or(shared.settings.cli);
    seen.protocol = Some(protocol);
    seen.cli = cli;
    seen.model = Some(model.clone());
    if let Some(message) = schemas::refusal(protocol, &seen.body) {
        let failure = wire.error(ErrorKind::InvalidRequest, Some(&message));
        return json_body(failure.status, &failure.body);
    }
    let turn = match what {
        RequestKind::Body(body) => return json_body(200, &body),
        RequestKind::Helper(text) => {
            seen.tokens = Some(Tokens::default());
            return helper(wire, model, stream, vec![Say::Text(vec![text])]);
        }
        RequestKind::Search(query) => {
            seen.tokens = Some(Tokens::default());
            let found = format!("Found for {query}: a page of the mock model's.");
            let say = vec![Say::Search(query), Say::Text(vec![found])];
            return helper(wire, model, stream, say);
        }
        RequestKind::Answer { turn } => turn,
    };
    let agent = shared.script.agent(&opening(&seen.body));
    let attempt = {
        let mut all = shared.seen();
        let attempts = all.attempts.entry((agent, turn)).or_default();
        *attempts += 1;
        *attempts - 1
    };
    seen.turn = Some(turn);
    seen.attempt = Some(attempt);
    let Some(answer) = shared.script.answer_in(agent, turn, attempt) else {
        let turns = shared
            .script
            .turns
            .iter()
            .filter(|turn| turn.times.is_none());
        let message = format!(
            "mock model: the script has no more turns (it has {})",
            turns.count()
        );
        let failure = wire.error(ErrorKind::InvalidRequest, Some(&message));
        return json_body(failure.status, &failure.body);
    };
    if let Some(error) = &answer.error {
        return http_error(protocol, answer, error);
    }
    let offers = offered::offers(&seen.body);
    let context = CallContext {
        directory: shared.settings.directory.as_deref(),
        tools: &tools,
        offers: &offers,
    };
    // Tools that several CLIs have do not identify one with certainty.
    let is_sure = shared.settings.cli.is_some() || Cli::who(user_agent, &[]).is_some();
    let beside = |part| cli?.call_beside(part, &context).map(Say::Call).map(Some);
    let say: Option<Vec<_>> = answer
        .parts
        .iter()
        .flat_map(|part| iter::once(say(part, cli, is_sure, &context)).chain(beside(part)))
        .collect();
    let Some(say) = say else {
        let message = "mock model: no tool that the request offers is known to do what the script \
                       wants, and which CLI makes the request is not known: say whose the tools are \
                       (`--cli NAME`, `MockModelSettings::cli`), or name tools in the script (`tool`)";
        let failure = wire.error(ErrorKind::InvalidRequest, Some(message));
        return json_body(failure.status, &failure.body);
    };
    seen.tokens = Some(answer.usage);
    seen.breaks_off = answer.breaks_off();
    let reply = Reply {
        id: match agent {
            None => format!("mock_{turn}_{attempt}"),
            Some(agent) => format!("mock_agent{agent}_{turn}_{attempt}"),
        },
        model,
        say,
        stop: answer.stop(),
        usage: answer.usage,
    };
    if stream {
        return Planned::Stream {
            delay: answer.delay(),
            frames: wire.stream(&reply),
        };
    }
    match reply.say.last() {
        // A complete answer is sent at its end, so no part of it was sent.
        Some(Say::Cut) => Planned::Cut {
            delay: answer.delay(),
        },
        Some(Say::Stall) => Planned::Stall,
        Some(Say::Error(kind)) => http_error(protocol, answer, &HttpError::new(*kind)),
        _ => Planned::Whole {
            delay: answer.delay(),
            status: 200,
            headers: Vec::new(),
            body: wire.complete(&reply).to_string(),
        },
    }
}

/// Returns the answer to a CLI's own request.
fn helper(wire: &dyn Wire, model: String, stream: bool, say: Vec<Say>) -> Planned {
    let reply = Reply {
        id: "mock_helper".to_owned(),
        model,
        say,
        stop: Stop::End,
        usage: Tokens::default(),
    };
    if stream {
        Planned::Stream {
            delay: Duration::ZERO,
            frames: wire.stream(&reply),
        }
    } else {
        json_body(200, &wire.complete(&reply))
    }
}

/// Returns the answer to a request that is not for a model.
fn beside(head: &Parts) -> Planned {
    let path = head.uri.path().trim_end_matches('/');
    match head.method {
        Method::HEAD => json_body(200, &Value::Null),
        Method::GET if path.is_empty() => json_body(200, &json!({"status": "ok"})),
        Method::GET if path.ends_with("/models") => {
            // Compatible with both formats of model lists.
            let model = json!({"id": "mock-model", "object": "model", "type": "model", "display_name": "Mock model", "owned_by": "mock", "created": 0});
            json_body(
                200,
                &json!({"object": "list", "data": [model], "models": [{"name": "models/mock-model"}], "has_more": false}),
            )
        }
        _ => json_body(
            404,
            &json!({"type": "error", "error": {"type": "not_found_error", "message": "mock model: there is nothing here"}}),
        ),
    }
}

fn http_error(protocol: Protocol, answer: &Turn, error: &HttpError) -> Planned {
    let failure = protocol.wire().error(error.kind, error.message.as_deref());
    Planned::Whole {
        delay: answer.delay(),
        status: error.status.unwrap_or(failure.status),
        headers: error
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect(),
        body: error
            .body
            .clone()
            .unwrap_or_else(|| failure.body.to_string()),
    }
}

fn complete(status: u16, headers: &[(String, String)], body: String) -> Response<Body> {
    let body = Full::new(Bytes::from(body))
        .map_err(|never| match never {})
        .boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let all = response.headers_mut();
    all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in headers {
        let name = HeaderName::try_from(name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
            all.insert(name, value);
        }
    }
    response
}

fn stream(frames: Vec<Frame>, pace: Duration, gone: watch::Receiver<()>) -> Response<Body> {
    let (sender, body) = Channel::<Bytes, io::Error>::new(1);
    tokio::spawn(write(frames, pace, sender, gone));
    let mut response = Response::new(body.boxed_unsync());
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// Writes a stream until its end, or until the client has gone away.
async fn write(
    frames: Vec<Frame>,
    pace: Duration,
    sender: Sender<Bytes, io::Error>,
    mut gone: watch::Receiver<()>,
) {
    tokio::select! {
        () = write_all(frames, pace, sender) => {}
        // `gone` never has a value: it ends with the connection.
        _ = gone.changed() => {}
    }
}

async fn write_all(frames: Vec<Frame>, pace: Duration, mut sender: Sender<Bytes, io::Error>) {
    for frame in frames {
        match frame {
            Frame::Bytes(bytes) => {
                if sender.send_data(bytes).await.is_err() {
                    // The client has gone away.
                    return;
                }
            }
            Frame::Pace => tokio::time::sleep(pace).await,
            Frame::Pause(time) => tokio::time::sleep(time).await,
            Frame::Stall => std::future::pending().await,
            Frame::Cut => {
                tokio::time::sleep(FLUSH).await;
                sender.abort(io::Error::from(io::ErrorKind::ConnectionReset));
                return;
            }
        }
    }
}
