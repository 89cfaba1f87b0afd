//! Lines of `claude --output-format stream-json`.
//!
//! The structs are flat with optional fields, and borrow where possible. Unknown fields are skipped, and a missing
//! field never fails the parse. Every name was seen in the CLI's output, or is in the schema inside its program.

mod system;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use teamster_core::provider::json_line::{of_any_depth, or_default};
use teamster_core::provider::surrogates::Chars;

use crate::totals::ApiUsage;
use crate::totals::ModelUsageLine;

pub(super) use system::{McpServerLine, SystemLine};

/// `stream_event`: an event of the model's stream, printed with `--include-partial-messages`.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct StreamLine<'a> {
    pub(super) event: StreamEvent<'a>,
    /// Blocks that are dropped, on the end of a message that was cut off and that the CLI ended itself.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) abandoned_blocks: Option<AbandonedBlocks>,
    pub(super) session_id: Option<Cow<'a, str>>,
    pub(super) parent_tool_use_id: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct AbandonedBlocks {
    pub(super) from_block_index: u64,
}

#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct StreamEvent<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(default)]
    pub(super) index: u64,
    pub(super) message: Option<MessageStart<'a>>,
    pub(super) content_block: Option<BlockStart<'a>>,
    pub(super) delta: Option<Delta<'a>>,
    pub(super) usage: Option<ApiUsage>,
}

#[derive(Deserialize)]
pub(super) struct MessageStart<'a> {
    #[serde(borrow)]
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) usage: Option<ApiUsage>,
}

#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct BlockStart<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    pub(super) text: Option<Chars<'a>>,
    pub(super) thinking: Option<Chars<'a>>,
    // A tool call.
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "of_any_depth")]
    pub(super) input: Value,
}

#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct Delta<'a> {
    #[serde(rename = "type")]
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) text: Option<Chars<'a>>,
    pub(super) thinking: Option<Chars<'a>>,
    /// Piece of the JSON of a call's input.
    pub(super) partial_json: Option<Chars<'a>>,
    pub(super) stop_reason: Option<Cow<'a, str>>,
}

/// `assistant` and `user`: complete content blocks.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct MessageLine<'a> {
    pub(super) message: Message<'a>,
    pub(super) session_id: Option<Cow<'a, str>>,
    pub(super) parent_tool_use_id: Option<Cow<'a, str>>,
    /// The CLI's code for a failure, on messages that it generates.
    pub(super) error: Option<Cow<'a, str>>,
    /// A more specific code, for some failures.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) api_error: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) api_error_status: Option<u16>,
    pub(super) tool_use_result: Option<&'a RawValue>,
    #[serde(default, rename = "isReplay")]
    pub(super) is_replay: bool,
}

/// `tombstone`: a printed message that was removed from the conversation.
#[derive(Deserialize)]
pub(super) struct TombstoneLine<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) message: Option<Removed<'a>>,
}

/// The removed message as the CLI stores it: one block of the model, or results of tools.
#[derive(Deserialize)]
pub(super) struct Removed<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) message: Option<Message<'a>>,
}

#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct Message<'a> {
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) model: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) content: Content<'a>,
    /// Usage as the service reported it when the block was complete: all input, and only a part of the output.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) usage: Option<ApiUsage>,
}

/// `content` of a message or of a tool result: a string or a list of blocks.
#[derive(Default)]
pub(super) enum Content<'a> {
    #[default]
    Nothing,
    Text(Cow<'a, str>),
    Blocks(Vec<Block<'a>>),
}

#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct Block<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Cow<'a, str>,
    pub(super) text: Option<Cow<'a, str>>,
    pub(super) thinking: Option<Cow<'a, str>>,
    pub(super) id: Option<Cow<'a, str>>,
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "of_any_depth")]
    pub(super) input: Value,
    pub(super) tool_use_id: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) content: Content<'a>,
    pub(super) is_error: Option<bool>,
    /// An object in images and documents, a string in search results.
    pub(super) source: Option<&'a RawValue>,
    pub(super) title: Option<Cow<'a, str>>,
    pub(super) url: Option<Cow<'a, str>>,
    pub(super) tool_name: Option<Cow<'a, str>>,
}

