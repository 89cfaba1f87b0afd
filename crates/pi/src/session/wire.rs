//! Lines that exist only in sessions.

use serde::Deserialize;
use teamster_core::provider::json_line::or_default;

/// `response`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    #[serde(deserialize_with = "or_default")]
    pub(super) id: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) command: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) success: bool,
    #[serde(deserialize_with = "or_default")]
    pub(super) error: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) data: Data,
}

/// Common fields of the responses to several commands.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Data {
    #[serde(deserialize_with = "or_default")]
    pub(super) session_id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) model: Option<Model>,
    #[serde(deserialize_with = "or_default")]
    pub(super) is_streaming: bool,
    #[serde(deserialize_with = "or_default")]
    pub(super) cancelled: bool,
    /// Outcome of a prompt, since 0.99: `started`, or `handled` if an extension took it.
    #[serde(deserialize_with = "or_default")]
    pub(super) disposition: String,
    /// Only in the response with a new model.
    #[serde(deserialize_with = "or_default")]
    pub(super) id: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) provider: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) context_window: Option<u64>,
    /// Commands of extensions, prompt templates and skills.
    #[serde(deserialize_with = "or_default")]
    pub(super) commands: Vec<Command>,
    /// Models of the providers with a login.
    #[serde(deserialize_with = "or_default")]
    pub(super) models: Vec<Model>,
    /// Thinking levels of the model.
    #[serde(deserialize_with = "or_default")]
    pub(super) levels: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Command {
    #[serde(deserialize_with = "or_default")]
    pub(super) name: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) description: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Model {
    #[serde(deserialize_with = "or_default")]
    pub(super) id: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) name: Option<String>,
    #[serde(deserialize_with = "or_default")]
    pub(super) provider: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) context_window: Option<u64>,
}

/// `queue_update`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Queue {
    #[serde(deserialize_with = "or_default")]
    pub(super) steering: Vec<String>,
}

/// `extension_ui_request`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Dialog {
    #[serde(deserialize_with = "or_default")]
    pub(super) id: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) method: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) title: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) message: String,
    #[serde(deserialize_with = "or_default")]
    pub(super) options: Vec<String>,
}
