//! `ticks.jsonl`: what became of each tick.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use teamster_core::{CostSource, ErrorKind};

use crate::machine::{Prompt, TickEnd};
use crate::tick_usage::UsageRecord;

/// The beginning of a tick, as it is written down before the prompt is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TickBegin {
    pub(crate) tick: u64,
    pub(crate) prompt: Prompt,
    pub(crate) begin: Timestamp,
    /// The tick as a run: the name of its log, and its row in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<String>,
}

/// How a tick ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TickResult {
    /// The agent came to its end.
    Completed,
    /// The agent reported a failure.
    Failed,
    /// Its request was refused, and its session may be why.
    Refused,
    /// It took too long and was interrupted.
    TimedOut,
    /// It took too long, and its process had to be ended.
    Stuck,
    /// Its process died.
    Died,
    /// Its session cannot go on.
    Unusable,
    /// The loop was asked to end.
    Stopped,
    /// The loop was killed. The next one has written the record.
    Killed,
    /// Another one, of a later version.
    #[serde(other)]
    Other,
}

impl From<TickEnd> for TickResult {
    fn from(end: TickEnd) -> Self {
        match end {
            TickEnd::Completed => Self::Completed,
            TickEnd::Failed => Self::Failed,
            TickEnd::Refused => Self::Refused,
            TickEnd::TimedOut => Self::TimedOut,
            TickEnd::Stuck => Self::Stuck,
            TickEnd::Died => Self::Died,
            TickEnd::Unusable => Self::Unusable,
        }
    }
}

/// One line of `ticks.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct TickRecord {
    /// Its number since the start of its loop, from 1.
    pub tick: u64,
    /// The process id of its loop.
    pub pid: u32,
    /// The tick as a run: the name of its log, and its row in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Which prompt it had.
    pub prompt: Prompt,
    /// When it began.
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub begin: Timestamp,
    /// When it ended; of one whose loop was killed, when the next loop began.
    #[cfg_attr(feature = "schema", schemars(with = "String", extend("format" = "date-time")))]
    pub end: Timestamp,
    /// How it ended.
    pub result: TickResult,
    /// The class of its error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ErrorKind>,
    /// Its error, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The flags that were set at its end, by the names of their files.
    pub flags: Vec<String>,
    /// The session that it was in.
    pub session_id: Option<String>,
    /// Input tokens beside the cache, over all models.
    pub input_tokens: u64,
    /// Output tokens, reasoning included.
    pub output_tokens: u64,
    /// Tokens read from the cache.
    pub cache_read_tokens: u64,
    /// Tokens written to the cache.
    pub cache_write_tokens: u64,
    /// What it cost in USD, if that is known of all its models.
    pub cost_usd: Option<f64>,
    /// Where the cost is from; an estimate if that of any model is one.
    pub cost_source: Option<CostSource>,
}

impl TickRecord {
    /// The name of the file.
    pub const NAME: &str = "ticks.jsonl";

    /// A tick that ended so, of which nothing else is known.
    pub fn new(
        tick: u64,
        prompt: Prompt,
        begin: Timestamp,
        end: Timestamp,
        result: TickResult,
    ) -> Self {
        let begin = TickBegin {
            tick,
            run_id: None,
            prompt,
            begin,
        };
        Self::of(begin, 0, end, result, None, &[])
    }

    pub(crate) fn of(
        begin: TickBegin,
        pid: u32,
        end: Timestamp,
        result: TickResult,
        session: Option<&str>,
        usage: &[UsageRecord],
    ) -> Self {
        let sum = |figure: fn(&UsageRecord) -> u64| usage.iter().map(figure).sum();
        let cost: Option<f64> = usage.iter().map(|record| record.cost_usd).sum();
        let is_estimate = |it: &UsageRecord| it.cost_source == Some(CostSource::Estimated);
        let source = if usage.iter().any(is_estimate) {
            CostSource::Estimated
        } else {
            CostSource::Reported
        };
        let cost = cost.filter(|_| !usage.is_empty());
        Self {
            tick: begin.tick,
            pid,
            run_id: begin.run_id,
            prompt: begin.prompt,
            begin: begin.begin,
            end,
            result,
            error_kind: None,
            error: None,
            flags: Vec::new(),
            session_id: session.map(str::to_owned),
            input_tokens: sum(|it| it.input_tokens),
            output_tokens: sum(|it| it.output_tokens),
            cache_read_tokens: sum(|it| it.cache_read_tokens),
            cache_write_tokens: sum(|it| it.cache_write_tokens),
            cost_usd: cost,
            cost_source: cost.map(|_| source),
        }
    }
}