/// `source` of an image or a document.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct Source<'a> {
    pub(super) media_type: Option<Cow<'a, str>>,
    pub(super) data: Option<Cow<'a, str>>,
    pub(super) url: Option<Cow<'a, str>>,
}

/// `tool_use_result` of a tool that writes files.
#[derive(Deserialize)]
pub(super) struct FileResult<'a> {
    #[serde(borrow, rename = "type")]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "filePath", alias = "notebook_path")]
    pub(super) file_path: Option<Cow<'a, str>>,
}

/// `tool_use_result` of a tool that starts an agent or a workflow.
#[derive(Deserialize)]
pub(super) struct Launched<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) status: Option<Cow<'a, str>>,
    /// Set for an agent.
    #[serde(borrow, rename = "agentId", default, deserialize_with = "or_default")]
    pub(super) agent_id: Option<Cow<'a, str>>,
    /// Set for a workflow.
    #[serde(borrow, rename = "taskId", default, deserialize_with = "or_default")]
    pub(super) task_id: Option<Cow<'a, str>>,
}

/// `tool_use_result` of a tool that manages the task list.
#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct TaskResult<'a> {
    /// Set by `TaskCreate`.
    pub(super) task: Option<TaskLine<'a>>,
    /// Set by `TaskUpdate`.
    #[serde(rename = "taskId")]
    pub(super) task_id: Option<Cow<'a, str>>,
    #[serde(rename = "statusChange")]
    pub(super) status_change: Option<StatusChange<'a>>,
    /// Set by `TaskList`: all tasks.
    pub(super) tasks: Option<Vec<TaskLine<'a>>>,
}

#[derive(Deserialize)]
pub(super) struct TaskLine<'a> {
    #[serde(borrow)]
    pub(super) id: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) subject: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) status: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
pub(super) struct StatusChange<'a> {
    #[serde(borrow)]
    pub(super) to: Cow<'a, str>,
}

/// `result`: the end of one turn.
#[derive(Deserialize)]
pub(super) struct ResultLine<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) subtype: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) is_error: Option<bool>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) api_error_status: Option<u16>,
    /// A more specific code than the previous line's `error`, for some failures.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) api_error: Option<Cow<'a, str>>,
    /// The service's error type.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) api_error_type: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) result: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) errors: Vec<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) stop_reason: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) terminal_reason: Option<Cow<'a, str>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) num_turns: Option<u32>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) duration_api_ms: Option<f64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) total_cost_usd: Option<f64>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) usage: Option<ApiUsage>,
    #[serde(rename = "modelUsage", default, deserialize_with = "or_default")]
    pub(super) model_usage: BTreeMap<String, ModelUsageLine>,
    /// Usage of this process since its last result. Absent in 2.1.197.
    #[serde(default, deserialize_with = "or_default")]
    pub(super) model_usage_since_last_result: Option<BTreeMap<String, ModelUsageLine>>,
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) permission_denials: Vec<DenialLine<'a>>,
    #[serde(default, deserialize_with = "of_any_depth")]
    pub(super) structured_output: Value,
    /// Trigger of the turn, unless it was a prompt.
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) origin: Option<Origin<'a>>,
}

/// Trigger of a turn.
#[derive(Deserialize)]
pub(super) struct Origin<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "runId", default, deserialize_with = "or_default")]
    pub(super) run_id: Option<Cow<'a, str>>,
}

impl Origin<'_> {
    /// Returns whether it was the notification of a task.
    pub(super) fn is_of_a_task(&self) -> bool {
        self.kind.as_deref() == Some("task-notification")
    }
}

impl ResultLine<'_> {
    /// Returns whether the turn failed. Errors of the service have the `subtype` `success` and `is_error`; those of the
    /// CLI have a `subtype` such as `error_max_turns`.
    pub(super) fn failed(&self) -> bool {
        let subtype = self.subtype.as_deref().unwrap_or_default();
        let by_subtype = subtype.starts_with("error");
        by_subtype || self.is_error.unwrap_or(subtype != "success")
    }
}

