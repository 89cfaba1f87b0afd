//! `system` lines.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use teamster_core::provider::json_line::or_default;

/// `system` lines, all subtypes in one.
#[serde_with::apply(_ => #[serde(default, deserialize_with = "or_default")])]
#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(in crate::decoder) struct SystemLine<'a> {
    pub(in crate::decoder) subtype: Option<Cow<'a, str>>,
    pub(in crate::decoder) session_id: Option<Cow<'a, str>>,
    // init
    pub(in crate::decoder) model: Option<String>,
    pub(in crate::decoder) tools: Option<Vec<String>>,
    pub(in crate::decoder) mcp_servers: Option<Vec<&'a RawValue>>,
    pub(in crate::decoder) claude_code_version: Option<Cow<'a, str>>,
    #[serde(rename = "apiKeySource")]
    pub(in crate::decoder) api_key_source: Option<Cow<'a, str>>,
    pub(in crate::decoder) slash_commands: Option<Vec<String>>,
    // status
    pub(in crate::decoder) status: Option<Cow<'a, str>>,
    pub(in crate::decoder) compact_error: Option<Cow<'a, str>>,
    // compact_boundary
    pub(in crate::decoder) compact_metadata: Option<CompactMetadata<'a>>,
    // api_retry
    pub(in crate::decoder) attempt: Option<u32>,
    pub(in crate::decoder) max_retries: Option<u32>,
    pub(in crate::decoder) retry_delay_ms: Option<f64>,
    pub(in crate::decoder) error_status: Option<u16>,
    pub(in crate::decoder) error: Option<&'a RawValue>,
    // informational: a hook blocked the prompt
    pub(in crate::decoder) prevent_continuation: bool,
    // vcs_state_changed, code_change_published
    pub(in crate::decoder) kind: Option<Cow<'a, str>>,
    pub(in crate::decoder) branch: Option<Cow<'a, str>>,
    pub(in crate::decoder) cwd: Option<Cow<'a, str>>,
    pub(in crate::decoder) action: Option<Cow<'a, str>>,
    pub(in crate::decoder) url: Option<Cow<'a, str>>,
    // other informational lines
    pub(in crate::decoder) title: Option<Cow<'a, str>>,
    pub(in crate::decoder) name: Option<Cow<'a, str>>,
    pub(in crate::decoder) plugin: Option<Cow<'a, str>>,
    pub(in crate::decoder) reason: Option<Cow<'a, str>>,
    pub(in crate::decoder) written_paths: Vec<Cow<'a, str>>,
    pub(in crate::decoder) lost: Vec<Cow<'a, str>>,
    pub(in crate::decoder) total_chars: Option<u64>,
    pub(in crate::decoder) total_limit_chars: Option<u64>,
    // session_state_changed
    pub(in crate::decoder) state: Option<Cow<'a, str>>,
    // task_*
    pub(in crate::decoder) task_type: Option<Cow<'a, str>>,
    pub(in crate::decoder) run_id: Option<Cow<'a, str>>,
    pub(in crate::decoder) task_id: Option<Cow<'a, str>>,
    pub(in crate::decoder) patch: Option<TaskPatch<'a>>,
    // hook_response
    pub(in crate::decoder) hook_name: Option<Cow<'a, str>>,
    pub(in crate::decoder) exit_code: Option<i64>,
    pub(in crate::decoder) outcome: Option<Cow<'a, str>>,
    pub(in crate::decoder) output: Option<Cow<'a, str>>,
    // task_notification
    pub(in crate::decoder) summary: Option<Cow<'a, str>>,
    // model_fallback
    pub(in crate::decoder) fallback_model: Option<String>,
    // model_refusal_no_fallback
    pub(in crate::decoder) api_refusal_explanation: Option<Cow<'a, str>>,
    // informational
    pub(in crate::decoder) level: Option<Cow<'a, str>>,
    // model_fallback and other lines with text
    pub(in crate::decoder) content: Option<Cow<'a, str>>,
    pub(in crate::decoder) text: Option<Cow<'a, str>>,
    // permission_denied
    pub(in crate::decoder) tool_name: Option<Cow<'a, str>>,
    pub(in crate::decoder) tool_use_id: Option<Cow<'a, str>>,
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
