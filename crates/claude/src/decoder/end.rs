//! Turns and their end: usage and cost.
//!
//! The CLI reports three sets of counts. `usage` of a `result` covers one turn, and only the main model's streamed
//! requests. `modelUsage`, `total_cost_usd` and `duration_api_ms` are running totals of the process, over all models,
//! helpers and sub-agents. The running totals are complete where `usage` is not: it is zero after a request that was
//! retried without streaming. A one-shot run is one process, so its usage is the running totals.
//!
//! Later versions (seen in 2.1.330) continue from the totals of the resumed session. In addition, they report the
//! usage of the process since its last result. With these versions, the sum of that is the usage of the run.
//!
//! In a session of many turns, each turn is a run. Its usage is the increase of the totals.
//!
//! ```text
//! message_start, message_delta, answers of sub-agents ──▶ so_far            until the turn's result is there
//!
//! result: running totals ──▶ printed ──┐ a count that was reset: printed ──▶ carried
//!                                      ├──▶ all = carried + printed
//! result: usage since the last ──▶ carried                │
//!                                                         ├─ all at the start of the turn (before)      = the turn's
//!                                                         └─ all at the start of the session            = the session's
//! ```

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use teamster_core::provider::{DecodedResult, Events};
use teamster_core::{
    AgentError, CostSource, ErrorKind, Id, ModelUsage, NoticeLevel, NoticeSource, SessionStarted,
    TurnEnd, Usage,
};

use super::Synthetic;
use super::errors::Evidence;
use super::usage::{figures, grown, to_ms, total};
use super::wire::ResultLine;
use crate::totals::{ApiUsage, Baseline, ModelUsageLine, Totals};

/// State of the turns so far.
#[derive(Debug, Default)]
pub(super) struct Turns {
    summary: DecodedResult,
    /// Usage of the turn's complete messages, those of sub-agents included.
    so_far: Usage,
    /// Usage at the start of the message that is being streamed.
    streaming: Usage,
    /// The last count of each answer of a sub-agent. Counts are reported repeatedly.
    answers: HashMap<Id, Usage>,
    stop_reason: Option<String>,
    /// True if a message without usage began. The CLI counts a message only at its end.
    unbooked: bool,
    /// The CLI's running totals at the end of the last turn.
    printed: Totals,
    /// What these do not count: usage and cost from before the CLI's count was reset.
    carried: Totals,
    /// All totals at the start of the current turn.
    before: Totals,
    /// Presence of unknown earlier usage in the totals.
    unknown: Unknown,
    /// Totals at the start of the session, if it began in this process and the CLI counts by process. The increase
    /// since then is the session's usage.
    session_from: Option<Usage>,
    denied: HashSet<Id>,
    limit: Option<Limit>,
}

/// Presence of an earlier process's unknown usage in the totals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Unknown {
    #[default]
    No,
    /// Undecided until the first result.
    Maybe,
    /// The totals include it. Only the main model's usage of this run is known.
    Yes,
}

/// A limit of the account that was exceeded.
#[derive(Debug, Clone, Copy)]
struct Limit {
    /// Time of the reset, in milliseconds since the Unix epoch.
    resets_at: Option<u64>,
}

impl Turns {
    /// Creates the state for a run, given the earlier usage of its session.
    pub(super) fn new(baseline: Baseline) -> Self {
        let mut turns = Self::default();
        match baseline {
            Baseline::Unknown => turns.unknown = Unknown::Maybe,
            Baseline::Resumed(session) if session.is_kept() => {
                turns.printed = session;
                turns.session_from = Some(Usage::default());
                turns.next_turn();
            }
            Baseline::New | Baseline::Resumed(_) => {}
        }
        turns
    }

    pub(super) fn session(&mut self, session: &SessionStarted) {
        self.summary.session_id = Some(session.session_id.clone());
        if session.model.is_some() {
            self.summary.model.clone_from(&session.model);
        }
    }

    pub(super) fn message_begins(&mut self, usage: Option<ApiUsage>) {
        self.streaming = usage.map(Usage::from).unwrap_or_default();
        self.unbooked = true;
    }

