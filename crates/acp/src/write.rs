//! Messages to agents.

use std::path::{Path, PathBuf};

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    CancelNotification, ClientCapabilities, ClientSessionCapabilities, ContentBlock,
    ElicitationCapabilities, ElicitationFormCapabilities, ElicitationUrlCapabilities, EnvVariable,
    HttpHeader, ImageContent, Implementation, InitializeRequest, LoadSessionRequest,
    McpServer as SchemaServer, McpServerHttp, McpServerSse, McpServerStdio, NewSessionRequest,
    NoticeCapabilities, PromptRequest, RequestPermissionOutcome, RequestPermissionResponse,
    ResumeSessionRequest, SelectedPermissionOutcome, SessionConfigOptionValue,
    SetSessionConfigOptionRequest, SetSessionModeRequest, TextContent,
};
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
struct Notification<'a, P> {
    jsonrpc: &'static str,
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct Response<'a, R> {
    jsonrpc: &'static str,
    id: &'a RawValue,
    result: R,
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

/// Parameters of `session/set_model`. Like `session/fork`, it is not in the protocol's stable schema.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ModelParams<'a> {
    session_id: &'a str,
    model_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ForkParams<'a> {
    session_id: &'a str,
    cwd: &'a Path,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    additional_directories: &'a [PathBuf],
    mcp_servers: Vec<SchemaServer>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<&'a Map<String, Value>>,
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
    let session = ClientSessionCapabilities::new().notices(NoticeCapabilities::new());
    let questions = asks.then(|| {
        ElicitationCapabilities::new()
            .form(ElicitationFormCapabilities::new())
            .url(ElicitationUrlCapabilities::new())
    });
    let capabilities = ClientCapabilities::new()
        .session(session)
        .elicitation(questions);
    let params = InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(capabilities)
        .client_info(Implementation::new("teamster", env!("CARGO_PKG_VERSION")));
    request(outbox, id, "initialize", params);
}

/// Extension data (`_meta`) of the requests that open a session.
pub(crate) type Meta<'a> = Option<&'a Map<String, Value>>;

pub(crate) fn new_session(outbox: &mut Outbox, id: u64, settings: &AcpSettings, meta: Meta<'_>) {
    let params = NewSessionRequest::new(&settings.directory)
        .additional_directories(settings.add_dirs.clone())
        .mcp_servers(servers(settings))
        .meta(meta.cloned());
    request(outbox, id, "session/new", params);
}

pub(crate) fn load_session(
    outbox: &mut Outbox,
    id: u64,
    settings: &AcpSettings,
    meta: Meta<'_>,
    session: &str,
) {
    let params = LoadSessionRequest::new(session.to_owned(), &settings.directory)
        .additional_directories(settings.add_dirs.clone())
        .mcp_servers(servers(settings))
        .meta(meta.cloned());
    request(outbox, id, "session/load", params);
}

pub(crate) fn resume_session(
    outbox: &mut Outbox,
    id: u64,
    settings: &AcpSettings,
    meta: Meta<'_>,
    session: &str,
) {
    let params = ResumeSessionRequest::new(session.to_owned(), &settings.directory)
        .additional_directories(settings.add_dirs.clone())
        .mcp_servers(servers(settings))
        .meta(meta.cloned());
    request(outbox, id, "session/resume", params);
}

pub(crate) fn fork_session(
    outbox: &mut Outbox,
    id: u64,
    settings: &AcpSettings,
    meta: Meta<'_>,
    session: &str,
) {
    let params = ForkParams {
        session_id: session,
        cwd: &settings.directory,
        additional_directories: &settings.add_dirs,
        mcp_servers: servers(settings),
        meta,
    };
    request(outbox, id, "session/fork", params);
}

pub(crate) fn prompt(outbox: &mut Outbox, id: u64, session: &str, content: Vec<ContentBlock>) {
    let params = PromptRequest::new(session.to_owned(), content);
    request(outbox, id, "session/prompt", params);
}

