//! What the run used: the CLI prints no token counts, its record of the session has them.

use std::collections::BTreeMap;

use teamster_core::json_line::{parse, type_of};
use teamster_core::{ModelUsage, Usage};

use super::wire::{CallUsage, Line, UsageRecord};

/// The figures of the requests of one run.
#[derive(Debug, Default)]
pub(super) struct Spent {
    /// Of all models and agents.
    pub(super) usage: Option<Usage>,
    pub(super) by_model: BTreeMap<String, ModelUsage>,
    /// Time spent in requests, in milliseconds.
    pub(super) duration_ms: Option<u64>,
    /// Why the main agent's last request ended.
    pub(super) finish_reason: Option<String>,
}

impl Spent {
    /// The sum over the lines of a session's record.
    pub(super) fn of_record(lines: &[String]) -> Self {
        let mut spent = Self::default();
        for line in lines {
            // Other lines may hold the words, in what somebody said.
            if type_of(line).as_deref() == Some("session.usage_record")
                && let Some(line) = parse::<Line<'_, UsageRecord<'_>>>(line)
            {
                let main = line.agent.get().is_none();
                spent.add(main, &line.data.usage);
            }
        }
        spent
    }

    /// Adds one request.
    pub(super) fn add(&mut self, main_agent: bool, call: &CallUsage<'_>) {
        let usage = usage_of(call);
        if !usage.is_empty() {
            self.usage = Some(self.usage.unwrap_or_default().plus(usage));
            if let Some(model) = call.model.get() {
                let entry = self.by_model.entry(model.to_owned()).or_default();
                entry.usage = entry.usage.plus(usage);
            }
        }
        if let Some(ms) = call.duration {
            self.duration_ms = Some(self.duration_ms.unwrap_or_default().saturating_add(ms));
        }
        if main_agent && call.parent_tool_call_id.get().is_none() {
            self.finish_reason = match call.finish_reason.get() {
                None if call.content_filter_triggered => Some("content_filter".to_owned()),
                reason => reason.map(str::to_owned),
            };
        }
    }
}

/// The CLI counts what was read from and written to a cache as input; here they stand beside it.
fn usage_of(call: &CallUsage<'_>) -> Usage {
    let cached = [call.cache_read_tokens, call.cache_write_tokens]
        .into_iter()
        .flatten()
        .fold(0, u64::saturating_add);
    Usage {
        input_tokens: call.input_tokens.map(|all| all.saturating_sub(cached)),
        output_tokens: call.output_tokens,
        cache_read_tokens: call.cache_read_tokens,
        cache_write_tokens: call.cache_write_tokens,
        reasoning_tokens: call.reasoning_tokens,
    }
}
