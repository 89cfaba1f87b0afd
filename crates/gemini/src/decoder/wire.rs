//! Lines of `gemini --output-format=stream-json`, with the fields that are used.
//!
//! Flat structs with optional fields, borrowed if possible. Other fields are skipped, and a field that is missing or
//! of another type is no error. Every name was seen in the output of the real program. Where a text is expected,
//! another value is kept as its JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use teamster_core::provider::json_line::{or_default, parse};

/// `init`: the first line.
#[derive(Deserialize)]
pub(crate) struct InitLine<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) session_id: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) model: Option<String>,
}

/// `message`: the prompt as parsed by the CLI, or a delta of the answer.
#[derive(Deserialize)]
pub(crate) struct MessageLine<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) role: Option<Cow<'a, str>>,
    /// Always `true` in the measured version.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) delta: Option<bool>,
    /// Parsed only after the role is known: a prompt of megabytes is never copied.
    #[serde(borrow)]
    pub(crate) content: Option<&'a RawValue>,
}

/// `tool_use`: the model announced a call.
#[derive(Deserialize)]
pub(crate) struct ToolUseLine<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) tool_name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) tool_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) parameters: Option<&'a RawValue>,
}

/// `tool_result`. It does not name the tool.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(crate) struct ToolResultLine<'a> {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) tool_id: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) status: Option<Cow<'a, str>>,
    pub(crate) output: Option<&'a RawValue>,
    /// For [`ErrorObject::read`].
    pub(crate) error: Option<&'a RawValue>,
}

impl<'a> ToolResultLine<'a> {
    /// Returns the output if it is a text, or another value as its JSON.
    pub(crate) fn output(&self) -> Option<Cow<'a, str>> {
        #[derive(Deserialize)]
        struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

        let raw = self.output?.get();
        Some(parse::<Text<'a>>(raw).map_or(Cow::Borrowed(raw), |text| text.0))
    }
}

/// `error` of a tool's result or of a run's.
#[derive(Deserialize)]
pub(crate) struct ErrorObject<'a> {
    #[serde(borrow, rename = "type", default, deserialize_with = "or_default")]
    pub(crate) kind: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) message: Option<Cow<'a, str>>,
}

impl<'a> ErrorObject<'a> {
    /// Parses an error object, or a message alone. `None` if it is empty.
    pub(crate) fn read(raw: &'a RawValue) -> Option<Self> {
        #[derive(Deserialize)]
        struct Message<'a>(#[serde(borrow)] Cow<'a, str>);

        parse(raw.get()).or_else(|| {
            let Message(message) = parse(raw.get())?;
            (!message.is_empty()).then_some(Self {
                kind: None,
                message: Some(message),
            })
        })
    }
}

/// `error`: an error before the `result`.
#[derive(Deserialize)]
pub(crate) struct ErrorLine<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) severity: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) message: Option<Cow<'a, str>>,
}

/// `result`: the last line.
#[derive(Deserialize)]
pub(crate) struct ResultLine<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) status: Option<Cow<'a, str>>,
    /// For [`ErrorObject::read`].
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) stats: Option<StatsLine>,
}

/// `stats`: sums of the requests of this process.
#[derive(Deserialize, Default)]
pub(crate) struct StatsLine {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) total_tokens: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) cached: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) input: Option<u64>,
    /// Only the sums of each model. An unreadable model does not affect the others.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) models: BTreeMap<String, Box<RawValue>>,
}
