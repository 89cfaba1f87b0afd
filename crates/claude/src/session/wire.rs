//! Lines that only sessions read, and messages that they write.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use teamster_core::provider::json_line::{of_any_depth, or_default, parse, repaired};

use super::offers::{CommandLine, ModelLine};

/// Subtype of the request that calls a hook.
pub(super) const HOOK_CALLBACK: &str = "hook_callback";

/// A line, with the data that a session needs.
#[derive(Debug)]
pub(super) struct SessionLine {
    pub(super) session_id: Option<String>,
    pub(super) what: LineKind,
}

#[derive(Debug)]
pub(super) enum LineKind {
    /// End of a CLI turn.
    Result {
        /// True if the CLI started the turn by itself.
        unasked: bool,
        failed: bool,
        /// Text of the result or its errors.
        text: String,
    },
    /// A message of the session was received.
    Taken { uuid: String },
    /// A message of the session was dropped, with the CLI's reason.
    Dropped { uuid: String, word: String },
    /// Response to a request of the session.
    Answer {
        request_id: String,
        outcome: Result<Answer, String>,
    },
    /// The CLI requests permission for a tool.
    Ask(Box<Ask>),
    /// An MCP server requests input from the user.
    Elicitation(Box<Elicitation>),
    /// The CLI calls a hook of the session.
    Hook(Box<Hook>),
    /// Another request of the CLI.
    Request { request_id: String, subtype: String },
    /// The CLI has withdrawn a request.
    Withdrawn { request_id: String },
    /// A line of a sub-agent that this tool call started.
    OfAgent { parent: String },
    /// The CLI is in this permission mode now.
    Mode { word: String },
    /// A message of the main agent.
    Message,
    /// Any other line.
    Other,
}

/// Content of a response.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Answer {
    /// True if a message was withdrawn before it was received.
    #[serde(default)]
    pub(super) cancelled: bool,
    // initialize
    #[serde(default, deserialize_with = "or_default")]
    pub(super) commands: Option<Vec<CommandLine>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) models: Option<Vec<ModelLine>>,
}

/// Permission request for a tool.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) request_id: String,
    pub(super) tool_name: String,
    pub(super) tool_id: Option<String>,
    pub(super) input: Value,
    pub(super) suggestions: Vec<Value>,
    pub(super) message: Option<String>,
}

/// Call of a hook, before or after a tool.
#[derive(Debug)]
pub(super) struct Hook {
    pub(super) request_id: String,
    pub(super) event: HookEvent,
    pub(super) tool_name: String,
    pub(super) tool_id: Option<String>,
    pub(super) input: Value,
    /// What the tool has returned, or the error of one that has failed.
    pub(super) output: Value,
}

/// Moment at which the CLI calls a hook, in its own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum HookEvent {
    PreToolUse,
    PostToolUse,
    PostToolUseFailure,
}

/// Request of an MCP server for input.
#[derive(Debug)]
pub(super) struct Elicitation {
    pub(super) request_id: String,
    pub(super) server: String,
    pub(super) message: String,
    /// URL that the user has to visit, if any.
    pub(super) url: Option<String>,
    pub(super) schema: Option<Value>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    subtype: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "or_default")]
    session_id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    parent_tool_use_id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    uuid: Option<String>,
    #[serde(default, rename = "isReplay", deserialize_with = "or_default")]
    is_replay: bool,
    // result
    #[serde(borrow, default, deserialize_with = "or_default")]
    origin: Option<Origin<'a>>,
    #[serde(default, deserialize_with = "or_default")]
    is_error: Option<bool>,
    #[serde(default, deserialize_with = "or_default")]
    result: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    errors: Vec<String>,
    // status
    #[serde(rename = "permissionMode")]
    permission_mode: Option<String>,
    // command_lifecycle
    #[serde(default, deserialize_with = "or_default")]
    command_uuid: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    state: Option<String>,
    // control_*
    #[serde(default, deserialize_with = "or_default")]
    request_id: Option<String>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    request: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    response: Option<&'a RawValue>,
}

/// Origin of the message that a turn answers. Without it, or with `human`, it is a message of the session.
#[derive(Deserialize)]
struct Origin<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Request {
    subtype: String,
    #[serde(default, deserialize_with = "or_default")]
    tool_name: String,
    #[serde(default, deserialize_with = "or_default")]
    tool_use_id: Option<String>,
    #[serde(default, deserialize_with = "of_any_depth")]
    input: Value,
    #[serde(default, deserialize_with = "or_default")]
    permission_suggestions: Vec<Value>,
    #[serde(default, deserialize_with = "or_default")]
    decision_reason: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    description: Option<String>,
    // elicitation
    #[serde(default, deserialize_with = "or_default")]
    mcp_server_name: String,
    #[serde(default, deserialize_with = "or_default")]
    message: String,
    #[serde(default, deserialize_with = "or_default")]
    url: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    requested_schema: Option<Value>,
}

