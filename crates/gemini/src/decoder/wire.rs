//! The lines of `gemini --output-format=stream-json`, as far as they are read.
//!
//! Flat structs with optional fields, borrowed where possible: what is not named here is skipped,
//! and a field that is missing or of another type fails nothing. Every name was seen in the output
//! of the real program. Where a text was seen, another value is taken as it stands.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use teamster_core::json_line::{or_default, parse};

/// `init`: the first line.
#[derive(Deserialize)]
pub(super) struct InitLine<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) session_id: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) model: Option<String>,
}

/// `message`: the prompt as the CLI understood it, or a delta of the answer.
#[derive(Deserialize)]
pub(super) struct MessageLine<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) role: Option<Cow<'a, str>>,
    /// Always `true` in the version that was measured.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) delta: Option<bool>,
    /// Not read before the role is known: of the prompt, which may have megabytes, nothing is
    /// copied.
    #[serde(borrow)]
    pub(super) content: Option<&'a RawValue>,
}

/// `tool_use`: the model announced a call.
#[derive(Deserialize)]
pub(super) struct ToolUseLine<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) tool_name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) tool_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) parameters: Option<&'a RawValue>,
}

/// `tool_result`. It does not name the tool.
#[derive(Deserialize)]
pub(super) struct ToolResultLine<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) tool_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) status: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(super) output: Option<&'a RawValue>,
    /// For [`ErrorObject::read`].
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
}

impl<'a> ToolResultLine<'a> {
    /// The output, if it is a text; another value as its JSON.
    pub(super) fn output(&self) -> Option<Cow<'a, str>> {
        #[derive(Deserialize)]
        struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

        let raw = self.output?.get();
        Some(parse::<Text<'a>>(raw).map_or(Cow::Borrowed(raw), |text| text.0))
    }
}

/// `error` of a tool's result or of the run's.
#[derive(Deserialize)]
pub(super) struct ErrorObject<'a> {
    #[serde(borrow, rename = "type", default, deserialize_with = "or_default")]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) message: Option<Cow<'a, str>>,
}

impl<'a> ErrorObject<'a> {
    /// An error as it was seen, or as its message alone. `None` if it says nothing.
    pub(super) fn read(raw: &'a RawValue) -> Option<Self> {
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

/// `error`: something is wrong. A `result` follows.
#[derive(Deserialize)]
pub(super) struct ErrorLine<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) severity: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) message: Option<Cow<'a, str>>,
}

/// `result`: the last line.
#[derive(Deserialize)]
pub(super) struct ResultLine<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) status: Option<Cow<'a, str>>,
    /// For [`ErrorObject::read`].
    #[serde(borrow)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) stats: Option<StatsLine>,
}

/// `stats`: sums over the requests of this process.
#[derive(Deserialize, Default)]
pub(super) struct StatsLine {
    #[serde(default, deserialize_with = "or_default")]
    pub(super) total_tokens: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) cached: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) input: Option<u64>,
    /// The same for each model, of the whole only. A model that cannot be read costs no other.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) models: BTreeMap<String, Box<RawValue>>,
}
