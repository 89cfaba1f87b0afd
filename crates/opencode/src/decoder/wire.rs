//! Lines of the CLI: one flat struct for all types, because they share their envelope. Unused fields are left out,
//! and a field of another type counts as missing.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;
use teamster_core::provider::json_line::{of_any_depth, or_default, parse};

/// Any line: the session, and a part of a message or an error.
#[derive(Deserialize)]
pub(crate) struct Line<'a> {
    #[serde(borrow, default, rename = "sessionID", deserialize_with = "or_default")]
    pub(crate) session_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) part: Option<Part<'a>>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
}

/// A part of a message: text, reasoning, a tool call, or the start or end of a step.
#[derive(Deserialize, Default)]
pub(crate) struct Part<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) id: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "messageID", deserialize_with = "or_default")]
    pub(crate) message_id: Option<Cow<'a, str>>,
    // Fields of `text` and `reasoning`.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) text: Option<Cow<'a, str>>,
    /// True if the text is the CLI's, not the model's.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) synthetic: bool,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) metadata: Option<TextMetadata>,
    // Fields of `tool_use`.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) tool: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "callID", deserialize_with = "or_default")]
    pub(crate) call_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) state: Option<ToolState<'a>>,
    // Fields of `step_finish`.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) reason: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) tokens: Option<Tokens>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) cost: Option<f64>,
}

impl Part<'_> {
    /// Returns whether this is a tool call with complete input.
    pub(crate) fn is_running(&self) -> bool {
        let state = self.state.as_ref();
        state.is_some_and(|state| state.status.as_deref() == Some("running"))
    }

    /// Returns whether this is a tool call whose output the CLI removed from the conversation, long after the call.
    pub(crate) fn is_compacted(&self) -> bool {
        let state = self.state.as_ref();
        state.is_some_and(|state| state.time.compacted.is_some())
    }
}

#[derive(Deserialize, Default)]
pub(crate) struct TextMetadata {
    /// True for the text that makes the model continue after a compaction.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) compaction_continue: bool,
}

/// `state` of a tool call. This version prints only calls that have ended.
#[derive(Deserialize, Default)]
pub(crate) struct ToolState<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) status: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "of_any_depth")]
    pub(crate) input: Value,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) output: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) error: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) metadata: ToolMetadata<'a>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) attachments: Vec<Attachment<'a>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) time: ToolTime,
}

impl ToolState<'_> {
    /// Returns whether the call has not ended.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.status.as_deref(), Some("pending" | "running"))
    }
}

#[derive(Deserialize, Default)]
pub(crate) struct ToolTime {
    /// Time at which the CLI removed the output from the conversation, long after the call.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) compacted: Option<f64>,
}

/// Metadata of the CLI's own tools. Tools of MCP servers may have any.
#[derive(Deserialize, Default)]
pub(crate) struct ToolMetadata<'a> {
    /// For `bash`: the exit code; `null` if the command was killed from outside.
    #[serde(borrow, default, deserialize_with = "also_null")]
    pub(crate) exit: Option<&'a RawValue>,
    /// For `write`: the file.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) filepath: Option<Cow<'a, str>>,
    /// For `write`: true if the file existed before.
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) exists: Option<bool>,
    /// For `edit`.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) filediff: Option<FileDiff<'a>>,
    /// For `apply_patch`.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) files: Vec<PatchedFile<'a>>,
    /// For `todowrite`.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) todos: Option<Vec<Todo<'a>>>,
}

#[derive(Deserialize, Default)]
pub(crate) struct FileDiff<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) file: Option<Cow<'a, str>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PatchedFile<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) file_path: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) move_path: Option<Cow<'a, str>>,
    #[serde(borrow, default, rename = "type", deserialize_with = "or_default")]
    pub(crate) change: Option<Cow<'a, str>>,
}

#[derive(Deserialize, Default)]
pub(crate) struct Todo<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) content: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) status: Option<Cow<'a, str>>,
}

/// Media in a tool's result, with the content in a `data:` URL.
#[derive(Deserialize, Default)]
pub(crate) struct Attachment<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) mime: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) url: Option<Cow<'a, str>>,
}

/// Tokens of one step. Cached tokens are not part of `input`, and reasoning is not part of `output`.
#[derive(Deserialize, Default, Clone, Copy)]
pub(crate) struct Tokens {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) input: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) output: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) reasoning: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) cache: CacheTokens,
}

#[derive(Deserialize, Default, Clone, Copy)]
pub(crate) struct CacheTokens {
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) read: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) write: Option<u64>,
}

/// `error` of an error line.
#[derive(Default)]
pub(crate) struct ErrorBody<'a> {
    pub(crate) name: Option<Cow<'a, str>>,
    pub(crate) data: ErrorData<'a>,
}

impl<'a> ErrorBody<'a> {
    /// Parses an error as the CLI prints it, or in another shape: only its message, or without `data`. `None` if it
    /// cannot be parsed.
    pub(crate) fn of(error: &'a RawValue) -> Option<Self> {
        #[derive(Deserialize)]
        struct Body<'a> {
            #[serde(borrow, default, deserialize_with = "or_default")]
            name: Option<Cow<'a, str>>,
            #[serde(borrow, default, deserialize_with = "or_default")]
            message: Option<Cow<'a, str>>,
            #[serde(borrow)]
            data: Option<&'a RawValue>,
        }
        let error = error.get();
        if !error.starts_with('{') {
            let data = ErrorData {
                message: Some(text(error)?),
                ..ErrorData::default()
            };
            return Some(Self { name: None, data });
        }
        let body: Body<'a> = parse(error)?;
        let mut data = match body.data.map(RawValue::get) {
            Some(data) if data.starts_with('"') => ErrorData {
                message: Some(text(data)?),
                ..ErrorData::default()
            },
            Some(data) => parse(data).unwrap_or_default(),
            None => ErrorData::default(),
        };
        data.message = data.message.or(body.message);
        Some(Self {
            name: body.name,
            data,
        })
    }
}

/// Returns a string, or another value as its JSON.
fn text(json: &str) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    if json.starts_with('"') {
        parse::<Text<'_>>(json).map(|text| text.0)
    } else {
        Some(Cow::Borrowed(json))
    }
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ErrorData<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) message: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) status_code: Option<u16>,
    #[serde(default, deserialize_with = "or_default")]
    pub(crate) is_retryable: Option<bool>,
    /// The service's response.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) response_body: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(crate) response_headers: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    /// Reference to the CLI's own log.
    #[serde(rename = "ref", borrow, default, deserialize_with = "or_default")]
    pub(crate) reference: Option<Cow<'a, str>>,
}

/// Deserializes a field that is present, even if it is `null`.
fn also_null<'de, D>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error>
where
    D: Deserializer<'de>,
{
    <&RawValue>::deserialize(deserializer).map(Some)
}