    /// Handles the final usage of a message. Returns the usage of the run so far.
    pub(super) fn message_delta(
        &mut self,
        stop_reason: Option<&str>,
        usage: Option<ApiUsage>,
    ) -> Option<Usage> {
        if let Some(reason) = stop_reason {
            self.stop_reason = Some(reason.to_owned());
        }
        let at_start = std::mem::take(&mut self.streaming);
        let at_end = Usage::from(usage?);
        self.unbooked = false;
        // Use the counts of the start for those missing at the end.
        let message = Usage::default()
            .input_tokens(at_end.input_tokens.or(at_start.input_tokens))
            .output_tokens(at_end.output_tokens.or(at_start.output_tokens))
            .cache_read_tokens(at_end.cache_read_tokens.or(at_start.cache_read_tokens))
            .cache_write_tokens(at_end.cache_write_tokens.or(at_start.cache_write_tokens));
        self.so_far = self.so_far.plus(message);
        Some(self.so_far).filter(|usage| !usage.is_empty())
    }

    /// Records the usage of a sub-agent's answer. Returns the usage of the run so far if it has increased.
    pub(super) fn sub_agent_used(&mut self, answer: &Id, usage: Usage) -> Option<Usage> {
        let known = self.answers.entry(answer.clone()).or_default();
        if usage.total_tokens() <= known.total_tokens() {
            return None;
        }
        let news = usage.since(std::mem::replace(known, usage));
        self.so_far = self.so_far.plus(news);
        Some(self.so_far)
    }

    /// Records a denied call. Returns whether it is new: every result repeats the denials.
    pub(super) fn first_denial(&mut self, tool_id: &Id) -> bool {
        self.denied.insert(tool_id.clone())
    }

    pub(super) fn limit_reached(&mut self, resets_at: Option<u64>) {
        self.limit = Some(Limit { resets_at });
    }

    /// Returns whether no turn has ended yet.
    pub(super) fn none_ended(&self) -> bool {
        self.summary.ended_with_error.is_none()
    }

    /// Ends a turn. `error` is the CLI's code for the failure, `stopped` the error if a hook ended the turn.
    pub(super) fn result(
        &mut self,
        mut line: ResultLine<'_>,
        error: Option<&str>,
        stopped: Option<AgentError>,
        out: &mut Events,
    ) {
        let failed = line.failed() || stopped.is_some();
        let (usage, cost) = match &line.model_usage_since_last_result {
            Some(models) => self.book(models, &line),
            None => self.spend(&line),
        };
        let session_usage = self.of_session(&line);
        let api_ms = line.duration_api_ms;
        self.printed.api_ms = api_ms.or(self.printed.api_ms);
        let summary = &mut self.summary;
        summary.ended_with_error = Some(failed);
        summary.num_turns = match (summary.num_turns, line.num_turns) {
            (Some(before), Some(now)) => Some(before.saturating_add(now)),
            (before, now) => before.or(now),
        };
        summary.api_duration_ms = match (self.before.api_ms, session_usage) {
            _ if self.unknown == Unknown::Yes => None,
            (Some(before), _) => api_ms
                .map(|now| to_ms(if now < before { now } else { now - before }))
                .or(summary.api_duration_ms),
            // The duration of this run alone is unknown.
            (None, Some(_)) => None,
            (None, None) => api_ms.map(to_ms).or(summary.api_duration_ms),
        };
        summary.session_usage = session_usage;
        summary.final_message = if failed {
            None
        } else {
            let text = line.result.take().filter(|text| !text.is_empty());
            text.map(Cow::into_owned)
        };
        if !line.structured_output.is_null() {
            summary.structured_output = Some(line.structured_output.take());
        }
        let stop_reason = line
            .stop_reason
            .as_deref()
            .map(str::to_owned)
            .or(self.stop_reason.take())
            .or_else(|| {
                let reason = line.terminal_reason.as_deref()?;
                reason.starts_with("aborted").then(|| reason.to_owned())
            });
        self.stop_reason = None;
        summary.stop_reason.clone_from(&stop_reason);
        match stopped {
            Some(error) => out.error(error),
            None if failed => self.failed(&line, error, out),
            // The answer is complete; the hook only prevented more.
            None if line.terminal_reason.as_deref() == Some("stop_hook_prevented") => {
                let message = "a Stop hook ended the run";
                out.notice(NoticeLevel::Info, NoticeSource::Stdout, message);
            }
            None => {}
        }
        out.push(
            TurnEnd::new(failed)
                .stop_reason(stop_reason)
                .usage(usage)
                .cost_usd(cost),
        );
    }

