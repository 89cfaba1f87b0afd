//! A conversation with a model, independent of the service's format.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::wire::WireKind;

/// A message. Sessions are stored in this format.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub(crate) enum Message {
    /// A message of the user.
    User { content: Vec<Input> },
    /// An answer of the model.
    Assistant(Answer),
    /// Results of the calls of the previous answer.
    Tool { results: Vec<CallResult> },
}

impl Message {
    /// Creates a text message of the user.
    pub(crate) fn user(text: impl Into<String>) -> Self {
        Self::User {
            content: vec![Input::text(text)],
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Input {
    Text {
        text: String,
    },
    /// An image, as base64.
    Image {
        media_type: String,
        data: String,
    },
}

impl Input {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) blocks: Vec<Block>,
    /// Protocol and model of the answer. Signed reasoning is only valid for these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<Origin>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    pub(crate) wire: WireKind,
    pub(crate) model: String,
}

/// A part of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Block {
    Text {
        text: String,
        /// Signature by the service (Gemini), to be sent back unchanged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// Reasoning. `native` is the service's own block, to be sent back unchanged.
    Reasoning {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        native: Option<Value>,
    },
    Call(Call),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Call {
    /// Id by the service, or a generated one if the service has none.
    pub(crate) id: String,
    pub(crate) name: String,
    /// Arguments: an object, or a string if they are not a JSON object.
    pub(crate) input: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) signature: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallResult {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) content: Vec<Input>,
    #[serde(default)]
    pub(crate) is_error: bool,
}

impl Block {
    pub(crate) fn text(text: String) -> Self {
        Self::Text {
            text,
            signature: None,
        }
    }
}

impl CallResult {
    /// Creates the result of a call without one.
    pub(crate) fn none(call: &Call) -> Self {
        Self {
            id: call.id.clone(),
            name: call.name.clone(),
            content: vec![Input::text("The run ended before this call had a result.")],
            is_error: true,
        }
    }

    /// Returns its text, without images.
    pub(crate) fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|input| match input {
            Input::Text { text } => Some(text.as_str()),
            Input::Image { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns its images as pairs of media type and base64.
    pub(crate) fn images(&self) -> impl Iterator<Item = (&str, &str)> {
        self.content.iter().filter_map(|input| match input {
            Input::Image { media_type, data } => Some((media_type.as_str(), data.as_str())),
            Input::Text { .. } => None,
        })
    }
}

impl Answer {
    /// Creates an answer of unknown origin.
    pub(crate) fn new(blocks: Vec<Block>) -> Self {
        Self {
            blocks,
            origin: None,
        }
    }

    /// Returns its text, without reasoning.
    pub(crate) fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Returns whether it has no text, no reasoning and no call.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.iter().all(|block| match block {
            Block::Text { text, .. } => text.trim().is_empty(),
            Block::Reasoning { text, native } => text.trim().is_empty() && native.is_none(),
            Block::Call(_) => false,
        })
    }

    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            _ => None,
        })
    }

    /// Returns whether its signed reasoning is valid for this protocol and model.
    pub(crate) fn is_of(&self, wire: WireKind, model: &str) -> bool {
        (self.origin.as_ref()).is_some_and(|origin| origin.wire == wire && origin.model == model)
    }
}
