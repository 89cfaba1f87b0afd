//! Lines that exist only in sessions.

use serde::Deserialize;
use teamster_core::provider::json_line::or_default;

/// `response`.
#[serde_with::apply(_ => #[serde(deserialize_with = "or_default")])]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    pub(super) id: String,
    pub(super) command: String,
    pub(super) success: bool,
    pub(super) error: String,
    pub(super) data: Data,
}

/// Common fields of the responses to several commands.
#[serde_with::apply(_ => #[serde(deserialize_with = "or_default")])]
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Data {
    pub(super) session_id: Option<String>,
    pub(super) model: Option<Model>,
    pub(super) is_streaming: bool,
    pub(super) cancelled: bool,
    /// Outcome of a prompt, since 0.99: `started`, or `handled` if an extension took it.
    pub(super) disposition: String,
    /// Only in the response with a new model.
    pub(super) id: Option<String>,
    pub(super) provider: Option<String>,
    /// Commands of extensions, prompt templates and skills.
    pub(super) commands: Vec<Command>,
}

#[serde_with::apply(_ => #[serde(deserialize_with = "or_default")])]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Command {
    pub(super) name: String,
    pub(super) description: Option<String>,
}

#[serde_with::apply(_ => #[serde(deserialize_with = "or_default")])]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Model {
    pub(super) id: String,
    pub(super) provider: String,
}

/// `queue_update`.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Queue {
    #[serde(deserialize_with = "or_default")]
    pub(super) steering: Vec<String>,
}

/// `extension_ui_request`.
#[serde_with::apply(_ => #[serde(deserialize_with = "or_default")])]
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Dialog {
    pub(super) id: String,
    pub(super) method: String,
    pub(super) title: String,
    pub(super) message: String,
    pub(super) options: Vec<String>,
}