#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct DenialLine<'a> {
    pub(super) tool_name: Option<Cow<'a, str>>,
    pub(super) tool_use_id: Option<Cow<'a, str>>,
}

/// `os_notification`: a desktop notification.
#[derive(Deserialize)]
pub(super) struct OsNotification<'a> {
    #[serde(borrow)]
    pub(super) message: Cow<'a, str>,
}

/// `active_goal`: state of the user's `/goal`.
#[derive(Deserialize)]
pub(super) struct ActiveGoal<'a> {
    #[serde(borrow)]
    pub(super) value: Option<Goal<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Goal<'a> {
    #[serde(borrow)]
    pub(super) condition: Cow<'a, str>,
    pub(super) iterations: u64,
    #[serde(borrow)]
    pub(super) last_reason: Option<Cow<'a, str>>,
}

/// `refusal_continuation`: the request after a refusal.
#[derive(Deserialize)]
pub(super) struct RefusalContinuation<'a> {
    #[serde(borrow)]
    pub(super) phase: Cow<'a, str>,
}

/// `tool_progress`: a tool that is running.
#[derive(Deserialize)]
pub(super) struct ToolProgress<'a> {
    #[serde(borrow, default, deserialize_with = "or_default")]
    pub(super) subagent_retry: Option<SubAgentRetry<'a>>,
}

/// A retry of a sub-agent's request. Absent in 2.1.197.
#[derive(Deserialize)]
pub(super) struct SubAgentRetry<'a> {
    pub(super) attempt: u32,
    pub(super) max_retries: Option<u32>,
    pub(super) retry_delay_ms: Option<f64>,
    pub(super) error_status: Option<u16>,
    #[serde(borrow)]
    pub(super) error_category: Option<Cow<'a, str>>,
}

/// `rate_limit_event`.
#[derive(Deserialize)]
pub(super) struct RateLimitLine {
    pub(super) rate_limit_info: RateLimitInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RateLimitInfo {
    pub(super) status: String,
    pub(super) resets_at: Option<f64>,
    pub(super) rate_limit_type: Option<String>,
    pub(super) utilization: Option<f64>,
}

/// `control_request`: a request of the CLI to its caller.
#[derive(Deserialize)]
pub(super) struct ControlLine<'a> {
    #[serde(borrow)]
    pub(super) request: ControlRequest<'a>,
}

#[derive(Deserialize)]
#[serde(bound = "'de: 'a")]
pub(super) struct ControlRequest<'a> {
    pub(super) subtype: Option<Cow<'a, str>>,
    pub(super) tool_name: Option<Cow<'a, str>>,
    pub(super) tool_use_id: Option<Cow<'a, str>>,
    pub(super) description: Option<Cow<'a, str>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ContentVisitor;

        impl<'de> Visitor<'de> for ContentVisitor {
            type Value = Content<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of content blocks")
            }

            fn visit_unit<E: de::Error>(self) -> Result<Content<'de>, E> {
                Ok(Content::Nothing)
            }

            fn visit_borrowed_str<E: de::Error>(self, v: &'de str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Cow::Borrowed(v)))
            }

            fn visit_str<E: de::Error>(self, v: &str) -> Result<Content<'de>, E> {
                Ok(Content::Text(Cow::Owned(v.to_owned())))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content<'de>, A::Error> {
                let mut blocks = Vec::new();
                while let Some(block) = seq.next_element()? {
                    blocks.push(block);
                }
                Ok(Content::Blocks(blocks))
            }

            // Some results of server tools are an object.
            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Content<'de>, A::Error> {
                let value = Value::deserialize(de::value::MapAccessDeserializer::new(map))?;
                Ok(Content::Text(Cow::Owned(value.to_string())))
            }
        }

        deserializer.deserialize_any(ContentVisitor)
    }
}
