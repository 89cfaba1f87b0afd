//! Names of the wire protocols.

use std::fmt;

/// A wire protocol of a model service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Protocol {
    /// Anthropic Messages: `POST /v1/messages`.
    Anthropic,
    /// OpenAI Responses: `POST /v1/responses`.
    Responses,
    /// OpenAI Chat Completions: `POST /v1/chat/completions`.
    Chat,
    /// Gemini: `POST /v1beta/models/MODEL:streamGenerateContent`.
    Gemini,
}

impl Protocol {
    /// All protocols.
    pub const ALL: [Self; 4] = [Self::Anthropic, Self::Responses, Self::Chat, Self::Gemini];

    /// Returns the protocol's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Anthropic => "Anthropic Messages",
            Self::Responses => "OpenAI Responses",
            Self::Chat => "OpenAI Chat Completions",
            Self::Gemini => "Gemini",
        }
    }

    /// Returns the protocol of a `POST` to this path, without its query.
    pub(crate) fn of(path: &str) -> Option<Self> {
        if path.ends_with("/messages") || path.ends_with("/messages/count_tokens") {
            Some(Self::Anthropic)
        } else if path.ends_with("/responses") {
            Some(Self::Responses)
        } else if path.ends_with("/chat/completions") {
            Some(Self::Chat)
        } else if path.contains("/models/") && path.contains(':') {
            Some(Self::Gemini)
        } else {
            None
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
