//! Requests of an agent that wait for an answer.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use teamster_core::{Id, PermissionAnswer, PermissionRequest, ToolKind};

/// Request that waits for an answer: permission for a tool, or the question of an MCP server.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PendingRequest {
    /// Id of the request: `RUN_ID/NUMBER`.
    pub request_id: String,
    /// Id of the run.
    pub run_id: String,
    /// The tool, as the CLI names it.
    pub tool_name: String,
    /// Id of the tool call.
    pub tool_id: Option<Id>,
    /// Kind of the tool.
    pub kind: ToolKind,
    /// Input of the tool.
    pub input: Value,
    /// Current text of the file that the tool would write whole, if that is a text of at most 256 KiB in the working
    /// directory.
    pub old_text: Option<String>,
    /// The CLI's own text about the request.
    pub message: Option<String>,
    /// The JSON Schema of the answer that an MCP server asks for.
    pub schema: Option<Value>,
    /// An answer can have an input.
    pub takes_input: bool,
    /// The reason of a denial reaches the model.
    #[serde(default)]
    pub takes_reason: bool,
    /// Time of the request, in milliseconds since the Unix epoch.
    #[serde(rename = "askedAt")]
    pub asked_at_ms: u64,
    /// Time at which the request is denied without an answer, in milliseconds since the Unix epoch.
    #[serde(rename = "expiresAt")]
    pub expires_at_ms: Option<u64>,
}

impl PendingRequest {
    /// Creates a request that arrives now and has no time limit.
    pub fn new(
        request_id: impl Into<String>,
        run_id: impl Into<String>,
        request: PermissionRequest,
    ) -> Self {
        Self {
            request_id: request_id.into(),
            run_id: run_id.into(),
            tool_name: request.tool_name,
            tool_id: request.tool_id,
            kind: request.kind,
            input: request.input,
            old_text: request.old_text,
            message: request.message,
            schema: request.schema,
            takes_input: request.takes_input,
            takes_reason: false,
            asked_at_ms: teamster_core::time::epoch_ms(),
            expires_at_ms: None,
        }
    }
}

/// Answer to a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    tag = "decision",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum Answer {
    /// Allow this request once.
    Allow,
    /// Allow this request and similar ones in this session.
    AllowAlways,
    /// Allow the request with this input in place of the agent's, or answer the question of an MCP server.
    AllowWith {
        /// The input.
        input: Value,
    },
    /// Deny the request.
    Deny {
        /// Reason, for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// Reason that a typed text does not answer the question of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TypedAnswerError {
    /// The question has not one field, but these.
    Fields(Vec<String>),
    /// The value of the only field has another type.
    Type {
        /// The field.
        field: String,
        /// The expected type.
        expected: String,
    },
}

impl fmt::Display for TypedAnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fields(fields) => {
                let fields = fields.join(", ");
                write!(f, "expected a JSON object with these fields: {fields}")
            }
            Self::Type { field, expected } => {
                write!(f, "expected a value of type {expected} for `{field}`")
            }
        }
    }
}

impl std::error::Error for TypedAnswerError {}

/// Returns the input of an answer to the question of an MCP server with this JSON Schema, from the text of a person: a JSON
/// object, or the value of the only field.
///
/// ```
/// use serde_json::json;
/// use teamster_api::typed_answer;
///
/// let schema = json!({"properties": {"count": {"type": "integer"}}});
/// assert_eq!(typed_answer("3", &schema), Ok(json!({"count": 3})));
/// assert_eq!(typed_answer(r#"{"count": 4}"#, &schema), Ok(json!({"count": 4})));
/// assert_eq!(
///     typed_answer("many", &schema).unwrap_err().to_string(),
///     "expected a value of type integer for `count`"
/// );
/// ```
///
/// # Errors
///
/// Fails if the text is neither.
pub fn typed_answer(text: &str, schema: &Value) -> Result<Value, TypedAnswerError> {
    if let Ok(value @ Value::Object(_)) = serde_json::from_str(text) {
        return Ok(value);
    }
    let fields = schema["properties"].as_object();
    let mut fields = fields.into_iter().flatten();
    let (Some((name, field)), None) = (fields.next(), fields.next()) else {
        let all = schema["properties"].as_object();
        let names = all.map(|all| all.keys().cloned().collect());
        return Err(TypedAnswerError::Fields(names.unwrap_or_default()));
    };
    let value: Value = match field["type"].as_str() {
        Some("string") | None => text.into(),
        Some(expected) => serde_json::from_str(text).map_err(|_| TypedAnswerError::Type {
            field: name.clone(),
            expected: expected.to_owned(),
        })?,
    };
    Ok(json!({ name.as_str(): value }))
}

impl From<PermissionAnswer> for Answer {
    fn from(answer: PermissionAnswer) -> Self {
        match answer {
            PermissionAnswer::Allow => Self::Allow,
            PermissionAnswer::AllowAlways => Self::AllowAlways,
            PermissionAnswer::AllowWith(input) => Self::AllowWith { input },
            PermissionAnswer::Deny(reason) => Self::Deny { reason },
            _ => Self::Deny { reason: None },
        }
    }
}

impl From<PendingRequest> for PermissionRequest {
    fn from(pending: PendingRequest) -> Self {
        let mut request = Self::new(0, pending.tool_name, pending.kind, pending.input);
        request.tool_id = pending.tool_id;
        request.old_text = pending.old_text;
        request.message = pending.message;
        request.schema = pending.schema;
        request.takes_input = pending.takes_input;
        request
    }
}

impl From<Answer> for PermissionAnswer {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Allow => Self::Allow,
            Answer::AllowAlways => Self::AllowAlways,
            Answer::AllowWith { input } => Self::AllowWith(input),
            Answer::Deny { reason } => Self::Deny(reason),
        }
    }
}