#[derive(Deserialize)]
struct HookInput {
    hook_event_name: HookEvent,
    tool_name: String,
    #[serde(default)]
    tool_use_id: Option<String>,
    #[serde(default)]
    tool_input: Value,
    #[serde(default)]
    tool_response: Value,
    #[serde(default)]
    error: Value,
}

impl HookInput {
    fn into_hook(self, request_id: String) -> Hook {
        let output = match self.hook_event_name {
            HookEvent::PostToolUseFailure => self.error,
            _ => self.tool_response,
        };
        Hook {
            request_id,
            event: self.hook_event_name,
            tool_name: self.tool_name,
            tool_id: self.tool_use_id,
            input: self.tool_input,
            output,
        }
    }
}

#[derive(Deserialize)]
struct Response {
    subtype: String,
    request_id: String,
    #[serde(default, rename = "response", deserialize_with = "or_default")]
    answer: Option<Answer>,
    #[serde(default, deserialize_with = "or_default")]
    error: Option<String>,
}

/// Parses a line. `None` if it is not a JSON object with a type.
pub(super) fn heard(text: &str) -> Option<SessionLine> {
    let line: Line<'_> = parse(text)?;
    let session_id = line.session_id.clone();
    let what = what(line).unwrap_or(LineKind::Other);
    Some(SessionLine { session_id, what })
}

fn what(line: Line<'_>) -> Option<LineKind> {
    Some(match line.kind.as_ref() {
        "result" => {
            let success = line.subtype.as_deref() == Some("success");
            LineKind::Result {
                unasked: line.origin.is_some_and(|origin| origin.kind != "human"),
                failed: line.is_error.unwrap_or(!success),
                text: match line.result {
                    Some(text) if !text.is_empty() => text,
                    _ => line.errors.join("; "),
                },
            }
        }
        "assistant" | "user" => match line.parent_tool_use_id {
            Some(parent) => LineKind::OfAgent { parent },
            None if line.is_replay => LineKind::Taken { uuid: line.uuid? },
            None => LineKind::Message,
        },
        "system" if line.subtype.as_deref() == Some("status") => LineKind::Mode {
            word: line.permission_mode?,
        },
        "command_lifecycle" => {
            let uuid = line.command_uuid?;
            match line.state?.as_str() {
                "started" | "completed" => LineKind::Taken { uuid },
                word @ ("cancelled" | "discarded" | "refused") => LineKind::Dropped {
                    uuid,
                    word: word.to_owned(),
                },
                _ => LineKind::Other,
            }
        }
        "control_response" => {
            let response: Response = parse(repaired(line.response?).get())?;
            LineKind::Answer {
                request_id: response.request_id,
                outcome: match response.subtype.as_str() {
                    "success" => Ok(response.answer.unwrap_or_default()),
                    _ => Err(response.error.unwrap_or_default()),
                },
            }
        }
        "control_request" => {
            let request_id = line.request_id?;
            let request: Request = parse(repaired(line.request?).get())?;
            if request.subtype == "elicitation" {
                return Some(LineKind::Elicitation(Box::new(Elicitation {
                    request_id,
                    server: request.mcp_server_name,
                    message: request.message,
                    url: request.url,
                    schema: request.requested_schema,
                })));
            }
            if request.subtype == HOOK_CALLBACK
                && let Ok(input) = serde_json::from_value::<HookInput>(request.input.clone())
            {
                return Some(LineKind::Hook(Box::new(input.into_hook(request_id))));
            }
            if request.subtype != "can_use_tool" {
                let subtype = request.subtype;
                return Some(LineKind::Request {
                    request_id,
                    subtype,
                });
            }
            LineKind::Ask(Box::new(Ask {
                request_id,
                tool_name: request.tool_name,
                tool_id: request.tool_use_id,
                input: request.input,
                suggestions: request.permission_suggestions,
                message: request.decision_reason.or(request.description),
            }))
        }
        "control_cancel_request" => LineKind::Withdrawn {
            request_id: line.request_id?,
        },
        _ => return None,
    })
}

/// Creates a user message.
pub(super) fn message(uuid: &str, content: &Value) -> Value {
    json!({
        "type": "user",
        "uuid": uuid,
        "message": {"role": "user", "content": content},
    })
}

/// Creates a request; `request` includes its `subtype`.
pub(super) fn request(request_id: &str, request: &Value) -> Value {
    json!({"type": "control_request", "request_id": request_id, "request": request})
}

/// Creates the response to a request of the CLI.
pub(super) fn answer(request_id: &str, response: &Value) -> Value {
    json!({
        "type": "control_response",
        "response": {"subtype": "success", "request_id": request_id, "response": response},
    })
}

/// Creates the error response to a request of the CLI.
pub(super) fn refusal(request_id: &str, error: &str) -> Value {
    json!({
        "type": "control_response",
        "response": {"subtype": "error", "request_id": request_id, "error": error},
    })
}
