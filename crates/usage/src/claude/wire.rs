//! The used fields of a transcript's lines.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use teamster_core::Usage;

use crate::{Key, Provider};

/// A line of a transcript.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
pub(super) struct Entry<'a> {
    #[serde(borrow)]
    pub(super) r#type: Cow<'a, str>,
    pub(super) session_id: Option<Cow<'a, str>>,
    pub(super) timestamp: Option<Cow<'a, str>>,
    pub(super) cwd: Option<Cow<'a, str>>,
    pub(super) request_id: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) is_sidechain: bool,
    /// Cost in USD. Written by versions of 2025.
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: Option<f64>,
    /// The sub-agent of the transcript.
    pub(super) agent_id: Option<Cow<'a, str>>,
    /// Present in copies of another session's lines, in some kinds of forks.
    pub(super) forked_from: Option<&'a RawValue>,
    /// Result of a tool, in one of many forms.
    pub(super) tool_use_result: Option<&'a RawValue>,
    pub(super) message: Option<Message<'a>>,
}

/// The kind of a line.
#[derive(Deserialize)]
pub(super) struct Typed<'a> {
    #[serde(borrow)]
    pub(super) r#type: Cow<'a, str>,
}

/// The time of a line.
#[derive(Deserialize)]
pub(super) struct Timed<'a> {
    #[serde(borrow)]
    pub(super) timestamp: Option<Cow<'a, str>>,
}

/// Result of a sub-agent for its parent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
pub(super) struct AgentResult<'a> {
    #[serde(borrow)]
    pub(super) agent_id: Cow<'a, str>,
    /// Usage of the sub-agent's last answer.
    pub(super) usage: Figures<'a>,
}

#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct Message<'a> {
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) model: Option<Cow<'a, str>>,
    pub(super) stop_reason: Option<Cow<'a, str>>,
    pub(super) usage: Option<Figures<'a>>,
}

/// The service's own figures. Input excludes cache reads and writes.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct Figures<'a> {
    pub(super) input_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cache_read_input_tokens: Option<u64>,
    pub(super) cache_creation_input_tokens: Option<u64>,
    pub(super) cache_creation: Option<CacheCreation>,
    pub(super) server_tool_use: Option<&'a RawValue>,
    /// `fast` for an answer in fast mode.
    pub(super) speed: Option<Cow<'a, str>>,
    /// Region of the model. `us` costs more.
    pub(super) inference_geo: Option<Cow<'a, str>>,
    /// Parts of the answer. The figures include only those of type `message`.
    pub(super) iterations: Option<&'a RawValue>,
}

/// A part of a request, such as advice of another model or a summary by the service. Its figures are separate.
#[derive(Deserialize)]
pub(super) struct Iteration<'a> {
    #[serde(borrow)]
    pub(super) r#type: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) model: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct CacheCreation {
    pub(super) ephemeral_1h_input_tokens: Option<u64>,
}

/// Calls of the service's own tools.
#[derive(Deserialize)]
pub(super) struct ServerToolUse {
    pub(super) web_search_requests: Option<u64>,
}

impl Figures<'_> {
    pub(super) fn usage(&self) -> Usage {
        Usage::default()
            .input_tokens(self.input_tokens)
            .output_tokens(self.output_tokens)
            .cache_read_tokens(self.cache_read_input_tokens)
            .cache_write_tokens(self.cache_creation_input_tokens)
    }

    pub(super) fn written_1h(&self) -> Option<u64> {
        self.cache_creation.as_ref()?.ephemeral_1h_input_tokens
    }

    /// Returns the number of web searches, if there were any.
    pub(super) fn web_searches(&self) -> Option<u64> {
        let used = self.server_tool_use?.get();
        let used = serde_json::from_str::<Option<ServerToolUse>>(used).ok()??;
        used.web_search_requests.filter(|searches| *searches > 0)
    }

    /// Returns the parts of the answer, or `None` if they are malformed.
    pub(super) fn parts(&self) -> Option<Vec<&RawValue>> {
        let parts = self.iterations.map_or("[]", RawValue::get);
        serde_json::from_str(parts).ok()
    }

    /// Returns whether all token figures are 0 or unknown.
    pub(super) fn is_zero(&self) -> bool {
        self.usage().total_tokens().unwrap_or(0) == 0
    }

    /// Returns the input as text. It grows from answer to answer.
    pub(super) fn input(&self) -> String {
        let figures = [
            self.input_tokens,
            self.cache_read_input_tokens,
            self.cache_creation_input_tokens,
        ];
        figures
            .map(|figure| figure.unwrap_or(0).to_string())
            .join(",")
    }

    /// Returns the key of a sub-agent's answer in its parent's transcript, which has no message id.
    pub(super) fn alias(&self, agent: &str) -> Key {
        Key::of(Provider::Claude, &["alias", agent, &self.input()])
    }
}