    fn failed(&mut self, line: &ResultLine<'_>, error: Option<&str>, out: &mut Events) {
        let text = match line.result.as_deref() {
            Some(text) if !text.is_empty() => text.to_owned(),
            _ => line.errors.join("; "),
        };
        let evidence = Evidence {
            status: line.api_error_status,
            word: error,
            api_error: line.api_error.as_deref(),
            api_error_type: line.api_error_type.as_deref(),
            subtype: line.subtype.as_deref(),
            terminal_reason: line.terminal_reason.as_deref(),
            stop_reason: line.stop_reason.as_deref(),
            is_retry: false,
            text: &text,
        };
        let message = match (evidence.kind(), line.subtype.as_deref()) {
            (ErrorKind::Aborted, _) => "the run was interrupted".to_owned(),
            (_, subtype) if text.is_empty() => {
                format!("the CLI reported {}", subtype.unwrap_or("an error"))
            }
            _ => text.clone(),
        };
        let mut error = evidence.error(message);
        if let (ErrorKind::RateLimit | ErrorKind::Quota, Some(limit)) = (error.kind, self.limit) {
            error.kind = ErrorKind::Quota;
            error.retryable = error.kind.is_retryable();
            error.resets_at_ms = limit.resets_at;
        }
        out.error(error);
    }

    /// Adds the usage of the process since its last result.
    fn book(
        &mut self,
        models: &BTreeMap<String, ModelUsageLine>,
        line: &ResultLine<'_>,
    ) -> (Option<Usage>, Option<f64>) {
        if std::mem::take(&mut self.unbooked) && models.is_empty() {
            // A request was cut off: it had a cost that the CLI does not report.
            return (None, None);
        }
        let (usage, cost) = if models.is_empty() {
            // After background work, several results come at once, and the first one has all usage.
            let usage = match total(&line.model_usage) {
                Some(total) => total.since(total),
                None => line.usage.map(Usage::from).unwrap_or_default(),
            };
            (usage, Some(0.0))
        } else {
            let cost = models.values().map(|line| line.cost_usd).sum();
            (total(models).unwrap_or_default(), cost)
        };
        self.carried.usage = self.carried.usage.plus(usage);
        let own = self.summary.usage.unwrap_or_default();
        self.summary.usage = Some(own.plus(usage));
        if let Some(cost) = cost {
            self.carried.cost += cost;
            let own = self.summary.cost.map_or(0.0, |(cost, _)| cost);
            self.summary.cost = Some((own + cost, CostSource::Reported));
        }
        for (model, line) in models {
            let now = ModelUsage::from(*line);
            match self.summary.usage_by_model.get_mut(model) {
                Some(before) => {
                    before.usage = before.usage.plus(now.usage);
                    before.cost_usd = before
                        .cost_usd
                        .zip(now.cost_usd)
                        .map(|(before, now)| before + now);
                }
                None => {
                    self.summary.usage_by_model.insert(model.clone(), now);
                }
            }
        }
        (Some(usage).filter(|u| !u.is_empty()), cost)
    }

    /// Returns the session's usage, if it exceeds that of the run.
    fn of_session(&self, line: &ResultLine<'_>) -> Option<Usage> {
        let total = if line.model_usage_since_last_result.is_some() {
            total(&line.model_usage).unwrap_or_default()
        } else {
            self.usage().since(self.session_from?)
        };
        let own = self.summary.usage.unwrap_or_default();
        let has_earlier = figures(total, own).any(|(total, own)| total > own);
        has_earlier.then_some(total)
    }

    /// Returns the total usage of the process.
    fn usage(&self) -> Usage {
        self.carried.usage.plus(self.printed.usage)
    }

    /// Returns the total cost of the process.
    fn cost(&self) -> f64 {
        self.carried.cost + self.printed.cost
    }

