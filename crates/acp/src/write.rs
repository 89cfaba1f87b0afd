//! Messages to agents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use teamster_core::provider::Outbox;
use teamster_core::{AgentError, Image, McpServer, McpTransport, PermissionAnswer};

use crate::question::Choice;
use crate::settings::AcpSettings;

const JSON_RPC: &str = "2.0";

/// JSON-RPC error code for an unknown method.
const NO_SUCH_METHOD: i64 = -32601;

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct Notification<'a> {
    jsonrpc: &'static str,
    method: &'a str,
    params: Value,
}

#[derive(Serialize)]
struct Response<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: Value,
}

#[derive(Serialize)]
struct Refusal<'a> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    error: RefusalError<'a>,
}

#[derive(Serialize)]
struct RefusalError<'a> {
    code: i64,
    message: &'a str,
}

/// Parameters of the requests that open a session.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OpenParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    cwd: &'a Path,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    additional_directories: &'a [PathBuf],
    mcp_servers: Vec<Server<'a>>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a Map<String, Value>>,
}

/// An MCP server for the agent.
#[derive(Serialize)]
#[serde(untagged)]
enum Server<'a> {
    Program {
        name: &'a str,
        command: &'a str,
        args: &'a [String],
        env: Vec<Pair<'a>>,
    },
    Url {
        #[serde(rename = "type")]
        kind: &'static str,
        name: &'a str,
        url: &'a str,
        headers: Vec<Pair<'a>>,
    },
}

/// An environment variable or an HTTP header.
#[derive(Serialize)]
struct Pair<'a> {
    name: &'a str,
    value: &'a str,
}

fn request(outbox: &mut Outbox, id: u64, method: &str, params: impl Serialize) {
    outbox.write(&Request {
        jsonrpc: JSON_RPC,
        id,
        method,
        params,
    });
}

/// Sends the first request. With `asks`, the agent may ask the user questions.
pub(crate) fn initialize(outbox: &mut Outbox, id: u64, asks: bool) {
    // Offer neither files nor terminals: the agent uses its own.
    let mut capabilities = json!({
        "fs": {"readTextFile": false, "writeTextFile": false},
        "terminal": false,
        "session": {"notices": {}},
        "auth": {"terminal": false},
    });
    if asks {
        capabilities["elicitation"] = json!({"form": {}, "url": {}});
    }
    let params = json!({
        "protocolVersion": 1,
        "clientCapabilities": capabilities,
        "clientInfo": {"name": "teamster", "version": env!("CARGO_PKG_VERSION")},
    });
    request(outbox, id, "initialize", params);
}

/// Extension data (`_meta`) of the requests that open a session.
pub(crate) type Meta<'a> = Option<&'a Map<String, Value>>;

/// Opens a session by this method: a new one, or one from an existing `session`.
pub(crate) fn open_session(
    outbox: &mut Outbox,
    id: u64,
    method: &str,
    settings: &AcpSettings,
    meta: Meta<'_>,
    session: Option<&str>,
) {
    let params = OpenParams {
        session_id: session,
        cwd: &settings.directory,
        additional_directories: &settings.add_dirs,
        mcp_servers: settings.mcp_servers.iter().filter_map(server).collect(),
        meta,
    };
    request(outbox, id, method, params);
}

pub(crate) fn prompt(outbox: &mut Outbox, id: u64, session: &str, content: &[Value]) {
    let params = json!({"sessionId": session, "prompt": content});
    request(outbox, id, "session/prompt", params);
}

pub(crate) fn set_mode(outbox: &mut Outbox, id: u64, session: &str, mode: &str) {
    let params = json!({"sessionId": session, "modeId": mode});
    request(outbox, id, "session/set_mode", params);
}

/// Sets the model by a request that is not in the protocol's stable schema.
pub(crate) fn set_model(outbox: &mut Outbox, id: u64, session: &str, model: &str) {
    let params = json!({"sessionId": session, "modelId": model});
    request(outbox, id, "session/set_model", params);
}

pub(crate) fn set_option(outbox: &mut Outbox, id: u64, session: &str, option: &str, value: &str) {
    let params = json!({"sessionId": session, "configId": option, "value": value});
    request(outbox, id, "session/set_config_option", params);
}

pub(crate) fn cancel(outbox: &mut Outbox, session: &str) {
    outbox.write(&Notification {
        jsonrpc: JSON_RPC,
        method: "session/cancel",
        params: json!({"sessionId": session}),
    });
}

/// Responds to a permission request with the option of this id, or as cancelled.
pub(crate) fn permission(outbox: &mut Outbox, id: &RawValue, option: Option<&str>) {
    let outcome = match option {
        Some(option) => json!({"outcome": "selected", "optionId": option}),
        None => json!({"outcome": "cancelled"}),
    };
    respond(outbox, id, json!({"outcome": outcome}));
}

/// Responds to a question. Its response can have more fields than the protocol has.
pub(crate) fn choice(outbox: &mut Outbox, id: &RawValue, choice: Choice) {
    let mut result = Map::new();
    let outcome = json!({"outcome": "selected", "optionId": choice.option});
    result.insert("outcome".to_owned(), outcome);
    result.extend(choice.fields);
    respond(outbox, id, Value::Object(result));
}

/// Responds to an elicitation; without an answer, as cancelled.
pub(crate) fn elicited(outbox: &mut Outbox, id: &RawValue, answer: Option<&PermissionAnswer>) {
    let result = match answer {
        None => json!({"action": "cancel"}),
        Some(PermissionAnswer::AllowWith(content)) => {
            json!({"action": "accept", "content": content})
        }
        Some(PermissionAnswer::Allow | PermissionAnswer::AllowAlways) => {
            json!({"action": "accept", "content": {}})
        }
        Some(_) => json!({"action": "decline"}),
    };
    respond(outbox, id, result);
}

fn respond(outbox: &mut Outbox, id: &RawValue, result: Value) {
    outbox.write(&Response {
        jsonrpc: JSON_RPC,
        id,
        result,
    });
}

/// Responds to a request with an unknown method.
pub(crate) fn no_such_method(outbox: &mut Outbox, id: &RawValue) {
    outbox.write(&Refusal {
        jsonrpc: JSON_RPC,
        id,
        error: RefusalError {
            code: NO_SUCH_METHOD,
            message: "Method not found",
        },
    });
}

/// Returns the content of a prompt: the images, then the text.
pub(crate) fn content(prompt: &str, images: &[Image]) -> Result<Vec<Value>, AgentError> {
    let mut blocks = Vec::with_capacity(images.len() + 1);
    for image in images {
        let data = base64::engine::general_purpose::STANDARD.encode(image.in_memory()?);
        blocks.push(json!({"type": "image", "data": data, "mimeType": image.media_type}));
    }
    blocks.push(json!({"type": "text", "text": prompt}));
    Ok(blocks)
}

fn server(server: &McpServer) -> Option<Server<'_>> {
    let name = &server.name;
    Some(match &server.transport {
        McpTransport::Stdio {
            command, args, env, ..
        } => Server::Program {
            name,
            command,
            args,
            env: pairs(env),
        },
        McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => Server::Url {
            kind: server.transport.as_str(),
            name,
            url,
            headers: pairs(headers),
        },
        // Unreachable: the parameter checks refuse other transports.
        _ => return None,
    })
}

fn pairs(of: &BTreeMap<String, String>) -> Vec<Pair<'_>> {
    of.iter()
        .map(|(name, value)| Pair { name, value })
        .collect()
}