pub(crate) fn set_mode(outbox: &mut Outbox, id: u64, session: &str, mode: &str) {
    let params = SetSessionModeRequest::new(session.to_owned(), mode.to_owned());
    request(outbox, id, "session/set_mode", params);
}

pub(crate) fn set_model(outbox: &mut Outbox, id: u64, session: &str, model: &str) {
    let params = ModelParams {
        session_id: session,
        model_id: model,
    };
    request(outbox, id, "session/set_model", params);
}

pub(crate) fn set_option(outbox: &mut Outbox, id: u64, session: &str, option: &str, value: &str) {
    let value = SessionConfigOptionValue::value_id(value.to_owned());
    let params = SetSessionConfigOptionRequest::new(session.to_owned(), option.to_owned(), value);
    request(outbox, id, "session/set_config_option", params);
}

pub(crate) fn cancel(outbox: &mut Outbox, session: &str) {
    outbox.write(&Notification {
        jsonrpc: JSON_RPC,
        method: "session/cancel",
        params: CancelNotification::new(session.to_owned()),
    });
}

/// Responds to a permission request with the option of this id, or as cancelled.
pub(crate) fn permission(outbox: &mut Outbox, id: &RawValue, option: Option<&str>) {
    let outcome = match option {
        Some(option) => {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.to_owned()))
        }
        None => RequestPermissionOutcome::Cancelled,
    };
    outbox.write(&Response {
        jsonrpc: JSON_RPC,
        id,
        result: RequestPermissionResponse::new(outcome),
    });
}

/// Responds to a question.
pub(crate) fn choice(outbox: &mut Outbox, id: &RawValue, choice: Choice) {
    let outcome = RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(choice.option));
    outbox.write(&Response {
        jsonrpc: JSON_RPC,
        id,
        result: Chosen {
            response: RequestPermissionResponse::new(outcome),
            fields: choice.fields,
        },
    });
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
    outbox.write(&Response {
        jsonrpc: JSON_RPC,
        id,
        result,
    });
}

/// A response with more fields than the protocol has.
#[derive(Serialize)]
struct Chosen {
    #[serde(flatten)]
    response: RequestPermissionResponse,
    #[serde(flatten)]
    fields: Map<String, Value>,
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
pub(crate) fn content(prompt: &str, images: &[Image]) -> Result<Vec<ContentBlock>, AgentError> {
    let mut blocks = Vec::with_capacity(images.len() + 1);
    for image in images {
        let data = base64::engine::general_purpose::STANDARD.encode(image.in_memory()?);
        blocks.push(ContentBlock::Image(ImageContent::new(
            data,
            image.media_type.clone(),
        )));
    }
    blocks.push(ContentBlock::Text(TextContent::new(prompt)));
    Ok(blocks)
}

fn servers(settings: &AcpSettings) -> Vec<SchemaServer> {
    settings.mcp_servers.iter().filter_map(server).collect()
}

fn server(server: &McpServer) -> Option<SchemaServer> {
    let name = server.name.as_str();
    let header = |(name, value): (&String, &String)| HttpHeader::new(name, value);
    Some(match &server.transport {
        McpTransport::Stdio {
            command, args, env, ..
        } => SchemaServer::Stdio(
            McpServerStdio::new(name, command)
                .args(args.clone())
                .env(env.iter().map(|(k, v)| EnvVariable::new(k, v)).collect()),
        ),
        McpTransport::Http { url, headers } => SchemaServer::Http(
            McpServerHttp::new(name, url).headers(headers.iter().map(header).collect()),
        ),
        McpTransport::Sse { url, headers } => SchemaServer::Sse(
            McpServerSse::new(name, url).headers(headers.iter().map(header).collect()),
        ),
        // Unreachable: the parameter checks refuse other transports.
        _ => return None,
    })
}
