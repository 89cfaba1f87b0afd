//! `ticks.jsonl`: one record for each tick.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use teamster_api::agents::{Prompt, TickRecord, TickResult};
use teamster_core::CostSource;

use crate::machine::TickEnd;
use crate::tick_usage::UsageRecord;

/// Start of a tick, recorded before the prompt is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TickBegin {
    pub(crate) tick: u64,
    pub(crate) prompt: Prompt,
    pub(crate) begin: Timestamp,
    /// Id of the tick's run: the name of its log, and its row in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<String>,
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

/// Returns the record of a tick with the sum of its usage.
pub(crate) fn record_of(
    begin: TickBegin,
    pid: u32,
    end: Timestamp,
    result: TickResult,
    session: Option<&str>,
    usage: &[UsageRecord],
) -> TickRecord {
    let sum = |figure: fn(&UsageRecord) -> u64| usage.iter().map(figure).sum();
    let cost: Option<f64> = usage.iter().map(|record| record.cost_usd).sum();
    let is_estimate = |it: &UsageRecord| it.cost_source == Some(CostSource::Estimated);
    let source = if usage.iter().any(is_estimate) {
        CostSource::Estimated
    } else {
        CostSource::Reported
    };
    let mut record = TickRecord::new(begin.tick, begin.prompt, begin.begin, end, result);
    record.pid = pid;
    record.run_id = begin.run_id;
    record.session_id = session.map(str::to_owned);
    record.input_tokens = sum(|it| it.input_tokens);
    record.output_tokens = sum(|it| it.output_tokens);
    record.cache_read_tokens = sum(|it| it.cache_read_tokens);
    record.cache_write_tokens = sum(|it| it.cache_write_tokens);
    record.cost_usd = cost.filter(|_| !usage.is_empty());
    record.cost_source = record.cost_usd.map(|_| source);
    record
}