    /// Returns this turn's share of the running totals.
    fn spend(&mut self, line: &ResultLine<'_>) -> (Option<Usage>, Option<f64>) {
        let turn_usage = line.usage.map(Usage::from).unwrap_or_default();
        let models: BTreeMap<_, _> = line
            .model_usage
            .iter()
            .map(|(model, usage)| (model.clone(), ModelUsage::from(*usage)))
            .collect();
        let usage = if models.is_empty() {
            self.printed.usage.plus(turn_usage)
        } else {
            models
                .values()
                .fold(Usage::default(), |sum, model| sum.plus(model.usage))
        };
        let total = Totals {
            usage,
            cost: line.total_cost_usd.unwrap_or(self.printed.cost),
            by_model: models,
            api_ms: self.printed.api_ms,
        };
        if std::mem::take(&mut self.unbooked) && total.is_no_more_than(&self.printed) {
            // A request was cut off: it had a cost that the CLI does not report.
            return (None, None);
        }
        if self.unknown == Unknown::Maybe {
            self.look_for_start(usage, turn_usage);
        }
        let mut last = std::mem::replace(&mut self.printed, total);
        if self.printed.is_less_than(&last) {
            self.carried.usage = self.carried.usage.plus(last.usage);
            self.carried.cost += last.cost;
            (last.usage, last.cost) = (Usage::default(), 0.0);
            self.before.by_model.clear();
        }
        let turn = usage.since(last.usage);
        let cost = line.total_cost_usd.map(|cost| cost - last.cost);
        let own = self.usage().since(self.before.usage);
        if self.unknown == Unknown::Yes {
            // The CLI does not count a request without streaming here.
            let known = |usage: &Usage| usage.total_tokens().is_some_and(|sum| sum > 0);
            self.summary.usage = Some(own).filter(known);
            return (Some(turn).filter(known), None);
        }
        self.summary.usage = Some(own);
        if self.printed.by_model.is_empty() {
            self.printed.by_model = last.by_model;
        } else {
            self.summary.usage_by_model = grown(&self.printed.by_model, &self.before.by_model);
        }
        if line.total_cost_usd.is_some() {
            let cost = self.cost() - self.before.cost;
            self.summary.cost = Some((cost, CostSource::Reported));
        }
        (Some(turn).filter(|u| !u.is_empty()), cost)
    }

    /// Handles the first totals of a resumed session with unknown usage. Totals that exceed those of the turn include
    /// earlier usage.
    fn look_for_start(&mut self, total: Usage, turn: Usage) {
        self.unknown = Unknown::No;
        if figures(total, turn).any(|(total, turn)| total > turn) {
            self.unknown = Unknown::Yes;
            self.printed.usage = total.since(turn);
            self.before.usage = self.printed.usage;
        }
    }

    /// Ends the run. `pending` is the last message that the CLI generated. `in_turn` is true if the end of a turn is
    /// missing. `at_work` is true if that is so or background work was unfinished.
    pub(super) fn finish(
        &mut self,
        pending: Option<Synthetic>,
        in_turn: bool,
        at_work: bool,
        out: &mut Events,
    ) -> DecodedResult {
        if in_turn {
            self.summary.ended_with_error = None;
            self.summary.final_message = None;
        }
        if let Some(Synthetic {
            text,
            error: Some(word),
            api_error,
            status,
        }) = pending
        {
            // The result with this error is missing.
            let evidence = Evidence {
                status,
                word: Some(&word),
                api_error: api_error.as_deref(),
                text: &text,
                ..Evidence::default()
            };
            out.error(evidence.error(text.clone()));
        }
        let mut summary = std::mem::take(&mut self.summary);
        let so_far = self.so_far;
        let is_less = |usage: Usage| at_work && usage.total_tokens() < so_far.total_tokens();
        if summary.usage.is_none_or(is_less) {
            summary.usage = Some(so_far).filter(|usage| !usage.is_empty());
        }
        if summary.stop_reason.is_none() {
            summary.stop_reason = self.stop_reason.take();
        }
        summary
    }

    /// Marks the start of a new session in this process.
    pub(super) fn session_begins(&mut self) {
        self.session_from = Some(self.usage());
    }

    /// Starts the next turn.
    pub(super) fn next_turn(&mut self) {
        self.before = Totals {
            usage: self.usage(),
            cost: self.cost(),
            ..self.printed.clone()
        };
        if self.unknown == Unknown::Yes {
            // Earlier usage is now part of the totals.
            self.unknown = Unknown::No;
        }
        self.summary = DecodedResult::default();
        self.so_far = Usage::default();
        self.stop_reason = None;
    }
}
