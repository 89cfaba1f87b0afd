//! Parses JSON-RPC messages and request parameters.

use agent_client_protocol_schema::v1::{Error, ErrorCode, McpServer as SchemaServer, RequestId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use teamster_core::McpServer;
use teamster_core::provider::json_line::{parse, readable};
use teamster_core::text::{excerpt, one_line};

/// A message from the editor.
#[derive(Debug, Deserialize)]
pub(crate) struct Message {
    #[serde(default, deserialize_with = "present")]
    pub(crate) id: Option<RequestId>,
    pub(crate) method: Option<String>,
    #[serde(default)]
    pub(crate) params: Value,
    #[serde(default, deserialize_with = "present")]
    pub(crate) result: Option<Value>,
}

/// Deserializes a present field to `Some`, even if it is null.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

impl Message {
    /// Parses a line. The error is the response to an invalid message.
    pub(crate) fn read(line: &[u8]) -> Result<Self, Error> {
        let value: Value = serde_json::from_slice(line).or_else(|error| {
            // Editors in JavaScript may cut a text in the middle of a character.
            let json = str::from_utf8(line).ok().and_then(readable);
            let value = json.and_then(|json| parse(&json));
            let problem = || failed(ErrorCode::ParseError, format!("not valid JSON: {error}"));
            value.ok_or_else(problem)
        })?;
        if value.is_array() {
            let problem = "batches are not supported: send one message per line";
            return Err(failed(ErrorCode::InvalidRequest, problem));
        }
        let message: Self = serde_json::from_value(value).map_err(|error| {
            failed(
                ErrorCode::InvalidRequest,
                format!("not a JSON-RPC message: {error}"),
            )
        })?;
        if message.method.is_none() && message.id.is_none() {
            return Err(failed(
                ErrorCode::InvalidRequest,
                "not a JSON-RPC message: it has neither a method nor an id",
            ));
        }
        Ok(message)
    }
}

/// Parses the parameters of a request.
pub(crate) fn params<T: DeserializeOwned>(method: &str, params: Value) -> Result<T, Error> {
    // Some clients omit `params` when every field is optional.
    let params = match params {
        Value::Null => Value::Object(serde_json::Map::new()),
        params => params,
    };
    serde_json::from_value(params)
        .map_err(|error| failed(ErrorCode::InvalidParams, format!("{method}: {error}")))
}

/// Takes the MCP servers out of the parameters of a request. One of an unknown form is left out, and `left_out` gets a
/// line for it.
pub(crate) fn take_servers(params: &mut Value, left_out: &mut Vec<String>) -> Vec<McpServer> {
    // What is no array stays: it is refused with the other parameters.
    let servers = params.get_mut("mcpServers").and_then(Value::as_array_mut);
    let Some(servers) = servers.map(std::mem::take) else {
        return Vec::new();
    };
    let known = servers.into_iter().filter_map(|raw| {
        let server = SchemaServer::deserialize(&raw).ok().and_then(mcp_server);
        if server.is_none() {
            let name = excerpt(&one_line(raw["name"].as_str().unwrap_or("unnamed")), 80);
            let kind = raw["type"].as_str().unwrap_or("stdio");
            let kind = excerpt(&one_line(kind), 40);
            left_out.push(format!(
                "the MCP server {name} is left out: its type {kind}, or a field of it, is unknown; expected stdio, http \
                 or sse"
            ));
        }
        server
    });
    known.collect()
}

fn mcp_server(server: SchemaServer) -> Option<McpServer> {
    Some(match server {
        SchemaServer::Stdio(it) => {
            let command = it.command.to_string_lossy().into_owned();
            let env = it.env.into_iter();
            env.fold(McpServer::stdio(it.name, command, it.args), |server, it| {
                server.env(it.name, it.value)
            })
        }
        SchemaServer::Http(it) => {
            let headers = it.headers.into_iter();
            headers.fold(McpServer::http(it.name, it.url), |server, it| {
                server.header(it.name, it.value)
            })
        }
        SchemaServer::Sse(it) => {
            let headers = it.headers.into_iter();
            headers.fold(McpServer::sse(it.name, it.url), |server, it| {
                server.header(it.name, it.value)
            })
        }
        _ => return None,
    })
}

pub(crate) fn failed(code: ErrorCode, problem: impl Into<String>) -> Error {
    Error::new(i32::from(code), problem)
}
