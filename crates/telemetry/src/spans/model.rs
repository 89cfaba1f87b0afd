//! Requests to a model as spans, from the tokens that the agent reports after each.

use opentelemetry::KeyValue;
use teamster_core::{AgentEvent, Usage, UsageReport};

use super::{AttemptSpan, RunSpans, Spans};
use crate::attributes as names;
use crate::attributes::{of_text, of_usage, short};

/// What is known of the request in progress.
#[derive(Default)]
pub(super) struct ModelRequest {
    /// Time since which the model can be at work: the start of the attempt, or the result of the last call.
    start_ms: u64,
    /// Time of the last call of the answer, before the first of its results.
    call_ms: Option<u64>,
    /// Time of the last result of these calls.
    result_ms: Option<u64>,
    /// What the run has used before.
    before: Usage,
    cost_before_usd: f64,
    /// The model that the agent has named.
    model: Option<String>,
}

impl ModelRequest {
    /// Begins with the first request of an attempt.
    pub(super) fn begin(&mut self, at_ms: u64) {
        (self.start_ms, self.call_ms, self.result_ms) = (at_ms, None, None);
        self.model = None;
    }

    /// Returns the time of a request whose tokens were reported, and begins with the next one. Some agents report them before
    /// the calls of the answer are performed, others after that.
    fn reported(&mut self, at_ms: u64) -> (u64, u64) {
        let start_ms = self.start_ms;
        let end_ms = match (self.call_ms.take(), self.result_ms.take()) {
            (Some(call_ms), Some(result_ms)) => {
                self.start_ms = result_ms;
                call_ms
            }
            _ => {
                self.start_ms = at_ms;
                at_ms
            }
        };
        (start_ms, end_ms)
    }

    /// Returns what was used since the last report, with the cost.
    fn used(&mut self, report: &UsageReport) -> (Usage, Option<f64>) {
        let used = report.usage.since(self.before);
        let cost = report.cost_usd.map(|now| now - self.cost_before_usd);
        self.before = report.usage;
        self.cost_before_usd = report.cost_usd.unwrap_or(self.cost_before_usd);
        (used, cost.filter(|usd| *usd >= 0.0))
    }
}

impl Spans {
    /// Follows the requests of a run, and sends the span of one whose tokens are reported.
    pub(super) fn model_entry(&self, run: &mut RunSpans, event: &AgentEvent, at_ms: u64) {
        let request = &mut run.model;
        match event {
            AgentEvent::SessionStarted(session) => {
                let named = session.model.clone();
                request.model = named.or(request.model.take());
            }
            AgentEvent::ToolUse(_) if request.result_ms.is_none() => {
                request.call_ms = Some(at_ms);
            }
            AgentEvent::ToolResult(_) if request.call_ms.is_some() => {
                request.result_ms = Some(at_ms);
            }
            AgentEvent::ToolResult(_) => request.start_ms = at_ms,
            AgentEvent::Usage(report) => {
                let (used, cost) = request.used(report);
                if used.total_tokens().is_none_or(|tokens| tokens == 0) {
                    return;
                }
                let (start_ms, end_ms) = request.reported(at_ms);
                let Some(attempt) = run.attempts.last() else {
                    return;
                };
                let AttemptSpan {
                    own,
                    provider,
                    model,
                    ..
                } = attempt;
                let mut attributes = vec![KeyValue::new(names::OPERATION, names::CHAT)];
                attributes.extend(self.of_agent(provider, model.as_deref()));
                let reported = request.model.as_deref();
                attributes.extend(reported.map(|model| of_text(names::RESPONSE_MODEL, model)));
                attributes.extend(of_usage(Some(&used), cost, report.cost_source));
                let name = match model.as_deref().or(reported) {
                    Some(model) => format!("{} {}", names::CHAT, short(model)),
                    None => names::CHAT.to_owned(),
                };
                let span = self.open(name, start_ms, attributes, &own.context);
                span.end(end_ms);
            }
            _ => {}
        }
    }
}
