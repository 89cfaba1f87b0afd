//! The line `cost-state`, which versions such as 2.1.330 write at the end of a process. It has the session's total
//! usage so far.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

use crate::Key;
use crate::accounts::{ModelTotals, Totals};

/// Maximum distance of a line's type from its start, in bytes.
const HEAD: usize = 64;

/// Sums of a session.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound = "'de: 'a")]
pub(super) struct CostState<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    pub(super) session_id: Option<Cow<'a, str>>,
    /// Start of the sums, in milliseconds since 1970-01-01 UTC.
    start_time: f64,
    /// Total running time of the processes, in milliseconds.
    #[serde(default)]
    total_duration: f64,
    model_usage: BTreeMap<Cow<'a, str>, ModelUsage>,
    /// True if a default price was used for a model that the CLI does not know.
    #[serde(default)]
    has_unknown_model_cost: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ModelUsage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_input_tokens: u64,
    cache_creation_input_tokens: u64,
    #[serde(rename = "cacheCreationEphemeral1hInputTokens", default)]
    cache_creation_1h_input_tokens: u64,
    #[serde(default)]
    web_search_requests: u64,
    #[serde(rename = "costUSD")]
    cost_usd: Option<f64>,
}

/// State of the file before the line.
pub(super) struct Before<'a> {
    pub(super) file_session: Option<&'a str>,
    pub(super) at: Option<Timestamp>,
    pub(super) began: Option<Timestamp>,
    pub(super) forked: bool,
    pub(super) copied: Option<Key>,
    pub(super) directory: Option<std::sync::Arc<str>>,
}

pub(super) fn may_be(line: &[u8]) -> bool {
    let head = &line[..line.len().min(HEAD)];
    memchr::memmem::find(head, b"\"cost-state\"").is_some()
}

/// Parses a line. Returns `Err` if it is malformed, and `Ok(None)` if it is of another kind.
pub(super) fn parse(line: &[u8], before: Before<'_>) -> Result<Option<Totals>, ()> {
    let state: CostState<'_> = serde_json::from_slice(line).map_err(|_| ())?;
    if state.r#type != "cost-state" {
        return Ok(None);
    }
    let session = state.session_id.as_deref().or(before.file_session);
    #[expect(
        clippy::cast_possible_truncation,
        reason = "milliseconds; what is too large saturates"
    )]
    let (start, duration) = (state.start_time as i64, state.total_duration as i64);
    let at = match before.at {
        Some(at) => at,
        None => Timestamp::from_millisecond(start.saturating_add(duration)).map_err(|_| ())?,
    };
    let unknown = state.has_unknown_model_cost;
    let models = state.model_usage.into_iter().map(|(name, used)| {
        // Models that the CLI does not know are not Anthropic's.
        let priced = !unknown || name.contains("claude");
        let sums = ModelTotals {
            figures: [
                used.input_tokens,
                used.output_tokens,
                used.cache_read_input_tokens,
                used.cache_creation_input_tokens,
                used.cache_creation_1h_input_tokens,
                used.web_search_requests,
            ],
            cost: used
                .cost_usd
                .filter(|cost| priced && cost.is_finite() && *cost >= 0.0),
        };
        (name.as_ref().into(), sums)
    });
    Ok(Some(Totals {
        session: session.ok_or(())?.into(),
        directory: before.directory,
        at,
        until: None,
        start,
        duration,
        began: before.began,
        forked: before.forked,
        copied: before.copied,
        models: models.collect(),
    }))
}
