//! Usage of the run. The CLI prints no token counts; its record of the session has them.

use std::collections::BTreeMap;

use teamster_core::provider::json_line::{self, parse, type_of};
use teamster_core::{ModelUsage, Usage};

use super::wire::{CallUsage, Line, Shutdown, UsageRecord};

/// Usage of a session's requests so far, by model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Totals(BTreeMap<String, Usage>);

impl Totals {
    /// Returns the totals in a line, if it is `session.shutdown`.
    pub(crate) fn of_line(line: &str) -> Option<Self> {
        if type_of(line).as_deref() != Some("session.shutdown") {
            return None;
        }
        json_line::read(line.as_bytes(), |line| {
            let line: Line<'_, Shutdown<'_>> = parse(line)?;
            let models = line.data.model_metrics.into_iter();
            let totals = models.map(|(model, metrics)| (model, usage_of(&metrics.usage)));
            Some(Self(totals.collect()))
        })
    }

    /// Returns the difference to earlier totals.
    fn since(self, before: &Self) -> BTreeMap<String, Usage> {
        let models = self.0.into_iter().map(|(model, now)| {
            let then = before.0.get(&model).copied().unwrap_or_default();
            let mut usage = now.since(then);
            // The count is 0 if the service reports none.
            usage.reasoning_tokens = usage.reasoning_tokens.filter(|tokens| *tokens > 0);
            (model, usage)
        });
        let used = |usage: &Usage| usage.total_tokens().is_some_and(|tokens| tokens > 0);
        models.filter(|(_, usage)| used(usage)).collect()
    }
}

/// Usage of the requests of one run.
#[derive(Debug, Default)]
pub(super) struct Spent {
    /// Sum of all models and agents.
    pub(super) usage: Option<Usage>,
    pub(super) by_model: BTreeMap<String, ModelUsage>,
    /// Time spent in requests, in milliseconds.
    pub(super) duration_ms: Option<u64>,
    /// Finish reason of the main agent's last request.
    pub(super) finish_reason: Option<String>,
    /// Totals at the beginning of the session, if the record begins there.
    begun: Option<Totals>,
    /// Totals at the end of the record.
    totals: Option<Totals>,
}

impl Spent {
    /// Adds a line of the session's record. Returns the sum so far if the line has figures of a request.
    pub(super) fn record_line(&mut self, line: &str) -> Option<Usage> {
        // Other lines may contain the words in the text of a message.
        match type_of(line).as_deref() {
            Some("session.usage_record") => {
                let line = parse::<Line<'_, UsageRecord<'_>>>(line)?;
                let main = line.agent.get().is_none();
                self.add(main, &line.data.usage);
                return self.usage;
            }
            Some("session.start") => self.begins_at_zero(),
            Some("session.shutdown") => self.totals_are(Totals::of_line(line)),
            _ => {}
        }
        None
    }

    /// Records that the session's totals begin with this run.
    pub(super) fn begins_at_zero(&mut self) {
        self.begun = Some(Totals::default());
    }

    /// Sets the totals of the session, if they are known.
    pub(super) fn totals_are(&mut self, totals: Option<Totals>) {
        self.totals = totals.or(self.totals.take());
    }

    /// Settles the usage after the last line of the record. Versions that do not record single requests have the
    /// session's totals, and `before` are the totals of earlier runs.
    pub(super) fn settle(&mut self, before: Option<&Totals>) {
        if self.usage.is_none()
            && let Some(totals) = self.totals.take()
            && let Some(before) = self.begun.take().as_ref().or(before)
        {
            for (model, usage) in totals.since(before) {
                self.count(Some(&model), usage);
            }
        }
    }

    /// Adds one request.
    pub(super) fn add(&mut self, main_agent: bool, call: &CallUsage<'_>) {
        self.count(call.model.get(), usage_of(call));
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

impl Spent {
    fn count(&mut self, model: Option<&str>, usage: Usage) {
        if usage.is_empty() {
            return;
        }
        self.usage = Some(self.usage.unwrap_or_default().plus(usage));
        if let Some(model) = model {
            let entry = self.by_model.entry(model.to_owned()).or_default();
            entry.usage = entry.usage.plus(usage);
        }
    }
}

/// Converts the CLI's counts: its input includes tokens read from and written to a cache, which are separate here.
fn usage_of(call: &CallUsage<'_>) -> Usage {
    Usage::default()
        .input_tokens(call.input_tokens)
        .output_tokens(call.output_tokens)
        .cache_read_tokens(call.cache_read_tokens)
        .cache_write_tokens(call.cache_write_tokens)
        .reasoning_tokens(call.reasoning_tokens)
        .without_cache_in_input()
}
