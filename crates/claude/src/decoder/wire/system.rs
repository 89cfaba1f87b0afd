//! `system` lines.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use teamster_core::provider::json_line::or_default;

/// `system` lines, all subtypes in one.
#[derive(Deserialize)]
pub(in crate::decoder) struct SystemLine<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) subtype: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) session_id: Option<Cow<'a, str>>,
    // init
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::decoder) model: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::decoder) tools: Option<Vec<String>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) mcp_servers: Option<Vec<&'a RawValue>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) claude_code_version: Option<Cow<'a, str>>,
    #[serde(
        borrow,
        rename = "apiKeySource",
        default,
        deserialize_with = "or_default"
    )]
    pub(in crate::decoder) api_key_source: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::decoder) slash_commands: Option<Vec<String>>,
    // status
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) status: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) compact_error: Option<Cow<'a, str>>,
    // compact_boundary
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) compact_metadata: Option<CompactMetadata<'a>>,
    // api_retry
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::decoder) attempt: Option<u32>,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::decoder) max_retries: Option<u32>,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::decoder) retry_delay_ms: Option<f64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::decoder) error_status: Option<u16>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) error: Option<&'a RawValue>,
    // informational: a hook blocked the prompt
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::decoder) prevent_continuation: bool,
    // vcs_state_changed, code_change_published
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) kind: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) branch: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) cwd: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) action: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) url: Option<Cow<'a, str>>,
    // other informational lines
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) title: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) plugin: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) reason: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) written_paths: Vec<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) lost: Vec<Cow<'a, str>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::decoder) total_chars: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::decoder) total_limit_chars: Option<u64>,
    // session_state_changed
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) state: Option<Cow<'a, str>>,
    // task_*
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) task_type: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) run_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) task_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) patch: Option<TaskPatch<'a>>,
    // hook_response
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) hook_name: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::decoder) exit_code: Option<i64>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) outcome: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) output: Option<Cow<'a, str>>,
    // task_notification
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) summary: Option<Cow<'a, str>>,
    // model_fallback
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::decoder) fallback_model: Option<String>,
    // model_refusal_no_fallback
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) api_refusal_explanation: Option<Cow<'a, str>>,
    // informational
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) level: Option<Cow<'a, str>>,
    // model_fallback and other lines with text
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) content: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) text: Option<Cow<'a, str>>,
    // permission_denied
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) tool_name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) tool_use_id: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(in crate::decoder) message: Option<Cow<'a, str>>,
}

/// An item of `mcp_servers`. Each is parsed separately.
#[derive(Deserialize)]
pub(in crate::decoder) struct McpServerLine {
    pub(in crate::decoder) name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(in crate::decoder) status: Option<String>,
}

#[derive(Deserialize)]
pub(in crate::decoder) struct CompactMetadata<'a> {
    #[serde(borrow)]
    pub(in crate::decoder) trigger: Option<Cow<'a, str>>,
    pub(in crate::decoder) pre_tokens: Option<u64>,
}

#[derive(Deserialize)]
pub(in crate::decoder) struct TaskPatch<'a> {
    #[serde(borrow)]
    pub(in crate::decoder) status: Option<Cow<'a, str>>,
}
